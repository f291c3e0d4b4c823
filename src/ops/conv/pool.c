// Pooling over sliding windows and over everything: averages, maxima and p-norms.
//
// Every kernel works on one plane (one channel of one sample) at a time, along rows: for each
// kernel position the elements that it meets in one row of the output. So sums run over the
// kernel's positions in row-major order; padding is skipped.
#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/bound_parts.h"
#include "ops/conv/power_bound.h"
#include "ops/conv/window.h"
#include "ops/dd_array.h"
#include "ops/families.h"

// ---- shapes ----------------------------------------------------------------------------------

static assay_status_t pool_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, ASSAY_MAX_RANK));
  size_t n = 0;
  const bool has_kernel = assay_attr_ints(c->node, "kernel_shape", &n) != NULL;
  if (!x.known && (!has_kernel || n + 2 > ASSAY_MAX_RANK)) {
    ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL));
    return assay_infer_set(c, 1, ASSAY_TYPE_INT64, NULL);
  }
  const int rank = x.known ? x.rank - 2 : (int)n;
  assay_window_t w;
  ASSAY_TRY(assay_window_read(c->node, rank, NULL, &w));
  assay_shape_t y = {.known = true, .rank = rank + 2};
  if (x.known) {
    y.dims[0] = x.dims[0];
    y.dims[1] = x.dims[1];
    ASSAY_TRY(assay_window_infer_shape(c, &w, &x, &y));
  }
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y));
  return assay_infer_set(c, 1, ASSAY_TYPE_INT64, &y);  // MaxPool's Indices
}

