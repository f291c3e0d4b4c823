// Attention of ONNX 23, 24 and 25.
#include <math.h>
#include <string.h>

#include "ops/attention/attention_core.h"
#include "ops/families.h"
#include "ops/running_bound.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, KEY_COUNTS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

// ---- inference --------------------------------------------------------------------------------

// An operand [B, heads, S, D], or [B, S, heads * D] with `heads` from an attribute, as 4 dims.
static assay_status_t infer_heads(const assay_infer_t* c, size_t input, const char* attr,
                                  assay_shape_t* out) {
  ASSAY_TRY(assay_infer_want_rank(c, input, 3, 4));
  const assay_shape_t x = assay_infer_shape(c, input);
  *out = x;
  if (!x.known || x.rank == 4) return NULL;
  const int64_t heads = assay_attr_i64(c->node, attr, 0);
  if (heads <= 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "%s is %lld; inputs of three dimensions need the number of heads", attr,
                            (long long)heads);
  }
  int64_t hidden = 0;
  if (assay_dim_value(x.dims[2], &hidden) && hidden % heads != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input %zu has %lld channels, which %s %lld does not divide", input,
                            (long long)hidden, attr, (long long)heads);
  }
  out->rank = 4;
  out->dims[1] = assay_dim_const(c->dims, heads);
  out->dims[2] = x.dims[1];
  out->dims[3] = assay_dim_floordiv(c->dims, x.dims[2], out->dims[1]);
  return NULL;
}

// Fails if two dims are known to differ.
static assay_status_t want_same(const assay_infer_t* c, const char* what, const assay_dim_t* a,
                                const assay_dim_t* b) {
  if (!assay_dim_differ(a, b)) return NULL;
  char ta[128], tb[128];
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "%s are %s and %s; expected the same",
                          what, assay_dim_text(a, ta, sizeof ta), assay_dim_text(b, tb, sizeof tb));
}

static assay_status_t attention_infer(assay_infer_t* c) {
  assay_shape_t q, k, v, y = {0}, scores = {0}, present_k = {0}, present_v = {0};
  ASSAY_TRY(infer_heads(c, Q, "q_num_heads", &q));
  ASSAY_TRY(infer_heads(c, K, "kv_num_heads", &k));
  ASSAY_TRY(infer_heads(c, V, "kv_num_heads", &v));
  const assay_shape_t past =
      assay_infer_has(c, PAST_KEY) ? assay_infer_shape(c, PAST_KEY) : (assay_shape_t){0};
  if (assay_infer_has(c, PAST_KEY)) ASSAY_TRY(assay_infer_want_rank(c, PAST_KEY, 4, 4));
  if (q.known && k.known) {
    ASSAY_TRY(want_same(c, "batch sizes of Q and K", q.dims[0], k.dims[0]));
    ASSAY_TRY(want_same(c, "head sizes of Q and K", q.dims[3], k.dims[3]));
  }
  if (k.known && v.known) {
    ASSAY_TRY(want_same(c, "sequence lengths of K and V", k.dims[2], v.dims[2]));
    ASSAY_TRY(want_same(c, "heads of K and V", k.dims[1], v.dims[1]));
  }
  const assay_dim_t* total = k.known ? k.dims[2] : NULL;
  if (assay_infer_has(c, PAST_KEY)) {
    total = past.known ? assay_dim_add(c->dims, total, past.dims[2]) : NULL;
  }
  if (q.known && v.known) {
    const assay_shape_t given = assay_infer_shape(c, Q);
    y = q;
    y.dims[3] = v.dims[3];
    if (given.rank == 3) {
      y.rank = 3;
      y.dims[1] = q.dims[2];
      y.dims[2] = assay_dim_mul(c->dims, q.dims[1], v.dims[3]);
    }
  }
  if (q.known) {
    scores = q;
    scores.dims[3] = total;
  }
  if (k.known) {
    present_k = k;
    present_k.dims[2] = total;
  }
  if (v.known) {
    present_v = v;
    present_v.dims[2] = total;
  }
  const assay_type_t t = assay_infer_elem(c, Q);
  ASSAY_TRY(assay_infer_set(c, Y, t, &y));
  ASSAY_TRY(assay_infer_set(c, PRESENT_KEY, assay_infer_elem(c, K), &present_k));
  ASSAY_TRY(assay_infer_set(c, PRESENT_VALUE, assay_infer_elem(c, V), &present_v));
  return assay_infer_set(c, SCORES, t, &scores);
}

