// Rules of sums of products: convolutions, products of matrices, running sums.
#include <string.h>

#include "base/alloc.h"
#include "eval/gradients/vjp.h"
#include "ops/conv/conv.h"
#include "ops/matmul/gemm.h"

static assay_matrix_t matrix(const double* data, int64_t offset, int64_t row, int64_t col) {
  return (assay_matrix_t){.data = data,
                          .store = ASSAY_STORE_F64,
                          .type = ASSAY_TYPE_DOUBLE,
                          .offset = offset,
                          .row_stride = row,
                          .col_stride = col};
}

// ---- convolutions -------------------------------------------------------------------------------

static assay_attr_t ints_attr(const char* name, size_t n, const int64_t* numbers) {
  assay_attr_t a = {.name = name, .doc = "", .ref = "", .type = ASSAY_ATTR_INTS, .n = n};
  a.u.ints = numbers;
  return a;
}

static assay_attr_t int_attr(const char* name, int64_t value) {
  assay_attr_t a = {.name = name, .doc = "", .ref = "", .type = ASSAY_ATTR_INT, .n = 1};
  a.u.i = value;
  return a;
}

// All probes as one batch.
static assay_status_t probes_tensor(const assay_vjp_t* c, const assay_tensor_t* y, const double* g,
                                    assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, y->dims, sizeof dims);
  if (!assay_mul_i64(dims[0], c->probes, &dims[0]))
    return ASSAY_NODE_ERROR(c->node, ASSAY_NO_MEMORY, "%lld probes of its output are too large",
                            (long long)c->probes);
  ASSAY_TRY(assay_tensor_create(y->type, y->rank, dims, out));
  memcpy((*out)->data, g, (size_t)(*out)->size * sizeof *g);
  return NULL;
}

static void add_to(double* to, const assay_tensor_t* t) {
  for (int64_t i = 0; i < t->size; i++) to[i] += assay_f64(t)[i];
}

// The adjoint operator with the same weights, on all probes.
static assay_status_t run_adjoint(const assay_vjp_t* c, const char* op, size_t n_attrs,
                                  assay_attr_t* attrs, bool* out_known) {
  assay_tensor_t *g = NULL, *back = NULL;
  ASSAY_TRY(probes_tensor(c, c->out[0], c->out_g[0], &g));
  assay_tensor_t* in[] = {g, c->in[1]};
  assay_status_t st = assay_vjp_evaluate(c, op, n_attrs, attrs, 2, in, 1, &back);
  if (!st && back->size == c->probes * c->in[0]->size) {
    add_to(c->in_g[0], back);
    *out_known = true;
  }
  assay_tensor_release(g);
  assay_tensor_release(back);
  return st;
}

typedef struct spatial {
  int64_t strides[ASSAY_MAX_RANK], dilations[ASSAY_MAX_RANK], pads[2 * ASSAY_MAX_RANK];
  int64_t missing[ASSAY_MAX_RANK];  // after the last window
} spatial_t;

// The derivative by the bias: the sum over samples and positions.
static void add_bias(const assay_vjp_t* c, const assay_conv_t* s) {
  for (int64_t p = 0; p < c->probes; p++)
    for (int64_t i = 0; i < s->n * s->m; i++) {
      const double* g = c->out_g[0] + (p * s->n * s->m + i) * s->out_size;
      double sum = 0;
      for (int64_t k = 0; k < s->out_size; k++) sum += g[k];
      c->in_g[2][p * s->m + i % s->m] += sum;
    }
}

// What one kernel position meets of one channel at each output position; 0 in the padding.
static void shifted(const assay_conv_t* s, int64_t tap, const double* x, double* out) {
  int64_t kernel[ASSAY_MAX_RANK] = {0}, at[ASSAY_MAX_RANK] = {0};
  const int rank = s->w.rank;
  for (int i = rank - 1; i >= 0; i--) {
    kernel[i] = tap % s->w.axis[i].kernel;
    tap /= s->w.axis[i].kernel;
  }
  for (int64_t o = 0; o < s->out_size; o++) {
    int64_t from = 0;
    bool inside = true;
    for (int i = 0; i < rank; i++) {
      const assay_window_axis_t* a = &s->w.axis[i];
      const int64_t k = at[i] * a->stride + kernel[i] * a->dilation - a->pads[0];
      inside &= k >= 0 && k < a->in;
      from = from * a->in + k;
    }
    out[o] = inside ? x[from] : 0;
    for (int i = rank - 1; i >= 0; i--) {
      if (++at[i] < s->w.axis[i].out) break;
      at[i] = 0;
    }
  }
}