static assay_status_t global_infer(assay_infer_t* c) {
  assay_shape_t y = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  if (!y.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  for (int i = 2; i < y.rank; i++) y.dims[i] = assay_dim_const(c->dims, 1);
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// What every pooling starts with.
typedef struct pool {
  const assay_eval_t* c;
  assay_window_t w;
  int rank;                      // of input and output
  int64_t dims[ASSAY_MAX_RANK];  // of the output
  int64_t planes, in_size, out_size;
  double work;
} pool_t;

static assay_status_t pool_read(const assay_eval_t* c, pool_t* out) {
  const assay_tensor_t* x = c->in[0];
  *out = (pool_t){.c = c, .rank = x->rank};
  ASSAY_TRY(assay_window_read(c->node, x->rank - 2, NULL, &out->w));
  ASSAY_TRY(assay_window_fit(c->node, &out->w, x->dims + 2));
  int64_t size;
  out->dims[0] = x->dims[0];
  out->dims[1] = x->dims[1];
  for (int i = 0; i < out->w.rank; i++) out->dims[2 + i] = out->w.axis[i].out;
  if (!assay_dims_size(out->rank, out->dims, &size)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the output of an input of shape %s is too large", ASSAY_DIMS_TEXT(x));
  }
  if (size == 0) return NULL;  // no planes
  out->planes = x->dims[0] * x->dims[1];
  out->in_size = x->size / out->planes;
  out->out_size = size / out->planes;
  out->work = (double)size;
  for (int i = 0; i < out->w.rank; i++) {
    const assay_window_axis_t* a = &out->w.axis[i];
    out->work *= (double)(a->kernel < a->in ? a->kernel : a->in);
  }
  return NULL;
}

static void pool_cost(const assay_eval_t* c, assay_cost_t* out) {
  pool_t p;
  assay_status_t st = pool_read(c, &p);
  if (!st) out->flops = p.work;
  assay_status_free(st);
}

// Calls f for each run of input elements that kernel position k meets in output row r:
// src[j * stride] belongs to row[j] for lo <= j < hi.
#define FOR_EACH_RUN(w, x, r)                                    \
  assay_window_rows_t it;                                        \
  const assay_window_axis_t* ax = &(w)->axis[(w)->rank - 1];     \
  const int64_t stride = ax->stride;                             \
  for (bool more = assay_window_rows_begin(&it, (w), (r)); more; \
       more = assay_window_rows_next(&it))                       \
    for (int64_t k = first_position(ax), end_k = end_position(ax); k < end_k; k++)

// The kernel positions of an axis that meet the input at all, for kernels far larger than it.
static int64_t first_position(const assay_window_axis_t* a) {
  const int64_t last_start = (a->out - 1) * a->stride - a->pads[0];
  return last_start < 0 ? (-last_start + a->dilation - 1) / a->dilation : 0;
}

static int64_t end_position(const assay_window_axis_t* a) {
  const int64_t reach = a->in - 1 + a->pads[0];
  const int64_t end = reach < 0 ? 0 : reach / a->dilation + 1;
  return end < a->kernel ? end : a->kernel;
}

// ---- averages --------------------------------------------------------------------------------

// Elements of window o that count: those inside the input, or with `padding` those inside the
// padded input, where ceil_mode's last window may reach past the end.
static double count(const assay_window_axis_t* a, int64_t o, bool padding) {
  int64_t first, end;
  if (!padding) {
    assay_window_positions(a, o, &first, &end);
    return (double)(end - first);
  }
  const int64_t capacity = a->in + a->pads[0] + a->pads[1] - 1 - o * a->stride;
  if (capacity < 0) return 0;
  const int64_t n = capacity / a->dilation + 1;
  return (double)(n < a->kernel ? n : a->kernel);
}

// low: of arithmetic DOUBLE_DOUBLE, the plane's low parts.
static void average_plane(const pool_t* p, const double* inner, bool padding, const double* x,
                          double* y, double* low) {
  const assay_window_t* w = &p->w;
  const int64_t row_size = w->axis[w->rank - 1].out;
  for (int64_t r = 0; r < p->out_size / row_size; r++, y += row_size) {
    memset(y, 0, (size_t)row_size * sizeof *y);
    FOR_EACH_RUN(w, x, r) {
      int64_t lo, hi;
      assay_window_range(ax, k, &lo, &hi);
      const double* src = x + it.in_row * ax->in + k * ax->dilation - ax->pads[0];
      if (low) {
        for (int64_t j = lo; j < hi; j++) assay_dd_add(&y[j], &low[j], src[j * stride]);
      } else if (p->c->arith != ASSAY_ARITH_F64) {
        for (int64_t j = lo; j < hi; j++) y[j] = assay_acc(p->c, y[j] + src[j * stride]);
      } else if (stride == 1) {
        for (int64_t j = lo; j < hi; j++) y[j] += src[j];
      } else {
        for (int64_t j = lo; j < hi; j++) y[j] += src[j * stride];
      }
    }
    double outer = 1;
    for (int64_t i = w->rank - 2, rest = r; i >= 0; i--) {
      outer *= count(&w->axis[i], rest % w->axis[i].out, padding);
      rest /= w->axis[i].out;
    }
    for (int64_t j = 0; low && j < row_size; j++) {
      const assay_dd_t n = assay_dd(outer * inner[j]);
      const assay_dd_t mean = assay_dd_over(assay_dd_end(y[j], low[j]), n);
      y[j] = mean.high;
      low[j] = mean.low;
    }
    if (low)
      low += row_size;
    else
      for (int64_t j = 0; j < row_size; j++) y[j] = assay_acc(p->c, y[j] / (outer * inner[j]));
  }
}

// The sum divided by the number of elements; with count_include_pad, padding counts as zeros.
// Source: ONNX AveragePool-22. A window without elements gives NaN (0 / 0).
static assay_status_t average_eval(assay_eval_t* c) {
  pool_t p;
  ASSAY_TRY(pool_read(c, &p));
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, c->in[0]->type, p.rank, p.dims, &y));
  if (y->size == 0) return NULL;
  const bool padding = assay_attr_i64(c->node, "count_include_pad", 0) != 0;
  const assay_window_axis_t* ax = &p.w.axis[p.w.rank - 1];
  double* inner = NULL;
  ASSAY_TRY(assay_new_array((size_t)ax->out, sizeof *inner, &inner));
  for (int64_t j = 0; j < ax->out; j++) inner[j] = count(ax, j, padding);
#pragma omp parallel for schedule(static) if (p.work > 100000)
  for (int64_t i = 0; i < p.planes; i++) {
    double* low =
        c->arith == ASSAY_ARITH_DOUBLE_DOUBLE ? assay_f64(c->low[0]) + i * p.out_size : NULL;
    average_plane(&p, inner, padding, assay_f64(c->in[0]) + i * p.in_size,
                  assay_f64(y) + i * p.out_size, low);
  }
  assay_free(inner);
  return NULL;
}

