// ConvTranspose: the gradient of a convolution, used to make images larger.
//
// Per sample and group: columns[mg * kernel, in] = w^T * x, then each row (output channel, kernel
// position) of the columns is added into the output at the places where that position reaches.
// Order of the sums (c->arith F32 and NARROW): for each kernel position s = fma(w, x, s) over the
// channels; these sums are added in row-major order of the kernel positions, and the bias last.
#include "ops/conv/conv_transpose.h"

#include <cblas.h>
#include <string.h>

#include "ops/bound.h"
#include "ops/conv/conv.h"
#include "ops/families.h"
#include "ops/matmul/gemm.h"

// ---- sizes -----------------------------------------------------------------------------------

static assay_status_t read_attributes(const assay_node_t* node, int rank, const int64_t* kernel,
                                      assay_conv_transpose_t* out) {
  ASSAY_TRY(assay_window_read(node, rank, kernel, &out->w));
  ASSAY_TRY(assay_window_list(node, "output_padding", rank, 0, 0, out->output_padding));
  ASSAY_TRY(assay_window_list(node, "output_shape", rank, 0, -1, out->output_shape));
  out->group = assay_attr_i64(node, "group", 1);
  if (out->group < 1) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "group is %lld, expected at least 1",
                            (long long)out->group);
  }
  for (int i = 0; i < rank; i++) {
    const assay_window_axis_t* a = &out->w.axis[i];
    if (out->output_padding[i] >= a->stride && out->output_padding[i] >= a->dilation) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                              "output_padding[%d] is %lld, expected less than the stride %lld or "
                              "the dilation %lld",
                              i, (long long)out->output_padding[i], (long long)a->stride,
                              (long long)a->dilation);
    }
  }
  return NULL;
}

static bool is_same(const assay_window_t* w) {
  return w->auto_pad == ASSAY_AUTO_PAD_SAME_UPPER || w->auto_pad == ASSAY_AUTO_PAD_SAME_LOWER;
}

// Sizes and pads of axis i for an input of size `in`. Source: ONNX ConvTranspose-22, text and shape
// inference (SAME: the padding makes the output in * stride, but is not negative); `since` 1 has
// the two halves of an odd padding swapped where output_shape is given.
static assay_status_t fit_axis(const assay_node_t* node, assay_conv_transpose_t* t, int i,
                               int64_t in, int since) {
  assay_window_axis_t* a = &t->w.axis[i];
  int64_t steps, natural;
  const int64_t reach = (a->kernel - 1) * a->dilation + 1;
  if (!assay_mul_i64(in, a->stride, &steps) ||
      !assay_add_i64(steps, reach + t->output_padding[i], &natural)) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "spatial axis %d of size %lld is too large", i,
                            (long long)in);
  }
  natural -= a->stride;
  a->out = in;
  const bool given = t->output_shape[i] >= 0;
  if (given || is_same(&t->w)) {
    int64_t total = given ? natural - t->output_shape[i] : reach - a->stride;
    if (total < 0) total = 0;
    a->in = given ? t->output_shape[i] : natural - total;
    bool less_first = t->w.auto_pad == ASSAY_AUTO_PAD_SAME_UPPER;
    if (since == 1 && given) less_first = !less_first;
    a->pads[0] = less_first ? total / 2 : total - total / 2;
    a->pads[1] = total - a->pads[0];
  } else {
    a->in = natural - a->pads[0] - a->pads[1];
  }
  if (a->in >= 0) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                          "spatial axis %d of the output would have size %lld; check pads", i,
                          (long long)a->in);
}

assay_status_t assay_conv_transpose_read(const assay_node_t* node, const assay_tensor_t* x,
                                         const assay_tensor_t* w, const assay_tensor_t* bias,
                                         int since, assay_conv_transpose_t* out) {
  *out = (assay_conv_transpose_t){0};
  if (x->rank < 3 || w->rank != x->rank) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "the input has shape %s and the weights %s; expected equal ranks of "
                            "at least 3",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(w));
  }
  const int rank = x->rank - 2;
  for (int i = 2; i < w->rank; i++) {
    if (w->dims[i] < 1) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "the weights have shape %s: an empty kernel",
                              ASSAY_DIMS_TEXT(w));
    }
  }
  ASSAY_TRY(read_attributes(node, rank, w->dims + 2, out));
  if (w->dims[0] != x->dims[1] || x->dims[1] % out->group != 0) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "the input has %lld channels, the weights take %lld, in %lld groups",
                            (long long)x->dims[1], (long long)w->dims[0], (long long)out->group);
  }
  out->n = x->dims[0];
  out->c = x->dims[1];
  out->cg = out->c / out->group;
  out->mg = w->dims[1];
  int64_t sizes[ASSAY_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    ASSAY_TRY(fit_axis(node, out, i, x->dims[2 + i], since));
    sizes[i] = out->w.axis[i].in;
  }
  if (!assay_mul_i64(out->mg, out->group, &out->m) ||
      !assay_dims_size(rank, w->dims + 2, &out->kernel_size) ||
      !assay_dims_size(rank, x->dims + 2, &out->in_size) ||
      !assay_dims_size(rank, sizes, &out->out_size)) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "input %s with weights %s is too large",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(w));
  }
  if (bias && (bias->rank != 1 || bias->dims[0] != out->m)) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "the bias has shape %s, expected [%lld]",
                            ASSAY_DIMS_TEXT(bias), (long long)out->m);
  }
  return NULL;
}

