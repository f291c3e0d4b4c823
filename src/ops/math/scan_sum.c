// Running sums and products along an axis.
#include <math.h>

#include "ops/bound_parts.h"
#include "ops/conv/power_bound.h"
#include "ops/families.h"

static assay_status_t scan_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  assay_content_t axis;
  int64_t value = 0;
  if (x.known && assay_infer_content(c, 1, &axis) && axis.n == 1 &&
      assay_dim_value(axis.elems[0], &value)) {
    int normalized = 0;
    ASSAY_TRY(assay_infer_axis(c, "axis", value, x.rank, &normalized));
  }
  return assay_infer_same(c);
}

typedef struct scan {
  bool product, exclusive, reverse;
  int64_t n, inner;
} scan_t;

static scan_t scan_of(const assay_node_t* node, const assay_tensor_t* x, int axis) {
  return (scan_t){.exclusive = assay_attr_i64(node, "exclusive", 0) != 0,
                  .reverse = assay_attr_i64(node, "reverse", 0) != 0,
                  .n = x->dims[axis],
                  .inner = assay_dims_product(x->dims, axis + 1, x->rank)};
}

// One element: the one before it and one term more, rounded once. `plain` is known where this is
// expanded: truth's and fp32's sums have no calls and no branches between the additions.
typedef enum plain { PLAIN_F64, PLAIN_F32, NOT_PLAIN } plain_t;

static inline double next(const assay_eval_t* c, bool product, plain_t plain, double before,
                          double term) {
  const double y = product ? before * term : before + term;
  return plain == PLAIN_F64 ? y : plain == PLAIN_F32 ? (double)(float)y : assay_acc(c, y);
}

// The block [n, inner] from element `at` on, row by row in the direction of the walk.
static inline __attribute__((always_inline)) void scan_rows(const assay_eval_t* c, const scan_t* s,
                                                            plain_t plain, int64_t at,
                                                            const double* x, double* y) {
  const double start = s->product ? 1 : 0;
  for (int64_t i = 0; i < s->n; i++) {
    const int64_t to = at + (s->reverse ? s->n - 1 - i : i) * s->inner;
    const int64_t before = to + (s->reverse ? s->inner : -s->inner);
    double* restrict out = y + to;
    if (i == 0) {
      for (int64_t j = 0; j < s->inner; j++)
        out[j] = next(c, s->product, plain, start, s->exclusive ? start : x[to + j]);
      continue;
    }
    const double *sum = y + before, *term = x + (s->exclusive ? before : to);
    for (int64_t j = 0; j < s->inner; j++) out[j] = next(c, s->product, plain, sum[j], term[j]);
  }
}

enum { LINES = 8 };

// Lines of neighbouring elements: so many at once, since each addition of one waits for the last.
static inline __attribute__((always_inline)) void scan_lines(const assay_eval_t* c, const scan_t* s,
                                                             plain_t plain, int64_t at,
                                                             const double* x, double* y) {
  const double start = s->product ? 1 : 0;
  double sum[LINES];
  for (int k = 0; k < LINES; k++) sum[k] = start;
  for (int64_t i = 0; i < s->n; i++) {
    const int64_t to = at + (s->reverse ? s->n - 1 - i : i);
    const int64_t from = to + (!s->exclusive ? 0 : s->reverse ? 1 : -1);
    for (int k = 0; k < LINES; k++) {
      const double term = s->exclusive && i == 0 ? start : x[from + k * s->n];
      sum[k] = next(c, s->product, plain, sum[k], term);
      y[to + k * s->n] = sum[k];
    }
  }
}

// Blocks [first, last).
static void scan_floats(const assay_eval_t* c, const scan_t* s, int64_t first, int64_t last,
                        const double* x, double* y) {
  const bool f64 = c->arith == ASSAY_ARITH_F64 || c->arith == ASSAY_ARITH_DOUBLE_DOUBLE;
  const bool f32 = c->arith == ASSAY_ARITH_F32;
  for (int64_t o = first; o < last;) {
    const int64_t at = o * s->n * s->inner;
    const bool lines = s->inner == 1 && last - o >= LINES;
    if (lines && f64)
      scan_lines(c, s, PLAIN_F64, at, x, y);
    else if (lines && f32)
      scan_lines(c, s, PLAIN_F32, at, x, y);
    else if (f64)
      scan_rows(c, s, PLAIN_F64, at, x, y);
    else if (f32)
      scan_rows(c, s, PLAIN_F32, at, x, y);
    else
      scan_rows(c, s, NOT_PLAIN, at, x, y);
    o += lines && (f64 || f32) ? LINES : 1;
  }
}

