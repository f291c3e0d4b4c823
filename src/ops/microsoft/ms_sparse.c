// SparseAttention of com.microsoft: causal attention to those blocks of keys that a layout names.
#include <string.h>

#include "ops/families.h"
#include "ops/microsoft/ms_heads.h"
#include "ops/running_bound.h"

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, ROWS, COLS, TOTAL, KEY_TOTALS, COSINES, SINES };

typedef struct sparse {
  assay_ms_operand_t q, k, v;
  int64_t total, capacity, block;
  assay_tensor_t *old, *ends, *positions;  // [batch], [batch], [batch, rows]
} sparse_t;

static assay_status_t check_heads(const assay_node_t* n, int64_t* heads, int64_t* kv_heads) {
  *heads = assay_attr_i64(n, "num_heads", 0);
  *kv_heads = assay_attr_i64(n, "kv_num_heads", 0);
  const int64_t block = assay_attr_i64(n, "sparse_block_size", 0);
  if (*kv_heads > 0 && *heads > 0 && *heads % *kv_heads == 0 && *heads <= INT32_MAX && block > 0) {
    return NULL;
  }
  return ASSAY_NODE_ERROR(
      n, ASSAY_INVALID_ARGUMENT,
      "num_heads is %lld, kv_num_heads %lld, sparse_block_size %lld; expected a "
      "positive multiple and a positive size",
      (long long)*heads, (long long)*kv_heads, (long long)block);
}

static assay_status_t read_operands(const assay_eval_t* c, sparse_t* s) {
  int64_t heads, kv_heads;
  ASSAY_TRY(check_heads(c->node, &heads, &kv_heads));
  s->block = assay_attr_i64(c->node, "sparse_block_size", 0);
  const assay_tensor_t *q = c->in[QUERY], *past = c->in[PAST_KEY];
  const assay_tensor_t* k = assay_eval_has(c, KEY) ? c->in[KEY] : NULL;
  const assay_tensor_t* v = assay_eval_has(c, VALUE) ? c->in[VALUE] : NULL;
  const int64_t all = k ? heads : heads + 2 * kv_heads;
  bool fits = q->rank == 3 && q->dims[2] % all == 0 && !k == !v;
  const int64_t n = fits ? q->dims[2] / all : 0;
  for (int i = 0; fits && k && i < 3; i++) {
    const int64_t want = i < 2 ? q->dims[i] : n * kv_heads;
    fits = k->rank == 3 && v->rank == 3 && k->dims[i] == want && v->dims[i] == want;
  }
  fits = fits && past->rank == 4 && c->in[PAST_VALUE]->rank == 4 && past->dims[0] == q->dims[0] &&
         past->dims[1] == kv_heads && past->dims[3] == n;
  for (int i = 0; fits && i < 4; i++) fits = c->in[PAST_VALUE]->dims[i] == past->dims[i];
  if (!fits) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "query has shape %s, key %s, value %s, past_key %s, past_value %s with %lld and %lld "
        "heads; "
        "expected [batch, length, heads * size] each, or all packed in query, and [batch, heads, "
        "max, size]",
        ASSAY_DIMS_TEXT(q), k ? ASSAY_DIMS_TEXT(k) : "none", v ? ASSAY_DIMS_TEXT(v) : "none",
        ASSAY_DIMS_TEXT(past), ASSAY_DIMS_TEXT(c->in[PAST_VALUE]), (long long)heads,
        (long long)kv_heads);
  }
  s->q = assay_operand_slice(q, 0, heads, n, n);
  s->k = k ? assay_operand_slice(k, 0, kv_heads, n, n)
           : assay_operand_slice(q, heads * n, kv_heads, n, n);
  s->v = v ? assay_operand_slice(v, 0, kv_heads, n, n)
           : assay_operand_slice(q, (heads + kv_heads) * n, kv_heads, n, n);
  s->capacity = past->dims[2];
  return NULL;
}

static assay_status_t keep_lengths(assay_owned_t* owned, int64_t n, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, &n, out));
  owned->t[owned->n++] = *out;
  return NULL;
}

