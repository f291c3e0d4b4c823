// Attention of com.microsoft over whole heads: Attention, QAttention, MultiHeadAttention,
// DecoderMaskedMultiHeadAttention, PackedMultiHeadAttention.
// Source: schemas of onnxruntime 1.31 (com.microsoft, version 1).
#include <math.h>
#include <string.h>

#include "ops/families.h"
#include "ops/math/pointwise.h"
#include "ops/matmul/gemm.h"
#include "ops/microsoft/ms_heads.h"
#include "ops/quant/quant.h"
#include "ops/running_bound.h"

static double filter_value(const assay_node_t* n) {
  return assay_attr_f64(n, "mask_filter_value", -10000);
}

// A scalar or one-element integer input.
static assay_status_t read_length(const assay_eval_t* c, size_t input, int64_t max, int64_t* out) {
  const assay_tensor_t* t = c->in[input];
  if (t->size != 1 || assay_i64(t)[0] < 0 || assay_i64(t)[0] > max) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "past_sequence_length has shape %s and starts with %lld; expected one "
                            "number of [0, %lld]",
                            ASSAY_DIMS_TEXT(t), t->size > 0 ? (long long)assay_i64(t)[0] : 0LL,
                            (long long)max);
  }
  *out = assay_i64(t)[0];
  return NULL;
}

static assay_status_t fill_lengths(assay_tensor_t** out, int64_t batch, int64_t value) {
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, &batch, out));
  for (int64_t b = 0; b < batch; b++) assay_i64(*out)[b] = value;
  return NULL;
}

// What is in the caches before and after. capacity 0: no cache takes part.
typedef struct caches {
  int64_t old, capacity, past_capacity;
  bool shared;                          // the past's buffer is the present's
  const double *past_key, *past_value;  // NULL: none
  double *present_key, *present_value;  // NULL: none wanted
} caches_t;

// Appends k and v to what was, where there is something or where the whole is wanted.
static assay_status_t append_both(const assay_eval_t* c, assay_owned_t* owned, const caches_t* s,
                                  assay_ms_operand_t* k, assay_ms_operand_t* v) {
  assay_tensor_t* old = NULL;
  ASSAY_TRY(fill_lengths(&old, k->batch, s->old));
  owned->t[owned->n++] = old;
  assay_ms_operand_t* operands[2] = {k, v};
  const double* pasts[2] = {s->past_key, s->past_value};
  double* presents[2] = {s->present_key, s->present_value};
  for (int i = 0; i < 2; i++) {
    assay_ms_operand_t* x = operands[i];
    const int64_t total = s->old + x->rows;
    if (!pasts[i] && !presents[i]) continue;
    if (!presents[i]) {
      const int64_t dims[4] = {x->batch, x->heads, s->capacity, x->channels};
      assay_tensor_t* t = NULL;
      ASSAY_TRY(assay_owned_create(c, owned, 4, dims, &t));
      presents[i] = assay_f64(t);
    }
    const assay_cache_t cache = {.past = pasts[i],
                                 .past_capacity = s->past_capacity,
                                 .old = assay_i64(old),
                                 .keep_rest = s->shared,
                                 .present = presents[i],
                                 .capacity = s->capacity};
    assay_cache_append(c, &cache, x);
    x->rows = total;
  }
  return NULL;
}

static assay_attention_t attention_of(const assay_eval_t* c, const assay_ms_operand_t* q,
                                      const assay_ms_operand_t* k, const assay_ms_operand_t* v,
                                      int64_t old) {
  return (assay_attention_t){
      .batch = q->batch,
      .q_heads = q->heads,
      .kv_heads = k->heads,
      .q_len = q->rows,
      .kv_len = k->rows,
      .head_size = q->channels,
      .v_head_size = v->channels,
      .q = q->at,
      .k = k->at,
      .v = v->at,
      .scale = assay_head_scale(c->node, q->channels),
      .offset = old,
      .left_window = -1,
      .right_window = assay_attr_i64(c->node, "unidirectional", 0) != 0 ? 0 : -1};
}

// y [batch, q_len, heads * v_head_size] as output 0.
static assay_status_t make_y(assay_eval_t* c, assay_type_t type, assay_attention_t* a) {
  const int64_t width = a->q_heads * a->v_head_size;
  const int64_t dims[3] = {a->batch, a->q_len, width};
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, type), 3, dims, &y));
  a->y = (assay_heads_t){assay_f64(y), a->q_len * width, a->v_head_size, width};
  return NULL;
}

// ---- Attention and QAttention -----------------------------------------------------------------

enum { A_INPUT, A_WEIGHTS, A_BIAS, A_MASK, A_PAST, A_SCORE_BIAS, A_PAST_LEN };
enum { Q_INPUT, Q_WEIGHTS, Q_BIAS, Q_SCALE, Q_WEIGHT_SCALE, Q_MASK, Q_ZERO, Q_WEIGHT_ZERO, Q_PAST };

// Where the inputs that both operators have stand. 99: it has none.
typedef struct form {
  size_t mask, past, score_bias, past_len;
} form_t;

