// Softmax, LogSoftmax, Hardmax, and com.microsoft's BiasSoftmax.
#include "ops/norm/softmax.h"

#include <math.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/bound_parts.h"
#include "ops/dd_array.h"
#include "ops/families.h"
#include "ops/norm/softmax_bound.h"

// ---- one row ----------------------------------------------------------------------------------

static double row_max(int64_t n, int64_t stride, const double* x) {
  double max = -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    const double v = x[i * stride];
    if (v > max || isnan(v)) max = v;
  }
  return max;
}

void assay_softmax_row(const assay_eval_t* c, int64_t n, int64_t stride, const double* x,
                       double* y) {
  const double max = row_max(n, stride, x);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double e = assay_acc(c, assay_exp(assay_acc(c, x[i * stride] - max)));
    y[i * stride] = e;
    sum = assay_acc(c, sum + e);
  }
  for (int64_t i = 0; i < n; i++) y[i * stride] = assay_acc(c, y[i * stride] / sum);
}

void assay_log_softmax_row(const assay_eval_t* c, int64_t n, int64_t stride, const double* x,
                           double* y) {
  const double max = row_max(n, stride, x);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    const double d = assay_acc(c, x[i * stride] - max);
    sum = assay_acc(c, sum + assay_acc(c, assay_exp(d)));
    y[i * stride] = d;
  }
  const double log_sum = assay_acc(c, assay_log(sum));
  for (int64_t i = 0; i < n; i++) y[i * stride] = assay_acc(c, y[i * stride] - log_sum);
}

// 1 at the first maximum, 0 elsewhere; a NaN counts as larger than every number, as in NumPy.
static void hardmax_row(const assay_eval_t* c, int64_t n, int64_t stride, const double* x,
                        double* y) {
  (void)c;
  int64_t best = 0;
  for (int64_t i = 1; i < n && !isnan(x[best * stride]); i++) {
    if (x[i * stride] > x[best * stride] || isnan(x[i * stride])) best = i;
  }
  for (int64_t i = 0; i < n; i++) y[i * stride] = i == best;
}

typedef void (*row_function_t)(const assay_eval_t* c, int64_t n, int64_t stride, const double* x,
                               double* y);

// Runs a row function over [outer, n, inner].
static void run_rows(const assay_eval_t* c, row_function_t f, int64_t outer, int64_t n,
                     int64_t inner, const double* x, double* y) {
  const int64_t rows = outer * inner;
#pragma omp parallel for schedule(static) if (rows > 1 && rows * n > 30000)
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = r / inner * n * inner + r % inner;
    f(c, n, inner, x + at, y + at);
  }
}

// ---- the operators ----------------------------------------------------------------------------

static assay_status_t infer_with(assay_infer_t* c, int64_t default_axis) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  if (x.known) {
    int axis = 0;
    ASSAY_TRY(
        assay_infer_axis(c, "axis", assay_attr_i64(c->node, "axis", default_axis), x.rank, &axis));
  }
  return assay_infer_same(c);
}

static assay_status_t infer_1(assay_infer_t* c) { return infer_with(c, 1); }
static assay_status_t infer_13(assay_infer_t* c) { return infer_with(c, -1); }

// Through version 11 the dims from `axis` on are one row; from 13 on the row is that axis alone.
static assay_status_t eval_with(assay_eval_t* c, row_function_t f, bool flattened) {
  const assay_tensor_t* x = c->in[0];
  int axis = 0;
  ASSAY_TRY(assay_eval_axis(c, "axis", assay_attr_i64(c->node, "axis", flattened ? 1 : -1), x->rank,
                            &axis));
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y));
  if (x->size == 0) return NULL;
  const int end = flattened ? x->rank : axis + 1;
  run_rows(c, f, assay_dims_product(x->dims, 0, axis), assay_dims_product(x->dims, axis, end),
           assay_dims_product(x->dims, end, x->rank), assay_f64(x), assay_f64(y));
  return NULL;
}

// Source: ONNX Softmax, LogSoftmax, Hardmax 1, 11 (flattened) and 13.
static assay_status_t softmax_eval_1(assay_eval_t* c) {
  return eval_with(c, assay_softmax_row, true);
}
static assay_status_t softmax_eval(assay_eval_t* c) {
  return eval_with(c, assay_softmax_row, false);
}
static assay_status_t log_softmax_eval_1(assay_eval_t* c) {
  return eval_with(c, assay_log_softmax_row, true);
}
static assay_status_t log_softmax_eval(assay_eval_t* c) {
  return eval_with(c, assay_log_softmax_row, false);
}
static assay_status_t hardmax_eval_1(assay_eval_t* c) { return eval_with(c, hardmax_row, true); }
static assay_status_t hardmax_eval(assay_eval_t* c) { return eval_with(c, hardmax_row, false); }

