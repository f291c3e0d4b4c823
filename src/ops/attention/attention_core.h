// Scaled dot-product attention, for every operator that has it inside.
#ifndef ASSAY_OPS_ATTENTION_ATTENTION_CORE_H_
#define ASSAY_OPS_ATTENTION_ATTENTION_CORE_H_

#include "ops/op.h"

// Where the element (batch, head, position, channel) of an operand lies: channels are neighbours.
typedef struct assay_heads {
  double* data;
  int64_t batch, head, row;  // strides
} assay_heads_t;

// What is added to the scores: a float tensor, or a bool one (false is -infinity), broadcast over
// (batch, head, query, key) by strides. Keys from `length` on count as -infinity.
typedef struct assay_mask {
  const assay_tensor_t* tensor;  // NULL: none
  int64_t strides[4];
  int64_t length;
} assay_mask_t;

typedef enum assay_scores {
  ASSAY_SCORES_RAW = 0,  // after Q K^T
  ASSAY_SCORES_CAPPED,   // after the soft cap
  ASSAY_SCORES_BIASED,   // after masks
  ASSAY_SCORES_SOFTMAX,  // after softmax
} assay_scores_t;

typedef struct assay_attention {
  int64_t batch, q_heads, kv_heads;  // q_heads is a multiple of kv_heads
  int64_t q_len, kv_len, head_size, v_head_size;
  assay_heads_t q, k, v, y;
  double scale;
  double softcap;  // 0: none
  assay_mask_t masks[2];
  const int64_t* key_counts;  // batch of them: keys from there on are masked; NULL: none
  // Query i stands at position offset + i; with `offsets` (batch of them) instead of the one
  // offset.
  int64_t offset;
  const int64_t* offsets;
  int64_t left_window, right_window;  // keys further away are masked; -1: unbounded
  assay_format_t softmax_format;      // scores and probabilities are rounded to it; NONE: not
  const double* sink;  // q_heads of them: one more score in each row's sum; NULL: none
  double* scores;      // [batch, q_heads, q_len, kv_len] at this stage; NULL: not wanted
  assay_scores_t scores_stage;
} assay_attention_t;

// y = softmax(cap(scale * q k^T) + masks) v. A query with every key masked gives a row of zeros.
// Emulated: q and k are each multiplied by the root of the scale and rounded, as ONNX's Attention
// says; every step after the products is rounded (assay_acc).
assay_status_t assay_attention_run(const assay_eval_t* c,
                                   const assay_attention_t* a) ASSAY_MUST_USE;

// The limits of y and of the scores that are wanted, where c->running is set, in place of
// themselves (attention_bound.c).
assay_status_t assay_attention_limits(const assay_eval_t* c,
                                      const assay_attention_t* a) ASSAY_MUST_USE;
// What is added to the scores of query i; true if some key is not masked.
bool assay_attention_bias(const assay_eval_t* c, const assay_attention_t* a, int64_t b, int64_t h,
                          int64_t i, double* bias);

// A mask that broadcasts to [batch, heads, q_len, kv_len] from the right; its last dim may be
// shorter than kv_len if `may_be_short`. An error otherwise.
assay_status_t assay_mask_init(const assay_eval_t* c, const assay_tensor_t* t,
                               const assay_attention_t* a, bool may_be_short,
                               assay_mask_t* out) ASSAY_MUST_USE;

// Rotates the first 2 * half channels of a token by angles given as cos[half] and sin[half]: pairs
// are (i, i + half), or neighbours if interleaved. y may be x.
void assay_rotate(const assay_eval_t* c, int64_t half, bool interleaved, const double* cos,
                  const double* sin, const double* x, double* y);

#endif  // ASSAY_OPS_ATTENTION_ATTENTION_CORE_H_