// ---- inference -------------------------------------------------------------------------------

static const assay_dim_t* infer_axis(assay_dims_t* dims, const assay_conv_transpose_t* t, int i,
                                     const assay_dim_t* in) {
  const assay_window_axis_t* a = &t->w.axis[i];
  if (t->output_shape[i] >= 0) return assay_dim_const(dims, t->output_shape[i]);
  if (a->kernel == 0) return NULL;
  const int64_t reach = (a->kernel - 1) * a->dilation + 1;
  int64_t more = reach - a->stride + t->output_padding[i] - a->pads[0] - a->pads[1];
  if (is_same(&t->w) && reach > a->stride) more = t->output_padding[i];
  return assay_dim_add_i(dims, assay_dim_mul_i(dims, in, a->stride), more);
}

static assay_status_t transposed_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0), w = assay_infer_shape(c, 1);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, ASSAY_MAX_RANK));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 3, ASSAY_MAX_RANK));
  if (!x.known && !w.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  if (x.known && w.known && (x.rank != w.rank || assay_dim_differ(x.dims[1], w.dims[0]))) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the input %s does not go with the weights %s [channels, output "
                            "channels / group, kernel]",
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)),
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)));
  }
  const int rank = (x.known ? x.rank : w.rank) - 2;
  int64_t kernel[ASSAY_MAX_RANK] = {0};
  for (int i = 0; i < rank && w.known; i++) {
    if (assay_dim_value(w.dims[2 + i], &kernel[i]) && kernel[i] < 1) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "kernel axis %d has size %lld", i,
                              (long long)kernel[i]);
    }
  }
  assay_conv_transpose_t t = {0};
  ASSAY_TRY(read_attributes(c->node, rank, kernel, &t));
  assay_shape_t y = {.known = true, .rank = rank + 2};
  if (w.known) y.dims[1] = assay_dim_mul_i(c->dims, w.dims[1], t.group);
  if (assay_infer_has(c, 2)) {
    const assay_shape_t b = assay_infer_shape(c, 2);
    if (b.known && (b.rank != 1 || assay_dim_differ(b.dims[0], y.dims[1]))) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "the bias does not have one element for each of the %s output "
                              "channels",
                              assay_dim_text(y.dims[1], (char[64]){0}, 64));
    }
  }
  if (x.known) {
    y.dims[0] = x.dims[0];
    int64_t channels, value;
    if (assay_dim_value(x.dims[1], &channels) && channels % t.group != 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "%lld channels cannot be divided into %lld groups",
                              (long long)channels, (long long)t.group);
    }
    for (int i = 0; i < rank; i++) {
      y.dims[2 + i] = infer_axis(c->dims, &t, i, x.dims[2 + i]);
      if (assay_dim_value(y.dims[2 + i], &value) && value < 0) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                                "spatial axis %d of the output would have size %lld; check pads", i,
                                (long long)value);
      }
    }
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// ---- evaluation ------------------------------------------------------------------------------

