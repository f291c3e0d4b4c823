// Normalizations, softmax and gates: bounded by what they are, however wide their inputs.
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ranges/range.h"

static const double INF = (double)INFINITY;

// ---- normalizations -----------------------------------------------------------------------------

// x in groups of n elements one after the other: |x - mean| / sqrt(variance + epsilon) is at most
// sqrt(n), since the element's own square is part of the variance; and at most |x - mean| /
// sqrt(epsilon).
typedef struct norm {
  int64_t n;
  double epsilon;
  bool centered;
  // The factor and the addend of element i: element f(i) of inputs 1 and 2.
  int64_t inner, channels;  // f(i) = i / inner % channels
} norm_t;

static void group_range(const norm_t* p, const double* lo, const double* hi, double* min,
                        double* max) {
  *min = INF;
  *max = -INF;
  for (int64_t i = 0; i < p->n; i++) {
    *min = fmin(*min, lo[i]);
    *max = fmax(*max, hi[i]);
  }
}

static void normalize(assay_range_node_t* c, const norm_t* p, double* lo, double* hi, int64_t at) {
  const double n = (double)p->n, slack = 1 + (n + 16) * c->u * (1 + n * c->u);
  double min, max, sum_lo = 0, sum_hi = 0;
  group_range(p, lo, hi, &min, &max);
  for (int64_t i = 0; i < p->n; i++) {
    sum_lo += lo[i];
    sum_hi += hi[i];
  }
  const double width = p->centered ? max - min : fmax(fabs(min), fabs(max));
  const double mean_error = p->centered ? (n + 2) * c->u * fmax(fabs(min), fabs(max)) : 0;
  const double mean_lo = p->centered ? sum_lo / n - mean_error : 0;
  const double mean_hi = p->centered ? sum_hi / n + mean_error : 0;
  if (p->epsilon <= 0 && !(!p->centered && (min > 0 || max < 0)))
    assay_range_hazard(c, ASSAY_HAZARD_DIVISION, 0, at, 0, 0, 0);
  assay_range_accumulates_to(c, n * (width + mean_error) * (width + mean_error));
  const double cap = sqrt(n) * slack, root = p->epsilon > 0 ? sqrt(p->epsilon) : 0;
  for (int64_t i = 0; i < p->n; i++) {
    const double a = lo[i] - mean_hi, b = hi[i] - mean_lo;
    lo[i] = a >= 0 ? 0 : -fmin(cap, root > 0 ? -a / root * slack : cap);
    hi[i] = b <= 0 ? 0 : fmin(cap, root > 0 ? b / root * slack : cap);
  }
}

static void scale_by(const assay_range_node_t* c, const norm_t* p, const assay_range_t* y) {
  const assay_range_t* s = assay_range_has(c, 1) ? &c->in[1] : NULL;
  const assay_range_t* b = assay_range_has(c, 2) ? &c->in[2] : NULL;
  double *lo = assay_f64(y->lo), *hi = assay_f64(y->hi);
  for (int64_t i = 0; i < y->lo->size; i++) {
    const int64_t f = p->inner ? i / p->inner % p->channels : 0;
    double l = lo[i], h = hi[i], sl = 1, sh = 1, bl = 0, bh = 0;
    if (s) sl = assay_elem(s->lo, f % s->lo->size), sh = assay_elem(s->hi, f % s->hi->size);
    if (b) bl = assay_elem(b->lo, f % b->lo->size), bh = assay_elem(b->hi, f % b->hi->size);
    const double min = fmin(fmin(l * sl, l * sh), fmin(h * sl, h * sh));
    const double max = fmax(fmax(l * sl, l * sh), fmax(h * sl, h * sh));
    const double e = 4 * c->u * (fmax(fabs(min), fabs(max)) + fmax(fabs(bl), fabs(bh))) + c->tiny;
    lo[i] = min + bl - e;
    hi[i] = max + bh + e;
  }
}

static bool usable(const assay_range_node_t* c, size_t first, size_t end) {
  for (size_t i = first; i < end && i < c->n_in; i++)
    if (assay_range_has(c, i) && (!assay_range_is_float(&c->in[i]) || !c->in[i].lo->size ||
                                  !(assay_range_magnitude(&c->in[i]) < INF)))
      return false;
  return true;
}