// ---- evaluation -------------------------------------------------------------------------------

// An operand as heads: [batch, heads, rows, channels] with strides.
typedef struct operand {
  int64_t batch, heads, rows, channels;
  assay_heads_t at;
} operand_t;

static assay_status_t read_operand(const assay_eval_t* c, const char* name, const assay_tensor_t* t,
                                   const char* attr, operand_t* out) {
  operand_t o = {.batch = t->rank > 0 ? t->dims[0] : 0, .at.data = assay_f64(t)};
  const int64_t heads = assay_attr_i64(c->node, attr, 0);
  if (t->rank == 4) {
    o.heads = t->dims[1], o.rows = t->dims[2], o.channels = t->dims[3];
    o.at.row = o.channels;
    o.at.head = o.rows * o.channels;
    o.at.batch = o.heads * o.at.head;
  } else if (t->rank == 3 && heads > 0 && t->dims[2] % heads == 0) {
    o.heads = heads, o.rows = t->dims[1], o.channels = t->dims[2] / heads;
    o.at.row = t->dims[2];
    o.at.head = o.channels;
    o.at.batch = o.rows * o.at.row;
  } else {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "%s has shape %s, %s is %lld; expected [batch, heads, length, size], or "
        "[batch, length, heads * size] and the number of heads",
        name, ASSAY_DIMS_TEXT(t), attr, (long long)heads);
  }
  *out = o;
  return NULL;
}

static assay_status_t check_operands(const assay_eval_t* c, const operand_t* q, const operand_t* k,
                                     const operand_t* v) {
  const bool fits = q->batch == k->batch && k->batch == v->batch && q->channels == k->channels &&
                    k->heads == v->heads && k->rows == v->rows &&
                    c->in[Q]->rank == c->in[K]->rank && c->in[K]->rank == c->in[V]->rank &&
                    (k->heads > 0 ? q->heads % k->heads == 0 : q->heads == 0);
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_INVALID_ARGUMENT,
      "Q %s, K %s and V %s do not fit: expected the same batch, Q and K of one "
      "head size, K and V of one length, and query heads a multiple of key heads",
      ASSAY_DIMS_TEXT(c->in[Q]), ASSAY_DIMS_TEXT(c->in[K]), ASSAY_DIMS_TEXT(c->in[V]));
}

static void copy(const assay_eval_t* c, const double* from, double* to, int64_t n) {
  memcpy(to, from, (size_t)n * sizeof *to);
  if (c->running) assay_running_bound_copy(c, from, to, n);
}

// Makes [batch, heads, past + rows, channels] from the past (may be NULL) and an operand, which
// then points there.
static assay_status_t append(const assay_eval_t* c, const char* name, const assay_tensor_t* past,
                             assay_type_t type, operand_t* x, assay_tensor_t** out) {
  if (past && (past->rank != 4 || past->dims[0] != x->batch || past->dims[1] != x->heads ||
               past->dims[3] != x->channels)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "%s has shape %s; expected [%lld, %lld, length, %lld]", name,
                            ASSAY_DIMS_TEXT(past), (long long)x->batch, (long long)x->heads,
                            (long long)x->channels);
  }
  const int64_t old = past ? past->dims[2] : 0, n = x->channels;
  const int64_t dims[4] = {x->batch, x->heads, old + x->rows, n};
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(type, 4, dims, &t));
  *out = t;
  if (c->running) ASSAY_TRY(assay_running_bound_cover(c, t));
  double* to = assay_f64(t);
  for (int64_t b = 0; t->size > 0 && b < x->batch; b++) {
    for (int64_t h = 0; h < x->heads; h++) {
      const double* from = x->at.data + b * x->at.batch + h * x->at.head;
      if (old > 0) copy(c, assay_f64(past) + (b * x->heads + h) * old * n, to, old * n);
      to += old * n;
      for (int64_t i = 0; i < x->rows; i++, to += n) copy(c, from + i * x->at.row, to, n);
    }
  }
  x->rows = dims[2];
  x->at = (assay_heads_t){assay_f64(t), x->heads * dims[2] * n, dims[2] * n, n};
  return NULL;
}