// dL/dw[m, c, tap] = sum over samples and positions of g[m, o] x[c, what the tap meets at o]. Each
// (group, tap) by one thread; products[] has room for mg x cg of each thread's.
static assay_status_t add_tap(const assay_vjp_t* c, const assay_conv_t* s, int64_t group,
                              int64_t tap, double* rows, double* products) {
  const assay_eval_t e = {.node = c->node};
  for (int64_t n = 0; n < s->n; n++) {
    const double* x = assay_f64(c->in[0]) + (n * s->c + group * s->cg) * s->in_size;
    for (int64_t k = 0; k < s->cg; k++) shifted(s, tap, x + k * s->in_size, rows + k * s->out_size);
    const assay_matrix_t b = matrix(rows, 0, 1, s->out_size);
    for (int64_t p = 0; p < c->probes; p++) {
      const int64_t first = ((p * s->n + n) * s->m + group * s->mg) * s->out_size;
      const assay_matrix_t g = matrix(c->out_g[0], first, s->out_size, 1);
      ASSAY_TRY(assay_gemm(&e, s->mg, s->cg, s->out_size, &g, &b, products, s->cg, false));
      double* to = c->in_g[1] + (p * s->m + group * s->mg) * s->cg * s->kernel_size + tap;
      for (int64_t i = 0; i < s->mg * s->cg; i++) to[i * s->kernel_size] += products[i];
    }
  }
  return NULL;
}

// Source: ONNX Conv-22.
static assay_status_t add_weights(const assay_vjp_t* c, const assay_conv_t* s) {
  double *rows = NULL, *products = NULL;
  assay_status_t st = assay_new_array((size_t)(s->cg * s->out_size), sizeof *rows, &rows);
  if (!st) st = assay_new_array((size_t)(s->mg * s->cg), sizeof *products, &products);
  for (int64_t i = 0; !st && i < s->group * s->kernel_size; i++)
    st = add_tap(c, s, i / s->kernel_size, i % s->kernel_size, rows, products);
  assay_free(rows);
  assay_free(products);
  return st;
}

// Source: ONNX Conv-22 and ConvTranspose-22; the second is the first one's transpose, and
// output_padding is what the last window of the first does not reach.
assay_status_t assay_vjp_conv(const assay_vjp_t* c, bool* out_known) {
  assay_conv_t s;
  spatial_t a;
  *out_known = false;
  ASSAY_TRY(assay_conv_read(c->node, c->in[0], c->in[1], NULL, false, &s));
  if (assay_vjp_wants(c, 2)) add_bias(c, &s);
  if (assay_vjp_wants(c, 1)) ASSAY_TRY(add_weights(c, &s));
  *out_known = true;
  if (!assay_vjp_wants(c, 0)) return NULL;
  *out_known = false;
  const size_t rank = (size_t)s.w.rank;
  for (size_t i = 0; i < rank; i++) {
    const assay_window_axis_t* x = &s.w.axis[i];
    a.strides[i] = x->stride;
    a.dilations[i] = x->dilation;
    a.pads[i] = x->pads[0];
    a.pads[i + rank] = x->pads[1];
    a.missing[i] = x->in + x->pads[0] + x->pads[1] - ((x->kernel - 1) * x->dilation + 1) -
                   (x->out - 1) * x->stride;
    if (a.missing[i] < 0) return NULL;
  }
  assay_attr_t attrs[] = {ints_attr("strides", rank, a.strides),
                          ints_attr("dilations", rank, a.dilations),
                          ints_attr("pads", 2 * rank, a.pads),
                          ints_attr("output_padding", rank, a.missing), int_attr("group", s.group)};
  return run_adjoint(c, "ConvTranspose", sizeof attrs / sizeof *attrs, attrs, out_known);
}

// Its transpose is a convolution with the same weights; where auto_pad or output_shape choose the
// padding, there is no rule.
assay_status_t assay_vjp_conv_transpose(const assay_vjp_t* c, bool* out_known) {
  static const char* const kept[] = {"strides", "dilations", "pads", "group"};
  assay_attr_t attrs[sizeof kept / sizeof *kept];
  size_t n = 0;
  *out_known = false;
  if (!assay_vjp_wants(c, 0) || assay_vjp_wants_from(c, 1)) return NULL;
  if (assay_attr_has(c->node, "output_shape")) return NULL;
  if (!assay_attr_is(c->node, "auto_pad", "NOTSET") && assay_attr_has(c->node, "auto_pad"))
    return NULL;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    const assay_attr_t* a = assay_node_attr(c->node, kept[i]);
    if (a) attrs[n++] = *a;
  }
  return run_adjoint(c, "Conv", n, attrs, out_known);
}