// Adds one row of the columns, kernel position q, into a plane of the output.
static void scatter_row(const assay_eval_t* c, const assay_window_t* w, int64_t q,
                        const double* column, double* plane) {
  const int inner = w->rank - 1;
  const assay_window_axis_t* ax = &w->axis[inner];
  int64_t k[ASSAY_MAX_RANK], o[ASSAY_MAX_RANK] = {0}, lo, hi, rows = 1;
  for (int i = inner; i >= 0; i--) {
    k[i] = q % w->axis[i].kernel;
    q /= w->axis[i].kernel;
    if (i < inner) rows *= w->axis[i].out;
  }
  assay_window_range(ax, k[inner], &lo, &hi);
  const int64_t shift = k[inner] * ax->dilation - ax->pads[0], stride = ax->stride;
  for (int64_t r = 0; r < rows; r++, column += ax->out) {
    int64_t row = 0;
    bool inside = true;
    for (int i = 0; i < inner; i++) {
      const assay_window_axis_t* a = &w->axis[i];
      const int64_t at = o[i] * a->stride + k[i] * a->dilation - a->pads[0];
      inside = inside && at >= 0 && at < a->in;
      row = inside ? row * a->in + at : 0;
    }
    for (int i = inner - 1; i >= 0; i--) {
      if (++o[i] < w->axis[i].out) break;
      o[i] = 0;
    }
    if (!inside || lo >= hi) continue;
    double* y = plane + row * ax->in + shift;
    if (c->arith == ASSAY_ARITH_F64) {
      for (int64_t j = lo; j < hi; j++) y[j * stride] += column[j];
    } else {
      for (int64_t j = lo; j < hi; j++) y[j * stride] = assay_acc(c, y[j * stride] + column[j]);
    }
  }
}

typedef struct job {
  const assay_eval_t* c;
  const assay_conv_transpose_t* t;
  const double *x, *w, *bias;
  double* y;
  int64_t block;  // output channels at a time
  int64_t rows;   // rows of the columns at a time
} job_t;

// Rows [r0, r1) of the columns of sample n and group g.
static assay_status_t columns(const job_t* p, int64_t n, int64_t g, int64_t r0, int64_t r1,
                              double* out) {
  const assay_conv_transpose_t* t = p->t;
  const int64_t ld = t->mg * t->kernel_size;
  const double* x = p->x + (n * t->c + g * t->cg) * t->in_size;
  const double* w = p->w + g * t->cg * ld + r0;
  if (p->c->arith == ASSAY_ARITH_F64 && !p->c->coarse) {
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)(r1 - r0), (int)t->in_size,
                (int)t->cg, 1.0, w, (int)ld, x, (int)t->in_size, 0.0, out, (int)t->in_size);
    return NULL;
  }
  const assay_matrix_t a = {.data = w,
                            .store = ASSAY_STORE_F64,
                            .type = ASSAY_TYPE_DOUBLE,
                            .row_stride = 1,
                            .col_stride = ld};
  const assay_matrix_t b = {.data = x,
                            .store = ASSAY_STORE_F64,
                            .type = ASSAY_TYPE_DOUBLE,
                            .row_stride = t->in_size,
                            .col_stride = 1};
  return assay_gemm(p->c, r1 - r0, t->in_size, t->cg, &a, &b, out, t->in_size, false);
}

// Output channels [m0, m1) of sample n and group g.
static assay_status_t run_block(const job_t* p, int64_t n, int64_t g, int64_t m0, int64_t m1,
                                double* scratch) {
  const assay_conv_transpose_t* t = p->t;
  double* y = p->y + (n * t->m + g * t->mg) * t->out_size;
  memset(y + m0 * t->out_size, 0, (size_t)((m1 - m0) * t->out_size) * sizeof *y);
  if (t->in_size > 0 && t->cg > 0) {
    for (int64_t r0 = m0 * t->kernel_size; r0 < m1 * t->kernel_size; r0 += p->rows) {
      int64_t r1 = r0 + p->rows < m1 * t->kernel_size ? r0 + p->rows : m1 * t->kernel_size;
      ASSAY_TRY(columns(p, n, g, r0, r1, scratch));
      for (int64_t r = r0; r < r1; r++) {
        scatter_row(p->c, &t->w, r % t->kernel_size, scratch + (r - r0) * t->in_size,
                    y + r / t->kernel_size * t->out_size);
      }
    }
  }
  if (!p->bias) return NULL;
  for (int64_t m = m0; m < m1; m++) {
    const double add = assay_acc(p->c, p->bias[g * t->mg + m]);
    double* plane = y + m * t->out_size;
    for (int64_t j = 0; j < t->out_size; j++) plane[j] = assay_acc(p->c, plane[j] + add);
  }
  return NULL;
}

static double work_of(const assay_conv_transpose_t* t) {
  return (double)t->n * (double)t->c * (double)t->mg * (double)t->kernel_size * (double)t->in_size;
}

