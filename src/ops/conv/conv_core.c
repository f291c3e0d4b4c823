// Convolution as a product of matrices, tile by tile, and depthwise convolution directly.
#include <math.h>
#include <string.h>

#include "base/cancel/cancel.h"
#include "base/target.h"
#include "ops/conv/conv.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/gemm_fma.h"
#include "ops/matmul/product_f64.h"

// Tiles: output positions and rows of the panel at a time. 1 MiB of panel stays in the cache
// between its making and its use.
enum { TILE_COLUMNS = 192, TILE_ROWS = 768, SHARED_COLUMNS = 512, FEW_TILES = 12, MIN_BLOCK = 48 };

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

// ---- im2col ----------------------------------------------------------------------------------

// One row of the panel: kernel position `k` (per axis) of one channel's plane, for the output
// positions [t0, t1).
static void fill_row(const assay_window_t* w, const double* plane, const int64_t* k, int64_t t0,
                     int64_t t1, double* out) {
  const int inner = w->rank - 1;
  const assay_window_axis_t* ax = &w->axis[inner];
  int64_t valid_first, valid_end;
  assay_window_range(ax, k[inner], &valid_first, &valid_end);
  const int64_t shift = k[inner] * ax->dilation - ax->pads[0];
  int64_t o[ASSAY_MAX_RANK];  // outer coordinates of the output row
  int64_t row = t0 / ax->out;
  for (int i = inner - 1; i >= 0; i--) {
    o[i] = row % w->axis[i].out;
    row /= w->axis[i].out;
  }
  int64_t first = t0 % ax->out;
  while (t0 < t1) {
    const int64_t end = min_i64(ax->out, first + (t1 - t0));
    int64_t in_row = 0;
    bool inside = true;
    for (int i = 0; i < inner; i++) {
      const assay_window_axis_t* a = &w->axis[i];
      const int64_t at = o[i] * a->stride + k[i] * a->dilation - a->pads[0];
      inside = inside && at >= 0 && at < a->in;
      in_row = inside ? in_row * a->in + at : 0;
    }
    int64_t lo = inside ? min_i64(max_i64(first, valid_first), end) : end;
    int64_t hi = inside ? max_i64(min_i64(end, valid_end), lo) : end;
    for (int64_t j = first; j < lo; j++) *out++ = 0;
    if (lo < hi) {
      const double* src = plane + in_row * ax->in + shift;
      if (ax->stride == 1) {
        memcpy(out, src + lo, (size_t)(hi - lo) * sizeof *out);
        out += hi - lo;
      } else {
        for (int64_t j = lo; j < hi; j++) *out++ = src[j * ax->stride];
      }
    }
    for (int64_t j = hi; j < end; j++) *out++ = 0;
    t0 += end - first;
    first = 0;
    for (int i = inner - 1; i >= 0; i--) {
      if (++o[i] < w->axis[i].out) break;
      o[i] = 0;
    }
  }
}

static void fill_im2col(const assay_conv_panel_t* p, int64_t n, int64_t g, int64_t k0, int64_t k1,
                        int64_t t0, int64_t t1, double* out) {
  const assay_conv_t* s = p->conv;
  int64_t channel = k0 / s->kernel_size, rest = k0 % s->kernel_size;
  int64_t k[ASSAY_MAX_RANK];
  for (int i = s->w.rank - 1; i >= 0; i--) {
    k[i] = rest % s->w.axis[i].kernel;
    rest /= s->w.axis[i].kernel;
  }
  for (int64_t row = k0; row < k1; row++, out += t1 - t0) {
    const double* plane = p->x + ((n * s->c) + g * s->cg + channel) * s->in_size;
    fill_row(&s->w, plane, k, t0, t1, out);
    int i = s->w.rank - 1;
    for (; i >= 0; i--) {
      if (++k[i] < s->w.axis[i].kernel) break;
      k[i] = 0;
    }
    if (i < 0) channel++;
  }
}

// Whether the input itself is the panel: a kernel of one position, nothing padded or skipped.
static bool is_pointwise(const assay_conv_t* s) {
  for (int i = 0; i < s->w.rank; i++) {
    const assay_window_axis_t* a = &s->w.axis[i];
    if (a->kernel != 1 || a->stride != 1 || a->pads[0] != 0 || a->pads[1] != 0) return false;
  }
  return true;
}

