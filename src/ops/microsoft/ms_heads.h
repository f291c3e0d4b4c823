// What com.microsoft's attention operators share: operands in their layouts, caches of keys and
// values, key padding masks.
#ifndef ASSAY_OPS_MICROSOFT_MS_HEADS_H_
#define ASSAY_OPS_MICROSOFT_MS_HEADS_H_

#include "ops/attention/attention_core.h"

// Tensors that an evaluation makes for itself.
typedef struct assay_owned {
  int n;
  assay_tensor_t* t[16];
} assay_owned_t;

// A tensor of doubles, not set, that lives until assay_owned_release; with limits where c->running
// is set.
assay_status_t assay_owned_create(const assay_eval_t* c, assay_owned_t* owned, int rank,
                                  const int64_t* dims, assay_tensor_t** out) ASSAY_MUST_USE;
void assay_owned_release(assay_owned_t* owned);

// An operand as [batch, heads, rows, channels], by strides.
typedef struct assay_ms_operand {
  int64_t batch, heads, rows, channels;
  assay_heads_t at;
} assay_ms_operand_t;

// Part of a tensor [batch, rows, ...]: in each row, head h starts at first + h * step.
assay_ms_operand_t assay_operand_slice(const assay_tensor_t* t, int64_t first, int64_t heads,
                                       int64_t step, int64_t channels);
// A tensor [batch, heads, rows, channels].
assay_ms_operand_t assay_operand_whole(const assay_tensor_t* t);
// Makes the operand a contiguous copy that may be changed, with bias[heads * channels] added where
// it is not NULL.
assay_status_t assay_operand_own(const assay_eval_t* c, assay_owned_t* owned, const double* bias,
                                 assay_ms_operand_t* x) ASSAY_MUST_USE;

// Checks the caches of a rotary embedding, [positions, n] of cosines and sines, 2 n <= head_size.
assay_status_t assay_rotary_check(const assay_eval_t* c, const assay_tensor_t* cosines,
                                  const assay_tensor_t* sines, int64_t head_size) ASSAY_MUST_USE;
// Rotates an operand that assay_operand_own gave: row r of batch element b stands at
// positions[b * rows + r].
assay_status_t assay_operand_rotate(const assay_eval_t* c, const assay_tensor_t* cosines,
                                    const assay_tensor_t* sines, const int64_t* positions,
                                    bool interleaved, assay_ms_operand_t* x) ASSAY_MUST_USE;
// Normalizes each row of such an operand by its root mean square, times weight[channels].
void assay_operand_rms(const assay_eval_t* c, const double* weight, double epsilon,
                       assay_ms_operand_t* x);

// A cache [batch, heads, capacity, channels] of which the first old[b] rows are in use.
typedef struct assay_cache {
  const double* past;  // NULL: none
  int64_t past_capacity;
  const int64_t* old;  // batch of them
  bool keep_rest;      // rows after those in use are the past's; otherwise 0
  double* present;
  int64_t capacity;  // of present; at least old[b] + rows
} assay_cache_t;

// Copies the past and x after it into present; x becomes the present, with `capacity` rows.
void assay_cache_append(const assay_eval_t* c, const assay_cache_t* cache, assay_ms_operand_t* x);

// The int32 mask `input` in one of com.microsoft's forms, as numbers to add to the scores:
//   [batch]             keys from there on are masked
//   [3 * batch + 2]     the same: the first `batch` of them
//   [2 * batch]         ends, then starts: keys before those are masked, too
//   [batch, keys]       0 is masked; all keys, or those that are not from the cache
//   [batch, q_len, keys], [batch, 1, max, max]
// Masked scores get `filter` added. a->offset is the length of the past.
assay_status_t assay_padding_mask(const assay_eval_t* c, assay_owned_t* owned, size_t input,
                                  const assay_attention_t* a, double filter,
                                  assay_mask_t* out) ASSAY_MUST_USE;

// A float bias that is added to the scores, [batch or 1, heads or 1, q_len, keys].
assay_status_t assay_score_bias(const assay_eval_t* c, size_t input, const assay_attention_t* a,
                                assay_mask_t* out) ASSAY_MUST_USE;

// The attribute `scale`; 0 or not set: 1 / sqrt(head_size).
double assay_head_scale(const assay_node_t* n, int64_t head_size);

// Two products and ten flops a score.
double assay_attention_flops(int64_t batch, int64_t heads, int64_t q_len, int64_t kv_len,
                             int64_t head_size, int64_t v_head_size);

// Fails unless `heads`, an attribute, is 1 or more and divides `channels`, if that is known.
assay_status_t assay_want_heads(const assay_node_t* n, const char* attr, int64_t heads,
                                int64_t channels) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_MICROSOFT_MS_HEADS_H_
