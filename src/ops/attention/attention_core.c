// Scaled dot-product attention, for every operator that has it inside.
#include "ops/attention/attention_core.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/matmul/gemm.h"
#include "ops/running_bound.h"

// ---- masks ------------------------------------------------------------------------------------

assay_status_t assay_mask_init(const assay_eval_t* c, const assay_tensor_t* t,
                               const assay_attention_t* a, bool may_be_short, assay_mask_t* out) {
  const int64_t full[4] = {a->batch, a->q_heads, a->q_len, a->kv_len};
  assay_mask_t m = {.tensor = t, .length = a->kv_len};
  bool fits = t->rank <= 4;
  int64_t stride = 1;
  for (int i = t->rank - 1; fits && i >= 0; i--) {
    const int at = 4 - t->rank + i;
    const bool last = at == 3;
    fits = t->dims[i] == 1 || t->dims[i] == full[at] ||
           (last && may_be_short && t->dims[i] < full[at]);
    if (t->dims[i] != 1 || full[at] == 1) m.strides[at] = stride;
    // A single key column of a short mask is one key, not all.
    if (last && may_be_short) {
      m.length = t->dims[i];
      m.strides[at] = stride;
    }
    stride *= t->dims[i];
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "mask has shape %s; expected one that broadcasts to [%lld, %lld, %lld, "
                            "%lld]",
                            ASSAY_DIMS_TEXT(t), (long long)full[0], (long long)full[1],
                            (long long)full[2], (long long)full[3]);
  }
  *out = m;
  return NULL;
}

// Adds a mask to the bias of one query row.
static void add_mask(const assay_eval_t* c, const assay_mask_t* m, int64_t b, int64_t h, int64_t i,
                     int64_t n, double* bias) {
  if (!m->tensor) return;
  const int64_t at = b * m->strides[0] + h * m->strides[1] + i * m->strides[2], s = m->strides[3];
  const int64_t end = m->length < n ? m->length : n;
  if (m->tensor->store == ASSAY_STORE_F64) {
    const double* from = assay_f64(m->tensor) + at;
    for (int64_t j = 0; j < end; j++) bias[j] = assay_acc(c, bias[j] + from[j * s]);
  } else {
    const int64_t* from = assay_i64(m->tensor) + at;
    for (int64_t j = 0; j < end; j++) {
      if (!from[j * s]) bias[j] = -INFINITY;
    }
  }
  for (int64_t j = end; j < n; j++) bias[j] = -INFINITY;
}

bool assay_attention_bias(const assay_eval_t* c, const assay_attention_t* a, int64_t b, int64_t h,
                          int64_t i, double* bias) {
  const int64_t n = a->kv_len;
  memset(bias, 0, (size_t)n * sizeof *bias);
  for (int t = 0; t < 2; t++) add_mask(c, &a->masks[t], b, h, i, n, bias);
  const int64_t p = (a->offsets ? a->offsets[b] : a->offset) + i;
  if (a->left_window >= 0) {
    for (int64_t j = 0; j < n && j < p - a->left_window; j++) bias[j] = -INFINITY;
  }
  if (a->right_window >= 0 && a->right_window < n) {
    const int64_t first = p + a->right_window + 1;
    for (int64_t j = first > 0 ? first : 0; j < n; j++) bias[j] = -INFINITY;
  }
  if (a->key_counts) {
    for (int64_t j = a->key_counts[b] > 0 ? a->key_counts[b] : 0; j < n; j++) bias[j] = -INFINITY;
  }
  for (int64_t j = 0; j < n; j++) {
    if (!(bias[j] == -INFINITY)) return true;
  }
  return false;
}

// ---- one row of scores ------------------------------------------------------------------------

static void cap_row(const assay_eval_t* c, double softcap, int64_t n, double* s) {
  for (int64_t j = 0; j < n; j++) {
    s[j] = assay_acc(c, softcap * assay_acc(c, assay_tanh(assay_acc(c, s[j] / softcap))));
  }
}

static void round_row(assay_format_t format, int64_t n, double* s) {
  if (format != ASSAY_FORMAT_NONE) {
    assay_format_round_n(format, s, s, (size_t)n, ASSAY_OVERFLOW_IEEE);
  }
}