// ---- the product -----------------------------------------------------------------------------

typedef struct product {
  const assay_eval_t* c;
  const assay_conv_panel_t* panel;  // NULL: the input itself
  const assay_conv_t* s;
  const double *x, *w, *bias;
  double* y;
  int64_t k;               // rows of the whole panel
  int64_t columns, tiles;  // output positions in a tile, tiles in all
  int64_t block, blocks;   // output channels in a block, blocks in all
} product_t;

// y[m0..m1, t0..t1] (+)= w[m0..m1, k0..k1] * b, and the bias after the last rows.
static assay_status_t multiply(const product_t* p, int64_t n, int64_t g, int64_t m0, int64_t m1,
                               int64_t k0, int64_t k1, int64_t t0, int64_t t1, const double* b,
                               int64_t ldb) {
  const assay_conv_t* s = p->s;
  const int64_t ch = g * s->mg + m0;
  double* y = p->y + (n * s->m + ch) * s->out_size + t0;
  const bool twice = p->c->arith == ASSAY_ARITH_DOUBLE_DOUBLE;
  for (int64_t i = 0; twice && k0 == 0 && i < m1 - m0; i++)
    for (int64_t j = 0; j < t1 - t0; j++) y[i * s->out_size + j] = p->bias ? p->bias[ch + i] : 0;
  if (p->c->arith == ASSAY_ARITH_F64 && !p->c->coarse) {
    assay_product_f64(m1 - m0, t1 - t0, k1 - k0, p->w + ch * p->k + k0, p->k, b, ldb, k0 > 0, y,
                      s->out_size);
  } else {
    const assay_matrix_t ma = {.data = p->w,
                               .store = ASSAY_STORE_F64,
                               .type = ASSAY_TYPE_DOUBLE,
                               .offset = ch * p->k + k0,
                               .row_stride = p->k,
                               .col_stride = 1};
    const assay_matrix_t mb = {.data = b,
                               .store = ASSAY_STORE_F64,
                               .type = ASSAY_TYPE_DOUBLE,
                               .offset = 0,
                               .row_stride = ldb,
                               .col_stride = 1};
    ASSAY_TRY(
        assay_gemm(p->c, m1 - m0, t1 - t0, k1 - k0, &ma, &mb, y, s->out_size, twice || k0 > 0));
  }
  if (p->bias && k1 == p->k && !twice) {
    for (int64_t i = 0; i < m1 - m0; i++) {
      double* row = y + i * s->out_size;
      const double add = assay_acc(p->c, p->bias[ch + i]);
      if (p->c->arith == ASSAY_ARITH_F64) {
        for (int64_t j = 0; j < t1 - t0; j++) row[j] += add;
      } else {
        for (int64_t j = 0; j < t1 - t0; j++) row[j] = assay_acc(p->c, row[j] + add);
      }
    }
  }
  return NULL;
}

// Keeps the first error of several threads.
static void keep(assay_status_t* first, assay_status_t st) {
  if (!st) return;
#pragma omp critical(assay_conv_status)
  *first = assay_status_join(*first, st);
}

static double work_of(const assay_conv_t* s) {
  return (double)s->n * (double)s->m * (double)s->out_size * (double)s->cg * (double)s->kernel_size;
}