// ---- maxima ----------------------------------------------------------------------------------

// A NaN in the window is its maximum, as in NumPy and PyTorch; a window without elements has -inf.
static void max_plane(const pool_t* p, const double* x, double* y) {
  const assay_window_t* w = &p->w;
  const int64_t row_size = w->axis[w->rank - 1].out;
  for (int64_t r = 0; r < p->out_size / row_size; r++, y += row_size) {
    for (int64_t j = 0; j < row_size; j++) y[j] = -INFINITY;
    FOR_EACH_RUN(w, x, r) {
      int64_t lo, hi;
      assay_window_range(ax, k, &lo, &hi);
      const double* src = x + it.in_row * ax->in + k * ax->dilation - ax->pads[0];
      if (stride == 1) {
        for (int64_t j = lo; j < hi; j++) {
          y[j] = src[j] > y[j] || isnan(src[j]) ? src[j] : y[j];
        }
      } else {
        for (int64_t j = lo; j < hi; j++) {
          const double v = src[j * stride];
          y[j] = v > y[j] || isnan(v) ? v : y[j];
        }
      }
    }
  }
}

// Number of the element at the start of row `row`, and the step along the row, in the order asked
// for: row-major, or column-major with the first spatial axis fastest.
static void row_numbers(const assay_window_t* w, int64_t row, bool column_major, int64_t* out_start,
                        int64_t* out_step) {
  if (!column_major) {
    *out_start = row * w->axis[w->rank - 1].in;
    *out_step = 1;
    return;
  }
  *out_start = 0;
  *out_step = 1;
  int64_t rows_behind = 1;
  for (int i = 0; i < w->rank - 1; i++) rows_behind *= w->axis[i].in;
  for (int i = 0; i < w->rank - 1; i++) {
    rows_behind /= w->axis[i].in;
    *out_start += row / rows_behind % w->axis[i].in * *out_step;
    *out_step *= w->axis[i].in;
  }
}

// The same with the place of each maximum: the first one of equals in row-major order, -1 in a
// window without elements. `base` is the number of the plane's first element.
static void argmax_plane(const pool_t* p, bool column_major, int64_t base, const double* x,
                         double* y, int64_t* index) {
  const assay_window_t* w = &p->w;
  const int64_t row_size = w->axis[w->rank - 1].out;
  for (int64_t r = 0; r < p->out_size / row_size; r++, y += row_size, index += row_size) {
    for (int64_t j = 0; j < row_size; j++) y[j] = -INFINITY, index[j] = -1;
    FOR_EACH_RUN(w, x, r) {
      int64_t lo, hi, start, step;
      assay_window_range(ax, k, &lo, &hi);
      row_numbers(w, it.in_row, column_major, &start, &step);
      const int64_t shift = k * ax->dilation - ax->pads[0];
      const double* src = x + it.in_row * ax->in + shift;
      for (int64_t j = lo; j < hi; j++) {
        const double v = src[j * stride];
        if (index[j] < 0 || v > y[j] || (isnan(v) && !isnan(y[j]))) {
          y[j] = v;
          index[j] = base + start + (j * stride + shift) * step;
        }
      }
    }
  }
}

// 8-bit integers are exact as doubles.
static assay_status_t to_double(const assay_tensor_t* x, double** out) {
  ASSAY_TRY(assay_new_array((size_t)x->size, sizeof **out, out));
  for (int64_t i = 0; i < x->size; i++) (*out)[i] = (double)assay_i64(x)[i];
  return NULL;
}