static assay_status_t run_norm(assay_range_node_t* c, const norm_t* p, const assay_range_t* x) {
  assay_tensor_t *lo = NULL, *hi = NULL;
  if (!usable(c, 0, 3) || p->n <= 0) return NULL;
  ASSAY_TRY(assay_tensor_copy(x->lo, &lo));
  assay_status_t st = assay_tensor_copy(x->hi, &hi);
  if (st) return assay_tensor_release(lo), st;
  for (int64_t i = 0; i + p->n <= lo->size; i += p->n)
    normalize(c, p, assay_f64(lo) + i, assay_f64(hi) + i, i);
  assay_range_release(&c->out[0]);
  c->out[0] = (assay_range_t){lo, hi};
  scale_by(c, p, &c->out[0]);
  return NULL;
}

// The outputs beside the normalized one: means, and inverse deviations.
static assay_status_t statistics(assay_range_node_t* c, const norm_t* p, size_t mean,
                                 size_t inverse) {
  double lo, hi;
  assay_range_ends(&c->in[0], &lo, &hi);
  const double e = ((double)p->n + 4) * c->u * fmax(fabs(lo), fabs(hi)) + (double)p->n * c->tiny;
  if (mean < c->n_out && c->node->outputs[mean])
    ASSAY_TRY(assay_range_fill_output(c, mean, lo - e, hi + e));
  if (inverse < c->n_out && c->node->outputs[inverse])
    ASSAY_TRY(
        assay_range_fill_output(c, inverse, 0, p->epsilon > 0 ? 1.001 / sqrt(p->epsilon) : INF));
  return NULL;
}

static assay_status_t layer_either(assay_range_node_t* c, bool centered) {
  const assay_tensor_t* x = c->in[0].lo;
  if (!assay_range_is_float(&c->in[0])) return NULL;
  int64_t axis = assay_attr_i64(c->node, "axis", -1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return NULL;
  const norm_t p = {.n = assay_dims_product(x->dims, (int)axis, x->rank),
                    .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5F),
                    .centered = centered,
                    .inner = 1,
                    .channels = assay_dims_product(x->dims, (int)axis, x->rank)};
  // Factors of other shapes than the rows' are rare: not known.
  for (size_t i = 1; i < 3; i++)
    if (assay_range_has(c, i) && c->in[i].lo && c->in[i].lo->size != p.n && c->in[i].lo->size != 1)
      return NULL;
  ASSAY_TRY(run_norm(c, &p, &c->in[0]));
  return c->out[0].lo ? statistics(c, &p, centered ? 1 : SIZE_MAX, centered ? 2 : 1) : NULL;
}
assay_status_t assay_range_layer_norm(assay_range_node_t* c) { return layer_either(c, true); }
assay_status_t assay_range_rms_norm(assay_range_node_t* c) { return layer_either(c, false); }

assay_status_t assay_range_instance_norm(assay_range_node_t* c) {
  const assay_tensor_t* x = c->in[0].lo;
  if (!assay_range_is_float(&c->in[0]) || x->rank < 2) return NULL;
  const int64_t inner = assay_dims_product(x->dims, 2, x->rank);
  const norm_t p = {.n = inner,
                    .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5F),
                    .centered = true,
                    .inner = inner,
                    .channels = x->dims[1]};
  return run_norm(c, &p, &c->in[0]);
}

assay_status_t assay_range_group_norm(assay_range_node_t* c) {
  const assay_tensor_t* x = c->in[0].lo;
  const int64_t groups = assay_attr_i64(c->node, "num_groups", 1);
  if (!assay_range_is_float(&c->in[0]) || x->rank < 2 || groups <= 0 || !c->in[1].lo) return NULL;
  const int64_t spatial = assay_dims_product(x->dims, 2, x->rank), channels = x->dims[1];
  // Before version 21 there is one factor a group.
  const int64_t factors = c->in[1].lo->size;
  if (!factors || channels % factors || channels % groups) return NULL;
  const norm_t p = {.n = channels / groups * spatial,
                    .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5F),
                    .centered = true,
                    .inner = spatial * (channels / factors),
                    .channels = factors};
  return run_norm(c, &p, &c->in[0]);
}