// Maximum, difference, exponential, sum, quotient.
static void softmax_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (assay_eval_has(c, 0)) out->flops = 5.0 * (double)c->in[0]->size;
}

// ---- com.microsoft BiasSoftmax ----------------------------------------------------------------

// Softmax over the dims from `axis` on of data + bias. The bias has whole rows, and each serves
// several rows of data: neighbouring ones (is_inner_broadcast) or every so many-th.
// Source: com.microsoft BiasSoftmax 1.
static assay_status_t bias_softmax_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *bias = c->in[1];
  int axis = 0;
  ASSAY_TRY(assay_eval_axis(c, "axis", assay_attr_i64(c->node, "axis", 1), x->rank, &axis));
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y));
  if (x->size == 0) return NULL;
  const int64_t rows = assay_dims_product(x->dims, 0, axis), n = x->size / rows;
  const int64_t bias_rows = bias->size / n;
  if (bias_rows < 1 || bias->size % n != 0 || rows % bias_rows != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "bias has shape %s; expected rows of %lld elements, as many as divide "
                            "the %lld rows of data %s",
                            ASSAY_DIMS_TEXT(bias), (long long)n, (long long)rows,
                            ASSAY_DIMS_TEXT(x));
  }
  const bool inner = assay_attr_i64(c->node, "is_inner_broadcast", 0) != 0;
#pragma omp parallel for schedule(static) if (rows > 1 && x->size > 30000)
  for (int64_t r = 0; r < rows; r++) {
    const double* from = assay_f64(x) + r * n;
    const double* add = assay_f64(bias) + (inner ? r / (rows / bias_rows) : r % bias_rows) * n;
    double* to = assay_f64(y) + r * n;
    for (int64_t i = 0; i < n; i++) to[i] = assay_acc(c, from[i] + add[i]);
    assay_softmax_row(c, n, 1, to, to);
  }
  return NULL;
}

// ---- bounds -----------------------------------------------------------------------------------

typedef void (*row_bound_t)(const assay_softmax_bound_t* row);

// x: what the rows are made of; its limits: what came in.
static assay_status_t bound_rows(assay_bound_t* c, row_bound_t f, bool flattened, const double* x,
                                 const double* const x_error[2]) {
  const assay_tensor_t* y = c->out[0];
  double* limits[2];
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  if (!limits[0] || y->size == 0) return NULL;
  const assay_eval_t reader = assay_bound_as_eval(c);
  int axis = 0;
  ASSAY_TRY(assay_eval_axis(&reader, "axis", assay_attr_i64(c->node, "axis", flattened ? 1 : -1),
                            y->rank, &axis));
  const int end = flattened ? y->rank : axis + 1;
  const int64_t n = assay_dims_product(y->dims, axis, end);
  const int64_t inner = assay_dims_product(y->dims, end, y->rank), rows = y->size / n;
#pragma omp parallel for schedule(static) if (rows > 1 && y->size > 30000)
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = r / inner * n * inner + r % inner;
    assay_softmax_bound_t row = {
        .rounding = c->rounding, .n = n, .stride = inner, .x = x + at, .y = assay_f64(y) + at};
    for (int k = 0; k < 2; k++) {
      row.x_error[k] = x_error[k] ? x_error[k] + at : NULL;
      row.limits[k] = limits[k] + at;
    }
    f(&row);
  }
  return NULL;
}

static assay_status_t bound_with(assay_bound_t* c, row_bound_t f, bool flattened) {
  const double* x_error[2] = {assay_bound_in(c, 0, false), assay_bound_in(c, 0, true)};
  return bound_rows(c, f, flattened, assay_f64(c->in[0]), x_error);
}

static assay_status_t softmax_bound_1(assay_bound_t* c) {
  return bound_with(c, assay_softmax_bound_row, true);
}
static assay_status_t softmax_bound(assay_bound_t* c) {
  return bound_with(c, assay_softmax_bound_row, false);
}
static assay_status_t log_softmax_bound_1(assay_bound_t* c) {
  return bound_with(c, assay_log_softmax_bound_row, true);
}
static assay_status_t log_softmax_bound(assay_bound_t* c) {
  return bound_with(c, assay_log_softmax_bound_row, false);
}