// Keys before and after this step, and the tokens' positions. A prompt starts from none.
static assay_status_t read_lengths(const assay_eval_t* c, assay_owned_t* owned, sparse_t* s) {
  const assay_tensor_t *totals = c->in[KEY_TOTALS], *total = c->in[TOTAL];
  const int64_t batch = s->q.batch, rows = s->q.rows;
  s->total = total->size == 1 ? assay_i64(total)[0] : -1;
  if (totals->size != batch || s->total < 0 || s->total > s->capacity || rows > s->total) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "total_sequence_length is %lld, key_total_sequence_lengths has shape "
                            "%s; expected one of [%lld, %lld], and [%lld]",
                            (long long)s->total, ASSAY_DIMS_TEXT(totals), (long long)rows,
                            (long long)s->capacity, (long long)batch);
  }
  ASSAY_TRY(keep_lengths(owned, batch, &s->old));
  ASSAY_TRY(keep_lengths(owned, batch, &s->ends));
  ASSAY_TRY(keep_lengths(owned, batch * rows, &s->positions));
  for (int64_t b = 0; b < batch; b++) {
    const int64_t end = assay_i64(totals)[b], old = rows == s->total ? 0 : end - rows;
    if (end < 0 || end > s->total || old < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "key_total_sequence_lengths[%lld] is %lld; expected one of [%lld, "
                              "%lld]",
                              (long long)b, (long long)end, (long long)rows, (long long)s->total);
    }
    assay_i64(s->old)[b] = old;
    assay_i64(s->ends)[b] = end;
    for (int64_t i = 0; i < rows; i++) assay_i64(s->positions)[b * rows + i] = old + i;
  }
  return NULL;
}

// mask[batch, heads, rows, total]: 1 where the layout of the head has the key's block in the row of
// the query's block. Layouts are used in turn.
static assay_status_t make_mask(const assay_eval_t* c, assay_owned_t* owned, const sparse_t* s,
                                assay_tensor_t** out) {
  const assay_tensor_t *rows = c->in[ROWS], *cols = c->in[COLS];
  const int64_t dims[4] = {s->q.batch, s->q.heads, s->q.rows, s->total};
  if (rows->rank != 2 || cols->rank != 2 || rows->dims[0] != cols->dims[0] || rows->dims[0] < 1 ||
      rows->dims[1] < 1 || (rows->dims[1] - 1) < (s->total + s->block - 1) / s->block ||
      s->q.heads % rows->dims[0] != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "block_row_indices has shape %s, block_col_indices %s; expected "
                            "[layouts, blocks + 1] and [layouts, n] for %lld keys in blocks of "
                            "%lld, and layouts that divide the %lld heads",
                            ASSAY_DIMS_TEXT(rows), ASSAY_DIMS_TEXT(cols), (long long)s->total,
                            (long long)s->block, (long long)s->q.heads);
  }
  assay_tensor_t* m = NULL;
  ASSAY_TRY(assay_tensor_create_zero(ASSAY_TYPE_BOOL, 4, dims, &m));
  owned->t[owned->n++] = m;
  int64_t* to = assay_i64(m);
  const int64_t n = m->size > 0 ? m->size / s->total : 0;
  for (int64_t i = 0; i < n; i++, to += s->total) {
    const int64_t b = i / (s->q.heads * s->q.rows), layout = i / s->q.rows % rows->dims[0];
    const int64_t block = (assay_i64(s->old)[b] + i % s->q.rows) / s->block;
    const int64_t* ends = assay_i64(rows) + layout * rows->dims[1] + block;
    if (ends[0] < 0 || ends[1] > cols->dims[1]) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "block_row_indices has the row [%lld, %lld) of %lld columns",
                              (long long)ends[0], (long long)ends[1], (long long)cols->dims[1]);
    }
    for (int64_t j = ends[0]; j < ends[1]; j++) {
      const int64_t col = assay_i64(cols)[layout * cols->dims[1] + j];
      if (col < 0 || col > s->total / s->block) continue;
      const int64_t end = (col + 1) * s->block;
      for (int64_t t = col * s->block; t < s->total && t < end; t++) to[t] = 1;
    }
  }
  *out = m;
  return NULL;
}

static assay_status_t rotate(const assay_eval_t* c, assay_owned_t* owned, sparse_t* s) {
  if (assay_attr_i64(c->node, "do_rotary", 0) == 0) return NULL;
  if (!assay_eval_has(c, COSINES) || !assay_eval_has(c, SINES)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "do_rotary is set without cos_cache and sin_cache");
  }
  const bool interleaved = assay_attr_i64(c->node, "rotary_interleaved", 0) != 0;
  ASSAY_TRY(assay_rotary_check(c, c->in[COSINES], c->in[SINES], s->q.channels));
  assay_ms_operand_t* operands[2] = {&s->q, &s->k};
  for (int i = 0; i < 2; i++) {
    ASSAY_TRY(assay_operand_own(c, owned, NULL, operands[i]));
    ASSAY_TRY(assay_operand_rotate(c, c->in[COSINES], c->in[SINES], assay_i64(s->positions),
                                   interleaved, operands[i]));
  }
  return NULL;
}