static const form_t attention_form = {A_MASK, A_PAST, A_SCORE_BIAS, A_PAST_LEN};
static const form_t qattention_form = {Q_MASK, Q_PAST, 99, 99};

// Channels of Q, K and V together, each.
static assay_status_t read_sizes(const assay_node_t* n, int64_t width, int64_t sizes[3]) {
  size_t count = 0;
  const int64_t* given = assay_attr_ints(n, "qkv_hidden_sizes", &count);
  const int64_t heads = assay_attr_i64(n, "num_heads", 0);
  for (int i = 0; i < 3; i++) sizes[i] = given && count == 3 ? given[i] : width / 3;
  int64_t sum = 0;
  bool fits = !given || count == 0 || count == 3;
  for (int i = 0; fits && i < 3; i++) {
    fits = sizes[i] >= 0 && assay_add_i64(sum, sizes[i], &sum);
  }
  if (!fits || sum != width || sizes[0] != sizes[1]) {
    return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                            "weights have %lld columns, for Q, K and V %lld, %lld and %lld; "
                            "expected their sum, and as many for Q as for K",
                            (long long)width, (long long)sizes[0], (long long)sizes[1],
                            (long long)sizes[2]);
  }
  ASSAY_TRY(assay_want_heads(n, "num_heads", heads, sizes[0]));
  return assay_want_heads(n, "num_heads", heads, sizes[2]);
}

static assay_status_t check_projection(const assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *w = c->in[1];
  const assay_tensor_t* bias = assay_eval_has(c, 2) ? c->in[2] : NULL;
  if (x->rank != 3 || w->rank != 2 || x->dims[2] != w->dims[0] ||
      (bias && (bias->rank != 1 || bias->dims[0] != w->dims[1]))) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s, weights %s, bias %s; expected [batch, length, "
                            "size], [size, columns], [columns]",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(w),
                            bias ? ASSAY_DIMS_TEXT(bias) : "none");
  }
  return NULL;
}

// The limits of y + bias, for the y without it.
static void limit_bias(const assay_eval_t* c, const double* bias, const assay_tensor_t* y) {
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const int64_t n = y->dims[2];
  if (y->size == 0) return;
  const assay_span_t s = assay_running_bound_of(c, assay_f64(y)),
                     b = assay_running_bound_of(c, bias);
  for (int64_t i = 0; i < y->size; i++) {
    const assay_near_t sum =
        assay_near_add(&steps, assay_near_at(assay_f64(y), s, i), assay_near_at(bias, b, i % n));
    s.guaranteed[i] = sum.g;
    s.probable[i] = sum.p;
  }
}

// qkv[batch, length, columns] = input x weights + bias.
static assay_status_t project(const assay_eval_t* c, assay_owned_t* owned, assay_tensor_t** out) {
  ASSAY_TRY(check_projection(c));
  const assay_tensor_t *x = c->in[0], *w = c->in[1];
  const int64_t n = w->dims[1], dims[3] = {x->dims[0], x->dims[1], n};
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_owned_create(c, owned, 3, dims, &y));
  const assay_matrix_t a = {x->data, ASSAY_STORE_F64, x->type, 0, x->dims[2], 1};
  const assay_matrix_t b = {w->data, w->store, w->type, 0, n, 1};
  if (y->size > 0) {
    ASSAY_TRY(assay_gemm(c, dims[0] * dims[1], n, x->dims[2], &a, &b, assay_f64(y), n, false));
  }
  if (c->running && y->size > 0) {
    ASSAY_TRY(assay_running_bound_gemm(c, dims[0] * dims[1], n, x->dims[2], &a, &b, assay_f64(y), n,
                                       0, false));
  }
  if (assay_eval_has(c, A_BIAS)) {
    const double* bias = assay_f64(c->in[A_BIAS]);
    double* p = assay_f64(y);
    if (c->running) limit_bias(c, bias, y);
    for (int64_t i = 0; i < dims[0] * dims[1]; i++, p += n) {
      for (int64_t j = 0; j < n; j++) p[j] = assay_acc(c, p[j] + bias[j]);
    }
  }
  *out = y;
  return NULL;
}

// The past [2, batch, heads, length, size] and the present.
static assay_status_t merged_caches(assay_eval_t* c, const form_t* f, assay_type_t type,
                                    const assay_ms_operand_t* k, const assay_ms_operand_t* v,
                                    caches_t* out) {
  const assay_tensor_t* past = assay_eval_has(c, f->past) ? c->in[f->past] : NULL;
  caches_t s = {.shared = past && assay_attr_i64(c->node, "past_present_share_buffer", 0) != 0};
  const bool present = assay_eval_wants(c, 1);
  if ((past || present) && k->channels != v->channels) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "heads of K and V have %lld and %lld channels; a past or present needs "
                            "the same",
                            (long long)k->channels, (long long)v->channels);
  }
  if (past) {
    if (past->rank != 5 || past->dims[0] != 2 || past->dims[1] != k->batch ||
        past->dims[2] != k->heads || past->dims[4] != k->channels) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "past has shape %s; expected [2, %lld, %lld, length, %lld]",
                              ASSAY_DIMS_TEXT(past), (long long)k->batch, (long long)k->heads,
                              (long long)k->channels);
    }
    s.past_key = assay_f64(past);
    s.past_value = s.past_key + past->size / 2;
    s.old = s.past_capacity = past->dims[3];
  }
  if (s.shared) {
    if (!assay_eval_has(c, f->past_len)) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "past_present_share_buffer is set without past_sequence_length");
    }
    ASSAY_TRY(read_length(c, f->past_len, s.past_capacity - k->rows, &s.old));
  }
  s.capacity = s.shared ? s.past_capacity : s.old + k->rows;
  if (present) {
    const int64_t dims[5] = {2, k->batch, k->heads, s.capacity, k->channels};
    assay_tensor_t* t = NULL;
    ASSAY_TRY(assay_eval_output(c, 1, assay_eval_out_type(c, 1, type), 5, dims, &t));
    s.present_key = assay_f64(t);
    s.present_value = s.present_key + t->size / 2;
  }
  *out = s;
  return NULL;
}