// x / |x| along an axis: no more than 1 (0 where all are 0: ONNX's reference divides by the norm).
assay_status_t assay_range_lp_norm(assay_range_node_t* c) {
  double lo, hi;
  if (!assay_range_is_float(&c->in[0])) return NULL;
  assay_range_ends(&c->in[0], &lo, &hi);
  ASSAY_TRY(assay_range_fill_output(c, 0, lo >= 0 ? 0 : -1, hi <= 0 ? 0 : 1));
  return assay_range_widen(c, 0, 16, 0, NULL);
}

// x / (bias + alpha/size sum x^2)^beta.
assay_status_t assay_range_lrn(assay_range_node_t* c) {
  const double alpha = assay_attr_f64(c->node, "alpha", 1e-4F),
               beta = assay_attr_f64(c->node, "beta", 0.75);
  const double bias = assay_attr_f64(c->node, "bias", 1);
  if (!assay_range_is_float(&c->in[0]) || alpha < 0 || beta < 0 || bias <= 0) return NULL;
  c->out[0] = assay_range_retain(&c->in[0]);
  ASSAY_TRY(assay_range_own(c, 0));
  const double by = assay_pow(bias, -beta);
  double max = 0;
  for (int64_t i = 0; i < c->out[0].lo->size; i++) {
    double *lo = &assay_f64(c->out[0].lo)[i], *hi = &assay_f64(c->out[0].hi)[i];
    max = fmax(max, fmax(fabs(*lo), fabs(*hi)));
    *lo = *lo < 0 ? *lo * by : 0;
    *hi = *hi > 0 ? *hi * by : 0;
  }
  assay_range_accumulates_to(c, max * max * (double)assay_attr_i64(c->node, "size", 1));
  return assay_range_widen(c, 0, 16, 0, NULL);
}

// y = (x - mean) * scale / sqrt(variance + epsilon) + b, of numbers that are known: straight lines.
assay_status_t assay_range_batch_norm(assay_range_node_t* c) {
  if (c->n_in < 5 || !usable(c, 0, 5)) return NULL;
  if (assay_attr_i64(c->node, "training_mode", 0)) return NULL;
  const assay_range_t mean = c->in[3];
  ASSAY_TRY(assay_range_monotone(c));
  if (!c->out[0].lo) return NULL;
  // What rounding does is told by the terms' magnitudes: |x| + |mean|, and |b|.
  assay_tensor_t* in[5] = {NULL};
  assay_tensor_t** out = NULL;
  assay_status_t st = assay_new_array(c->n_out, sizeof *out, &out);
  for (size_t i = 0; !st && i < 3; i++)
    st = assay_range_take(&c->in[i], ASSAY_RANGE_LARGEST, &in[i]);
  if (!st) st = assay_range_take(&mean, ASSAY_RANGE_LARGEST, &in[3]);
  for (int64_t i = 0; !st && i < in[3]->size; i++) assay_f64(in[3])[i] *= -1;
  if (!st) in[4] = assay_tensor_retain(c->in[4].lo);
  if (!st) st = assay_range_evaluate(c, in, out);
  if (!st) st = assay_range_widen(c, 0, 2, 6, out[0]);
  assay_range_release_all(5, in);
  if (out) assay_range_release_all(c->n_out, out);
  assay_free(out);
  return st;
}

// ---- softmax ------------------------------------------------------------------------------------

typedef struct row {
  int64_t n, stride;
  double *lo, *hi;
} row_t;