static void max_run(const pool_t* p, const double* x, double* y, int64_t* index) {
  const bool column_major = assay_attr_i64(p->c->node, "storage_order", 0) != 0;
#pragma omp parallel for schedule(static) if (p->work > 100000)
  for (int64_t i = 0; i < p->planes; i++) {
    const double* from = x + i * p->in_size;
    if (index) {
      argmax_plane(p, column_major, i * p->in_size, from, y + i * p->out_size,
                   index + i * p->out_size);
    } else {
      max_plane(p, from, y + i * p->out_size);
    }
  }
}

static assay_status_t max_eval(assay_eval_t* c) {
  pool_t p;
  ASSAY_TRY(pool_read(c, &p));
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t *y, *index = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, p.rank, p.dims, &y));
  if (assay_eval_wants(c, 1)) {
    ASSAY_TRY(assay_eval_output(c, 1, ASSAY_TYPE_INT64, p.rank, p.dims, &index));
  }
  if (y->size == 0) return NULL;
  int64_t* places = index ? assay_i64(index) : NULL;
  if (x->store == ASSAY_STORE_F64) return max_run(&p, assay_f64(x), assay_f64(y), places), NULL;
  double *from = NULL, *to = NULL;
  assay_status_t st = to_double(x, &from);
  if (!st) st = assay_new_array((size_t)y->size, sizeof *to, &to);
  if (!st) {
    max_run(&p, from, to, places);
    for (int64_t i = 0; i < y->size; i++) assay_i64(y)[i] = assay_type_saturate(x->type, to[i]);
  }
  assay_free(from);
  assay_free(to);
  return st;
}

// ---- p-norms ---------------------------------------------------------------------------------

// (sum of |x|^p)^(1/p) over the elements of the window. Source: ONNX LpPool-22. For p past 2 the
// terms are scaled by the window's maximum, so that their powers neither overflow nor vanish.
static void lp_row(const pool_t* p, double norm, int64_t r, const double* x, double* scale,
                   double* y) {
  const assay_window_t* w = &p->w;
  const int64_t row_size = w->axis[w->rank - 1].out;
  if (scale) {
    memset(scale, 0, (size_t)row_size * sizeof *scale);
    FOR_EACH_RUN(w, x, r) {
      int64_t lo, hi;
      assay_window_range(ax, k, &lo, &hi);
      const double* src = x + it.in_row * ax->in + k * ax->dilation - ax->pads[0];
      for (int64_t j = lo; j < hi; j++) {
        const double v = fabs(src[j * stride]);
        if (v > scale[j] && !isinf(v)) scale[j] = v;
      }
    }
    for (int64_t j = 0; j < row_size; j++) scale[j] = scale[j] == 0 ? 1 : scale[j];
  }
  memset(y, 0, (size_t)row_size * sizeof *y);
  FOR_EACH_RUN(w, x, r) {
    int64_t lo, hi;
    assay_window_range(ax, k, &lo, &hi);
    const double* src = x + it.in_row * ax->in + k * ax->dilation - ax->pads[0];
    for (int64_t j = lo; j < hi; j++) {
      const double v = fabs(src[j * stride]);
      const double term = norm == 1 ? v : norm == 2 ? v * v : assay_pow(v / scale[j], norm);
      y[j] = assay_acc(p->c, y[j] + assay_acc(p->c, term));
    }
  }
  if (norm == 1) return;
  for (int64_t j = 0; j < row_size; j++) {
    y[j] = norm == 2 ? sqrt(y[j]) : scale[j] * assay_pow(y[j], 1 / norm);
  }
}

static assay_status_t lp_run(const pool_t* p, double norm, const double* x, double* y) {
  const int64_t row_size = p->w.axis[p->w.rank - 1].out;
  bool failed = false;
#pragma omp parallel if (p->work > 30000)
  {
    double* scale = NULL;
    if (norm != 1 && norm != 2) {
      scale = assay_malloc((size_t)row_size * sizeof *scale);
      if (!scale) {
#pragma omp atomic write
        failed = true;
      }
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < p->planes; i++) {
      for (int64_t r = 0; r < p->out_size / row_size; r++) {
        if (norm != 1 && norm != 2 && !scale) continue;
        lp_row(p, norm, r, x + i * p->in_size, scale, y + i * p->out_size + r * row_size);
      }
    }
    assay_free(scale);
  }
  return failed ? assay_status_no_memory() : NULL;
}

