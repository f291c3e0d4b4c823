// GroupQueryAttention of com.microsoft: attention over caches of keys and values that are filled to
// a length of its own for each batch element.
#include <math.h>
#include <string.h>

#include "ops/families.h"
#include "ops/microsoft/ms_heads.h"
#include "ops/running_bound.h"

enum {
  QUERY,
  KEY,
  VALUE,
  PAST_KEY,
  PAST_VALUE,
  SEQLENS,
  TOTAL,
  COSINES,
  SINES,
  POSITIONS,
  SCORE_BIAS,
  SINK,
  K_SCALE,
  V_SCALE,
  Q_NORM,
  K_NORM
};
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

typedef struct group {
  assay_ms_operand_t q, k, v;
  int64_t total;                    // the longest of the batch
  int64_t capacity, past_capacity;  // of the caches
  const int64_t *old, *ends;        // [batch] keys before and after
  const int64_t* positions;         // [batch, rows]
} group_t;

// ---- operands ---------------------------------------------------------------------------------

static assay_status_t shape_error(const assay_eval_t* c) {
  const assay_tensor_t* k = assay_eval_has(c, KEY) ? c->in[KEY] : NULL;
  const assay_tensor_t* v = assay_eval_has(c, VALUE) ? c->in[VALUE] : NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "query has shape %s, key %s, value %s with %lld and %lld heads; expected "
                          "[batch, length, heads * size] each, or all three packed in query",
                          ASSAY_DIMS_TEXT(c->in[QUERY]), k ? ASSAY_DIMS_TEXT(k) : "none",
                          v ? ASSAY_DIMS_TEXT(v) : "none",
                          (long long)assay_attr_i64(c->node, "num_heads", 0),
                          (long long)assay_attr_i64(c->node, "kv_num_heads", 0));
}

static assay_status_t check_heads(const assay_node_t* n) {
  const int64_t heads = assay_attr_i64(n, "num_heads", 0);
  const int64_t kv_heads = assay_attr_i64(n, "kv_num_heads", 0);
  if (kv_heads > 0 && heads > 0 && heads % kv_heads == 0 && heads <= INT32_MAX) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                          "num_heads is %lld, kv_num_heads %lld; expected a positive multiple",
                          (long long)heads, (long long)kv_heads);
}

static assay_status_t read_operands(const assay_eval_t* c, group_t* g) {
  ASSAY_TRY(check_heads(c->node));
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  const int64_t kv_heads = assay_attr_i64(c->node, "kv_num_heads", 0);
  const assay_tensor_t* q = c->in[QUERY];
  if (q->rank != 3 || assay_eval_has(c, KEY) != assay_eval_has(c, VALUE)) return shape_error(c);
  if (!assay_eval_has(c, KEY)) {
    const int64_t all = heads + 2 * kv_heads, n = q->dims[2] / all;
    if (q->dims[2] % all != 0) return shape_error(c);
    g->q = assay_operand_slice(q, 0, heads, n, n);
    g->k = assay_operand_slice(q, heads * n, kv_heads, n, n);
    g->v = assay_operand_slice(q, (heads + kv_heads) * n, kv_heads, n, n);
    return NULL;
  }
  const assay_tensor_t *k = c->in[KEY], *v = c->in[VALUE];
  const int64_t n = q->dims[2] / heads;
  if (q->dims[2] % heads != 0 || k->rank != 3 || v->rank != 3 || k->dims[0] != q->dims[0] ||
      v->dims[0] != q->dims[0] || k->dims[1] != q->dims[1] || v->dims[1] != q->dims[1] ||
      k->dims[2] != n * kv_heads || v->dims[2] != n * kv_heads) {
    return shape_error(c);
  }
  g->q = assay_operand_slice(q, 0, heads, n, n);
  g->k = assay_operand_slice(k, 0, kv_heads, n, n);
  g->v = assay_operand_slice(v, 0, kv_heads, n, n);
  return NULL;
}