// Past and present: the operands become the whole cache where there is a past. The caches made are
// the caller's to release, also on failure.
static assay_status_t update_cache(assay_eval_t* c, operand_t* k, operand_t* v,
                                   assay_tensor_t** caches) {
  const bool has_past = assay_eval_has(c, PAST_KEY);
  if (has_past != assay_eval_has(c, PAST_VALUE)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "only one of past_key and past_value is given; expected both or none");
  }
  if (has_past && assay_eval_has(c, KEY_COUNTS)) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "nonpad_kv_seqlen is given together with past_key; expected one of them");
  }
  operand_t* operands[2] = {k, v};
  for (size_t i = 0; i < 2; i++) {
    const size_t in = PAST_KEY + i, out = PRESENT_KEY + i;
    if (!has_past && !assay_eval_wants(c, out)) continue;
    ASSAY_TRY(append(c, i == 0 ? "past_key" : "past_value", has_past ? c->in[in] : NULL,
                     assay_eval_out_type(c, out, c->in[K + i]->type), operands[i], &caches[i]));
    if (assay_eval_wants(c, out)) assay_eval_set(c, out, caches[i]);
  }
  if (k->rows != v->rows) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "past_key %s and past_value %s differ in length",
                            ASSAY_DIMS_TEXT(c->in[PAST_KEY]), ASSAY_DIMS_TEXT(c->in[PAST_VALUE]));
  }
  return NULL;
}

// Masks, causality and windows into *a. `offsets` has room for one number a batch element.
static assay_status_t read_masks(const assay_eval_t* c, assay_attention_t* a, int64_t past,
                                 bool may_be_short, int64_t* offsets) {
  if (assay_eval_has(c, MASK)) {
    ASSAY_TRY(assay_mask_init(c, c->in[MASK], a, may_be_short, &a->masks[0]));
  }
  a->left_window = assay_attr_i64(c->node, "left_window_size", -1);
  a->right_window = assay_attr_i64(c->node, "right_window_size", -1);
  if (a->left_window < -1 || a->right_window < -1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "left_window_size is %lld, right_window_size %lld; expected -1 or more",
                            (long long)a->left_window, (long long)a->right_window);
  }
  if (assay_attr_i64(c->node, "is_causal", 0) != 0) a->right_window = 0;
  a->offset = past;
  if (!assay_eval_has(c, KEY_COUNTS)) return NULL;
  const assay_tensor_t* counts = c->in[KEY_COUNTS];
  if (counts->size != a->batch) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "nonpad_kv_seqlen has shape %s; expected [%lld]",
                            ASSAY_DIMS_TEXT(counts), (long long)a->batch);
  }
  for (int64_t b = 0; b < a->batch; b++) {
    const int64_t n = assay_i64(counts)[b];
    if (n < 0 || n > a->kv_len) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "nonpad_kv_seqlen[%lld] is %lld; expected one of [0, %lld]",
                              (long long)b, (long long)n, (long long)a->kv_len);
    }
    offsets[b] = n - a->q_len;
  }
  a->key_counts = assay_i64(counts);
  a->offsets = offsets;
  return NULL;
}

static assay_status_t make_outputs(assay_eval_t* c, assay_attention_t* a) {
  const bool packed = c->in[Q]->rank == 3;
  const int64_t dims3[3] = {a->batch, a->q_len, a->q_heads * a->v_head_size};
  const int64_t dims4[4] = {a->batch, a->q_heads, a->q_len, a->v_head_size};
  assay_tensor_t *y = NULL, *scores = NULL;
  const assay_type_t type = c->in[Q]->type;
  ASSAY_TRY(assay_eval_output(c, Y, assay_eval_out_type(c, Y, type), packed ? 3 : 4,
                              packed ? dims3 : dims4, &y));
  const int64_t n = a->v_head_size;
  a->y = packed ? (assay_heads_t){assay_f64(y), a->q_len * dims3[2], n, dims3[2]}
                : (assay_heads_t){assay_f64(y), a->q_heads * a->q_len * n, a->q_len * n, n};
  if (!assay_eval_wants(c, SCORES)) return NULL;
  const int64_t mode = assay_attr_i64(c->node, "qk_matmul_output_mode", 0);
  if (mode < ASSAY_SCORES_RAW || mode > ASSAY_SCORES_SOFTMAX) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "qk_matmul_output_mode is %lld; expected 0, 1, 2 or 3",
                            (long long)mode);
  }
  const int64_t dims[4] = {a->batch, a->q_heads, a->q_len, a->kv_len};
  ASSAY_TRY(assay_eval_output(c, SCORES, assay_eval_out_type(c, SCORES, type), 4, dims, &scores));
  a->scores = assay_f64(scores);
  a->scores_stage = (assay_scores_t)mode;
  return NULL;
}