// The attribute p: an integer since version 2, a float in version 1.
static assay_status_t read_norm(const assay_node_t* node, bool is_float, double* out) {
  *out = is_float ? assay_attr_f64(node, "p", 2) : (double)assay_attr_i64(node, "p", 2);
  if (*out > 0 && isfinite(*out)) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "attribute 'p' is %g, expected more than 0", *out);
}

static assay_status_t lp_either(assay_eval_t* c, bool is_float) {
  double norm;
  pool_t p;
  ASSAY_TRY(read_norm(c->node, is_float, &norm));
  ASSAY_TRY(pool_read(c, &p));
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, c->in[0]->type, p.rank, p.dims, &y));
  if (y->size == 0) return NULL;
  return lp_run(&p, norm, assay_f64(c->in[0]), assay_f64(y));
}

static assay_status_t lp1_eval(assay_eval_t* c) { return lp_either(c, true); }
static assay_status_t lp_eval(assay_eval_t* c) { return lp_either(c, false); }

// ---- everything in one window ----------------------------------------------------------------

// The plane as one row with one window over it; no planes if the output is empty.
static assay_status_t global_read(assay_eval_t* c, pool_t* out, assay_tensor_t** out_y) {
  const assay_tensor_t* x = c->in[0];
  if (x->rank < 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the input has shape %s, expected a batch, a channel and spatial axes",
                            ASSAY_DIMS_TEXT(x));
  }
  *out = (pool_t){.c = c, .rank = x->rank, .out_size = 1, .work = (double)x->size};
  out->dims[0] = x->dims[0];
  out->dims[1] = x->dims[1];
  for (int i = 2; i < x->rank; i++) out->dims[i] = 1;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, out->dims, out_y));
  if ((*out_y)->size == 0) return NULL;
  out->planes = x->dims[0] * x->dims[1];
  out->in_size = x->size / out->planes;
  out->w = (assay_window_t){
      .rank = 1,
      .axis = {{.kernel = out->in_size, .stride = 1, .dilation = 1, .in = out->in_size, .out = 1}}};
  return NULL;
}

static assay_status_t global_average_eval(assay_eval_t* c) {
  pool_t p;
  assay_tensor_t* y;
  ASSAY_TRY(global_read(c, &p, &y));
#pragma omp parallel for schedule(static) if (p.work > 100000)
  for (int64_t i = 0; i < p.planes; i++) {
    const double* x = assay_f64(c->in[0]) + i * p.in_size;
    double sum = 0;
    if (c->arith == ASSAY_ARITH_F64) {
      for (int64_t j = 0; j < p.in_size; j++) sum += x[j];
    } else {
      for (int64_t j = 0; j < p.in_size; j++) sum = assay_acc(c, sum + x[j]);
    }
    assay_f64(y)[i] = assay_acc(c, sum / (double)p.in_size);
  }
  return NULL;
}

static assay_status_t global_max_eval(assay_eval_t* c) {
  pool_t p;
  assay_tensor_t* y;
  ASSAY_TRY(global_read(c, &p, &y));
  if (p.planes > 0) max_run(&p, assay_f64(c->in[0]), assay_f64(y), NULL);
  return NULL;
}

static assay_status_t global_lp(assay_eval_t* c, bool is_float) {
  double norm;
  pool_t p;
  assay_tensor_t* y;
  ASSAY_TRY(read_norm(c->node, is_float, &norm));
  ASSAY_TRY(global_read(c, &p, &y));
  return p.planes > 0 ? lp_run(&p, norm, assay_f64(c->in[0]), assay_f64(y)) : NULL;
}

static assay_status_t global_lp1_eval(assay_eval_t* c) { return global_lp(c, true); }
static assay_status_t global_lp_eval(assay_eval_t* c) { return global_lp(c, false); }

static void global_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = (double)c->in[0]->size;
}

// ---- MaxpoolWithMask -------------------------------------------------------------------------
// Source: ONNX Runtime, contrib_ops/cpu/maxpool_with_mask.h: within a row of the window, an element
// whose mask is 0 hides itself and those after it. Plane i of the input has plane
// i mod (M's planes) of the mask. An empty window gives the lowest float.