// Many tiles: each thread makes the panels of its own tiles.
static assay_status_t product_by_tile(const product_t* p) {
  const assay_conv_t* s = p->s;
  const int64_t tasks = s->n * s->group * p->tiles;
  const int64_t rows = min_i64(p->k, TILE_ROWS);
  const assay_cancel_t* watched = assay_cancel_watched();
  assay_status_t first = NULL;
#pragma omp parallel if (work_of(s) > 100000)
  {
    double* panel = p->panel ? assay_malloc((size_t)(rows * p->columns) * sizeof *panel) : NULL;
    if (p->panel && !panel) keep(&first, assay_status_no_memory());
#pragma omp for schedule(static)
    for (int64_t task = 0; task < tasks; task++) {
      if (assay_cancel_wanted(watched)) continue;
      const int64_t t0 = task % p->tiles * p->columns;
      const int64_t t1 = min_i64(t0 + p->columns, s->out_size);
      const int64_t g = task / p->tiles % s->group, n = task / p->tiles / s->group;
      if (!p->panel) {
        const double* b = p->x + (n * s->c + g * s->cg) * s->in_size + t0;
        keep(&first, multiply(p, n, g, 0, s->mg, 0, p->k, t0, t1, b, s->in_size));
        continue;
      }
      if (!panel) continue;
      for (int64_t k0 = 0; k0 < p->k; k0 += rows) {
        const int64_t k1 = min_i64(k0 + rows, p->k);
        p->panel->fill(p->panel, n, g, k0, k1, t0, t1, panel);
        keep(&first, multiply(p, n, g, 0, s->mg, k0, k1, t0, t1, panel, t1 - t0));
      }
    }
    assay_free(panel);
  }
  return first;
}

// Few tiles: the threads make a panel together and share it, each for its own output channels.
static assay_status_t product_shared(const product_t* p) {
  const assay_conv_t* s = p->s;
  const int64_t rows = min_i64(p->k, TILE_ROWS);
  double* panel = NULL;
  if (p->panel) {
    panel = assay_malloc((size_t)(rows * p->columns) * sizeof *panel);
    if (!panel) return assay_status_no_memory();
  }
  const assay_cancel_t* watched = assay_cancel_watched();
  assay_status_t first = NULL;
#pragma omp parallel if (work_of(s) > 100000)
  for (int64_t task = 0; task < s->n * s->group * p->tiles; task++) {
    const int64_t t0 = task % p->tiles * p->columns;
    const int64_t t1 = min_i64(t0 + p->columns, s->out_size);
    const int64_t g = task / p->tiles % s->group, n = task / p->tiles / s->group;
    const int64_t step = p->panel ? rows : p->k;
    for (int64_t k0 = 0; k0 < p->k; k0 += step) {
      const int64_t k1 = min_i64(k0 + step, p->k);
      const double* b = p->x + (n * s->c + g * s->cg) * s->in_size + t0;
      int64_t ldb = s->in_size;
      if (panel) {
#pragma omp for schedule(static)
        for (int64_t k = k0; k < k1; k++) {
          if (assay_cancel_wanted(watched)) continue;  // all threads go to the next barrier
          p->panel->fill(p->panel, n, g, k, k + 1, t0, t1, panel + (k - k0) * (t1 - t0));
        }
        b = panel;
        ldb = t1 - t0;
      }
#pragma omp for schedule(static)
      for (int64_t i = 0; i < p->blocks; i++) {
        if (assay_cancel_wanted(watched)) continue;
        const int64_t m0 = i * p->block, m1 = min_i64(m0 + p->block, s->mg);
        keep(&first, multiply(p, n, g, m0, m1, k0, k1, t0, t1, b, ldb));
      }
    }
  }
  assay_free(panel);
  return first;
}

// The sum of no terms, and the bias.
static void product_of_nothing(const assay_eval_t* c, const assay_conv_t* s, const double* bias,
                               double* y) {
  for (int64_t i = 0; i < s->n * s->m; i++) {
    const double all = bias ? assay_acc(c, bias[i % s->m]) : 0;
    for (int64_t j = 0; j < s->out_size; j++) y[i * s->out_size + j] = all;
  }
}