// The caches, which are those of the past with the new rows.
static assay_status_t append(assay_eval_t* c, assay_owned_t* owned, sparse_t* s) {
  assay_ms_operand_t* operands[2] = {&s->k, &s->v};
  for (size_t i = 0; i < 2; i++) {
    const assay_tensor_t* past = c->in[PAST_KEY + i];
    assay_tensor_t* t = NULL;
    if (assay_eval_wants(c, 1 + i)) {
      ASSAY_TRY(assay_eval_output(c, 1 + i, past->type, 4, past->dims, &t));
    } else {
      ASSAY_TRY(assay_owned_create(c, owned, 4, past->dims, &t));
    }
    const assay_cache_t cache = {.past = assay_f64(past),
                                 .past_capacity = s->capacity,
                                 .old = assay_i64(s->old),
                                 .keep_rest = true,
                                 .present = assay_f64(t),
                                 .capacity = s->capacity};
    assay_cache_append(c, &cache, operands[i]);
  }
  return NULL;
}

static assay_status_t attend(assay_eval_t* c, assay_owned_t* owned) {
  sparse_t s = {0};
  assay_tensor_t *mask = NULL, *y = NULL;
  ASSAY_TRY(read_operands(c, &s));
  ASSAY_TRY(read_lengths(c, owned, &s));
  ASSAY_TRY(make_mask(c, owned, &s, &mask));
  ASSAY_TRY(rotate(c, owned, &s));
  ASSAY_TRY(append(c, owned, &s));
  assay_attention_t a = {.batch = s.q.batch,
                         .q_heads = s.q.heads,
                         .kv_heads = s.k.heads,
                         .q_len = s.q.rows,
                         .kv_len = s.total,
                         .head_size = s.q.channels,
                         .v_head_size = s.v.channels,
                         .q = s.q.at,
                         .k = s.k.at,
                         .v = s.v.at,
                         .scale = assay_head_scale(c->node, s.q.channels),
                         .key_counts = assay_i64(s.ends),
                         .offsets = assay_i64(s.old),
                         .left_window = -1,
                         .right_window = 0};
  ASSAY_TRY(assay_mask_init(c, mask, &a, false, &a.masks[0]));
  const int64_t width = a.q_heads * a.head_size, dims[3] = {a.batch, a.q_len, width};
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, c->in[QUERY]->type), 3, dims, &y));
  a.y = (assay_heads_t){assay_f64(y), a.q_len * width, a.head_size, width};
  return assay_attention_run(c, &a);
}

// Source: com.microsoft SparseAttention 1.
static assay_status_t sparse_eval(assay_eval_t* c) {
  assay_owned_t owned = {0};
  assay_status_t st = attend(c, &owned);
  assay_owned_release(&owned);
  return st;
}

static assay_status_t sparse_bound(assay_bound_t* b) { return assay_bound_running(b, sparse_eval); }

static assay_status_t sparse_infer(assay_infer_t* c) {
  int64_t heads, kv_heads;
  ASSAY_TRY(check_heads(c->node, &heads, &kv_heads));
  ASSAY_TRY(assay_infer_want_rank(c, QUERY, 3, 3));
  ASSAY_TRY(assay_infer_want_rank(c, PAST_KEY, 4, 4));
  ASSAY_TRY(assay_infer_want_rank(c, PAST_VALUE, 4, 4));
  assay_shape_t y = assay_infer_shape(c, QUERY);
  if (y.known && !assay_infer_has(c, KEY)) {
    const assay_dim_t* all = assay_dim_const(c->dims, heads + 2 * kv_heads);
    y.dims[2] = assay_dim_mul_i(c->dims, assay_dim_floordiv(c->dims, y.dims[2], all), heads);
  }
  const assay_shape_t k = assay_infer_shape(c, PAST_KEY), v = assay_infer_shape(c, PAST_VALUE);
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y));
  ASSAY_TRY(assay_infer_set(c, 1, ASSAY_TYPE_UNDEFINED, &k));
  return assay_infer_set(c, 2, ASSAY_TYPE_UNDEFINED, &v);
}

// As if every block were used.
static void sparse_cost(const assay_eval_t* c, assay_cost_t* out) {
  sparse_t s = {0};
  assay_status_t st = read_operands(c, &s);
  if (!st) {
    out->flops = assay_attention_flops(s.q.batch, s.q.heads, s.q.rows, s.capacity, s.q.channels,
                                       s.v.channels);
  }
  assay_status_free(st);
}

const assay_op_t assay_ops_ms_sparse[] = {
    {.domain = "com.microsoft",
     .name = "SparseAttention",
     .since = 1,
     .flags = ASSAY_OP_CONTRACTS,
     .infer = sparse_infer,
     .eval = sparse_eval,
     .bound = sparse_bound,
     .cost = sparse_cost,
     .schema = "query:T, key?:T, value?:T, past_key:T, past_value:T, block_row_indices:M, "
               "block_col_indices:M, total_sequence_length:M, key_total_sequence_lengths:M, "
               "cos_cache?:T, sin_cache?:T -> output:T, present_key:T, present_value:T "
               "| num_heads:i!, kv_num_heads:i!, scale:f=0, sparse_block_size:i!, do_rotary:i=0, "
               "rotary_interleaved:i=0 | T=float float16 bfloat16; M=int32"},
    {0}};