// What is refused: forms of the caches that the other attention operators do not have either.
static assay_status_t check_caches(const assay_eval_t* c, const group_t* g) {
  const bool has_past = assay_eval_has(c, PAST_KEY);
  if (has_past != assay_eval_has(c, PAST_VALUE)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "only one of past_key and past_value is given; expected both or none");
  }
  if (assay_attr_i64(c->node, "sliding_window_cache", 0) != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "sliding_window_cache (caches of the window's size) is not evaluated");
  }
  if (!assay_attr_is(c->node, "k_quant_type", "NONE") ||
      !assay_attr_is(c->node, "v_quant_type", "NONE") ||
      (has_past && (c->in[PAST_KEY]->store != ASSAY_STORE_F64 ||
                    c->in[PAST_VALUE]->store != ASSAY_STORE_F64))) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "quantized caches (k_quant_type, v_quant_type) are not evaluated");
  }
  for (size_t i = PAST_KEY; has_past && i <= PAST_VALUE; i++) {
    const assay_tensor_t* t = c->in[i];
    if (t->rank == 4 && t->dims[0] == g->k.batch && t->dims[1] == g->k.heads &&
        t->dims[2] == c->in[PAST_KEY]->dims[2] && t->dims[3] == g->k.channels) {
      continue;
    }
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "past_key has shape %s, past_value %s; expected [%lld, %lld, length, "
                            "%lld]",
                            ASSAY_DIMS_TEXT(c->in[PAST_KEY]), ASSAY_DIMS_TEXT(c->in[PAST_VALUE]),
                            (long long)g->k.batch, (long long)g->k.heads, (long long)g->k.channels);
  }
  return NULL;
}

// ---- lengths and positions --------------------------------------------------------------------

static assay_status_t new_lengths(assay_owned_t* owned, int64_t n, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, &n, out));
  owned->t[owned->n++] = *out;
  return NULL;
}

// The keys of each batch element before and after this step. A first prompt (as long as the total)
// starts from none and may be padded after its end.
static assay_status_t read_lengths(const assay_eval_t* c, assay_owned_t* owned, group_t* g) {
  const assay_tensor_t *lens = c->in[SEQLENS], *total = c->in[TOTAL];
  const int64_t batch = g->q.batch, rows = g->q.rows;
  if (lens->size != batch || total->size != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "seqlens_k has shape %s, total_sequence_length %s; expected [%lld] and "
                            "one number",
                            ASSAY_DIMS_TEXT(lens), ASSAY_DIMS_TEXT(total), (long long)batch);
  }
  g->total = assay_i64(total)[0];
  g->past_capacity = assay_eval_has(c, PAST_KEY) ? c->in[PAST_KEY]->dims[2] : 0;
  g->capacity = g->total > g->past_capacity ? g->total : g->past_capacity;
  if (g->total < 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "total_sequence_length is %lld; expected 0 or more",
                            (long long)g->total);
  }
  const bool prompt = rows == g->total;
  assay_tensor_t *old = NULL, *ends = NULL;
  ASSAY_TRY(new_lengths(owned, batch, &old));
  ASSAY_TRY(new_lengths(owned, batch, &ends));
  for (int64_t b = 0; b < batch; b++) {
    const int64_t end = assay_i64(lens)[b] + 1;
    const int64_t before = prompt ? 0 : end - rows;
    if (end < 0 || end > g->total || before < 0 || before > g->past_capacity) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "seqlens_k[%lld] is %lld beside total_sequence_length %lld, %lld new "
                              "tokens and a past of %lld; expected the length so far less 1",
                              (long long)b, (long long)(end - 1), (long long)g->total,
                              (long long)rows, (long long)g->past_capacity);
    }
    assay_i64(old)[b] = before;
    assay_i64(ends)[b] = end;
  }
  g->old = assay_i64(old);
  g->ends = assay_i64(ends);
  return NULL;
}

// position_ids, or the places in the cache.
static assay_status_t read_positions(const assay_eval_t* c, assay_owned_t* owned, group_t* g) {
  const int64_t rows = g->q.rows;
  const assay_tensor_t* ids = assay_eval_has(c, POSITIONS) ? c->in[POSITIONS] : NULL;
  const bool each = ids && ids->rank == 2 && ids->dims[0] == g->q.batch && ids->dims[1] == rows;
  if (ids && !each && ids->size != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "position_ids has shape %s; expected [%lld, %lld]",
                            ASSAY_DIMS_TEXT(ids), (long long)g->q.batch, (long long)rows);
  }
  assay_tensor_t* t = NULL;
  ASSAY_TRY(new_lengths(owned, g->q.batch * rows, &t));
  for (int64_t i = 0; i < t->size; i++) {
    int64_t p = g->old[i / rows] + i % rows;
    if (ids) {
      p = assay_i64(ids)[each ? i : 0];
      if (!each) p = p < 0 || p > INT32_MAX ? -1 : p + i % rows;
    }
    assay_i64(t)[i] = p;
  }
  g->positions = assay_i64(t);
  return NULL;
}