static assay_status_t attend_merged(assay_eval_t* c, assay_owned_t* owned, const form_t* f,
                                    assay_type_t type, const assay_tensor_t* qkv) {
  if (assay_attr_i64(c->node, "do_rotary", 0) != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "do_rotary is set; its angles are specified nowhere: use "
                            "RotaryEmbedding or GroupQueryAttention");
  }
  int64_t sizes[3];
  ASSAY_TRY(read_sizes(c->node, qkv->dims[2], sizes));
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  assay_ms_operand_t q[3];
  int64_t first = 0;
  for (int i = 0; i < 3; first += sizes[i++]) {
    const int64_t n = sizes[i] / heads;
    q[i] = assay_operand_slice(qkv, first, heads, n, n);
  }
  caches_t s;
  ASSAY_TRY(merged_caches(c, f, type, &q[1], &q[2], &s));
  ASSAY_TRY(append_both(c, owned, &s, &q[1], &q[2]));
  assay_attention_t a = attention_of(c, &q[0], &q[1], &q[2], s.old);
  if (assay_eval_has(c, f->mask)) {
    ASSAY_TRY(assay_padding_mask(c, owned, f->mask, &a, filter_value(c->node), &a.masks[0]));
  }
  ASSAY_TRY(assay_score_bias(c, f->score_bias, &a, &a.masks[1]));
  ASSAY_TRY(make_y(c, type, &a));
  return assay_attention_run(c, &a);
}

// Source: com.microsoft Attention 1.
static assay_status_t attention_eval(assay_eval_t* c) {
  assay_owned_t owned = {0};
  assay_tensor_t* qkv = NULL;
  assay_status_t st = project(c, &owned, &qkv);
  if (!st) st = attend_merged(c, &owned, &attention_form, c->in[0]->type, qkv);
  assay_owned_release(&owned);
  return st;
}

// Input x weights of quantized numbers, less their zero points, which are those of input `zero`,
// one or one a column.
static assay_status_t centered(const assay_eval_t* c, assay_owned_t* owned, size_t input,
                               size_t zero, assay_tensor_t** out) {
  const assay_tensor_t* t = c->in[input];
  const assay_tensor_t* z = assay_eval_has(c, zero) ? c->in[zero] : NULL;
  const int64_t n = t->dims[t->rank - 1];
  if (z && z->size != 1 && (input == Q_INPUT || z->rank != 1 || z->size != n)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "zero point of input %zu has shape %s; expected one number%s", input,
                            ASSAY_DIMS_TEXT(z), input == Q_INPUT ? "" : ", or one a column");
  }
  ASSAY_TRY(assay_owned_create(c, owned, t->rank, t->dims, out));
  for (int64_t i = 0; i < t->size; i++)
    assay_f64(*out)[i] =
        assay_elem_f64(t, i) - (z ? assay_elem_f64(z, z->size == 1 ? 0 : i % n) : 0);
  return NULL;
}