// exp(x) / sum exp(x): least where x is at its lower end and all others at their upper.
static void softmax_row(assay_range_node_t* c, row_t r, bool logarithm, int64_t at) {
  double min = INF, max = -INF, surely = -INF, sum_lo = 0, sum_hi = 0;
  for (int64_t i = 0; i < r.n; i++) {
    min = fmin(min, r.lo[i * r.stride]);
    max = fmax(max, r.hi[i * r.stride]);
    surely = fmax(surely, r.lo[i * r.stride]);
  }
  if (!(surely > -INF) || !(max < INF))
    assay_range_hazard(c, ASSAY_HAZARD_INVALID, 0, at, max, min, 0);
  const double slack = (double)(r.n + 16) * c->u;
  const bool known = max < INF && surely > -INF;
  for (int64_t i = 0; known && i < r.n; i++) {
    sum_lo += assay_exp(r.lo[i * r.stride] - max);
    sum_hi += assay_exp(r.hi[i * r.stride] - max);
  }
  for (int64_t i = 0; i < r.n; i++) {
    double *lo = &r.lo[i * r.stride], *hi = &r.hi[i * r.stride];
    const double el = assay_exp(*lo - max), eh = assay_exp(*hi - max);
    const double below = el + fmax(0, sum_hi - eh), above = eh + fmax(0, sum_lo - el);
    double a = known && below > 0 ? el / below : 0,
           b = known && above > 0 ? fmin(1, eh / above) : 1;
    if (logarithm) {
      const double reach = fmax(fabs(max), fabs(surely)) * 4 * c->u + slack;
      *lo = known ? *lo - max - assay_log((double)r.n) - reach : -INF;
      *hi = 0;
      continue;
    }
    // The exponent's own rounding: its argument is off by u |x|.
    const double wide = (max - fmin(surely, min > -INF ? min : surely)) * 2 * c->u + slack;
    *lo = wide < 1 ? fmax(0, a * (1 - 2 * wide) - c->tiny) : 0;
    *hi = wide < 1 ? fmin(1, b * (1 + 2 * wide) + c->tiny) : 1;
  }
}

static assay_status_t softmax_either(assay_range_node_t* c, bool logarithm) {
  const assay_range_t* x = &c->in[0];
  if (!assay_range_is_float(x) || !x->lo->rank) return NULL;
  const int since = c->node->op ? c->node->op->since : 13;
  const bool flattened = since < 13;
  int64_t axis = assay_attr_i64(c->node, "axis", flattened ? 1 : -1);
  if (axis < 0) axis += x->lo->rank;
  if (axis < 0 || axis >= x->lo->rank) return NULL;
  const int end = flattened ? x->lo->rank : (int)axis + 1;
  const int64_t inner = assay_dims_product(x->lo->dims, end, x->lo->rank);
  const int64_t n = assay_dims_product(x->lo->dims, (int)axis, end);
  c->out[0] = assay_range_retain(x);
  ASSAY_TRY(assay_range_own(c, 0));
  const int64_t rows = n ? x->lo->size / n : 0;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = r / inner * n * inner + r % inner;
    softmax_row(c, (row_t){n, inner, assay_f64(c->out[0].lo) + at, assay_f64(c->out[0].hi) + at},
                logarithm, at);
  }
  return NULL;
}
assay_status_t assay_range_softmax(assay_range_node_t* c) { return softmax_either(c, false); }
assay_status_t assay_range_log_softmax(assay_range_node_t* c) { return softmax_either(c, true); }

// ---- recurrent cells and attention --------------------------------------------------------------

static double largest_row(const assay_range_t* w) {
  double max = 0;
  if (!assay_range_is_float(w) || !w->lo->rank) return 0;
  const int64_t n = w->lo->dims[w->lo->rank - 1];
  for (int64_t i = 0; n && i < w->lo->size; i += n) {
    double sum = 0;
    for (int64_t k = i; k < i + n; k++)
      sum += fmax(fabs(assay_f64(w->lo)[k]), fabs(assay_f64(w->hi)[k]));
    max = fmax(max, sum);
  }
  return max;
}

