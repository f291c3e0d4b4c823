// ArgMax and ArgMin.
#include <math.h>

#include "ops/bound_parts.h"
#include "ops/families.h"

static assay_status_t arg_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  if (!x.known) return assay_infer_set(c, 0, ASSAY_TYPE_INT64, NULL);
  int axis = 0;
  ASSAY_TRY(assay_infer_axis(c, "axis", assay_attr_i64(c->node, "axis", 0), x.rank, &axis));
  const bool keep = assay_attr_i64(c->node, "keepdims", 1) != 0;
  assay_shape_t y = {.known = true};
  for (int i = 0; i < x.rank; i++) {
    if (i != axis) y.dims[y.rank++] = x.dims[i];
    if (i == axis && keep) y.dims[y.rank++] = assay_dim_const(c->dims, 1);
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_INT64, &y);
}

// Whether element a wins over b; NaN wins over every number, as in NumPy.
static bool beats(const assay_tensor_t* x, int64_t a, int64_t b, bool smallest) {
  if (x->store == ASSAY_STORE_F64) {
    const double u = assay_f64(x)[a], v = assay_f64(x)[b];
    if (isnan(v)) return false;
    return isnan(u) || (smallest ? u < v : u > v);
  }
  const int64_t u = assay_i64(x)[smallest ? b : a], v = assay_i64(x)[smallest ? a : b];
  return x->type == ASSAY_TYPE_UINT64 ? (uint64_t)u > (uint64_t)v : u > v;
}

// Source: ONNX ArgMax, ArgMin 1, 11, 12 (select_last_index), 13.
static assay_status_t arg_eval(assay_eval_t* c, bool smallest) {
  const assay_tensor_t* x = c->in[0];
  int axis = 0;
  ASSAY_TRY(assay_eval_axis(c, "axis", assay_attr_i64(c->node, "axis", 0), x->rank, &axis));
  const bool keep = assay_attr_i64(c->node, "keepdims", 1) != 0;
  const bool last = assay_attr_i64(c->node, "select_last_index", 0) != 0;
  int rank = 0;
  int64_t dims[ASSAY_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    if (i != axis) dims[rank++] = x->dims[i];
    if (i == axis && keep) dims[rank++] = 1;
  }
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_INT64, rank, dims, &y));
  if (y->size == 0) return NULL;
  const int64_t n = x->dims[axis], inner = assay_dims_product(x->dims, axis + 1, x->rank);
  if (n == 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input %s has no elements along axis %d to choose from",
                            ASSAY_DIMS_TEXT(x), axis);
  }
  int64_t* out = assay_i64(y);
#pragma omp parallel for schedule(static) if (y->size > 1 && x->size > 100000)
  for (int64_t o = 0; o < y->size; o++) {
    const int64_t at = o / inner * n * inner + o % inner;
    int64_t best = last ? n - 1 : 0;
    for (int64_t i = 1; i < n; i++) {
      const int64_t k = last ? n - 1 - i : i;
      if (beats(x, at + k * inner, at + best * inner, smallest)) best = k;
    }
    out[o] = best;
  }
  return NULL;
}

static assay_status_t arg_max_eval(assay_eval_t* c) { return arg_eval(c, false); }
static assay_status_t arg_min_eval(assay_eval_t* c) { return arg_eval(c, true); }

static void arg_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (assay_eval_has(c, 0)) out->flops = (double)c->in[0]->size;
}

// ---- bounds -----------------------------------------------------------------------------------
// An element may be the largest if its upper end reaches the largest of all lower ends.

static double farthest(const double* x, const double* e, int64_t n, int64_t step, int64_t best,
                       double sign) {
  double reached = -(double)INFINITY, far = 0;
  for (int64_t k = 0; k < n; k++) reached = fmax(reached, sign * x[k * step] - e[k * step]);
  for (int64_t k = 0; k < n; k++) {
    const bool may = sign * x[k * step] + e[k * step] >= reached;
    if (may && e[k * step] + e[best * step] > 0) far = fmax(far, fabs((double)(k - best)));
  }
  return far;
}

static assay_status_t arg_bound(assay_bound_t* c, bool smallest) {
  const assay_tensor_t *x = c->in[0], *y = c->out[0];
  double* limits[2];
  int axis = 0;
  if (assay_bound_inputs_exact(c)) return NULL;
  const assay_eval_t reader = assay_bound_as_eval(c);
  ASSAY_TRY(assay_eval_axis(&reader, "axis", assay_attr_i64(c->node, "axis", 0), x->rank, &axis));
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  const int64_t n = x->dims[axis], inner = assay_dims_product(x->dims, axis + 1, x->rank);
  for (int probable = 0; limits[0] && probable < 2; probable++) {
    const double* e = assay_bound_in(c, 0, probable);
    for (int64_t o = 0; o < y->size; o++) {
      const int64_t at = o / inner * n * inner + o % inner;
      limits[probable][o] =
          farthest(assay_f64(x) + at, e + at, n, inner, assay_i64(y)[o], smallest ? -1 : 1);
    }
  }
  return NULL;
}

static assay_status_t arg_max_bound(assay_bound_t* c) { return arg_bound(c, false); }
static assay_status_t arg_min_bound(assay_bound_t* c) { return arg_bound(c, true); }

const assay_op_t assay_ops_arg[] = {{.domain = "",
                                     .name = "ArgMax",
                                     .since = 1,
                                     .discrete = 1,
                                     .infer = arg_infer,
                                     .eval = arg_max_eval,
                                     .bound = arg_max_bound,
                                     .cost = arg_cost},
                                    {.domain = "",
                                     .name = "ArgMin",
                                     .since = 1,
                                     .discrete = 1,
                                     .infer = arg_infer,
                                     .eval = arg_min_eval,
                                     .bound = arg_min_bound,
                                     .cost = arg_cost},
                                    {0}};
