// Attention of com.microsoft over packed batches, [tokens, ...] without padding:
// PackedMultiHeadAttention and PagedAttention. Each sequence is attended on its own.
#include <math.h>
#include <string.h>

#include "ops/families.h"
#include "ops/microsoft/ms_heads.h"
#include "ops/running_bound.h"

// [0, t1, t1 + t2, ...]: one more than sequences; from 0 to all tokens.
static assay_status_t check_starts(const assay_eval_t* c, size_t input, int64_t tokens,
                                   int64_t* out_batch) {
  const assay_tensor_t* t = c->in[input];
  bool fits =
      t->rank == 1 && t->dims[0] > 0 && assay_i64(t)[0] == 0 && assay_i64(t)[t->size - 1] == tokens;
  for (int64_t i = 1; fits && i < t->size; i++) fits = assay_i64(t)[i] >= assay_i64(t)[i - 1];
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "cumulative_sequence_length has shape %s; expected [sequences + 1], "
                            "growing from 0 to %lld",
                            ASSAY_DIMS_TEXT(t), (long long)tokens);
  }
  *out_batch = t->size - 1;
  return NULL;
}

// Rows of [tokens, ...] as one batch element: head h starts at first + h * step of a row.
static assay_ms_operand_t packed_slice(const assay_tensor_t* t, int64_t first, int64_t heads,
                                       int64_t step, int64_t channels) {
  const int64_t width = assay_dims_product(t->dims, 1, t->rank);
  return (assay_ms_operand_t){
      1, heads, t->dims[0], channels, {assay_f64(t) + first, t->dims[0] * width, step, width}};
}

static void copy(const assay_eval_t* c, const double* from, double* to, int64_t n) {
  memcpy(to, from, (size_t)n * sizeof *to);
  if (c->running) assay_running_bound_copy(c, from, to, n);
}

static assay_heads_t from_row(assay_heads_t at, int64_t row) {
  at.data += row * at.row;
  return at;
}

// ---- PackedMultiHeadAttention -----------------------------------------------------------------

enum { P_QUERY, P_KEY, P_VALUE, P_BIAS, P_OFFSET, P_STARTS, P_SCORE_BIAS };

static assay_status_t packed_operands(const assay_eval_t* c, assay_ms_operand_t x[3]) {
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  ASSAY_TRY(assay_want_heads(c->node, "num_heads", heads, -1));
  const assay_tensor_t* q = c->in[P_QUERY];
  const assay_tensor_t* k = assay_eval_has(c, P_KEY) ? c->in[P_KEY] : NULL;
  const assay_tensor_t* v = assay_eval_has(c, P_VALUE) ? c->in[P_VALUE] : NULL;
  if (!k && !v && q->rank == 4 && q->dims[1] == heads && q->dims[2] == 3) {
    const int64_t n = q->dims[3];
    for (int i = 0; i < 3; i++) x[i] = packed_slice(q, i * n, heads, 3 * n, n);
    return NULL;
  }
  if (k && v && q->rank == 2 && k->rank == 2 && v->rank == 2 && q->dims[0] == k->dims[0] &&
      v->dims[0] == q->dims[0] && k->dims[1] == q->dims[1] && q->dims[1] % heads == 0 &&
      v->dims[1] % heads == 0) {
    const assay_tensor_t* t[3] = {q, k, v};
    for (int i = 0; i < 3; i++) {
      const int64_t n = t[i]->dims[1] / heads;
      x[i] = packed_slice(t[i], 0, heads, n, n);
    }
    return NULL;
  }
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "query has shape %s, key %s, value %s, num_heads is %lld; expected "
                          "[tokens, heads * size] each, or [tokens, heads, 3, size] alone",
                          ASSAY_DIMS_TEXT(q), k ? ASSAY_DIMS_TEXT(k) : "none",
                          v ? ASSAY_DIMS_TEXT(v) : "none", (long long)heads);
}