// States are tanh of something, or a mean of such and the state before. The LSTM's cell grows by 1
// a step.
assay_status_t assay_range_recurrent(assay_range_node_t* c) {
  const assay_tensor_t* x = c->in[0].lo;
  if (assay_attr_has(c->node, "activations") || !assay_range_is_float(&c->in[0]) || x->rank != 3)
    return NULL;
  const double steps = (double)x->dims[assay_attr_i64(c->node, "layout", 0) ? 1 : 0];
  const bool is_lstm = !strcmp(c->node->op_type, "LSTM");
  double h = 1, cell = steps;
  if (assay_range_has(c, 5)) {
    if (!c->in[5].lo) return NULL;
    h = fmax(h, assay_range_magnitude(&c->in[5]));
  }
  if (is_lstm && assay_range_has(c, 6)) {
    if (!c->in[6].lo) return NULL;
    cell += assay_range_magnitude(&c->in[6]);
  }
  if (!assay_range_is_float(&c->in[1]) || !assay_range_is_float(&c->in[2])) return NULL;
  double gates =
      largest_row(&c->in[1]) * assay_range_magnitude(&c->in[0]) + largest_row(&c->in[2]) * h;
  if (assay_range_has(c, 3)) gates += 2 * assay_range_magnitude(&c->in[3]);
  assay_range_accumulates_to(c, gates);
  for (size_t i = 0; i < c->n_out; i++) {
    const double max = i == 2    ? cell * (1 + steps * 4 * c->u)
                       : is_lstm ? fmax(1, i == 1 ? h : 1)
                                 : h;
    if (!c->node->outputs[i]) continue;
    ASSAY_TRY(assay_range_fill_output(c, i, -max, max));
    ASSAY_TRY(assay_range_widen(c, i, 8, 0, NULL));
  }
  return NULL;
}

// Whether each row along the last dimension has an element that a mask surely leaves.
static bool leaves_something(const assay_range_t* mask) {
  const assay_tensor_t* t = mask->lo;
  if (t->kind != ASSAY_KIND_TENSOR || !t->rank ||
      (t->store != ASSAY_STORE_F64 && t->store != ASSAY_STORE_I64))
    return false;
  const int64_t n = t->dims[t->rank - 1];
  for (int64_t i = 0; n && i < t->size; i += n) {
    bool any = false;
    for (int64_t k = i; k < i + n && !any; k++)
      any = t->store == ASSAY_STORE_F64 ? assay_f64(t)[k] > -INF : assay_i64(t)[k] != 0;
    if (!any) return false;
  }
  return n > 0;
}

// Attention's outputs are means of values.
assay_status_t assay_range_attention(assay_range_node_t* c) {
  double lo = 0, hi = 0;
  for (size_t i = 0; i < c->n_in; i++)
    if (assay_range_has(c, i) && !c->in[i].lo) return NULL;
  if (c->n_in < 3 || !assay_range_is_float(&c->in[0]) || !assay_range_is_float(&c->in[1]) ||
      !assay_range_is_float(&c->in[2]))
    return NULL;
  // A row that a mask leaves nothing of is NaN: masks that are not known to leave something are not
  // for here.
  if (assay_range_has(c, 3) && !leaves_something(&c->in[3])) return NULL;
  const double q = assay_range_magnitude(&c->in[0]), k = assay_range_magnitude(&c->in[1]);
  const double n = (double)c->in[0].lo->dims[c->in[0].lo->rank - 1];
  const double scale = fmax(1, assay_attr_f64(c->node, "scale", 1));
  assay_range_accumulates_to(c, q * k * n * scale);
  for (size_t i = 2; i < 6; i++) {
    double a, b;
    if (!assay_range_has(c, i) || i == 3 || (i == 4 && c->n_in <= 5)) continue;
    if (i != 2 && i != 5) continue;
    assay_range_ends(&c->in[i], &a, &b);
    lo = fmin(lo, a);
    hi = fmax(hi, b);
  }
  ASSAY_TRY(assay_range_fill_output(c, 0, lo, hi));
  ASSAY_TRY(assay_range_widen(c, 0, 64 + n, 0, NULL));
  for (size_t i = 1; i < c->n_out; i++) {
    if (!c->node->outputs[i]) continue;
    const double past = assay_range_has(c, 4) ? assay_range_magnitude(&c->in[4]) : 0;
    const double max = fmax(fmax(fmax(fabs(lo), hi), k), past);
    if (i < 3) ASSAY_TRY(assay_range_fill_output(c, i, -max, max));
  }
  return NULL;
}