static assay_status_t run(job_t* p) {
  const assay_conv_transpose_t* t = p->t;
  if (t->n == 0 || t->m == 0 || t->out_size == 0) return NULL;
  if (t->in_size > INT32_MAX || t->cg > INT32_MAX || t->mg * t->kernel_size > INT32_MAX) {
    return ASSAY_NODE_ERROR(p->c->node, ASSAY_UNSUPPORTED,
                            "a transposed convolution of %lld positions, %lld channels and %lld "
                            "weights a channel is larger than the 2147483647 that its matrices "
                            "can have",
                            (long long)t->in_size, (long long)t->cg,
                            (long long)(t->mg * t->kernel_size));
  }
  enum { ROWS = 192, SCRATCH = 4 << 20 };  // rows a block; elements of columns at a time
  p->block = ROWS / t->kernel_size < 1 ? 1 : ROWS / t->kernel_size;
  if (p->block > t->mg) p->block = t->mg;
  p->rows = t->in_size == 0 ? 1 : SCRATCH / t->in_size;
  if (p->rows < 1) p->rows = 1;
  if (p->rows > p->block * t->kernel_size) p->rows = p->block * t->kernel_size;
  const int64_t blocks = (t->mg + p->block - 1) / p->block;
  if (p->c->arith == ASSAY_ARITH_F64) assay_gemm_prepare();
  assay_status_t first = NULL;
#pragma omp parallel if (work_of(t) > 100000)
  {
    double* scratch = assay_malloc((size_t)(p->rows * t->in_size) * sizeof *scratch);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < t->n * t->group * blocks; i++) {
      const int64_t m0 = i % blocks * p->block;
      const int64_t m1 = m0 + p->block < t->mg ? m0 + p->block : t->mg;
      assay_status_t st =
          scratch ? run_block(p, i / blocks / t->group, i / blocks % t->group, m0, m1, scratch)
                  : assay_status_no_memory();
      if (!st) continue;
#pragma omp critical(assay_conv_transpose_status)
      first = assay_status_join(first, st);
    }
    assay_free(scratch);
  }
  return first;
}

static assay_status_t eval_canonical(assay_eval_t* c, const assay_tensor_t* x,
                                     const assay_tensor_t* w, const assay_tensor_t* bias,
                                     int since) {
  assay_conv_transpose_t t;
  ASSAY_TRY(assay_conv_transpose_read(c->node, x, w, bias, since, &t));
  int64_t dims[ASSAY_MAX_RANK] = {t.n, t.m};
  for (int i = 0; i < t.w.rank; i++) dims[2 + i] = t.w.axis[i].in;
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, dims, &y));
  job_t job = {.c = c,
               .t = &t,
               .x = assay_f64(x),
               .w = assay_f64(w),
               .bias = bias ? assay_f64(bias) : NULL,
               .y = assay_f64(y)};
  return run(&job);
}

static assay_status_t eval_since(assay_eval_t* c, int since) {
  assay_tensor_t *x = NULL, *w = NULL, *bias = NULL;
  assay_status_t st = assay_tensor_widen(c->in[0], &x);
  if (!st) st = assay_tensor_widen(c->in[1], &w);
  if (!st && assay_eval_has(c, 2)) st = assay_tensor_widen(c->in[2], &bias);
  if (!st) st = eval_canonical(c, x, w, bias, since);
  assay_tensor_release(x);
  assay_tensor_release(w);
  assay_tensor_release(bias);
  return st;
}

static assay_status_t eval_1(assay_eval_t* c) { return eval_since(c, 1); }
static assay_status_t eval_11(assay_eval_t* c) { return eval_since(c, 11); }

static void transposed_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_conv_transpose_t t;
  assay_status_t st = assay_conv_transpose_read(c->node, c->in[0], c->in[1], NULL, 11, &t);
  if (!st) out->flops = 2 * work_of(&t);
  assay_status_free(st);
}

// Sums over the channels of a group and the kernel positions that reach an output, and the bias.
static assay_status_t transposed_bound(assay_bound_t* c) {
  assay_conv_transpose_t t;
  ASSAY_TRY(assay_conv_transpose_read(c->node, c->in[0], c->in[1], NULL, 11, &t));
  double terms = (double)t.cg;
  for (int i = 0; i < t.w.rank; i++) terms *= (double)assay_window_overlap(&t.w.axis[i]);
  const assay_products_t p = {.factors = {0, 1}, .n_factors = 2, .terms = terms + 1};
  return assay_bound_products(c, &p);
}

const assay_op_t assay_ops_conv_transpose[] = {{.name = "ConvTranspose",
                                                .domain = "",
                                                .since = 1,
                                                .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
                                                .factors = 0x3,
                                                .infer = transposed_infer,
                                                .eval = eval_1,
                                                .bound = transposed_bound,
                                                .cost = transposed_cost},
                                               {.name = "ConvTranspose",
                                                .domain = "",
                                                .since = 11,
                                                .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
                                                .factors = 0x3,
                                                .infer = transposed_infer,
                                                .eval = eval_11,
                                                .bound = transposed_bound,
                                                .cost = transposed_cost},
                                               {0}};