static assay_status_t packed_bias(const assay_eval_t* c, assay_owned_t* owned,
                                  assay_ms_operand_t x[3]) {
  if (!assay_eval_has(c, P_BIAS)) return NULL;
  const assay_tensor_t* t = c->in[P_BIAS];
  int64_t width = 0;
  for (int i = 0; i < 3; i++) width += x[i].heads * x[i].channels;
  if (t->rank != 1 || t->dims[0] != width) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "bias has shape %s; expected [%lld]",
                            ASSAY_DIMS_TEXT(t), (long long)width);
  }
  const double* bias = assay_f64(t);
  for (int i = 0; i < 3; i++) {
    ASSAY_TRY(assay_operand_own(c, owned, bias, &x[i]));
    bias += x[i].heads * x[i].channels;
  }
  return NULL;
}

// The bias [batch or 1, heads or 1, S, S] of sequence b, of n tokens: its upper left corner.
static assay_status_t corner_of_bias(const assay_eval_t* c, int64_t b, int64_t n,
                                     assay_tensor_t** out) {
  const assay_tensor_t* t = c->in[P_SCORE_BIAS];
  const int64_t heads = t->dims[1], dims[4] = {1, heads, n, n};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 4, dims, out));
  if (c->running) ASSAY_TRY(assay_running_bound_cover(c, *out));
  const int64_t first = t->dims[0] == 1 ? 0 : b * heads;
  for (int64_t i = 0; i < heads * n; i++) {
    const int64_t row = (first + i / n) * t->dims[2] + i % n;
    copy(c, assay_f64(t) + row * t->dims[3], assay_f64(*out) + i * n, n);
  }
  return NULL;
}

static assay_status_t check_score_bias(const assay_eval_t* c, int64_t batch, int64_t heads) {
  if (!assay_eval_has(c, P_SCORE_BIAS)) return NULL;
  const assay_tensor_t *t = c->in[P_SCORE_BIAS], *starts = c->in[P_STARTS];
  bool fits = t->rank == 4 && (t->dims[0] == 1 || t->dims[0] == batch) &&
              (t->dims[1] == 1 || t->dims[1] == heads);
  for (int64_t b = 0; fits && b < batch; b++) {
    const int64_t n = assay_i64(starts)[b + 1] - assay_i64(starts)[b];
    fits = n <= t->dims[2] && n <= t->dims[3];
  }
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "attention_bias has shape %s; expected [%lld or 1, %lld or 1, S, S] with "
                          "S as long as the longest sequence",
                          ASSAY_DIMS_TEXT(t), (long long)batch, (long long)heads);
}

static assay_status_t packed_attend(assay_eval_t* c, assay_owned_t* owned) {
  assay_ms_operand_t x[3];
  ASSAY_TRY(packed_operands(c, x));
  ASSAY_TRY(packed_bias(c, owned, x));
  const int64_t tokens = x[0].rows, heads = x[0].heads, n = x[2].channels;
  int64_t batch = 0;
  ASSAY_TRY(check_starts(c, P_STARTS, tokens, &batch));
  ASSAY_TRY(check_score_bias(c, batch, heads));
  const int64_t width = heads * n, dims[2] = {tokens, width};
  const int64_t* starts = assay_i64(c->in[P_STARTS]);
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, c->in[0]->type), 2, dims, &y));
  for (int64_t b = 0; b < batch; b++) {
    const int64_t row = starts[b], rows = starts[b + 1] - row;
    assay_attention_t a = {.batch = 1,
                           .q_heads = heads,
                           .kv_heads = heads,
                           .q_len = rows,
                           .kv_len = rows,
                           .head_size = x[0].channels,
                           .v_head_size = n,
                           .q = from_row(x[0].at, row),
                           .k = from_row(x[1].at, row),
                           .v = from_row(x[2].at, row),
                           .y = {assay_f64(y) + row * width, 0, n, width},
                           .scale = assay_head_scale(c->node, x[0].channels),
                           .left_window = -1,
                           .right_window = -1};
    assay_tensor_t* bias = NULL;
    assay_status_t st = NULL;
    if (assay_eval_has(c, P_SCORE_BIAS)) {
      st = corner_of_bias(c, b, rows, &bias);
      if (!st) st = assay_mask_init(c, bias, &a, false, &a.masks[0]);
    }
    if (!st) st = assay_attention_run(c, &a);
    assay_tensor_release(bias);
    if (st) return st;
  }
  return NULL;
}