// Scale, soft cap and precision into *a.
static assay_status_t read_attributes(const assay_eval_t* c, assay_attention_t* a) {
  const double otherwise = a->head_size > 0 ? 1 / sqrt((double)a->head_size) : 1;
  a->scale = assay_attr_has(c->node, "scale") ? assay_attr_f64(c->node, "scale", 1) : otherwise;
  a->softcap = fmax(assay_attr_f64(c->node, "softcap", 0), 0);
  const int64_t precision = assay_attr_i64(c->node, "softmax_precision", 0);
  if (precision != 0 && (precision < 0 || precision >= ASSAY_TYPE_COUNT ||
                         !assay_type_is_float((assay_type_t)precision))) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "softmax_precision is %lld; expected a float type",
                            (long long)precision);
  }
  if (c->mode == ASSAY_MODE_NATIVE && precision != 0) {
    a->softmax_format = assay_type_format((assay_type_t)precision);
  }
  return NULL;
}

// Source: ONNX Attention 23, 24 (nonpad_kv_seqlen, shorter masks), 25 (windows).
static assay_status_t attention_eval_with(assay_eval_t* c, bool may_be_short) {
  operand_t q, k, v;
  ASSAY_TRY(read_operand(c, "Q", c->in[Q], "q_num_heads", &q));
  ASSAY_TRY(read_operand(c, "K", c->in[K], "kv_num_heads", &k));
  ASSAY_TRY(read_operand(c, "V", c->in[V], "kv_num_heads", &v));
  ASSAY_TRY(check_operands(c, &q, &k, &v));
  const int64_t new_rows = k.rows;
  assay_tensor_t *caches[2] = {NULL, NULL}, *offsets = NULL;
  assay_status_t st = update_cache(c, &k, &v, caches);
  assay_attention_t a = {.batch = q.batch,
                         .q_heads = q.heads,
                         .kv_heads = k.heads,
                         .q_len = q.rows,
                         .kv_len = k.rows,
                         .head_size = q.channels,
                         .v_head_size = v.channels,
                         .q = q.at,
                         .k = k.at,
                         .v = v.at};
  if (!st) st = read_attributes(c, &a);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_INT64, 1, &a.batch, &offsets);
  if (!st) st = read_masks(c, &a, k.rows - new_rows, may_be_short, assay_i64(offsets));
  if (!st) st = make_outputs(c, &a);
  if (!st) st = assay_attention_run(c, &a);
  assay_tensor_release(offsets);
  for (int i = 0; i < 2; i++) assay_tensor_release(caches[i]);
  return st;
}

static assay_status_t attention_eval_23(assay_eval_t* c) { return attention_eval_with(c, false); }
static assay_status_t attention_eval(assay_eval_t* c) { return attention_eval_with(c, true); }

static assay_status_t attention_bound_23(assay_bound_t* c) {
  return assay_bound_running(c, attention_eval_23);
}
static assay_status_t attention_bound(assay_bound_t* c) {
  return assay_bound_running(c, attention_eval);
}

// The two products and ten flops a score.
static void attention_cost(const assay_eval_t* c, assay_cost_t* out) {
  operand_t q, k, v;
  assay_status_t st = read_operand(c, "Q", c->in[Q], "q_num_heads", &q);
  if (!st) st = read_operand(c, "K", c->in[K], "kv_num_heads", &k);
  if (!st) st = read_operand(c, "V", c->in[V], "kv_num_heads", &v);
  if (st) {
    assay_status_free(st);
    return;
  }
  const int64_t past =
      assay_eval_has(c, PAST_KEY) && c->in[PAST_KEY]->rank == 4 ? c->in[PAST_KEY]->dims[2] : 0;
  const double scores =
      (double)q.batch * (double)q.heads * (double)q.rows * (double)(k.rows + past);
  out->flops = scores * (2.0 * (double)q.channels + 2.0 * (double)v.channels + 10.0);
}

const assay_op_t assay_ops_attention[] = {{.domain = "",
                                           .name = "Attention",
                                           .since = 23,
                                           .flags = ASSAY_OP_CONTRACTS,
                                           .factors = 0x7,
                                           .infer = attention_infer,
                                           .eval = attention_eval_23,
                                           .bound = attention_bound_23,
                                           .cost = attention_cost},
                                          {.domain = "",
                                           .name = "Attention",
                                           .since = 24,
                                           .flags = ASSAY_OP_CONTRACTS,
                                           .factors = 0x7,
                                           .infer = attention_infer,
                                           .eval = attention_eval,
                                           .bound = attention_bound,
                                           .cost = attention_cost},
                                          {0}};