// Softmax as assay_softmax_row's, but a row of -infinity becomes zeros, and a sink may take a
// share.
static void softmax_row(const assay_eval_t* c, int64_t n, const double* sink, double* s) {
  double max = sink ? *sink : -INFINITY;
  for (int64_t j = 0; j < n; j++) {
    if (s[j] > max || isnan(s[j])) max = s[j];
  }
  if (max == -INFINITY) {
    memset(s, 0, (size_t)n * sizeof *s);
    return;
  }
  double sum = sink ? assay_acc(c, assay_exp(assay_acc(c, *sink - max))) : 0;
  for (int64_t j = 0; j < n; j++) {
    s[j] = assay_acc(c, assay_exp(assay_acc(c, s[j] - max)));
    sum = assay_acc(c, sum + s[j]);
  }
  for (int64_t j = 0; j < n; j++) s[j] = assay_acc(c, s[j] / sum);
}

static void finish_row(const assay_eval_t* c, const assay_attention_t* a, int64_t b, int64_t h,
                       int64_t i, double* s, double* bias) {
  const int64_t n = a->kv_len;
  double* out = a->scores ? a->scores + ((b * a->q_heads + h) * a->q_len + i) * n : NULL;
  const size_t bytes = (size_t)n * sizeof *s;
  if (out && a->scores_stage == ASSAY_SCORES_RAW) memcpy(out, s, bytes);
  if (a->softcap != 0) cap_row(c, a->softcap, n, s);
  if (out && a->scores_stage == ASSAY_SCORES_CAPPED) memcpy(out, s, bytes);
  const bool any = assay_attention_bias(c, a, b, h, i, bias);
  for (int64_t j = 0; j < n; j++) s[j] = assay_acc(c, s[j] + bias[j]);
  if (out && a->scores_stage == ASSAY_SCORES_BIASED) memcpy(out, s, bytes);
  if (any) {
    round_row(a->softmax_format, n, s);
    softmax_row(c, n, a->sink ? a->sink + h : NULL, s);
    round_row(a->softmax_format, n, s);
  } else {
    memset(s, 0, bytes);
  }
  if (out && a->scores_stage == ASSAY_SCORES_SOFTMAX) memcpy(out, s, bytes);
}

// ---- the whole --------------------------------------------------------------------------------

// Rows [rows, channels] of an operand times a factor, each rounded, into `to`.
static void scaled_rows(const assay_eval_t* c, const double* from, int64_t stride, int64_t rows,
                        int64_t channels, double factor, double* to) {
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t d = 0; d < channels; d++) {
      to[i * channels + d] = assay_acc(c, from[i * stride + d] * factor);
    }
  }
}

static assay_matrix_t matrix(const double* data, int64_t row_stride, int64_t col_stride) {
  return (assay_matrix_t){data, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, row_stride, col_stride};
}

// Queries [i0, i0 + rows) of one head.
static assay_status_t run_block(const assay_eval_t* c, const assay_attention_t* a, int64_t b,
                                int64_t h, int64_t i0, int64_t rows) {
  const int64_t n = a->kv_len, d = a->head_size, kv_head = h / (a->q_heads / a->kv_heads);
  const bool exact = c->arith == ASSAY_ARITH_F64;
  const double root = sqrt(fabs(a->scale));
  double *scratch = NULL, *q = NULL, *k = NULL, *bias = NULL;
  const int64_t k_scratch = exact ? 0 : n * d;
  ASSAY_TRY(
      assay_new_array((size_t)(rows * n + n + rows * d + k_scratch), sizeof *scratch, &scratch));
  bias = scratch + rows * n;
  q = bias + n;
  k = q + rows * d;
  const double* q_from = a->q.data + b * a->q.batch + h * a->q.head + i0 * a->q.row;
  const double* k_from = a->k.data + b * a->k.batch + kv_head * a->k.head;
  scaled_rows(c, q_from, a->q.row, rows, d, exact ? a->scale : copysign(root, a->scale), q);
  if (!exact) scaled_rows(c, k_from, a->k.row, n, d, root, k);
  const assay_matrix_t left = matrix(q, d, 1);
  const assay_matrix_t right = exact ? matrix(k_from, 1, a->k.row) : matrix(k, 1, d);
  assay_status_t st = assay_gemm(c, rows, n, d, &left, &right, scratch, n, false);
  for (int64_t i = 0; !st && i < rows; i++) finish_row(c, a, b, h, i0 + i, scratch + i * n, bias);
  const assay_matrix_t p = matrix(scratch, n, 1);
  const assay_matrix_t v = matrix(a->v.data + b * a->v.batch + kv_head * a->v.head, a->v.row, 1);
  double* y = a->y.data + b * a->y.batch + h * a->y.head + i0 * a->y.row;
  if (!st) st = assay_gemm(c, rows, a->v_head_size, n, &p, &v, y, a->y.row, false);
  assay_free(scratch);
  return st;
}

