// Scales that something else in the model speaks for.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/quantizers/alternatives.h"

// A quantizer is odd if its values fill less than this part of its range, or so many of them are
// clipped. Products of scales are rounded to float32, no more.
static const double UNUSED = 0.4, CLIPPED = 0.002, DIFFERS = 1e-4;

static bool is_op(const assay_node_t* n, const char* op_type) {
  return n && strcmp(n->op_type, op_type) == 0;
}

const assay_quantizer_site_t* assay_quantizer_site_of(const assay_quantizers_t* q,
                                                      const assay_value_t* v) {
  const assay_node_t* n = v ? v->producer : NULL;
  for (size_t i = 0; n && i < q->n; i++)
    if (is_op(n, "DequantizeLinear") && n->n_inputs &&
        (q->at[i].dequantize == n || assay_quantizer_is_read_by(q->at[i].node, n)))
      return &q->at[i];
  return NULL;
}

assay_status_t assay_quantizer_scaled(const assay_quantizer_scales_t* s, double times,
                                      const char* how, assay_quantizer_scales_t* out) {
  ASSAY_TRY(assay_quantizer_scales_create(s->axis, s->n, out));
  for (int64_t i = 0; i < s->n; i++) {
    out->scale[i] = (double)(float)(s->scale[i] * times);
    out->zero[i] = s->zero[i];
  }
  out->how = how;
  return NULL;
}

assay_status_t assay_quantizer_offer(const assay_quantizer_taker_t* to, size_t site,
                                     assay_quantizer_alternative_t* a) {
  assay_status_t st = to->take(to->user, site, a);
  assay_quantizer_scales_deinit(&a->by);
  return st;
}

static bool differ(double a, double b) {
  return a > 0 && b > 0 && isfinite(a) && isfinite(b) && fabs(a / b - 1) > DIFFERS;
}

// ---- a bias ------------------------------------------------------------------------------------

// What is added to a product: of Conv, Gemm, a normalization by constants.
typedef struct product {
  const assay_quantizer_site_t *x, *w, *b;
} product_t;

static product_t product_of(const assay_quantizers_t* q, const assay_node_t* n) {
  product_t p = {.x = NULL};
  if (n->n_inputs < 3 || !n->inputs[2] || !is_op(n->inputs[2]->producer, "DequantizeLinear"))
    return p;
  p.x = assay_quantizer_site_of(q, n->inputs[0]);
  p.w = assay_quantizer_site_of(q, n->inputs[1]);
  p.b = assay_quantizer_site_of(q, n->inputs[2]);
  if (!p.x || !p.w || !p.b || !p.b->bias || p.x->has.n != 1 || p.b->has.n < 1) p.x = NULL;
  return p;
}

static double scale_of(const assay_quantizer_site_t* s, int64_t i) {
  return s->has.scale[s->has.n == 1 ? 0 : i];
}

static int64_t channels_of(const product_t* p) {
  return p->b->has.n > p->w->has.n ? p->b->has.n : p->w->has.n;
}

// The scale that the other two tell: a bias is in units of the product of both inputs' scales.
static double by_product(const product_t* p, const assay_quantizer_site_t* s, int64_t i) {
  if (s == p->b) return scale_of(p->x, 0) * scale_of(p->w, i);
  return scale_of(p->b, i) / scale_of(s == p->w ? p->x : p->w, i);
}

// A scale that was another tensor's came with its zero point: those near what fits are tried, too.
static assay_status_t from_zero_points(size_t site, const assay_quantizer_site_t* s,
                                       const assay_quantizer_alternative_t* as,
                                       const assay_quantizer_taker_t* to) {
  enum { NEAR = 4 };
  const double low = fmin(s->min, 0), about = rint(s->low - low / as->by.scale[0]);
  for (int k = -NEAR; k <= NEAR && s->has.zero[0] != 0; k++) {
    const double zero = about + k;
    assay_quantizer_alternative_t a = *as;
    if (zero < s->low || zero > s->high || zero == s->has.zero[0]) continue;
    ASSAY_TRY(assay_quantizer_scaled(&as->by, 1, as->by.how, &a.by));
    a.by.zero[0] = zero;
    ASSAY_TRY(assay_quantizer_offer(to, site, &a));
  }
  return NULL;
}

static assay_status_t from_product(const product_t* p, size_t site, const assay_quantizer_site_t* s,
                                   const assay_quantizer_taker_t* to) {
  assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED, .exact = true};
  const int64_t n = s == p->x ? 1 : channels_of(p);
  const bool fits = p->b->has.n == p->w->has.n || p->b->has.n == 1 || p->w->has.n == 1;
  bool other = false;
  if (!fits || (n > 1 && s->has.n != n && s != p->b)) return NULL;
  ASSAY_TRY(assay_quantizer_scales_create(n == 1 ? -1 : s == p->b ? 0 : s->has.axis, n, &a.by));
  for (int64_t i = 0; i < n; i++) {
    a.by.scale[i] = (double)(float)by_product(p, s, i);
    a.by.zero[i] = s->has.zero[s->has.n == 1 ? 0 : i];
    other |= differ(a.by.scale[i], scale_of(s, i));
  }
  a.by.how = s == p->b ? "the product of its inputs' scales" : "as its bias has it";
  if (s == p->b) a.pattern = ASSAY_QUANTIZER_PRODUCT;
  if (!other) return assay_quantizer_scales_deinit(&a.by), NULL;
  if (s == p->x && s->fits.n == 1) ASSAY_TRY(from_zero_points(site, s, &a, to));
  return assay_quantizer_offer(to, site, &a);
}