// The products are sums of whole numbers, exact in float64.
static assay_status_t project_quantized(const assay_eval_t* c, assay_owned_t* owned,
                                        assay_tensor_t** out) {
  ASSAY_TRY(check_projection(c));
  const assay_tensor_t *x = c->in[Q_INPUT], *w = c->in[Q_WEIGHTS], *sw = c->in[Q_WEIGHT_SCALE];
  const int64_t n = w->dims[1], dims[3] = {x->dims[0], x->dims[1], n};
  if (c->in[Q_SCALE]->size != 1 || (sw->size != 1 && (sw->rank != 1 || sw->size != n))) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input_scale has shape %s, weight_scale %s; expected one number, and "
                            "one or %lld",
                            ASSAY_DIMS_TEXT(c->in[Q_SCALE]), ASSAY_DIMS_TEXT(sw), (long long)n);
  }
  assay_tensor_t *xs = NULL, *ws = NULL, *y = NULL;
  ASSAY_TRY(centered(c, owned, Q_INPUT, Q_ZERO, &xs));
  ASSAY_TRY(centered(c, owned, Q_WEIGHTS, Q_WEIGHT_ZERO, &ws));
  ASSAY_TRY(assay_owned_create(c, owned, 3, dims, &y));
  const assay_matrix_t a = {xs->data, ASSAY_STORE_F64, xs->type, 0, x->dims[2], 1};
  const assay_matrix_t b = {ws->data, ASSAY_STORE_F64, ws->type, 0, n, 1};
  assay_eval_t exact = *c;
  exact.arith = ASSAY_ARITH_F64;
  if (y->size > 0) {
    ASSAY_TRY(assay_gemm(&exact, dims[0] * dims[1], n, x->dims[2], &a, &b, assay_f64(y), n, false));
  }
  const double sx = assay_f64(c->in[Q_SCALE])[0];
  const double* bias = assay_f64(c->in[Q_BIAS]);
  double* p = assay_f64(y);
  assay_steps_t steps = {0};
  assay_span_t to = {NULL, NULL};
  if (c->running && y->size > 0) {
    steps = assay_rounding_steps(assay_running_bound_rounding(c));
    to = assay_running_bound_of(c, p);
  }
  for (int64_t i = 0; i < dims[0] * dims[1]; i++, p += n) {
    for (int64_t j = 0; j < n; j++) {
      const double s = assay_acc(c, sx * assay_f64(sw)[sw->size == 1 ? 0 : j]);
      if (c->running) {
        // The whole sum becomes a float, and is multiplied by the scales' product.
        const assay_near_t scale = assay_near_mul(
            &steps, assay_near_exact(sx), assay_near_exact(assay_f64(sw)[sw->size == 1 ? 0 : j]));
        assay_near_t sum = assay_near_round(&steps, assay_near_exact(p[j]), 1);
        sum = assay_near_mul(&steps, sum, scale);
        sum = assay_near_add(&steps, sum, assay_near_exact(bias[j]));
        assay_near_put(sum, p, assay_span_from(to, i * n), j);
        continue;
      }
      p[j] = assay_acc(c, assay_acc(c, p[j] * s) + bias[j]);
    }
  }
  *out = y;
  return NULL;
}

// Source: com.microsoft QAttention 1.
static assay_status_t qattention_eval(assay_eval_t* c) {
  assay_owned_t owned = {0};
  assay_tensor_t* qkv = NULL;
  assay_status_t st = project_quantized(c, &owned, &qkv);
  if (!st) st = attend_merged(c, &owned, &qattention_form, c->in[Q_SCALE]->type, qkv);
  assay_owned_release(&owned);
  return st;
}

static assay_status_t merged_infer(assay_infer_t* c, const form_t* f, assay_type_t type) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 3));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 2, 2));
  const bool has_past = assay_infer_has(c, f->past);
  if (has_past) ASSAY_TRY(assay_infer_want_rank(c, f->past, 5, 5));
  const assay_shape_t x = assay_infer_shape(c, 0), w = assay_infer_shape(c, 1);
  int64_t width = 0, sizes[3] = {0};
  const bool known = w.known && assay_dim_value(w.dims[1], &width);
  if (known) ASSAY_TRY(read_sizes(c->node, width, sizes));
  if (x.known && w.known && assay_dim_differ(x.dims[2], w.dims[0])) {
    char tx[128], tw[128];
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has %s channels, weights %s rows; expected the same",
                            assay_dim_text(x.dims[2], tx, sizeof tx),
                            assay_dim_text(w.dims[0], tw, sizeof tw));
  }
  assay_shape_t y = x, present = {.known = x.known && w.known, .rank = 5};
  if (x.known) {
    y.dims[2] = known      ? assay_dim_const(c->dims, sizes[2])
                : !w.known ? NULL
                : assay_attr_has(c->node, "qkv_hidden_sizes")
                    ? NULL
                    : assay_dim_floordiv(c->dims, w.dims[1], assay_dim_const(c->dims, 3));
  }
  if (present.known) {
    const assay_dim_t* heads = assay_dim_const(c->dims, assay_attr_i64(c->node, "num_heads", 1));
    const assay_shape_t past = has_past ? assay_infer_shape(c, f->past) : (assay_shape_t){0};
    const bool shared = has_past && assay_attr_i64(c->node, "past_present_share_buffer", 0) != 0;
    present.dims[0] = assay_dim_const(c->dims, 2);
    present.dims[1] = x.dims[0];
    present.dims[2] = heads;
    present.dims[3] = !has_past     ? x.dims[1]
                      : !past.known ? NULL
                      : shared      ? past.dims[3]
                                    : assay_dim_add(c->dims, past.dims[3], x.dims[1]);
    present.dims[4] = assay_dim_floordiv(c->dims, y.dims[2], heads);
  }
  ASSAY_TRY(assay_infer_set(c, 0, type, &y));
  return assay_infer_set(c, 1, type, &present);
}

static assay_status_t attention_infer(assay_infer_t* c) {
  return merged_infer(c, &attention_form, assay_infer_elem(c, 0));
}
static assay_status_t qattention_infer(assay_infer_t* c) {
  return merged_infer(c, &qattention_form, assay_infer_elem(c, Q_SCALE));
}