static void scan_integers(const scan_t* s, assay_type_t type, int64_t at, const int64_t* x,
                          int64_t* y) {
  const uint64_t start = s->product ? 1 : 0;
  for (int64_t i = 0; i < s->n; i++) {
    const int64_t to = at + (s->reverse ? s->n - 1 - i : i) * s->inner;
    const int64_t before = to + (s->reverse ? s->inner : -s->inner);
    const int64_t from = s->exclusive ? before : to;
    for (int64_t j = 0; j < s->inner; j++) {
      const uint64_t sum = i == 0 ? start : (uint64_t)y[before + j];
      const uint64_t term = s->exclusive && i == 0 ? start : (uint64_t)x[from + j];
      y[to + j] = assay_type_wrap(type, (int64_t)(s->product ? sum * term : sum + term));
    }
  }
}

// Source: ONNX CumSum 11, 14; CumProd 26.
static assay_status_t scan_eval(assay_eval_t* c, bool product) {
  const assay_tensor_t *x = c->in[0], *given = c->in[1];
  if (given->size != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "axis has shape %s; expected one number", ASSAY_DIMS_TEXT(given));
  }
  int axis = 0;
  ASSAY_TRY(assay_eval_axis(c, "axis", assay_i64(given)[0], x->rank, &axis));
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y));
  if (y->size == 0) return NULL;
  scan_t s = scan_of(c->node, x, axis);
  s.product = product;
  const int64_t outer = assay_dims_product(x->dims, 0, axis);
  const int64_t share = s.inner == 1 ? LINES : 1;
#pragma omp parallel for schedule(static) if (outer > share && x->size > 100000)
  for (int64_t o = 0; o < outer; o += share) {
    const int64_t end = outer - o < share ? outer : o + share;
    if (x->store == ASSAY_STORE_F64) {
      scan_floats(c, &s, o, end, assay_f64(x), assay_f64(y));
    } else {
      for (int64_t k = o; k < end; k++)
        scan_integers(&s, y->type, k * s.n * s.inner, assay_i64(x), assay_i64(y));
    }
  }
  return NULL;
}

static assay_status_t cumsum_eval(assay_eval_t* c) { return scan_eval(c, false); }
static assay_status_t cumprod_eval(assay_eval_t* c) { return scan_eval(c, true); }

static void scan_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (assay_eval_has(c, 0)) out->flops = (double)c->in[0]->size;
}

// ---- bounds -----------------------------------------------------------------------------------

// The last element has n terms, and none has more, whatever way they are joined.
static double bound_terms(const assay_bound_t* c) {
  const assay_tensor_t* x = c->in[0];
  const int64_t axis = assay_i64(c->in[1])[0];
  return (double)x->dims[axis < 0 ? axis + x->rank : axis];
}

// One walk along the axis. Whatever way a scan goes (one after the other, in blocks, as a tree: G.
// E. Blelloch, Prefix sums and their applications, 1990), what it adds up to are sums of
// neighbours: differences of two of the sums from the start, so none is larger than `high` - `low`.
enum { FIRST_PLACE = -180, PLACES = 320 };

typedef struct walk {
  double n, sum, high, low;     // terms, and their sums from the start
  double size, squares;         // sums of the terms' magnitudes and squares
  double guaranteed, probable;  // of what came in
  // Terms by the place of their last bit; how many lie below place `coarse`, and by how many places
  // together. odd: some lie outside all places.
  int64_t by_place[PLACES], below, places;
  int coarse;
  bool odd;
} walk_t;

static void walk_on(walk_t* w, double x) {
  w->n += 1;
  w->sum += x;
  w->high = fmax(w->high, w->sum);
  w->low = fmin(w->low, w->sum);
  w->size += fabs(x);
  w->squares += x * x;
  if (x == 0) return;
  const int64_t place = (int64_t)assay_last_place(x) - FIRST_PLACE;
  if (place < 0 || place >= PLACES) {
    w->odd = true;
    return;
  }
  w->by_place[place]++;
  if (place < w->coarse) w->below++, w->places += w->coarse - place;
}

