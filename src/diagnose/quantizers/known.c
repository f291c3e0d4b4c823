// What exporters are known to do to the scales of stored integers.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/quantizers/alternatives.h"

// How many times as large scales should be. Sources: ONNX Runtime's quant_utils.py (127 and 127.5
// for symmetric ranges), TensorFlow Lite's quantization specification (narrow ranges of 127, full
// ones of 128), PyTorch's observers (255 and 254 steps), shifts by powers of two of integer
// hardware.
static const struct {
  double times;
  const char* how;
} factors[] = {
    {127.5 / 127, "127 steps on either side for 127.5"},
    {127 / 127.5, "127.5 for 127"},
    {128.0 / 127, "127 for 128"},
    {127.0 / 128, "128 for 127"},
    {255.0 / 254, "254 steps for 255"},
    {254.0 / 255, "255 for 254"},
    {256.0 / 255, "255 for 256"},
    {255.0 / 256, "256 for 255"},
    {2, "twice"},
    {0.5, "half"},
    {4, "a power of two"},
    {0.25, "a power of two"},
    {8, "a power of two"},
    {0.125, "a power of two"},
    {16, "a power of two"},
    {1.0 / 16, "a power of two"},
    {127, "the range itself"},
    {1.0 / 127, "the range for a step"},
    {128, "the range itself"},
    {1.0 / 128, "the range for a step"},
    {255, "the range itself"},
    {1.0 / 255, "the range for a step"},
    {256, "the range itself"},
    {1.0 / 256, "the range for a step"},
};

static assay_quantizer_alternative_t scales_alone(assay_quantizer_pattern_t pattern) {
  return (assay_quantizer_alternative_t){
      .change = ASSAY_QUANTIZER_SCALED, .exact = true, .pattern = pattern};
}

static assay_status_t try_factors(const assay_quantizers_t* q, size_t site, double near,
                                  const assay_quantizer_taker_t* to) {
  static const double ABOUT = 1.1;
  for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
    const double off = near > 0 ? factors[k].times / near : 1;
    if (off > ABOUT || off < 1 / ABOUT) continue;
    assay_quantizer_alternative_t a = scales_alone(ASSAY_QUANTIZER_ANOTHER);
    ASSAY_TRY(assay_quantizer_scaled(&q->at[site].has, factors[k].times, factors[k].how, &a.by));
    ASSAY_TRY(assay_quantizer_offer(to, site, &a));
  }
  return NULL;
}

// Another power of the scale: its reciprocal, or it was applied twice.
static assay_status_t try_powers(const assay_quantizers_t* q, size_t site,
                                 const assay_quantizer_taker_t* to) {
  const assay_quantizer_scales_t* has = &q->at[site].has;
  for (int k = 0; k < 3; k++) {
    assay_quantizer_alternative_t a = scales_alone(ASSAY_QUANTIZER_ANOTHER);
    ASSAY_TRY(assay_quantizer_scaled(has, 1, k ? k > 1 ? "squared" : "its root" : "its reciprocal",
                                     &a.by));
    bool finite = true;
    for (int64_t i = 0; i < a.by.n; i++) {
      const double s = has->scale[i];
      a.by.scale[i] = (double)(float)(k ? k > 1 ? s * s : sqrt(s) : 1 / s);
      finite = finite && s > 0 && isfinite(a.by.scale[i]) && a.by.scale[i] > 0;
    }
    assay_status_t st = finite ? assay_quantizer_offer(to, site, &a) : NULL;
    assay_quantizer_scales_deinit(&a.by);
    if (st) return st;
  }
  return NULL;
}

// Where index i of the channels' scales may have been.
static int64_t place(int kind, int64_t i, int64_t n) {
  switch (kind) {
    case 0:
      return n - 1 - i;
    case 1:
      return (i + 1) % n;
    case 2:
      return (i + n - 1) % n;
    case 3:
      return (i + n / 2) % n;
    default: {  // a x b turned to b x a, a being 2, 3, 4, 6, 8 and the reverse
      static const int64_t parts[] = {2, 3, 4, 6, 8};
      const int64_t p = parts[(kind - 4) / 2], a = (kind - 4) % 2 ? n / p : p;
      return n % p || n == p ? i : i % a * (n / a) + i / a;
    }
  }
}

