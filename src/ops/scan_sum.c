// Running sums and products along an axis.
#include "ops/families.h"
#include "ops/power_bound.h"

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

// The block [n, inner] from element `at` on. Each element is the one before it (along the axis, in
// the direction of the walk) and one term more, rounded once.
static void scan_floats(const assay_eval_t* c, const scan_t* s, int64_t at, const double* x,
                        double* y) {
  const double start = s->product ? 1 : 0;
  for (int64_t i = 0; i < s->n; i++) {
    const int64_t to = at + (s->reverse ? s->n - 1 - i : i) * s->inner;
    const int64_t before = to + (s->reverse ? s->inner : -s->inner);
    const int64_t from = s->exclusive ? before : to;
    for (int64_t j = 0; j < s->inner; j++) {
      const double sum = i == 0 ? start : y[before + j];
      const double term = s->exclusive && i == 0 ? start : x[from + j];
      y[to + j] = assay_acc(c, s->product ? sum * term : sum + term);
    }
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
  const scan_t s = {.product = product,
                    .exclusive = assay_attr_i64(c->node, "exclusive", 0) != 0,
                    .reverse = assay_attr_i64(c->node, "reverse", 0) != 0,
                    .n = x->dims[axis],
                    .inner = assay_dims_product(x->dims, axis + 1, x->rank)};
  const int64_t outer = assay_dims_product(x->dims, 0, axis);
#pragma omp parallel for schedule(static) if (outer > 1 && x->size > 100000)
  for (int64_t o = 0; o < outer; o++) {
    if (x->store == ASSAY_STORE_F64) {
      scan_floats(c, &s, o * s.n * s.inner, assay_f64(x), assay_f64(y));
    } else {
      scan_integers(&s, y->type, o * s.n * s.inner, assay_i64(x), assay_i64(y));
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

static assay_status_t cumsum_bound(assay_bound_t* c) {
  const assay_products_t p = {.factors = {0}, .n_factors = 1, .terms = bound_terms(c)};
  return assay_bound_is_float(c, 0) ? assay_bound_products(c, &p) : NULL;
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