assay_status_t assay_attention_run(const assay_eval_t* c, const assay_attention_t* given) {
  // Windows past every position are cut, so that sums of positions cannot overflow.
  const int64_t far = INT64_C(1) << 48;
  assay_attention_t cut = *given;
  if (cut.left_window > far) cut.left_window = far;
  if (cut.right_window > far) cut.right_window = far;
  const assay_attention_t* a = &cut;
  // Rows of no elements may be more than can be counted.
  if (a->v_head_size == 0 && (!a->scores || a->kv_len == 0)) return NULL;
  if (c->running) return assay_attention_limits(c, a);
  // Blocks of queries, so that the scores in work stay small beside the keys.
  enum { BLOCK = 256, SCORES = 1 << 22 };
  int64_t rows = a->kv_len > 0 ? SCORES / a->kv_len : BLOCK;
  rows = rows < 1 ? 1 : rows > BLOCK ? BLOCK : rows;
  const int64_t blocks = (a->q_len + rows - 1) / rows;
  const int64_t jobs = a->batch * a->q_heads * blocks;
  const double work = (double)a->batch * (double)a->q_heads * (double)a->q_len * (double)a->kv_len *
                      (double)(a->head_size + a->v_head_size + 8);
  assay_status_t st = NULL;
  bool failed = false;  // what is left is not begun
#pragma omp parallel for schedule(dynamic) if (jobs > 1 && work > 1e5)
  for (int64_t t = 0; t < jobs; t++) {
    bool over;
#pragma omp atomic read
    over = failed;
    if (over) continue;
    const int64_t i0 = t % blocks * rows, head = t / blocks;
    const int64_t left = a->q_len - i0;
    assay_status_t mine =
        run_block(c, a, head / a->q_heads, head % a->q_heads, i0, left < rows ? left : rows);
    if (mine) {
#pragma omp atomic write
      failed = true;
#pragma omp critical(assay_attention)
      st = assay_status_join(st, mine);
    }
  }
  return st;
}

// ---- rotary embedding -------------------------------------------------------------------------

// Two products and a sum, whose roundings are relative to the products: cancellation keeps them.
static void rotate_limits(const assay_eval_t* c, int64_t half, bool interleaved, const double* cos,
                          const double* sin, const double* x, double* y) {
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_span_t from = assay_running_bound_of(c, x), to = assay_running_bound_of(c, y);
  const assay_span_t sc = assay_running_bound_of(c, cos), ss = assay_running_bound_of(c, sin);
  for (int64_t i = 0; i < half; i++) {
    const int64_t u = interleaved ? 2 * i : i, v = interleaved ? 2 * i + 1 : i + half;
    const assay_near_t a = assay_near_at(x, from, u), b = assay_near_at(x, from, v);
    const assay_near_t w = assay_near_at(cos, sc, i), s = assay_near_at(sin, ss, i);
    assay_near_t t = assay_near_mul(&steps, s, b);
    t.x = -t.x;
    assay_near_put(assay_near_add(&steps, assay_near_mul(&steps, w, a), t), y, to, u);
    assay_near_put(
        assay_near_add(&steps, assay_near_mul(&steps, s, a), assay_near_mul(&steps, w, b)), y, to,
        v);
  }
}

// Source: ONNX RotaryEmbedding 23; Su et al. 2021 (arXiv 2104.09864), (34).
void assay_rotate(const assay_eval_t* c, int64_t half, bool interleaved, const double* cos,
                  const double* sin, const double* x, double* y) {
  if (c->running) {
    rotate_limits(c, half, interleaved, cos, sin, x, y);
    return;
  }
  for (int64_t i = 0; i < half; i++) {
    const int64_t u = interleaved ? 2 * i : i, v = interleaved ? 2 * i + 1 : i + half;
    const double a = x[u], b = x[v];
    y[u] = assay_acc(c, assay_acc(c, cos[i] * a) - assay_acc(c, sin[i] * b));
    y[v] = assay_acc(c, assay_acc(c, sin[i] * a) + assay_acc(c, cos[i] * b));
  }
}