static assay_status_t product_run(const assay_eval_t* c, const assay_conv_t* s,
                                  const assay_conv_panel_t* panel, const double* x, const double* w,
                                  const double* bias, double* y) {
  const int64_t k = s->cg * s->kernel_size;
  if (s->n == 0 || s->m == 0 || s->out_size == 0) return NULL;
  if (k == 0) return product_of_nothing(c, s, bias, y), NULL;
  if (s->out_size > INT32_MAX || s->in_size > INT32_MAX || k > INT32_MAX || s->mg > INT32_MAX) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "a convolution over %lld positions, %lld terms and %lld channels is "
                            "larger than the 2147483647 that its matrices can have",
                            (long long)s->out_size, (long long)k, (long long)s->mg);
  }
  // Evenly sized tiles. Whatever is decided here depends on shapes only, so that the sums are the
  // same for any number of threads.
  product_t p = {.c = c, .panel = panel, .s = s, .x = x, .w = w, .bias = bias, .y = y, .k = k};
  p.tiles = (s->out_size + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const bool shared = s->n * s->group * p.tiles < FEW_TILES && s->mg >= 2 * MIN_BLOCK;
  if (shared) p.tiles = (s->out_size + SHARED_COLUMNS - 1) / SHARED_COLUMNS;
  p.columns = (s->out_size + p.tiles - 1) / p.tiles;
  p.columns = min_i64((p.columns + 7) / 8 * 8, s->out_size);
  p.tiles = (s->out_size + p.columns - 1) / p.columns;
  p.block = max_i64((s->mg / FEW_TILES + 7) / 8 * 8, MIN_BLOCK);
  p.blocks = (s->mg + p.block - 1) / p.block;
  if (c->arith == ASSAY_ARITH_F64) assay_gemm_prepare();
  return shared ? product_shared(&p) : product_by_tile(&p);
}

assay_status_t assay_conv_product(const assay_eval_t* c, const assay_conv_panel_t* panel,
                                  const double* w, const double* bias, double* y) {
  return product_run(c, panel->conv, panel, NULL, w, bias, y);
}

// ---- one channel a group ---------------------------------------------------------------------

// y[j] = y[j] + w * x[j * stride] for j < n, in each arithmetic.
static void row_f64(double* y, const double* x, int64_t stride, double w, int64_t n) {
  if (stride == 1) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) y[j] += w * x[j];
  } else {
    for (int64_t j = 0; j < n; j++) y[j] += w * x[j * stride];
  }
}

// A fused multiply-add has one right result: the clones differ in speed only.
ASSAY_CLONES("avx512f", "fma", "default")
static void row_f32(double* y, const double* x, int64_t stride, double w, int64_t n) {
  const float a = (float)w;
  if (stride == 1) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
      y[j] = (double)__builtin_fmaf(a, (float)x[j], (float)y[j]);
    }
  } else {
    for (int64_t j = 0; j < n; j++) {
      y[j] = (double)__builtin_fmaf(a, (float)x[j * stride], (float)y[j]);
    }
  }
}

static void row_narrow(const assay_eval_t* c, double* y, const double* x, int64_t stride, double w,
                       int64_t n) {
  if (c->accumulator == ASSAY_FORMAT_FP64 && stride == 1) {
    assay_fma_kernels()->row(n, w, x, y, y);
    return;
  }
  for (int64_t j = 0; j < n; j++) y[j] = assay_acc(c, fma(w, x[j * stride], y[j]));
}

// Padding is skipped here; that is the same as exact zeros, since all weights are finite.
static void depthwise_plane(const assay_eval_t* c, const assay_conv_t* s, const double* x,
                            const double* w, double bias, bool has_bias, double* y) {
  const assay_window_axis_t* ax = &s->w.axis[s->w.rank - 1];
  const int64_t rows = s->out_size / ax->out;
  for (int64_t r = 0; r < rows; r++, y += ax->out) {
    memset(y, 0, (size_t)ax->out * sizeof *y);
    assay_window_rows_t it;
    for (bool more = assay_window_rows_begin(&it, &s->w, r); more;
         more = assay_window_rows_next(&it)) {
      const double* src = x + it.in_row * ax->in - ax->pads[0];
      const double* weights = w + it.kernel_row * ax->kernel;
      for (int64_t k = 0; k < ax->kernel; k++) {
        int64_t lo, hi;
        assay_window_range(ax, k, &lo, &hi);
        if (lo >= hi) continue;
        const double* from = src + lo * ax->stride + k * ax->dilation;
        if (c->arith == ASSAY_ARITH_F64) {
          row_f64(y + lo, from, ax->stride, weights[k], hi - lo);
        } else if (c->arith == ASSAY_ARITH_F32) {
          row_f32(y + lo, from, ax->stride, weights[k], hi - lo);
        } else {
          row_narrow(c, y + lo, from, ax->stride, weights[k], hi - lo);
        }
      }
    }
    if (has_bias) {
      const double add = assay_acc(c, bias);
      for (int64_t j = 0; j < ax->out; j++) y[j] = assay_acc(c, y[j] + add);
    }
  }
}