// ---- products of matrices -----------------------------------------------------------------------

static assay_matrix_t turned(assay_matrix_t a) {
  const int64_t row = a.row_stride;
  a.row_stride = a.col_stride;
  a.col_stride = row;
  return a;
}

// y[b] = a[b] x b[b], for a stack of matrices with NumPy's broadcasting.
typedef struct stack {
  int64_t m, n, k, batch;
  int rank;  // of the batch
  int64_t dims[ASSAY_MAX_RANK], a_strides[ASSAY_MAX_RANK], b_strides[ASSAY_MAX_RANK];
} stack_t_;

// Strides, in elements, of the leading dims under the output's.
static void batch_strides(const assay_tensor_t* x, const stack_t_* s, int64_t* strides) {
  const int own = x->rank - 2;
  int64_t step = x->dims[x->rank - 1] * x->dims[x->rank - 2];
  for (int i = s->rank - 1; i >= 0; i--) {
    const int k = i - (s->rank - own);
    strides[i] = k >= 0 && x->dims[k] != 1 ? step : 0;
    if (k >= 0) step *= x->dims[k];
  }
}

static void stack_init(const assay_tensor_t* a, const assay_tensor_t* b, stack_t_* s) {
  *s = (stack_t_){.m = a->dims[a->rank - 2],
                  .k = a->dims[a->rank - 1],
                  .n = b->dims[b->rank - 1],
                  .batch = 1,
                  .rank = (a->rank > b->rank ? a->rank : b->rank) - 2};
  for (int i = 0; i < s->rank; i++) {
    const int ka = i - (s->rank - (a->rank - 2)), kb = i - (s->rank - (b->rank - 2));
    const int64_t da = ka >= 0 ? a->dims[ka] : 1, db = kb >= 0 ? b->dims[kb] : 1;
    s->dims[i] = da == 1 ? db : da;
    s->batch *= s->dims[i];
  }
  batch_strides(a, s, s->a_strides);
  batch_strides(b, s, s->b_strides);
}

// ga += g x b^T and gb += a^T x g, matrix by matrix.
static assay_status_t matmul_probe(const assay_vjp_t* c, const stack_t_* s, const double* g,
                                   double* ga, double* gb) {
  const assay_eval_t e = {.node = c->node};
  int64_t at[ASSAY_MAX_RANK] = {0}, ao = 0, bo = 0;
  for (int64_t i = 0; i < s->batch; i++) {
    const assay_matrix_t y = matrix(g, i * s->m * s->n, s->n, 1);
    const assay_matrix_t a = matrix(assay_f64(c->in[0]), ao, s->k, 1);
    const assay_matrix_t b = matrix(assay_f64(c->in[1]), bo, s->n, 1);
    const assay_matrix_t at_ = turned(a), bt = turned(b);
    if (ga) ASSAY_TRY(assay_gemm(&e, s->m, s->k, s->n, &y, &bt, ga + ao, s->k, true));
    if (gb) ASSAY_TRY(assay_gemm(&e, s->k, s->n, s->m, &at_, &y, gb + bo, s->n, true));
    for (int k = s->rank - 1; k >= 0; k--) {
      ao += s->a_strides[k];
      bo += s->b_strides[k];
      if (++at[k] < s->dims[k]) break;
      ao -= s->a_strides[k] * s->dims[k];
      bo -= s->b_strides[k] * s->dims[k];
      at[k] = 0;
    }
  }
  return NULL;
}

// Source: ONNX MatMul-13. Vectors have no rule.
assay_status_t assay_vjp_matmul(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t *a = c->in[0], *b = c->in[1];
  stack_t_ s;
  *out_known = false;
  if (a->store != ASSAY_STORE_F64 || a->rank < 2 || b->rank < 2) return NULL;
  stack_init(a, b, &s);
  if (s.n > 0 && s.k > 0 && s.m > 0)
    for (int64_t p = 0; p < c->probes; p++)
      ASSAY_TRY(matmul_probe(c, &s, c->out_g[0] + p * c->out[0]->size,
                             c->in_g[0] ? c->in_g[0] + p * a->size : NULL,
                             c->in_g[1] ? c->in_g[1] + p * b->size : NULL));
  *out_known = true;
  return NULL;
}