// Source: com.microsoft PackedMultiHeadAttention 1. token_offset says where tokens stood before
// they were packed; nothing here depends on it.
static assay_status_t packed_eval(assay_eval_t* c) {
  assay_owned_t owned = {0};
  assay_status_t st = packed_attend(c, &owned);
  assay_owned_release(&owned);
  return st;
}

static assay_status_t packed_bound(assay_bound_t* b) { return assay_bound_running(b, packed_eval); }

static assay_status_t packed_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, P_QUERY, 2, 4));
  const assay_shape_t q = assay_infer_shape(c, P_QUERY);
  const bool has_value = assay_infer_has(c, P_VALUE);
  if (has_value) ASSAY_TRY(assay_infer_want_rank(c, P_VALUE, 2, 2));
  assay_shape_t y = {.known = q.known, .rank = 2};
  if (q.known) {
    const assay_shape_t v = has_value ? assay_infer_shape(c, P_VALUE) : (assay_shape_t){0};
    y.dims[0] = q.dims[0];
    if (v.known) y.dims[1] = v.dims[1];
    if (!has_value && q.rank == 4) y.dims[1] = assay_dim_mul(c->dims, q.dims[1], q.dims[3]);
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// As if all tokens were one sequence's over the number of sequences.
static void packed_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_ms_operand_t x[3];
  assay_status_t st = packed_operands(c, x);
  const int64_t batch = c->in[P_STARTS]->size - 1;
  if (!st && batch > 0) {
    out->flops =
        assay_attention_flops(1, x[0].heads, x[0].rows, x[0].rows, x[0].channels, x[2].channels) /
        (double)batch;
  }
  assay_status_free(st);
}

// ---- PagedAttention ---------------------------------------------------------------------------

enum {
  G_QUERY,
  G_KEY,
  G_VALUE,
  G_KEY_CACHE,
  G_VALUE_CACHE,
  G_STARTS,
  G_PAST,
  G_TABLE,
  G_COSINES,
  G_SINES,
  G_SLOTS,
  G_SINK,
  G_Q_NORM,
  G_K_NORM
};

typedef struct paged {
  assay_ms_operand_t x[3];  // Q, K, V: one batch element of all tokens
  int64_t batch, tokens, blocks, block;
  assay_tensor_t* caches[2];  // with the new tokens
} paged_t;

static assay_status_t paged_refused(const assay_eval_t* c) {
  if (assay_attr_is(c->node, "kv_cache_layout", "SEPARATE") &&
      assay_attr_is(c->node, "k_quant_type", "NONE") &&
      assay_attr_is(c->node, "v_quant_type", "NONE") &&
      assay_attr_i64(c->node, "rotary_offset", 0) == 0 &&
      assay_attr_i64(c->node, "v_head_size", 0) == 0 && assay_eval_has(c, G_VALUE_CACHE) &&
      c->in[G_KEY_CACHE]->store == ASSAY_STORE_F64 &&
      c->in[G_VALUE_CACHE]->store == ASSAY_STORE_F64) {
    return NULL;
  }
  return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                          "quantized caches, kv_cache_layout '%s', rotary_offset and v_head_size "
                          "are not evaluated: only separate caches of floats are",
                          assay_attr_str(c->node, "kv_cache_layout", "SEPARATE"));
}