// ---- norm and rotation of queries and keys ----------------------------------------------------

static assay_status_t check_vector(const assay_eval_t* c, size_t input, const char* name,
                                   int64_t n) {
  const assay_tensor_t* t = c->in[input];
  if (t->rank == 1 && t->dims[0] == n) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "%s has shape %s; expected [%lld]", name,
                          ASSAY_DIMS_TEXT(t), (long long)n);
}

static assay_status_t prepare(const assay_eval_t* c, assay_owned_t* owned, group_t* g) {
  const bool rotary = assay_attr_i64(c->node, "do_rotary", 0) != 0;
  const bool norm = assay_eval_has(c, Q_NORM);
  if (norm != assay_eval_has(c, K_NORM)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "only one of q_norm_weight and k_norm_weight is given; expected both "
                            "or none");
  }
  if (!rotary && !norm) return NULL;
  ASSAY_TRY(assay_operand_own(c, owned, NULL, &g->q));
  ASSAY_TRY(assay_operand_own(c, owned, NULL, &g->k));
  if (norm) {
    const double epsilon = assay_attr_f64(c->node, "qk_norm_epsilon", 1e-6);
    ASSAY_TRY(check_vector(c, Q_NORM, "q_norm_weight", g->q.channels));
    ASSAY_TRY(check_vector(c, K_NORM, "k_norm_weight", g->k.channels));
    assay_operand_rms(c, assay_f64(c->in[Q_NORM]), epsilon, &g->q);
    assay_operand_rms(c, assay_f64(c->in[K_NORM]), epsilon, &g->k);
  }
  if (!rotary) return NULL;
  if (!assay_eval_has(c, COSINES) || !assay_eval_has(c, SINES)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "do_rotary is set without cos_cache and sin_cache");
  }
  const bool interleaved = assay_attr_i64(c->node, "rotary_interleaved", 0) != 0;
  ASSAY_TRY(assay_rotary_check(c, c->in[COSINES], c->in[SINES], g->q.channels));
  ASSAY_TRY(read_positions(c, owned, g));
  ASSAY_TRY(
      assay_operand_rotate(c, c->in[COSINES], c->in[SINES], g->positions, interleaved, &g->q));
  return assay_operand_rotate(c, c->in[COSINES], c->in[SINES], g->positions, interleaved, &g->k);
}

// ---- the whole --------------------------------------------------------------------------------

// The caches with the new keys and values, as outputs or for this step only.
static assay_status_t append(assay_eval_t* c, assay_owned_t* owned, group_t* g) {
  assay_ms_operand_t* operands[2] = {&g->k, &g->v};
  for (size_t i = 0; i < 2; i++) {
    assay_ms_operand_t* x = operands[i];
    const int64_t dims[4] = {x->batch, x->heads, g->capacity, x->channels};
    const size_t o = PRESENT_KEY + i;
    assay_tensor_t* t = NULL;
    if (assay_eval_wants(c, o)) {
      const assay_type_t type = c->in[assay_eval_has(c, PAST_KEY) ? PAST_KEY : QUERY]->type;
      ASSAY_TRY(assay_eval_output(c, o, assay_eval_out_type(c, o, type), 4, dims, &t));
    } else {
      ASSAY_TRY(assay_owned_create(c, owned, 4, dims, &t));
    }
    const assay_cache_t cache = {
        .past = assay_eval_has(c, PAST_KEY) ? assay_f64(c->in[PAST_KEY + i]) : NULL,
        .past_capacity = g->past_capacity,
        .old = g->old,
        .present = assay_f64(t),
        .capacity = g->capacity};
    assay_cache_append(c, &cache, x);
  }
  return NULL;
}

// A smooth softmax has one more score in its sum: head_sink's, or 0.
static assay_status_t read_sink(const assay_eval_t* c, assay_owned_t* owned, assay_attention_t* a) {
  if (assay_eval_has(c, SINK)) {
    ASSAY_TRY(check_vector(c, SINK, "head_sink", a->q_heads));
    a->sink = assay_f64(c->in[SINK]);
  } else if (assay_attr_i64(c->node, "smooth_softmax", 0) == 1) {
    assay_tensor_t* t = NULL;
    ASSAY_TRY(assay_owned_create(c, owned, 1, &a->q_heads, &t));
    memset(assay_f64(t), 0, (size_t)t->size * sizeof(double));
    a->sink = assay_f64(t);
  }
  return NULL;
}