// y = alpha a' b' + beta c, with a' = a or a^T. Source: ONNX Gemm-13. The derivative by c is beta,
// summed where c is broadcast.
static void add_gemm_c(const assay_vjp_t* c, double beta) {
  const assay_tensor_t *x = c->in[2], *y = c->out[0];
  int64_t strides[ASSAY_MAX_RANK];
  assay_broadcast_strides(x, y->rank, y->dims, strides);
  for (int64_t p = 0; p < c->probes; p++)
    for (int64_t i = 0; i < y->dims[0]; i++)
      for (int64_t k = 0; k < y->dims[1]; k++)
        c->in_g[2][p * x->size + i * strides[0] + k * strides[1]] +=
            beta * c->out_g[0][p * y->size + i * y->dims[1] + k];
}

static assay_status_t gemm_probe(const assay_vjp_t* c, int64_t probe, const double* scaled) {
  const assay_eval_t e = {.node = c->node};
  const assay_tensor_t *a = c->in[0], *b = c->in[1], *y = c->out[0];
  const bool ta = assay_attr_i64(c->node, "transA", 0), tb = assay_attr_i64(c->node, "transB", 0);
  const int64_t m = y->dims[0], n = y->dims[1], k = a->dims[ta ? 0 : 1];
  const assay_matrix_t g = matrix(scaled, 0, n, 1), gt = turned(g);
  assay_matrix_t am = matrix(assay_f64(a), 0, a->dims[1], 1);
  assay_matrix_t bm = matrix(assay_f64(b), 0, b->dims[1], 1);
  if (ta) am = turned(am);
  if (tb) bm = turned(bm);
  const assay_matrix_t at = turned(am), bt = turned(bm);
  if (c->in_g[0]) {
    double* to = c->in_g[0] + probe * a->size;
    if (ta)
      ASSAY_TRY(assay_gemm(&e, k, m, n, &bm, &gt, to, m, true));
    else
      ASSAY_TRY(assay_gemm(&e, m, k, n, &g, &bt, to, k, true));
  }
  if (c->in_g[1]) {
    double* to = c->in_g[1] + probe * b->size;
    if (tb)
      ASSAY_TRY(assay_gemm(&e, n, k, m, &gt, &am, to, k, true));
    else
      ASSAY_TRY(assay_gemm(&e, k, n, m, &at, &g, to, n, true));
  }
  return NULL;
}

assay_status_t assay_vjp_gemm(const assay_vjp_t* c, bool* out_known) {
  const int64_t size = c->out[0]->size;
  const double alpha = assay_attr_f64(c->node, "alpha", 1);
  double* scaled = NULL;
  *out_known = false;
  if (c->in[0]->store != ASSAY_STORE_F64 || c->in[0]->rank != 2 || size == 0) return NULL;
  ASSAY_TRY(assay_new_array((size_t)size, sizeof *scaled, &scaled));
  assay_status_t st = NULL;
  for (int64_t p = 0; !st && p < c->probes; p++) {
    for (int64_t i = 0; i < size; i++) scaled[i] = alpha * c->out_g[0][p * size + i];
    st = gemm_probe(c, p, scaled);
  }
  assay_free(scaled);
  if (st) return st;
  if (assay_vjp_wants(c, 2)) add_gemm_c(c, assay_attr_f64(c->node, "beta", 1));
  *out_known = true;
  return NULL;
}

// ---- running sums -------------------------------------------------------------------------------

// The transpose of a running sum runs the other way: `reverse` turned over. Source: ONNX CumSum-14.
assay_status_t assay_vjp_cumsum(const assay_vjp_t* c, bool* out_known) {
  const bool exclusive = assay_attr_i64(c->node, "exclusive", 0);
  const bool reverse = assay_attr_i64(c->node, "reverse", 0);
  assay_attr_t attrs[] = {int_attr("exclusive", exclusive), int_attr("reverse", !reverse)};
  const assay_tensor_t* x = c->in[0];
  *out_known = false;
  if (!assay_vjp_wants(c, 0) || x->store != ASSAY_STORE_F64) return NULL;
  for (int64_t p = 0; p < c->probes; p++) {
    assay_tensor_t *g = NULL, *back = NULL;
    ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &g));
    memcpy(g->data, c->out_g[0] + p * x->size, (size_t)x->size * sizeof(double));
    assay_tensor_t* in[] = {g, c->in[1]};
    assay_status_t st = assay_vjp_evaluate(c, "CumSum", 2, attrs, 2, in, 1, &back);
    if (!st) add_to(c->in_g[0] + p * x->size, back);
    assay_tensor_release(g);
    assay_tensor_release(back);
    if (st) return st;
  }
  *out_known = true;
  return NULL;
}