static void depthwise(const assay_eval_t* c, const assay_conv_t* s, const double* x,
                      const double* w, const double* bias, double* y) {
#pragma omp parallel for schedule(static) if (work_of(s) > 100000)
  for (int64_t i = 0; i < s->n * s->m; i++) {
    const int64_t n = i / s->m, m = i % s->m;
    depthwise_plane(c, s, x + (n * s->c + m / s->mg) * s->in_size, w + m * s->kernel_size,
                    bias ? bias[m] : 0, bias != NULL, y + i * s->out_size);
  }
}

static bool all_finite(const double* x, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n; i++) finite = finite && isfinite(x[i]);
  return finite;
}

assay_status_t assay_conv_run(const assay_eval_t* c, const assay_conv_t* s, const double* x,
                              const double* w, const double* bias, double* y) {
  // With several output channels a group the panel pays off. Not for infinite weights, whose
  // product with the padding is NaN.
  if (s->cg == 1 && s->mg <= 4 && c->arith != ASSAY_ARITH_DOUBLE_DOUBLE && s->out_size > 0 &&
      s->kernel_size > 0 && all_finite(w, s->m * s->kernel_size)) {
    return depthwise(c, s, x, w, bias, y), NULL;
  }
  const assay_conv_panel_t panel = {.conv = s, .x = x, .fill = fill_im2col};
  return product_run(c, s, is_pointwise(s) ? NULL : &panel, x, w, bias, y);
}

// ---- shapes ----------------------------------------------------------------------------------

static assay_status_t check_group(const assay_node_t* node, int64_t group, int64_t c, int64_t cg,
                                  int64_t m) {
  if (group < 1) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "group is %lld, expected at least 1",
                            (long long)group);
  }
  if (c >= 0 && cg >= 0 && (c % group != 0 || c / group != cg)) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "the input has %lld channels, the weights take %lld in each of %lld "
                            "groups; check group",
                            (long long)c, (long long)cg, (long long)group);
  }
  if (m >= 0 && m % group != 0) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "%lld output channels cannot be divided into %lld groups", (long long)m,
                            (long long)group);
  }
  return NULL;
}

assay_status_t assay_conv_read(const assay_node_t* node, const assay_tensor_t* x,
                               const assay_tensor_t* w, const assay_tensor_t* bias,
                               bool channels_last, assay_conv_t* out) {
  if (x->rank < 3 || w->rank != x->rank) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "the input has shape %s and the weights %s; expected equal ranks of "
                            "at least 3",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(w));
  }
  const int64_t* in = x->dims + (channels_last ? 1 : 2);
  *out = (assay_conv_t){.n = x->dims[0],
                        .c = channels_last ? x->dims[x->rank - 1] : x->dims[1],
                        .m = w->dims[0],
                        .cg = w->dims[1],
                        .group = assay_attr_i64(node, "group", 1)};
  ASSAY_TRY(check_group(node, out->group, out->c, out->cg, out->m));
  out->mg = out->m / out->group;
  for (int i = 2; i < w->rank; i++) {
    if (w->dims[i] < 1) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "the weights have shape %s: an empty kernel",
                              ASSAY_DIMS_TEXT(w));
    }
  }
  ASSAY_TRY(assay_window_read(node, x->rank - 2, w->dims + 2, &out->w));
  ASSAY_TRY(assay_window_fit(node, &out->w, in));
  int64_t dims[ASSAY_MAX_RANK];
  for (int i = 0; i < out->w.rank; i++) dims[i] = out->w.axis[i].out;
  if (!assay_dims_size(out->w.rank, w->dims + 2, &out->kernel_size) ||
      !assay_dims_size(out->w.rank, in, &out->in_size) ||
      !assay_dims_size(out->w.rank, dims, &out->out_size)) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "input %s with weights %s is too large",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(w));
  }
  if (bias && (bias->rank != 1 || bias->dims[0] != out->m)) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "the bias has shape %s, expected [%lld]",
                            ASSAY_DIMS_TEXT(bias), (long long)out->m);
  }
  return NULL;
}

