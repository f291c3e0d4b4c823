// DynamicQuantizeLinear: bytes by the range of the very elements, their scale and zero point.
//
// Source: ONNX DynamicQuantizeLinear 11; each step is rounded to float32, as ops/quant/quantize.c
// says: the same bits.
#include <math.h>

#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

enum { Y, SCALE, ZERO, OUTPUTS, PARTS = 64 };

typedef struct dynamic {
  assay_kernel_t base;
  int64_t size;
} dynamic_t;

typedef struct range {
  float min, max;
} range_t;

// 0 is always in it, NaN never.
CLONES
static range_t range_of(const float* x, int64_t n) {
  enum { LANES = 16 };
  float min[LANES] = {0}, max[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) {
      min[j] = x[i + j] < min[j] ? x[i + j] : min[j];
      max[j] = x[i + j] > max[j] ? x[i + j] : max[j];
    }
  for (int j = 0; i + j < n; j++) {
    min[j] = x[i + j] < min[j] ? x[i + j] : min[j];
    max[j] = x[i + j] > max[j] ? x[i + j] : max[j];
  }
  for (int j = 1; j < LANES; j++) {
    min[0] = min[j] < min[0] ? min[j] : min[0];
    max[0] = max[j] > max[0] ? max[j] : max[0];
  }
  return (range_t){min[0], max[0]};
}

// NaN becomes 0, as where it is rounded to an integer.
CLONES
static void quantize(const float* x, int64_t n, float scale, float zero, uint8_t* y) {
  const float shift = 0x1.8p23F;  // adding it rounds to an integer, ties to even
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float v = x[i] / scale;
    const bool number = v == v;
    // Of numbers past these the byte is the same.
    v = v < -512 ? -512 : v > 512 ? 512 : v;
    v = (v + shift) - shift + zero;
    v = v < 0 ? 0 : v > 255 ? 255 : v;
    y[i] = (uint8_t)(number ? v : 0);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const dynamic_t* k = (const dynamic_t*)base;
  const float* x = in[0];
  int parts = cpu_threads(k->size);
  range_t ranges[PARTS], all = {0, 0};
  (void)scratch;
  if (parts > PARTS) parts = PARTS;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++) {
    const int64_t from = k->size * p / parts, to = k->size * (p + 1) / parts;
    ranges[p] = range_of(x + from, to - from);
  }
  for (int p = 0; p < parts; p++) {
    all.min = ranges[p].min < all.min ? ranges[p].min : all.min;
    all.max = ranges[p].max > all.max ? ranges[p].max : all.max;
  }
  const float range = all.max == all.min ? 255 : all.max - all.min, scale = range / 255;
  const float zero = nearbyintf(fminf(fmaxf(-(all.min / scale), 0), 255));
  *(float*)out[SCALE] = scale;
  *(uint8_t*)out[ZERO] = (uint8_t)zero;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++) {
    const int64_t from = k->size * p / parts, to = k->size * (p + 1) / parts;
    quantize(x + from, to - from, scale, zero, (uint8_t*)out[Y] + from);
  }
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

static bool read(const assay_sized_layer_t* l, dynamic_t* k) {
  static const assay_type_t types[] = {ASSAY_TYPE_UINT8, ASSAY_TYPE_FLOAT, ASSAY_TYPE_UINT8};
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  *k = (dynamic_t){.base = {.in_place = -1, .run = run, .destroy = destroy}};
  if (l->layer->n_nodes != 1 || !int8_is(n, "DynamicQuantizeLinear") || l->n_in != 1 || !x ||
      x->type != ASSAY_TYPE_FLOAT || l->layer->format != ASSAY_FORMAT_FP32 || l->n_out != OUTPUTS ||
      l->out[Y].size != x->size)
    return false;
  for (size_t i = 0; i < l->n_out; i++) {
    if (!l->out[i].value || l->out[i].type != types[i] || (i != Y && l->out[i].size != 1))
      return false;
    k->base.out[i] = (assay_storage_t){types[i], ASSAY_LAYOUT_PLAIN};
  }
  k->base.in[0] = (assay_storage_t){ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN};
  k->size = x->size;
  return true;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  dynamic_t *k = NULL, made;
  if (!read(l, &made)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  *k = made;
  *out = &k->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* base, bool* out_ok) {
  dynamic_t now;
  *out_ok = read(l, &now);
  if (*out_ok) ((dynamic_t*)base)->size = now.size;
  return NULL;
}

const assay_tactic_t cpu_tactic_dynamic_quantize = {
    .name = "dynamic_quantize",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .resize = resize,
    .rounding = INT8_ROUNDING,
};