static assay_status_t paged_operands(const assay_eval_t* c, paged_t* p) {
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  const int64_t kv_heads = assay_attr_i64(c->node, "kv_num_heads", 0);
  const assay_tensor_t *q = c->in[G_QUERY], *cache = c->in[G_KEY_CACHE];
  const assay_tensor_t* k = assay_eval_has(c, G_KEY) ? c->in[G_KEY] : NULL;
  const assay_tensor_t* v = assay_eval_has(c, G_VALUE) ? c->in[G_VALUE] : NULL;
  bool fits = heads > 0 && heads <= INT32_MAX && kv_heads > 0 && heads % kv_heads == 0 &&
              q->rank == 2 && !k == !v && cache->rank == 4 && c->in[G_VALUE_CACHE]->rank == 4;
  const int64_t all = fits ? (k ? heads : heads + 2 * kv_heads) : 1;
  fits = fits && q->dims[1] % all == 0;
  const int64_t n = fits ? q->dims[1] / all : 0;
  if (fits && k) {
    fits = k->rank == 2 && v->rank == 2 && k->dims[0] == q->dims[0] && v->dims[0] == q->dims[0] &&
           k->dims[1] == kv_heads * n && v->dims[1] == kv_heads * n;
  }
  fits = fits && cache->dims[1] > 0 && cache->dims[0] <= INT32_MAX && cache->dims[1] <= INT32_MAX &&
         cache->dims[2] == kv_heads && cache->dims[3] == n;
  for (int i = 0; fits && i < 4; i++) fits = c->in[G_VALUE_CACHE]->dims[i] == cache->dims[i];
  if (!fits) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "query has shape %s, key %s, value %s, key_cache %s, value_cache %s with %lld and %lld "
        "heads; expected [tokens, heads * size] each, or all packed in query, and [blocks, "
        "block_size, heads, size]",
        ASSAY_DIMS_TEXT(q), k ? ASSAY_DIMS_TEXT(k) : "none", v ? ASSAY_DIMS_TEXT(v) : "none",
        ASSAY_DIMS_TEXT(cache), ASSAY_DIMS_TEXT(c->in[G_VALUE_CACHE]), (long long)heads,
        (long long)kv_heads);
  }
  p->x[0] = packed_slice(q, 0, heads, n, n);
  p->x[1] = k ? packed_slice(k, 0, kv_heads, n, n) : packed_slice(q, heads * n, kv_heads, n, n);
  p->x[2] = v ? packed_slice(v, 0, kv_heads, n, n)
              : packed_slice(q, (heads + kv_heads) * n, kv_heads, n, n);
  p->tokens = q->dims[0];
  p->blocks = cache->dims[0];
  p->block = cache->dims[1];
  return NULL;
}

// Lengths and the table: every block that a sequence uses is one of the cache.
static assay_status_t check_table(const assay_eval_t* c, paged_t* p) {
  const assay_tensor_t *past = c->in[G_PAST], *table = c->in[G_TABLE];
  ASSAY_TRY(check_starts(c, G_STARTS, p->tokens, &p->batch));
  if (past->size != p->batch || table->rank != 2 || table->dims[0] != p->batch) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "past_seqlens has shape %s, block_table %s; expected [%lld] and [%lld, "
                            "blocks]",
                            ASSAY_DIMS_TEXT(past), ASSAY_DIMS_TEXT(table), (long long)p->batch,
                            (long long)p->batch);
  }
  const int64_t* starts = assay_i64(c->in[G_STARTS]);
  for (int64_t b = 0; b < p->batch; b++) {
    const int64_t old = assay_i64(past)[b], total = old + starts[b + 1] - starts[b];
    const int64_t used = (total + p->block - 1) / p->block;
    bool fits = old >= 0 && used <= table->dims[1];
    for (int64_t i = 0; fits && i < used; i++) {
      const int64_t at = assay_i64(table)[b * table->dims[1] + i];
      fits = at >= 0 && at < p->blocks;
    }
    if (fits) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "sequence %lld has %lld keys before this step and %lld after it; "
                            "block_table %s names no block of [0, %lld) for some of them",
                            (long long)b, (long long)old, (long long)total, ASSAY_DIMS_TEXT(table),
                            (long long)p->blocks);
  }
  return NULL;
}