static assay_status_t read_masks(const assay_eval_t* c, assay_attention_t* a) {
  const int64_t causal = assay_attr_i64(c->node, "causal", 1);
  const int64_t window = assay_attr_i64(c->node, "local_window_size", -1);
  if ((causal != 0 && causal != 1) || window < -1 || (causal == 0 && window >= 0)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "causal is %lld, local_window_size %lld; expected 0 or 1, and -1 or a "
                            "window where it is causal",
                            (long long)causal, (long long)window);
  }
  a->right_window = causal ? 0 : -1;
  a->left_window = window > 0 ? window - 1 : -1;  // the window counts the query's own place
  return assay_score_bias(c, SCORE_BIAS, a, &a->masks[0]);
}

// Output 3: the scores before or after softmax; those of masked keys are 0.
static assay_status_t make_scores(assay_eval_t* c, assay_attention_t* a) {
  const int64_t mode = assay_attr_i64(c->node, "qk_output", 0);
  if (!assay_eval_wants(c, SCORES)) return NULL;
  if (mode != 1 && mode != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "output_qk is used and qk_output is %lld; expected 1 or 2",
                            (long long)mode);
  }
  const int64_t dims[4] = {a->batch, a->q_heads, a->q_len, a->kv_len};
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_eval_output(c, SCORES, assay_eval_out_type(c, SCORES, c->in[QUERY]->type), 4,
                              dims, &t));
  a->scores = assay_f64(t);
  a->scores_stage = mode == 1 ? ASSAY_SCORES_BIASED : ASSAY_SCORES_SOFTMAX;
  return NULL;
}

static assay_status_t attend(assay_eval_t* c, assay_owned_t* owned) {
  group_t g = {0};
  ASSAY_TRY(read_operands(c, &g));
  ASSAY_TRY(check_caches(c, &g));
  ASSAY_TRY(read_lengths(c, owned, &g));
  ASSAY_TRY(prepare(c, owned, &g));
  ASSAY_TRY(append(c, owned, &g));
  assay_attention_t a = {.batch = g.q.batch,
                         .q_heads = g.q.heads,
                         .kv_heads = g.k.heads,
                         .q_len = g.q.rows,
                         .kv_len = g.total,
                         .head_size = g.q.channels,
                         .v_head_size = g.v.channels,
                         .q = g.q.at,
                         .k = g.k.at,
                         .v = g.v.at,
                         .scale = assay_head_scale(c->node, g.q.channels),
                         .softcap = fmax(assay_attr_f64(c->node, "softcap", 0), 0),
                         .key_counts = g.ends,
                         .offsets = g.old};
  ASSAY_TRY(read_sink(c, owned, &a));
  ASSAY_TRY(read_masks(c, &a));
  const int64_t width = a.q_heads * a.head_size, dims[3] = {a.batch, a.q_len, width};
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, Y, assay_eval_out_type(c, Y, c->in[QUERY]->type), 3, dims, &y));
  a.y = (assay_heads_t){assay_f64(y), a.q_len * width, a.head_size, width};
  ASSAY_TRY(make_scores(c, &a));
  ASSAY_TRY(assay_attention_run(c, &a));
  if (c->running) return NULL;
  const int64_t scores = a.scores ? a.batch * a.q_heads * a.q_len * a.kv_len : 0;
  for (int64_t i = 0; i < scores; i++) {
    if (a.scores[i] == -INFINITY) a.scores[i] = 0;
  }
  return NULL;
}

// Source: com.microsoft GroupQueryAttention 1.
static assay_status_t group_eval(assay_eval_t* c) {
  assay_owned_t owned = {0};
  assay_status_t st = attend(c, &owned);
  assay_owned_release(&owned);
  return st;
}

static assay_status_t group_bound(assay_bound_t* b) { return assay_bound_running(b, group_eval); }

// ---- inference and cost -----------------------------------------------------------------------