static assay_status_t try_orders(const assay_quantizers_t* q, size_t site,
                                 const assay_quantizer_taker_t* to) {
  enum { KINDS = 14 };
  const assay_quantizer_scales_t* has = &q->at[site].has;
  for (int kind = 0; kind < KINDS && has->n > 1; kind++) {
    assay_quantizer_alternative_t a = scales_alone(ASSAY_QUANTIZER_ORDER);
    bool other = false;
    ASSAY_TRY(assay_quantizer_scaled(has, 1, "in another order", &a.by));
    for (int64_t i = 0; i < has->n; i++) {
      const int64_t from = place(kind, i, has->n);
      a.by.scale[i] = has->scale[from];
      a.by.zero[i] = has->zero[from];
      other |= a.by.scale[i] != has->scale[i];
    }
    assay_status_t st = other ? assay_quantizer_offer(to, site, &a) : NULL;
    assay_quantizer_scales_deinit(&a.by);
    if (st) return st;
  }
  return NULL;
}

static assay_status_t try_axes(const assay_quantizers_t* q, size_t site,
                               const assay_quantizer_taker_t* to) {
  const assay_quantizer_site_t* s = &q->at[site];
  assay_tensor_t* integers = NULL;
  if (s->has.n < 2) return NULL;
  ASSAY_TRY(assay_quantizer_integers(s, &integers));
  assay_status_t st = NULL;
  for (int axis = 0; !st && axis < integers->rank; axis++) {
    if (axis == s->has.axis || integers->dims[axis] != s->has.n) continue;
    assay_quantizer_alternative_t a = scales_alone(ASSAY_QUANTIZER_AXIS);
    st = assay_quantizer_scaled(&s->has, 1, "along another axis", &a.by);
    a.by.axis = axis;
    if (!st) st = assay_quantizer_offer(to, site, &a);
  }
  assay_tensor_release(integers);
  return st;
}

// Those of another tensor that could have been taken for it.
static assay_status_t try_others(const assay_quantizers_t* q, size_t site, double near,
                                 const assay_quantizer_taker_t* to) {
  static const double ABOUT = 1.5;
  const assay_quantizer_site_t* s = &q->at[site];
  for (size_t k = 0; k < q->n; k++) {
    const assay_quantizer_site_t* o = &q->at[k];
    if (k == site || o->has.n != s->has.n || o->type != s->type || o->stored != s->stored) continue;
    const double times = o->has.scale[0] / s->has.scale[0];
    if (near > 0 && !(times < near * ABOUT && times > near / ABOUT)) continue;
    assay_quantizer_alternative_t a = scales_alone(ASSAY_QUANTIZER_ANOTHER);
    ASSAY_TRY(assay_quantizer_scaled(&o->has, 1, "as another tensor has", &a.by));
    a.by.axis = s->has.axis;
    ASSAY_TRY(assay_quantizer_offer(to, site, &a));
  }
  return NULL;
}

// An activation's parameters may be another tensor's: what reaches it tells about what they were.
static assay_status_t try_range_seen(const assay_quantizers_t* q, size_t site,
                                     const assay_quantizer_taker_t* to) {
  const assay_quantizer_scales_t* fits = &q->at[site].fits;
  if (q->at[site].has.n != 1 || fits->n != 1) return NULL;
  assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED};
  ASSAY_TRY(assay_quantizer_scaled(fits, 1, fits->how, &a.by));
  return assay_quantizer_offer(to, site, &a);
}

assay_status_t assay_quantizer_known(const assay_quantizers_t* q, size_t site, double near,
                                     const assay_quantizer_taker_t* to) {
  if (!q->at[site].stored) return try_range_seen(q, site, to);
  ASSAY_TRY(try_factors(q, site, near, to));
  ASSAY_TRY(try_axes(q, site, to));
  ASSAY_TRY(try_orders(q, site, to));
  ASSAY_TRY(try_powers(q, site, to));
  return try_others(q, site, near, to);
}