static void mask_plane(const pool_t* p, const double* x, const int64_t* mask, double* y) {
  const assay_window_t* w = &p->w;
  const assay_window_axis_t* ax = &w->axis[w->rank - 1];
  for (int64_t i = 0; i < p->out_size; i++) {
    const int64_t o = i % ax->out;
    int64_t first, end;
    assay_window_positions(ax, o, &first, &end);
    double best = -3.4028234663852886e38;
    assay_window_rows_t it;
    for (bool more = assay_window_rows_begin(&it, w, i / ax->out); more;
         more = assay_window_rows_next(&it)) {
      const int64_t at = it.in_row * ax->in + o * ax->stride - ax->pads[0];
      for (int64_t k = first; k < end && mask[at + k * ax->dilation] != 0; k++) {
        const double v = x[at + k * ax->dilation];
        if (v > best || isnan(v)) best = v;
      }
    }
    y[i] = best;
  }
}

static assay_status_t mask_eval(assay_eval_t* c) {
  pool_t p;
  ASSAY_TRY(pool_read(c, &p));
  const assay_tensor_t *x = c->in[0], *m = c->in[1];
  if (m->rank != x->rank ||
      memcmp(m->dims + 2, x->dims + 2, (size_t)(x->rank - 2) * sizeof *m->dims) != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the mask has shape %s, expected the spatial axes of %s",
                            ASSAY_DIMS_TEXT(m), ASSAY_DIMS_TEXT(x));
  }
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, p.rank, p.dims, &y));
  if (y->size == 0) return NULL;
  const int64_t masks = m->dims[0] * m->dims[1];
  if (masks == 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "the mask has shape %s: it is empty",
                            ASSAY_DIMS_TEXT(m));
  }
#pragma omp parallel for schedule(static) if (p.work > 100000)
  for (int64_t i = 0; i < p.planes; i++) {
    mask_plane(&p, assay_f64(x) + i * p.in_size, assay_i64(m) + i % masks * p.in_size,
               assay_f64(y) + i * p.out_size);
  }
  return NULL;
}

// ---- bounds -----------------------------------------------------------------------------------

// An average is a sum and a division (or a product with a rounded reciprocal).
static assay_status_t average_bound_of(assay_bound_t* c, double terms, bool plain) {
  const assay_products_t p = {.factors = {0},
                              .n_factors = 1,
                              .terms = terms,
                              .ends = 2,
                              .plain = plain,
                              .scale = terms > 0 ? 1 / terms : 0};
  return assay_bound_products(c, &p);
}

// The elements that a window has at most. whole: it has no more than them.
static assay_status_t window_terms(const assay_bound_t* c, double* out, bool* whole) {
  const assay_eval_t reader = assay_bound_as_eval(c);
  assay_window_t w;
  ASSAY_TRY(assay_window_read(c->node, reader.in[0]->rank - 2, NULL, &w));
  ASSAY_TRY(assay_window_fit(c->node, &w, reader.in[0]->dims + 2));
  *out = 1;
  *whole = true;
  for (int i = 0; i < w.rank; i++) {
    *out *= (double)(w.axis[i].kernel < w.axis[i].in ? w.axis[i].kernel : w.axis[i].in);
    *whole = *whole && w.axis[i].kernel <= w.axis[i].in;
  }
  return NULL;
}

static assay_status_t average_bound(assay_bound_t* c) {
  double terms;
  bool whole;
  ASSAY_TRY(window_terms(c, &terms, &whole));
  return average_bound_of(c, terms, whole);
}

static double plane_size(const assay_bound_t* c) {
  return c->out[0]->size ? (double)(c->in[0]->size / c->out[0]->size) : 0;
}

static assay_status_t global_average_bound(assay_bound_t* c) {
  return average_bound_of(c, plane_size(c), true);
}

static assay_status_t lp_bound_of(assay_bound_t* c, bool is_float, double terms) {
  assay_power_norm_t norm = {.terms = terms};
  ASSAY_TRY(read_norm(c->node, is_float, &norm.p));
  return assay_bound_power_norm(c, &norm);
}