// Rows of data + bias as truth has them; each such sum is rounded once.
static assay_status_t bias_bound_with(assay_bound_t* c, double* sum, double* error) {
  const assay_tensor_t *x = c->in[0], *bias = c->in[1];
  const assay_eval_t reader = assay_bound_as_eval(c);
  int axis = 0;
  ASSAY_TRY(assay_eval_axis(&reader, "axis", assay_attr_i64(c->node, "axis", 1), x->rank, &axis));
  if (x->size == 0)
    return bound_rows(c, assay_softmax_bound_row, true, sum, (const double* [2]){0});
  const int64_t rows = assay_dims_product(x->dims, 0, axis), n = x->size / rows;
  const int64_t bias_rows = bias->size / n;
  const bool inner = assay_attr_i64(c->node, "is_inner_broadcast", 0) != 0;
  const double u = assay_bound_inner(c->rounding).u;
  for (int64_t r = 0; r < rows; r++) {
    const double* add = assay_f64(bias) + (inner ? r / (rows / bias_rows) : r % bias_rows) * n;
    for (int64_t i = 0; i < n; i++) {
      sum[r * n + i] = assay_f64(x)[r * n + i] + add[i];
      error[r * n + i] = u * fabs(sum[r * n + i]);
    }
  }
  const double* x_error[2] = {error, error};
  return bound_rows(c, assay_softmax_bound_row, true, sum, x_error);
}

static assay_status_t bias_softmax_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  double *sum = NULL, *error = NULL;
  assay_status_t st = assay_new_array((size_t)c->in[0]->size, sizeof *sum, &sum);
  if (!st) st = assay_new_array((size_t)c->in[0]->size, sizeof *error, &error);
  if (!st) st = bias_bound_with(c, sum, error);
  assay_free(sum);
  assay_free(error);
  return st;
}

// ---- in twice the precision -------------------------------------------------------------------

static void dd_with(assay_dd_eval_t* c, bool logarithm, bool flattened) {
  const assay_pair_t* x = assay_dd_in(c, 0);
  bool axes[ASSAY_MAX_RANK];
  if (!assay_dd_axes(c, "axis", flattened ? 1 : -1, flattened ? x->high->rank : 0, axes)) return;
  const assay_pair_t* max = assay_dd_fold(c, assay_dd_max, -(double)INFINITY, x, axes);
  const assay_pair_t* d = assay_dd_sub(c, x, max);
  const assay_pair_t* e = assay_dd_map1(c, assay_dd_exp, d);
  const assay_pair_t* sum = assay_dd_total(c, e, axes);
  assay_dd_put(c, 0,
               logarithm ? assay_dd_sub(c, d, assay_dd_map1(c, assay_dd_log, sum))
                         : assay_dd_div(c, e, sum));
}

static void softmax_dd_1(assay_dd_eval_t* c) { dd_with(c, false, true); }
static void softmax_dd(assay_dd_eval_t* c) { dd_with(c, false, false); }
static void log_softmax_dd_1(assay_dd_eval_t* c) { dd_with(c, true, true); }
static void log_softmax_dd(assay_dd_eval_t* c) { dd_with(c, true, false); }

const assay_op_t assay_ops_softmax[] = {
    {.domain = "",
     .name = "Softmax",
     .since = 1,
     .infer = infer_1,
     .eval = softmax_eval_1,
     .bound = softmax_bound_1,
     .dd = softmax_dd_1,
     .cost = softmax_cost},
    {.domain = "",
     .name = "Softmax",
     .since = 13,
     .infer = infer_13,
     .eval = softmax_eval,
     .bound = softmax_bound,
     .dd = softmax_dd,
     .cost = softmax_cost},
    {.domain = "",
     .name = "LogSoftmax",
     .since = 1,
     .infer = infer_1,
     .eval = log_softmax_eval_1,
     .bound = log_softmax_bound_1,
     .dd = log_softmax_dd_1,
     .cost = softmax_cost},
    {.domain = "",
     .name = "LogSoftmax",
     .since = 13,
     .infer = infer_13,
     .eval = log_softmax_eval,
     .bound = log_softmax_bound,
     .dd = log_softmax_dd,
     .cost = softmax_cost},
    {.domain = "",
     .name = "Hardmax",
     .since = 1,
     .discrete = 1,
     .infer = infer_1,
     .eval = hardmax_eval_1,
     .cost = softmax_cost},
    {.domain = "",
     .name = "Hardmax",
     .since = 13,
     .discrete = 1,
     .infer = infer_13,
     .eval = hardmax_eval,
     .cost = softmax_cost},
    {.domain = "com.microsoft",
     .name = "BiasSoftmax",
     .since = 1,
     .infer = infer_1,
     .eval = bias_softmax_eval,
     .bound = bias_softmax_bound,
     .cost = softmax_cost,
     .schema = "data:T, bias:T -> output:T | axis:i=1, is_inner_broadcast:i! | "
               "T=float16 float double"},
    {0}};