// The slot of a cache where position `at` of sequence b is.
static int64_t slot_of(const assay_eval_t* c, const paged_t* p, int64_t b, int64_t at) {
  const assay_tensor_t* table = c->in[G_TABLE];
  return assay_i64(table)[b * table->dims[1] + at / p->block] * p->block + at % p->block;
}

static assay_status_t paged_prepare(const assay_eval_t* c, assay_owned_t* owned, paged_t* p) {
  const bool rotary = assay_attr_i64(c->node, "do_rotary", 0) != 0;
  const bool norm = assay_eval_has(c, G_Q_NORM);
  if (norm != assay_eval_has(c, G_K_NORM) ||
      (rotary && (!assay_eval_has(c, G_COSINES) || !assay_eval_has(c, G_SINES)))) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "q_norm_weight and k_norm_weight come together, and do_rotary with "
                            "cos_cache and sin_cache");
  }
  if (!rotary && !norm) return NULL;
  assay_tensor_t* positions = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, &p->tokens, &positions));
  owned->t[owned->n++] = positions;
  const int64_t* starts = assay_i64(c->in[G_STARTS]);
  for (int64_t b = 0; b < p->batch; b++) {
    for (int64_t t = starts[b]; t < starts[b + 1]; t++) {
      assay_i64(positions)[t] = assay_i64(c->in[G_PAST])[b] + t - starts[b];
    }
  }
  for (size_t i = 0; i < 2; i++) {
    assay_ms_operand_t* x = &p->x[i];
    ASSAY_TRY(assay_operand_own(c, owned, NULL, x));
    if (norm) {
      const assay_tensor_t* w = c->in[G_Q_NORM + i];
      if (w->size != x->channels) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                "a norm weight has shape %s; expected [%lld]", ASSAY_DIMS_TEXT(w),
                                (long long)x->channels);
      }
      assay_operand_rms(c, assay_f64(w), assay_attr_f64(c->node, "qk_norm_epsilon", 1e-6), x);
    }
    if (!rotary) continue;
    ASSAY_TRY(assay_rotary_check(c, c->in[G_COSINES], c->in[G_SINES], x->channels));
    ASSAY_TRY(assay_operand_rotate(c, c->in[G_COSINES], c->in[G_SINES], assay_i64(positions),
                                   assay_attr_i64(c->node, "rotary_interleaved", 0) != 0, x));
  }
  return NULL;
}

// The caches with the new keys and values at their slots; a slot of -1 is not written.
static assay_status_t write_caches(assay_eval_t* c, assay_owned_t* owned, paged_t* p) {
  const assay_tensor_t* slots = assay_eval_has(c, G_SLOTS) ? c->in[G_SLOTS] : NULL;
  if (slots && slots->size != p->tokens) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "slot_mapping has shape %s; expected [%lld]", ASSAY_DIMS_TEXT(slots),
                            (long long)p->tokens);
  }
  const int64_t* starts = assay_i64(c->in[G_STARTS]);
  for (size_t i = 0; i < 2; i++) {
    const assay_tensor_t* from = c->in[G_KEY_CACHE + i];
    if (assay_eval_wants(c, 1 + i)) {
      ASSAY_TRY(assay_eval_output(c, 1 + i, from->type, 4, from->dims, &p->caches[i]));
    } else {
      ASSAY_TRY(assay_owned_create(c, owned, 4, from->dims, &p->caches[i]));
    }
    double* to = assay_f64(p->caches[i]);
    copy(c, assay_f64(from), to, from->size);
    const assay_ms_operand_t* x = &p->x[1 + i];
    for (int64_t b = 0; b < p->batch; b++) {
      for (int64_t t = starts[b]; t < starts[b + 1]; t++) {
        const int64_t at = assay_i64(c->in[G_PAST])[b] + t - starts[b];
        const int64_t slot = slots ? assay_i64(slots)[t] : slot_of(c, p, b, at);
        if (slot < -1 || slot >= p->blocks * p->block) {
          return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                  "slot_mapping[%lld] is %lld; expected one of [-1, %lld)",
                                  (long long)t, (long long)slot, (long long)(p->blocks * p->block));
        }
        for (int64_t h = 0; slot >= 0 && h < x->heads; h++) {
          copy(c, x->at.data + h * x->at.head + t * x->at.row,
               to + (slot * x->heads + h) * x->channels, x->channels);
        }
      }
    }
  }
  return NULL;
}