static void merged_cost(const assay_eval_t* c, const form_t* f, assay_cost_t* out) {
  const assay_tensor_t *x = c->in[0], *w = c->in[1];
  int64_t sizes[3];
  if (x->rank != 3 || w->rank != 2) return;
  assay_status_t st = read_sizes(c->node, w->dims[1], sizes);
  if (st) {
    assay_status_free(st);
    return;
  }
  const assay_tensor_t* past = assay_eval_has(c, f->past) ? c->in[f->past] : NULL;
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 1);
  const int64_t keys = x->dims[1] + (past && past->rank == 5 ? past->dims[3] : 0);
  out->flops = 2.0 * (double)x->size * (double)w->dims[1] +
               assay_attention_flops(x->dims[0], heads, x->dims[1], keys, sizes[0] / heads,
                                     sizes[2] / heads);
}
static void attention_cost(const assay_eval_t* c, assay_cost_t* out) {
  merged_cost(c, &attention_form, out);
}
static void qattention_cost(const assay_eval_t* c, assay_cost_t* out) {
  merged_cost(c, &qattention_form, out);
}

// ---- MultiHeadAttention and DecoderMaskedMultiHeadAttention -----------------------------------

enum { M_QUERY, M_KEY, M_VALUE };
enum { M_Y, M_PRESENT_KEY, M_PRESENT_VALUE, M_SCORES };

// Where their other inputs stand.
typedef struct inputs {
  size_t bias, mask, score_bias, past_key, past_value, past_len, indirection;
  bool thirds;  // a query of rank 3 without a key is Q, K and V
} inputs_t;

static const inputs_t mha_inputs = {3, 4, 5, 6, 7, 8, 9, false};
static const inputs_t dmmha_inputs = {10, 3, 4, 5, 6, 7, 9, true};

typedef struct qkv {
  assay_ms_operand_t q, k, v;
  bool whole_keys;  // K and V came as heads: the caches of a cross attention
} qkv_t;

static assay_status_t layout_error(const assay_eval_t* c) {
  const assay_tensor_t* k = assay_eval_has(c, M_KEY) ? c->in[M_KEY] : NULL;
  const assay_tensor_t* v = assay_eval_has(c, M_VALUE) ? c->in[M_VALUE] : NULL;
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_INVALID_ARGUMENT,
      "query has shape %s, key %s, value %s, num_heads is %lld; expected [B, S, N*H] with [B, L, "
      "N*H] and [B, L, N*H'], or with [B, N, L, H] and [B, N, L, H'], or with [B, L, N, 2, H]; or "
      "[B, S, N, 3, H]",
      ASSAY_DIMS_TEXT(c->in[M_QUERY]), k ? ASSAY_DIMS_TEXT(k) : "none",
      v ? ASSAY_DIMS_TEXT(v) : "none", (long long)assay_attr_i64(c->node, "num_heads", 0));
}

// The query alone: all three packed.
static bool read_packed(const assay_tensor_t* q, const inputs_t* in, int64_t heads, qkv_t* out) {
  if (q->rank == 5 && q->dims[2] == heads && q->dims[3] == 3) {
    const int64_t n = q->dims[4];
    out->q = assay_operand_slice(q, 0, heads, 3 * n, n);
    out->k = assay_operand_slice(q, n, heads, 3 * n, n);
    out->v = assay_operand_slice(q, 2 * n, heads, 3 * n, n);
    return true;
  }
  if (in->thirds && q->rank == 3 && q->dims[2] % 3 == 0 && q->dims[2] / 3 % heads == 0) {
    const int64_t width = q->dims[2] / 3, n = width / heads;
    out->q = assay_operand_slice(q, 0, heads, n, n);
    out->k = assay_operand_slice(q, width, heads, n, n);
    out->v = assay_operand_slice(q, 2 * width, heads, n, n);
    return true;
  }
  return false;
}

static bool read_keys(const assay_tensor_t* k, const assay_tensor_t* v, int64_t heads, qkv_t* out) {
  if (k->rank == 5 && !v && k->dims[2] == heads && k->dims[3] == 2) {
    const int64_t n = k->dims[4];
    out->k = assay_operand_slice(k, 0, heads, 2 * n, n);
    out->v = assay_operand_slice(k, n, heads, 2 * n, n);
    return true;
  }
  if (k->rank == 4 && v && v->rank == 4 && k->dims[1] == heads && v->dims[1] == heads) {
    out->k = assay_operand_whole(k);
    out->v = assay_operand_whole(v);
    return out->whole_keys = true;
  }
  if (k->rank == 3 && v && v->rank == 3 && k->dims[2] % heads == 0 && v->dims[2] % heads == 0) {
    out->k = assay_operand_slice(k, 0, heads, k->dims[2] / heads, k->dims[2] / heads);
    out->v = assay_operand_slice(v, 0, heads, v->dims[2] / heads, v->dims[2] / heads);
    return true;
  }
  return false;
}