static assay_status_t from_products(const assay_quantizers_t* q, size_t site,
                                    const assay_quantizer_taker_t* to) {
  const assay_quantizer_site_t* s = &q->at[site];
  const assay_graph_t* g = s->node->graph;
  for (size_t k = 0; k < g->n_nodes; k++) {
    const product_t p = product_of(q, g->nodes[k]);
    if (p.x && (s == p.x || s == p.w || s == p.b)) ASSAY_TRY(from_product(&p, site, s, to));
  }
  return NULL;
}

// ---- a neighbour -------------------------------------------------------------------------------

static bool only_moves(const assay_node_t* n) {
  return n && ((n->op && n->op->flags & ASSAY_OP_MOVES) || is_op(n, "MaxPool")) && n->n_inputs;
}

// On both sides of a node that only moves elements scales are the same.
static assay_status_t from_neighbours(const assay_quantizers_t* q, size_t site,
                                      const assay_quantizer_taker_t* to) {
  const assay_quantizer_site_t* s = &q->at[site];
  const assay_node_t* before = s->stored ? NULL : s->value->producer;
  for (size_t k = 0; k < q->n && s->has.n == 1 && !s->bias; k++) {
    const assay_quantizer_site_t* o = &q->at[k];
    const assay_node_t* after = o->stored ? NULL : o->value->producer;
    const bool beside =
        (only_moves(before) && assay_quantizer_site_of(q, before->inputs[0]) == o) ||
        (only_moves(after) && assay_quantizer_site_of(q, after->inputs[0]) == s);
    const bool same = o->has.n == 1 && !differ(o->has.scale[0], s->has.scale[0]) &&
                      o->has.zero[0] == s->has.zero[0];
    if (!beside || o->has.n != 1 || o->type != s->type || same) continue;
    assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED, .exact = true};
    ASSAY_TRY(assay_quantizer_scaled(&o->has, 1, "as beside it", &a.by));
    ASSAY_TRY(assay_quantizer_offer(to, site, &a));
  }
  return NULL;
}

// ---- stored bytes ------------------------------------------------------------------------------

// Spread about their mean of bytes as they are, or read the other way: weights lie about a middle,
// and read wrongly at both ends.
static double spread(const assay_tensor_t* q, bool other) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < q->size; i++) {
    const double b = (double)assay_i64(q)[i];
    const double x = other ? assay_quantizer_other_sign(b) : b;
    sum += x;
    squares += x * x;
  }
  const double mean = sum / (double)q->size;
  return sqrt(fmax(squares / (double)q->size - mean * mean, 0));
}

static assay_status_t offer_reading(const assay_quantizers_t* q, size_t site, bool other,
                                    double zero, const assay_quantizer_taker_t* to) {
  const assay_quantizer_site_t* s = &q->at[site];
  assay_quantizer_alternative_t a = {
      .change = ASSAY_QUANTIZER_SCALED,
      .other_sign = other,
      .exact = true,
      .pattern = other ? ASSAY_QUANTIZER_SIGN : ASSAY_QUANTIZER_ZERO};
  bool same = !other;
  ASSAY_TRY(assay_quantizer_scaled(&s->has, 1, "as the bytes are", &a.by));
  for (int64_t i = 0; i < a.by.n; i++) {
    a.by.zero[i] = isnan(zero) ? assay_quantizer_other_sign(s->has.zero[i]) : zero;
    if (s->low < 0 ? a.by.zero[i] == 128 && !other : false) a.by.zero[i] = -128;
    same = same && a.by.zero[i] == s->has.zero[i];
  }
  return same ? (assay_quantizer_scales_deinit(&a.by), NULL) : assay_quantizer_offer(to, site, &a);
}

// The middle of a type: where symmetric weights have their 0.
static double middle(const assay_quantizer_site_t* s, bool other) {
  return (s->low < 0) != other ? 0 : 128;
}