// The first n rows of sequence b, gathered from a cache: [n, heads, size].
static assay_status_t gather_rows(const assay_eval_t* c, const paged_t* p, int64_t b, int64_t n,
                                  const assay_tensor_t* cache, assay_tensor_t** out) {
  const int64_t width = cache->dims[2] * cache->dims[3], dims[2] = {n, width};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, dims, out));
  if (c->running) ASSAY_TRY(assay_running_bound_cover(c, *out));
  for (int64_t i = 0; i < n; i++) {
    copy(c, assay_f64(cache) + slot_of(c, p, b, i) * width, assay_f64(*out) + i * width, width);
  }
  return NULL;
}

static assay_status_t paged_sequence(const assay_eval_t* c, const paged_t* p, int64_t b,
                                     assay_tensor_t* y) {
  const int64_t row = assay_i64(c->in[G_STARTS])[b];
  const int64_t rows = assay_i64(c->in[G_STARTS])[b + 1] - row;
  const int64_t old = assay_i64(c->in[G_PAST])[b], n = p->x[0].channels;
  const int64_t heads = p->x[0].heads, kv_heads = p->x[1].heads, width = heads * n;
  const int64_t window = assay_attr_i64(c->node, "local_window_size", -1);
  assay_tensor_t* kv[2] = {NULL, NULL};
  assay_status_t st = gather_rows(c, p, b, old + rows, p->caches[0], &kv[0]);
  if (!st) st = gather_rows(c, p, b, old + rows, p->caches[1], &kv[1]);
  if (!st) {
    const assay_attention_t a = {
        .batch = 1,
        .q_heads = heads,
        .kv_heads = kv_heads,
        .q_len = rows,
        .kv_len = old + rows,
        .head_size = n,
        .v_head_size = n,
        .q = from_row(p->x[0].at, row),
        .k = {assay_f64(kv[0]), 0, n, kv_heads * n},
        .v = {assay_f64(kv[1]), 0, n, kv_heads * n},
        .y = {assay_f64(y) + row * width, 0, n, width},
        .scale = assay_head_scale(c->node, n),
        .softcap = fmax(assay_attr_f64(c->node, "softcap", 0), 0),
        .offset = old,
        .left_window = window > 0 ? window - 1 : -1,
        .right_window = assay_attr_i64(c->node, "is_causal", 1) != 0 ? 0 : -1,
        .sink = assay_eval_has(c, G_SINK) ? assay_f64(c->in[G_SINK]) : NULL};
    st = assay_attention_run(c, &a);
  }
  for (int i = 0; i < 2; i++) assay_tensor_release(kv[i]);
  return st;
}

static assay_status_t paged_attend(assay_eval_t* c, assay_owned_t* owned) {
  paged_t p = {0};
  ASSAY_TRY(paged_refused(c));
  ASSAY_TRY(paged_operands(c, &p));
  ASSAY_TRY(check_table(c, &p));
  ASSAY_TRY(paged_prepare(c, owned, &p));
  ASSAY_TRY(write_caches(c, owned, &p));
  if (assay_eval_has(c, G_SINK) && c->in[G_SINK]->size != p.x[0].heads) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "head_sink has shape %s; expected [%lld]",
                            ASSAY_DIMS_TEXT(c->in[G_SINK]), (long long)p.x[0].heads);
  }
  const int64_t dims[2] = {p.tokens, p.x[0].heads * p.x[0].channels};
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, c->in[0]->type), 2, dims, &y));
  for (int64_t b = 0; b < p.batch; b++) ASSAY_TRY(paged_sequence(c, &p, b, y));
  return NULL;
}