static assay_status_t group_infer(assay_infer_t* c) {
  ASSAY_TRY(check_heads(c->node));
  ASSAY_TRY(assay_infer_want_rank(c, QUERY, 3, 3));
  for (size_t i = KEY; i <= PAST_VALUE; i++) {
    const int rank = i <= VALUE ? 3 : 4;
    if (assay_infer_has(c, i)) ASSAY_TRY(assay_infer_want_rank(c, i, rank, rank));
  }
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  const int64_t kv_heads = assay_attr_i64(c->node, "kv_num_heads", 0);
  const bool packed = !assay_infer_has(c, KEY);
  const assay_shape_t q = assay_infer_shape(c, QUERY);
  assay_shape_t y = q, present = {.known = q.known, .rank = 4};
  assay_shape_t scores = {.known = q.known, .rank = 4};
  if (q.known) {
    const assay_dim_t* all = assay_dim_const(c->dims, packed ? heads + 2 * kv_heads : heads);
    const assay_dim_t* size = assay_dim_floordiv(c->dims, q.dims[2], all);
    if (packed) y.dims[2] = assay_dim_mul_i(c->dims, size, heads);
    assay_content_t content;
    const assay_dim_t* total = NULL;
    if (assay_infer_content(c, TOTAL, &content) && content.n == 1) total = content.elems[0];
    const assay_shape_t past =
        assay_infer_has(c, PAST_KEY) ? assay_infer_shape(c, PAST_KEY) : (assay_shape_t){0};
    present.dims[0] = q.dims[0];
    present.dims[1] = assay_dim_const(c->dims, kv_heads);
    present.dims[2] = !assay_infer_has(c, PAST_KEY) ? total
                      : past.known                  ? assay_dim_max(c->dims, past.dims[2], total)
                                                    : NULL;
    present.dims[3] = size;
    scores.dims[0] = q.dims[0];
    scores.dims[1] = assay_dim_const(c->dims, heads);
    scores.dims[2] = q.dims[1];
    scores.dims[3] = total;
  }
  const assay_type_t type = assay_infer_elem(c, QUERY);
  const assay_type_t cache = assay_infer_has(c, PAST_KEY) ? assay_infer_elem(c, PAST_KEY) : type;
  ASSAY_TRY(assay_infer_set(c, Y, type, &y));
  ASSAY_TRY(assay_infer_set(c, PRESENT_KEY, cache, &present));
  ASSAY_TRY(assay_infer_set(c, PRESENT_VALUE, cache, &present));
  return assay_infer_set(c, SCORES, type, &scores);
}

static void group_cost(const assay_eval_t* c, assay_cost_t* out) {
  group_t g;
  assay_status_t st = read_operands(c, &g);
  if (st) {
    assay_status_free(st);
    return;
  }
  const assay_tensor_t* past = assay_eval_has(c, PAST_KEY) ? c->in[PAST_KEY] : NULL;
  const int64_t old = past && past->rank == 4 ? past->dims[2] : 0;
  out->flops = assay_attention_flops(g.q.batch, g.q.heads, g.q.rows, g.q.rows + old, g.q.channels,
                                     g.v.channels);
}

const assay_op_t assay_ops_ms_group[] = {
    {.domain = "com.microsoft",
     .name = "GroupQueryAttention",
     .since = 1,
     .flags = ASSAY_OP_CONTRACTS,
     .infer = group_infer,
     .eval = group_eval,
     .bound = group_bound,
     .cost = group_cost,
     .schema =
         "query:T, key?:T, value?:T, past_key?:C, past_value?:C, seqlens_k:M, "
         "total_sequence_length:M, cos_cache?:T, sin_cache?:T, position_ids?:int64, "
         "attention_bias?:T, head_sink?:T, k_scale?:S, v_scale?:S, q_norm_weight?:T, "
         "k_norm_weight?:T -> output:T, present_key?:C, present_value?:C, output_qk?:T "
         "| num_heads:i!, kv_num_heads:i!, scale:f=0, softcap:f=0, local_window_size:i=-1, "
         "do_rotary:i=0, rotary_interleaved:i=0, smooth_softmax:i=0, qk_output:i=0, "
         "k_quant_type:s=NONE, v_quant_type:s=NONE, kv_cache_bit_width:i=0, causal:i=1, "
         "qk_norm_epsilon:f=1e-6, sliding_window_cache:i=0 "
         "| T=float16 bfloat16 float; C=float float16 bfloat16 uint8 int8 float8e4m3fn; S=float; "
         "M=int32"},
    {0}};