static assay_status_t read_qkv(const assay_eval_t* c, const inputs_t* in, qkv_t* out) {
  const assay_tensor_t* q = c->in[M_QUERY];
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  ASSAY_TRY(assay_want_heads(c->node, "num_heads", heads, -1));
  qkv_t x = {0};
  bool fits = true;
  if (!assay_eval_has(c, M_KEY)) {
    fits = !assay_eval_has(c, M_VALUE) && read_packed(q, in, heads, &x);
  } else {
    fits = q->rank == 3 && q->dims[2] % heads == 0 &&
           read_keys(c->in[M_KEY], assay_eval_has(c, M_VALUE) ? c->in[M_VALUE] : NULL, heads, &x);
    if (fits) x.q = assay_operand_slice(q, 0, heads, q->dims[2] / heads, q->dims[2] / heads);
  }
  fits = fits && x.q.batch == x.k.batch && x.k.batch == x.v.batch && x.k.rows == x.v.rows &&
         x.q.channels == x.k.channels;
  if (!fits) return layout_error(c);
  *out = x;
  return NULL;
}

// The bias of the projections, [hidden + hidden + v_hidden]; keys that came as heads have theirs.
static assay_status_t add_bias(const assay_eval_t* c, assay_owned_t* owned, size_t input,
                               qkv_t* x) {
  if (!assay_eval_has(c, input)) return NULL;
  const assay_tensor_t* t = c->in[input];
  const int64_t hidden = x->q.heads * x->q.channels, v_hidden = x->v.heads * x->v.channels;
  if (t->rank != 1 || t->dims[0] != 2 * hidden + v_hidden) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "bias has shape %s; expected [%lld + %lld + %lld]", ASSAY_DIMS_TEXT(t),
                            (long long)hidden, (long long)hidden, (long long)v_hidden);
  }
  ASSAY_TRY(assay_operand_own(c, owned, assay_f64(t), &x->q));
  if (x->whole_keys) return NULL;
  ASSAY_TRY(assay_operand_own(c, owned, assay_f64(t) + hidden, &x->k));
  return assay_operand_own(c, owned, assay_f64(t) + 2 * hidden, &x->v);
}

static assay_status_t check_past(const assay_eval_t* c, size_t input, const assay_ms_operand_t* x) {
  const assay_tensor_t* t = c->in[input];
  if (t->rank == 4 && t->dims[0] == x->batch && t->dims[1] == x->heads &&
      t->dims[3] == x->channels) {
    return NULL;
  }
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input %zu, a past, has shape %s; expected [%lld, %lld, length, %lld]",
                          input, ASSAY_DIMS_TEXT(t), (long long)x->batch, (long long)x->heads,
                          (long long)x->channels);
}

static assay_status_t separate_caches(assay_eval_t* c, const inputs_t* in, const qkv_t* x,
                                      caches_t* out) {
  const bool has_past = assay_eval_has(c, in->past_key);
  caches_t s = {.shared = has_past && assay_eval_has(c, in->past_len)};
  if (has_past != assay_eval_has(c, in->past_value)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "only one of past_key and past_value is given; expected both or none");
  }
  if (has_past) {
    const assay_tensor_t *k = c->in[in->past_key], *v = c->in[in->past_value];
    ASSAY_TRY(check_past(c, in->past_key, &x->k));
    ASSAY_TRY(check_past(c, in->past_value, &x->v));
    if (k->dims[2] != v->dims[2]) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "past_key %s and past_value %s differ in length", ASSAY_DIMS_TEXT(k),
                              ASSAY_DIMS_TEXT(v));
    }
    s.past_key = assay_f64(k), s.past_value = assay_f64(v);
    s.old = s.past_capacity = k->dims[2];
    if (s.shared) ASSAY_TRY(read_length(c, in->past_len, s.past_capacity - x->k.rows, &s.old));
  }
  s.capacity = s.shared ? s.past_capacity : s.old + x->k.rows;
  const assay_ms_operand_t* operands[2] = {&x->k, &x->v};
  double** presents[2] = {&s.present_key, &s.present_value};
  for (size_t i = 0; i < 2; i++) {
    const size_t o = M_PRESENT_KEY + i;
    if (!assay_eval_wants(c, o)) continue;
    const int64_t dims[4] = {x->k.batch, x->k.heads, s.capacity, operands[i]->channels};
    assay_tensor_t* t = NULL;
    ASSAY_TRY(assay_eval_output(c, o, assay_eval_out_type(c, o, c->in[0]->type), 4, dims, &t));
    *presents[i] = assay_f64(t);
  }
  *out = s;
  return NULL;
}

static assay_status_t attend(assay_eval_t* c, assay_owned_t* owned, const inputs_t* in) {
  if (assay_eval_has(c, in->indirection)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "cache_indirection (beam search inside the cache) is not evaluated");
  }
  qkv_t x;
  caches_t s;
  ASSAY_TRY(read_qkv(c, in, &x));
  ASSAY_TRY(add_bias(c, owned, in->bias, &x));
  ASSAY_TRY(separate_caches(c, in, &x, &s));
  ASSAY_TRY(append_both(c, owned, &s, &x.k, &x.v));
  assay_attention_t a = attention_of(c, &x.q, &x.k, &x.v, s.old);
  if (assay_eval_has(c, in->mask)) {
    ASSAY_TRY(assay_padding_mask(c, owned, in->mask, &a, filter_value(c->node), &a.masks[0]));
  }
  ASSAY_TRY(assay_score_bias(c, in->score_bias, &a, &a.masks[1]));
  const assay_type_t type = c->in[M_QUERY]->type;
  ASSAY_TRY(make_y(c, type, &a));
  if (assay_eval_wants(c, M_SCORES)) {
    const int64_t dims[4] = {a.batch, a.q_heads, a.q_len, a.kv_len};
    assay_tensor_t* t = NULL;
    ASSAY_TRY(assay_eval_output(c, M_SCORES, assay_eval_out_type(c, M_SCORES, type), 4, dims, &t));
    a.scores = assay_f64(t);
    a.scores_stage = ASSAY_SCORES_BIASED;
  }
  return assay_attention_run(c, &a);
}