// Source: com.microsoft PagedAttention 1. The window counts the query's own place, as in
// GroupQueryAttention.
static assay_status_t paged_eval(assay_eval_t* c) {
  assay_owned_t owned = {0};
  assay_status_t st = paged_attend(c, &owned);
  assay_owned_release(&owned);
  return st;
}

static assay_status_t paged_bound(assay_bound_t* b) { return assay_bound_running(b, paged_eval); }

static assay_status_t paged_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, G_QUERY, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, G_KEY_CACHE, 4, 4));
  assay_shape_t y = assay_infer_shape(c, G_QUERY);
  if (y.known && !assay_infer_has(c, G_KEY)) {
    const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
    const int64_t kv_heads = assay_attr_i64(c->node, "kv_num_heads", 0);
    const bool sane = heads > 0 && kv_heads > 0 && heads <= INT32_MAX && kv_heads <= INT32_MAX;
    const assay_dim_t* all = sane ? assay_dim_const(c->dims, heads + 2 * kv_heads) : NULL;
    y.dims[1] = assay_dim_mul_i(c->dims, assay_dim_floordiv(c->dims, y.dims[1], all), heads);
  }
  if (y.known && !assay_attr_is(c->node, "kv_cache_layout", "SEPARATE")) y.dims[1] = NULL;
  const assay_shape_t k = assay_infer_shape(c, G_KEY_CACHE);
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y));
  ASSAY_TRY(assay_infer_set(c, 1, assay_infer_elem(c, G_KEY_CACHE), &k));
  return assay_infer_set(c, 2, assay_infer_elem(c, G_KEY_CACHE), &k);
}

// As if every sequence had all blocks of its row in the table.
static void paged_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t *q = c->in[G_QUERY], *k = c->in[G_KEY_CACHE], *t = c->in[G_TABLE];
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  if (q->rank != 2 || k->rank != 4 || t->rank != 2 || heads <= 0) return;
  out->flops = assay_attention_flops(1, heads, q->dims[0], t->dims[1], k->dims[3], k->dims[3]) *
               (double)k->dims[1];
}

const assay_op_t assay_ops_ms_packed[] = {
    {.domain = "com.microsoft",
     .name = "PackedMultiHeadAttention",
     .since = 1,
     .flags = ASSAY_OP_CONTRACTS,
     .infer = packed_infer,
     .eval = packed_eval,
     .bound = packed_bound,
     .cost = packed_cost,
     .schema = "query:T, key?:T, value?:T, bias?:T, token_offset:M, cumulative_sequence_length:M, "
               "attention_bias?:T -> output:T | num_heads:i!, mask_filter_value:f=-10000, "
               "scale:f=0 | T=float float16; M=int32"},
    {.domain = "com.microsoft",
     .name = "PagedAttention",
     .since = 1,
     .flags = ASSAY_OP_CONTRACTS,
     .infer = paged_infer,
     .eval = paged_eval,
     .bound = paged_bound,
     .cost = paged_cost,
     .schema = "query:T, key?:T, value?:T, key_cache:C, value_cache?:C, "
               "cumulative_sequence_length:M, past_seqlens:M, block_table:M, cos_cache?:T, "
               "sin_cache?:T, slot_mapping?:M, head_sink?:T, q_norm_weight?:T, k_norm_weight?:T, "
               "k_scale?:S, v_scale?:S, attention_metadata?:M -> output:T, key_cache_out?:C, "
               "value_cache_out?:C | num_heads:i!, kv_num_heads:i!, scale:f=0, softcap:f=0, "
               "local_window_size:i=-1, do_rotary:i=0, rotary_interleaved:i=0, rotary_offset:i=0, "
               "is_causal:i=1, v_head_size:i=0, qk_norm_epsilon:f=1e-6, "
               "kv_cache_layout:s=SEPARATE, k_quant_type:s=NONE, v_quant_type:s=NONE, "
               "k_cache_dtype:s, v_cache_dtype:s "
               "| T=float16 bfloat16; C=float16 bfloat16 int8 float8e4m3fn uint8; S=float; "
               "M=int32"},
    {0}};