static assay_status_t from_bytes(const assay_quantizers_t* q, size_t site,
                                 const assay_quantizer_taker_t* to) {
  static const double NARROWER = 1.3;
  static const int64_t FEW = 4;
  const assay_quantizer_site_t* s = &q->at[site];
  assay_tensor_t* bytes = NULL;
  if (!s->stored || s->bias || s->high - s->low != 255) return NULL;
  ASSAY_TRY(assay_quantizer_integers(s, &bytes));
  const double now = spread(bytes, false), then = spread(bytes, true);
  double mean = 0;
  for (int64_t i = 0; i < bytes->size; i++) mean += (double)assay_i64(bytes)[i];
  mean /= (double)(bytes->size ? bytes->size : 1);
  const bool few = bytes->size < FEW;
  assay_tensor_release(bytes);
  if (few) return NULL;
  if (now > NARROWER * then) {
    ASSAY_TRY(offer_reading(q, site, true, (double)NAN, to));
    ASSAY_TRY(offer_reading(q, site, true, middle(s, true), to));
  }
  // Numbers that all lie far to one side of 0: the zero point may be lost.
  if (s->has.n && fabs(mean - s->has.zero[0]) > 2 * now) {
    ASSAY_TRY(offer_reading(q, site, false, middle(s, false), to));
    ASSAY_TRY(offer_reading(q, site, false, s->low, to));
    ASSAY_TRY(offer_reading(q, site, true, (double)NAN, to));
  }
  return NULL;
}

// ---- the axis ----------------------------------------------------------------------------------

// Which part of the indices of an axis reach the largest integer that there is, or the one before:
// scales made for each index let all do.
static double filled(const assay_quantizer_site_t* s, const assay_tensor_t* q, int axis,
                     double* most) {
  const int64_t n = q->dims[axis], inner = assay_dims_product(q->dims, axis + 1, q->rank);
  double largest = 0;
  int64_t full = 0;
  for (int64_t c = 0; c < n; c++) most[c] = 0;
  for (int64_t i = 0; i < q->size; i++) {
    const double k = fabs((double)assay_i64(q)[i] - s->has.zero[0]);
    double* m = &most[i / inner % n];
    if (k > *m) *m = k;
    if (k > largest) largest = k;
  }
  for (int64_t c = 0; c < n; c++) full += most[c] >= largest - 1;
  return n ? (double)full / (double)n : 0;
}

static assay_status_t from_axis(const assay_quantizers_t* q, size_t site,
                                const assay_quantizer_taker_t* to) {
  static const double ALL = 0.9;
  const assay_quantizer_site_t* s = &q->at[site];
  assay_tensor_t* bytes = NULL;
  double* most = NULL;
  if (!s->stored || s->bias || s->has.n < 2 || s->has.axis < 0) return NULL;
  ASSAY_TRY(assay_quantizer_integers(s, &bytes));
  assay_status_t st = assay_new_array((size_t)s->has.n, sizeof *most, &most);
  if (!st && s->has.axis < bytes->rank && bytes->dims[s->has.axis] == s->has.n) {
    const double now = filled(s, bytes, s->has.axis, most);
    for (int axis = 0; !st && now < ALL && axis < bytes->rank; axis++) {
      if (axis == s->has.axis || bytes->dims[axis] != s->has.n ||
          filled(s, bytes, axis, most) < fmax(ALL, now + 0.2))
        continue;
      assay_quantizer_alternative_t a = {
          .change = ASSAY_QUANTIZER_SCALED, .exact = true, .pattern = ASSAY_QUANTIZER_AXIS};
      st = assay_quantizer_scaled(&s->has, 1, "along the axis that its integers fill", &a.by);
      a.by.axis = axis;
      if (!st) st = assay_quantizer_offer(to, site, &a);
    }
  }
  assay_free(most);
  assay_tensor_release(bytes);
  return st;
}

// ---- all ---------------------------------------------------------------------------------------

static bool is_odd(const assay_quantizer_site_t* s) {
  const double range = (s->high - s->low) * s->has.scale[0];
  const double low = fmin(s->min, 0), high = fmax(s->max, 0);
  if (s->stored || s->weight || s->has.n != 1 || !s->elements) return false;
  const double used =
      s->low < 0 && s->has.zero[0] == 0 ? 2 * fmax(-low, high) : high - (s->cuts ? 0 : low);
  return used < UNUSED * range || (double)s->outside > CLIPPED * (double)s->elements;
}

static assay_status_t from_pair(const assay_quantizers_t* q, size_t site,
                                const assay_quantizer_taker_t* to) {
  assay_quantizer_alternative_t to_pair = {.change = ASSAY_QUANTIZER_PAIRED, .exact = true},
                                to_read = {.change = ASSAY_QUANTIZER_READ, .exact = true};
  if (!q->at[site].reads.n) return NULL;
  ASSAY_TRY(assay_quantizer_offer(to, site, &to_pair));
  return assay_quantizer_offer(to, site, &to_read);
}

assay_status_t assay_quantizer_told(const assay_quantizers_t* q, size_t site,
                                    const assay_quantizer_taker_t* to) {
  const assay_quantizer_site_t* s = &q->at[site];
  ASSAY_TRY(from_pair(q, site, to));
  if (is_odd(s) && s->fits.n) {
    assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED};
    ASSAY_TRY(assay_quantizer_scaled(&s->fits, 1, s->fits.how, &a.by));
    ASSAY_TRY(assay_quantizer_offer(to, site, &a));
  }
  ASSAY_TRY(from_products(q, site, to));
  ASSAY_TRY(from_neighbours(q, site, to));
  ASSAY_TRY(from_bytes(q, site, to));
  return from_axis(q, site, to);
}