static assay_status_t lp1_bound(assay_bound_t* c) {
  double terms;
  bool whole;
  ASSAY_TRY(window_terms(c, &terms, &whole));
  return lp_bound_of(c, true, terms);
}

static assay_status_t lp_bound(assay_bound_t* c) {
  double terms;
  bool whole;
  ASSAY_TRY(window_terms(c, &terms, &whole));
  return lp_bound_of(c, false, terms);
}

static assay_status_t global_lp1_bound(assay_bound_t* c) {
  return lp_bound_of(c, true, plane_size(c));
}
static assay_status_t global_lp_bound(assay_bound_t* c) {
  return lp_bound_of(c, false, plane_size(c));
}

// ---- in twice the precision -------------------------------------------------------------------

static void average_dd(assay_dd_eval_t* c) { assay_dd_products(c, 1, (const size_t[]){0}); }

static void spatial_axes(const assay_dd_eval_t* c, bool* axes) {
  for (int i = 0; i < c->in[0].high->rank; i++) axes[i] = i >= 2;
}

static void global_average_dd(assay_dd_eval_t* c) {
  bool axes[ASSAY_MAX_RANK];
  spatial_axes(c, axes);
  assay_dd_put(c, 0, assay_dd_mean(c, assay_dd_in(c, 0), axes));
}

static void global_max_dd(assay_dd_eval_t* c) {
  bool axes[ASSAY_MAX_RANK];
  spatial_axes(c, axes);
  const assay_pair_t* x = assay_dd_in(c, 0);
  assay_dd_put(c, 0, assay_dd_fold(c, assay_dd_max, -(double)INFINITY, x, axes));
}

const assay_op_t assay_ops_pool[] = {
    {.name = "AveragePool",
     .domain = "",
     .since = 1,
     .infer = pool_infer,
     .eval = average_eval,
     .bound = average_bound,
     .dd = average_dd,
     .cost = pool_cost},
    {.name = "MaxPool",
     .domain = "",
     .since = 1,
     .flags = ASSAY_OP_MOVES | ASSAY_OP_SELECTS,
     .discrete = 1u << 1,
     .infer = pool_infer,
     .eval = max_eval,
     .cost = pool_cost},
    {.name = "LpPool",
     .domain = "",
     .since = 1,
     .infer = pool_infer,
     .eval = lp1_eval,
     .bound = lp1_bound,
     .cost = pool_cost},
    {.name = "LpPool",
     .domain = "",
     .since = 2,
     .infer = pool_infer,
     .eval = lp_eval,
     .bound = lp_bound,
     .cost = pool_cost},
    {.name = "GlobalAveragePool",
     .domain = "",
     .since = 1,
     .infer = global_infer,
     .eval = global_average_eval,
     .bound = global_average_bound,
     .dd = global_average_dd,
     .cost = global_cost},
    {.name = "GlobalMaxPool",
     .domain = "",
     .since = 1,
     .flags = ASSAY_OP_MOVES | ASSAY_OP_SELECTS,
     .infer = global_infer,
     .eval = global_max_eval,
     .dd = global_max_dd,
     .cost = global_cost},
    {.name = "GlobalLpPool",
     .domain = "",
     .since = 1,
     .infer = global_infer,
     .eval = global_lp1_eval,
     .bound = global_lp1_bound,
     .cost = global_cost},
    {.name = "GlobalLpPool",
     .domain = "",
     .since = 2,
     .infer = global_infer,
     .eval = global_lp_eval,
     .bound = global_lp_bound,
     .cost = global_cost},
    {.name = "MaxpoolWithMask",
     .domain = "com.microsoft",
     .since = 1,
     .flags = ASSAY_OP_MOVES | ASSAY_OP_SELECTS,
     .schema = "X:T, M:tm -> Y:T | auto_pad:s=NOTSET, kernel_shape:is, pads:is, storage_order:i=0, "
               "strides:is | T=float; tm=int32",
     .infer = pool_infer,
     .eval = mask_eval,
     .cost = pool_cost},
    {0}};