// At most so many roundings are inexact, in any order.
static double inexact(walk_t* w, double u, double largest) {
  const int64_t coarse = (int64_t)assay_sum_place(u, largest) - FIRST_PLACE;
  if (w->odd || w->guaranteed > 0 || coarse >= PLACES) return INFINITY;
  for (; w->coarse < coarse; w->places += w->below) w->below += w->by_place[w->coarse++];
  return (double)w->places;
}

// A term is rounded once, and each of n - 1 sums. Probable: errors are independent, and their
// variances add up (Higham and Mary (2019)). Sums as they are computed carry errors of their own:
// a limit e must cover factor * (sums + e), a variance s^2 must cover n u^2 (sums^2 + s^2).
static void walk_limits(walk_t* w, const assay_rounding_t* r, double* guaranteed,
                        double* probable) {
  const double u = fmax(assay_bound_unit(r->accumulator), assay_bound_unit(r->compute));
  const bool joined = assay_bound_unit(r->compute) > assay_bound_unit(r->accumulator);
  const assay_factor_t f = assay_factor_add(assay_bound_sum(r, w->n), assay_bound_ops(r, joined));
  const assay_inner_t inner = assay_bound_inner(r);
  const double sums = w->high - w->low + 2 * w->guaranteed, size = w->size + w->guaranteed;
  double g = f.guaranteed * size, p = f.probable * size;
  *guaranteed = *probable = INFINITY;
  if (!(size < (double)INFINITY)) return;
  const assay_factor_t few = assay_bound_few(r, inexact(w, u, sums + g), sums);
  const double grows = u * w->n, varies = u * u * w->n;
  if (!r->truncates && grows < 0.5) g = fmin(g, (grows * sums + u * size) / (1 - grows));
  if (!r->truncates && varies < 0.5)
    p = fmin(p, 6 * sqrt((varies * sums * sums + u * u * w->squares) / (1 - varies)));
  g = fmin(g, few.guaranteed);
  p = fmin(p, few.probable);
  if (!(sums + g <= inner.max)) return;
  *guaranteed = g + w->guaranteed + w->n * inner.tiny;
  *probable = fmin(*guaranteed, p + w->probable + w->n * inner.tiny);
}

// One line of the tensor, whose elements are `inner` apart from `at` on.
static void scan_limits(const assay_bound_t* c, const scan_t* s, int64_t at, double* guaranteed,
                        double* probable) {
  const double* x = assay_f64(c->in[0]);
  const double* in[2] = {assay_bound_in(c, 0, false), assay_bound_in(c, 0, true)};
  walk_t w = {0};
  for (int64_t i = 0; i < s->n; i++) {
    const int64_t k = at + (s->reverse ? s->n - 1 - i : i) * s->inner;
    if (s->exclusive) walk_limits(&w, c->rounding, &guaranteed[k], &probable[k]);
    walk_on(&w, x[k]);
    w.guaranteed += in[0] ? in[0][k] : 0;
    w.probable += in[1] ? in[1][k] : 0;
    if (!s->exclusive) walk_limits(&w, c->rounding, &guaranteed[k], &probable[k]);
  }
}

static assay_status_t cumsum_bound(assay_bound_t* c) {
  const assay_tensor_t* x = c->in[0];
  double *guaranteed, *probable;
  if (!assay_bound_is_float(c, 0)) return NULL;
  ASSAY_TRY(assay_bound_output(c, 0, &guaranteed, &probable));
  if (x->size == 0) return NULL;
  const scan_t s = scan_of(c->node, x, (int)(assay_i64(c->in[1])[0] + x->rank) % x->rank);
  const int64_t lines = x->size / s.n;
#pragma omp parallel for schedule(static) if (x->size > 20000)
  for (int64_t i = 0; i < lines; i++)
    scan_limits(c, &s, i / s.inner * s.n * s.inner + i % s.inner, guaranteed, probable);
  return NULL;
}

static assay_status_t cumprod_bound(assay_bound_t* c) {
  return assay_bound_product(c, bound_terms(c));
}

const assay_op_t assay_ops_scan_sum[] = {{.domain = "",
                                          .name = "CumSum",
                                          .since = 11,
                                          .infer = scan_infer,
                                          .eval = cumsum_eval,
                                          .bound = cumsum_bound,
                                          .cost = scan_cost},
                                         {.domain = "",
                                          .name = "CumProd",
                                          .since = 26,
                                          .infer = scan_infer,
                                          .eval = cumprod_eval,
                                          .bound = cumprod_bound,
                                          .cost = scan_cost},
                                         {0}};