static int64_t value_or(const assay_dim_t* d, int64_t otherwise) {
  int64_t v;
  return assay_dim_value(d, &v) ? v : otherwise;
}

assay_status_t assay_conv_infer(assay_infer_t* c, size_t x_input, size_t w_input, size_t bias_input,
                                bool channels_last, assay_type_t elem) {
  assay_shape_t x = assay_infer_shape(c, x_input);
  const assay_shape_t w = assay_infer_shape(c, w_input);
  ASSAY_TRY(assay_infer_want_rank(c, x_input, 3, ASSAY_MAX_RANK));
  ASSAY_TRY(assay_infer_want_rank(c, w_input, 3, ASSAY_MAX_RANK));
  if (!x.known && !w.known) return assay_infer_set(c, 0, elem, NULL);
  if (x.known && w.known && x.rank != w.rank) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the input has rank %d, the weights %d; expected equal ranks", x.rank,
                            w.rank);
  }
  const int rank = (x.known ? x.rank : w.rank) - 2;
  if (x.known && channels_last) {  // to channels first
    const assay_dim_t* channels = x.dims[rank + 1];
    for (int i = rank + 1; i > 1; i--) x.dims[i] = x.dims[i - 1];
    x.dims[1] = channels;
  }
  int64_t kernel[ASSAY_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    kernel[i] = w.known ? value_or(w.dims[2 + i], 0) : 0;
    if (w.known && assay_dim_value(w.dims[2 + i], &kernel[i]) && kernel[i] < 1) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "kernel axis %d has size %lld", i,
                              (long long)kernel[i]);
    }
  }
  ASSAY_TRY(check_group(
      c->node, assay_attr_i64(c->node, "group", 1), x.known ? value_or(x.dims[1], -1) : -1,
      w.known ? value_or(w.dims[1], -1) : -1, w.known ? value_or(w.dims[0], -1) : -1));
  assay_window_t window;
  ASSAY_TRY(assay_window_read(c->node, rank, kernel, &window));
  assay_shape_t y = {.known = true, .rank = rank + 2};
  y.dims[0] = x.known ? x.dims[0] : NULL;
  y.dims[1] = w.known ? w.dims[0] : NULL;
  if (bias_input != SIZE_MAX && assay_infer_has(c, bias_input)) {
    const assay_shape_t b = assay_infer_shape(c, bias_input);
    if (b.known && (b.rank != 1 || assay_dim_differ(b.dims[0], y.dims[1]))) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "the bias does not have one element for each of the %s output "
                              "channels",
                              assay_dim_text(y.dims[1], (char[64]){0}, 64));
    }
    if (b.known && !y.dims[1]) y.dims[1] = b.dims[0];
  }
  if (x.known) ASSAY_TRY(assay_window_infer_shape(c, &window, &x, &y));
  if (channels_last) {
    const assay_dim_t* channels = y.dims[1];
    for (int i = 1; i <= rank; i++) y.dims[i] = y.dims[i + 1];
    y.dims[rank + 1] = channels;
  }
  return assay_infer_set(c, 0, elem, &y);
}

void assay_conv_swap(int64_t n, int64_t rows, int64_t cols, const double* src, double* dst) {
  const int64_t size = rows * cols;
  for (int64_t b = 0; size > 0 && b < n; b++, src += size, dst += size) {
    for (int64_t j = 0; j < cols; j++) {
      for (int64_t i = 0; i < rows; i++) dst[j * rows + i] = src[i * cols + j];
    }
  }
}

double assay_conv_flops(const assay_conv_t* s, bool bias) {
  return 2 * work_of(s) + (bias ? (double)s->n * (double)s->m * (double)s->out_size : 0);
}

void assay_conv_cost(const assay_eval_t* c, size_t x, size_t w, size_t bias, bool channels_last,
                     assay_cost_t* out) {
  const bool has_bias = bias != SIZE_MAX && assay_eval_has(c, bias);
  assay_conv_t s;
  assay_status_t st = assay_conv_read(c->node, c->in[x], c->in[w], has_bias ? c->in[bias] : NULL,
                                      channels_last, &s);
  if (st) {
    assay_status_free(st);  // the evaluation says what is wrong
    return;
  }
  out->flops = assay_conv_flops(&s, has_bias);
}