static assay_status_t mha_eval_with(assay_eval_t* c, const inputs_t* in) {
  assay_owned_t owned = {0};
  assay_status_t st = attend(c, &owned, in);
  assay_owned_release(&owned);
  return st;
}

// Source: com.microsoft MultiHeadAttention 1.
static assay_status_t mha_eval(assay_eval_t* c) { return mha_eval_with(c, &mha_inputs); }
// Source: com.microsoft DecoderMaskedMultiHeadAttention 1, with the cache in plain order (the
// reordered one of past_present_share_buffer is a matter of the CUDA kernel).
static assay_status_t dmmha_eval(assay_eval_t* c) {
  if (c->in[M_QUERY]->rank > 1 && c->in[M_QUERY]->dims[1] != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "query has shape %s; expected a sequence length of 1",
                            ASSAY_DIMS_TEXT(c->in[M_QUERY]));
  }
  return mha_eval_with(c, &dmmha_inputs);
}

// Lengths and sizes as far as they are known.
typedef struct mha_dims {
  const assay_dim_t *batch, *q_len, *kv_len, *hidden, *v_hidden;
  bool known;
} mha_dims_t;

static mha_dims_t mha_shapes(const assay_infer_t* c, const inputs_t* in, const assay_dim_t* heads) {
  const assay_shape_t q = assay_infer_shape(c, M_QUERY);
  mha_dims_t d = {.known = q.known};
  if (!q.known) return d;
  d.batch = q.dims[0], d.q_len = q.dims[1];
  if (!assay_infer_has(c, M_KEY)) {
    d.hidden = q.rank == 5  ? assay_dim_mul(c->dims, q.dims[2], q.dims[4])
               : in->thirds ? assay_dim_floordiv(c->dims, q.dims[2], assay_dim_const(c->dims, 3))
                            : NULL;
    d.v_hidden = d.hidden;
    d.kv_len = d.q_len;
    return d;
  }
  d.hidden = q.rank == 3 ? q.dims[2] : NULL;
  const assay_shape_t k = assay_infer_shape(c, M_KEY);
  const assay_shape_t v =
      assay_infer_has(c, M_VALUE) ? assay_infer_shape(c, M_VALUE) : (assay_shape_t){0};
  if (k.known) d.kv_len = k.dims[k.rank == 4 ? 2 : 1];
  if (k.known && k.rank == 5) d.v_hidden = d.hidden;
  if (v.known && v.rank == 3) d.v_hidden = v.dims[2];
  if (v.known && v.rank == 4) d.v_hidden = assay_dim_mul(c->dims, heads, v.dims[3]);
  return d;
}

static assay_status_t mha_infer_with(assay_infer_t* c, const inputs_t* in) {
  ASSAY_TRY(assay_infer_want_rank(c, M_QUERY, 3, 5));
  for (size_t i = M_KEY; i <= M_VALUE; i++) {
    if (assay_infer_has(c, i)) ASSAY_TRY(assay_infer_want_rank(c, i, 3, i == M_KEY ? 5 : 4));
  }
  const int64_t n = assay_attr_i64(c->node, "num_heads", 0);
  ASSAY_TRY(assay_want_heads(c->node, "num_heads", n, -1));
  const assay_dim_t* heads = assay_dim_const(c->dims, n);
  const mha_dims_t d = mha_shapes(c, in, heads);
  const assay_dim_t *total = d.kv_len, *capacity = d.kv_len;
  if (assay_infer_has(c, in->past_key)) {
    ASSAY_TRY(assay_infer_want_rank(c, in->past_key, 4, 4));
    const assay_shape_t past = assay_infer_shape(c, in->past_key);
    const bool shared = assay_infer_has(c, in->past_len);
    total = shared || !past.known ? NULL : assay_dim_add(c->dims, past.dims[2], d.kv_len);
    capacity = shared && past.known ? past.dims[2] : total;
  }
  const assay_shape_t y = {d.known, 3, {d.batch, d.q_len, d.v_hidden}};
  const assay_dim_t* size = assay_dim_floordiv(c->dims, d.hidden, heads);
  const assay_dim_t* v_size = assay_dim_floordiv(c->dims, d.v_hidden, heads);
  const assay_shape_t keys = {d.known, 4, {d.batch, heads, capacity, size}};
  const assay_shape_t values = {d.known, 4, {d.batch, heads, capacity, v_size}};
  const assay_shape_t scores = {d.known, 4, {d.batch, heads, d.q_len, total}};
  const assay_type_t type = assay_infer_elem(c, M_QUERY);
  ASSAY_TRY(assay_infer_set(c, M_Y, type, &y));
  ASSAY_TRY(assay_infer_set(c, M_PRESENT_KEY, type, &keys));
  ASSAY_TRY(assay_infer_set(c, M_PRESENT_VALUE, type, &values));
  return assay_infer_set(c, M_SCORES, type, &scores);
}

static assay_status_t mha_infer(assay_infer_t* c) { return mha_infer_with(c, &mha_inputs); }
static assay_status_t dmmha_infer(assay_infer_t* c) { return mha_infer_with(c, &dmmha_inputs); }

static void mha_cost_with(const assay_eval_t* c, const inputs_t* in, assay_cost_t* out) {
  qkv_t x;
  assay_status_t st = read_qkv(c, in, &x);
  if (st) {
    assay_status_free(st);
    return;
  }
  const assay_tensor_t* past = assay_eval_has(c, in->past_key) ? c->in[in->past_key] : NULL;
  out->flops = assay_attention_flops(x.q.batch, x.q.heads, x.q.rows,
                                     x.k.rows + (past && past->rank == 4 ? past->dims[2] : 0),
                                     x.q.channels, x.v.channels);
}
static void mha_cost(const assay_eval_t* c, assay_cost_t* out) {
  mha_cost_with(c, &mha_inputs, out);
}
static void dmmha_cost(const assay_eval_t* c, assay_cost_t* out) {
  mha_cost_with(c, &dmmha_inputs, out);
}

// ---- table ------------------------------------------------------------------------------------

static assay_status_t attention_bound(assay_bound_t* b) {
  return assay_bound_running(b, attention_eval);
}

// Of quantized numbers only, as they are stored: not of truth 'unquantized'.
static assay_status_t qattention_bound(assay_bound_t* b) {
  if (b->in[Q_INPUT]->store != ASSAY_STORE_I64 || b->in[Q_WEIGHTS]->store != ASSAY_STORE_I64)
    return ASSAY_NODE_ERROR(b->node, ASSAY_UNSUPPORTED, "it has no bound for unquantized numbers");
  return assay_bound_running_exact(b, qattention_eval);
}

static assay_status_t mha_bound(assay_bound_t* b) { return assay_bound_running(b, mha_eval); }
static assay_status_t dmmha_bound(assay_bound_t* b) { return assay_bound_running(b, dmmha_eval); }

#define MS_FLAGS(NAME, KIND, FLAGS)                                                                \
  .domain = "com.microsoft", .name = NAME, .since = 1, .infer = KIND##_infer, .eval = KIND##_eval, \
  .bound = KIND##_bound, .cost = KIND##_cost, .flags = FLAGS
#define MS(NAME, KIND) MS_FLAGS(NAME, KIND, ASSAY_OP_CONTRACTS)

const assay_op_t assay_ops_ms_attention[] = {
    {MS("Attention", attention),
     .schema = "input:T, weights:T, bias?:T, mask_index?:M, past?:T, attention_bias?:T, "
               "past_sequence_length?:M -> output:T, present?:T | num_heads:i!, "
               "unidirectional:i=0, mask_filter_value:f=-10000, scale:f=0, qkv_hidden_sizes:is, "
               "past_present_share_buffer:i=0, do_rotary:i=0, rotary_embedding_dim:i=0 "
               "| T=float float16 bfloat16; M=int32"},
    {MS_FLAGS("QAttention", qattention, ASSAY_OP_CONTRACTS | ASSAY_OP_QUANTIZES),
     .schema = "input:T1, weight:T2, bias:T3, input_scale:T3, weight_scale:T3, mask_index?:M, "
               "input_zero_point?:T1, weight_zero_point?:T2, past?:T3 -> output:T3, present?:T3 "
               "| num_heads:i!, unidirectional:i=0, mask_filter_value:f=-10000, scale:f=0, "
               "past_present_share_buffer:i=0, do_rotary:i=0 "
               "| T1=int8 uint8; T2=int8 uint8; T3=float float16; M=int32"},
    {MS("MultiHeadAttention", mha),
     .schema = "query:T, key?:T, value?:T, bias?:T, key_padding_mask?:M, attention_bias?:T, "
               "past_key?:T, past_value?:T, past_sequence_length?:M, cache_indirection?:M "
               "-> output:T, present_key?:T, present_value?:T, qk?:QK | num_heads:i!, "
               "mask_filter_value:f=-10000, scale:f=0, unidirectional:i=0 "
               "| T=float float16 bfloat16; QK=float float16 bfloat16; M=int32"},
    {MS("DecoderMaskedMultiHeadAttention", dmmha),
     .schema = "query:T, key?:T, value?:T, mask_index?:M, attention_bias?:T, past_key?:T, "
               "past_value?:T, past_sequence_length?:M, beam_width?:M, cache_indirection?:M, "
               "bias?:T -> output:T, present_key?:T, present_value?:T, qk?:QK | num_heads:i!, "
               "past_present_share_buffer:i=0, scale:f=0, mask_filter_value:f=-10000, "
               "output_qk:i=0 | T=float float16; QK=float float16; M=int32"},
    {0},
};
