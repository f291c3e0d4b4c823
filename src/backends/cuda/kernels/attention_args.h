// Arguments of attention (backends/layers/attention.h).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ARGS_H_

#include "divisor_args.h"

enum { ATTENTION_ARGS_RANK = 8, ATTENTION_ARGS_MASKS = 3 };

// Queries, keys, values or the result: distances in elements.
typedef struct attention_side {
  address_t at;
  int64_t start, batch[ATTENTION_ARGS_RANK], row, column;
} attention_side_t;

// Distances along the batch, from a group of queries to the next and from a query to the next in
// its group; or, where masks are walked, along dimensions that all rows of scores are counted
// through.
typedef struct attention_args_mask {
  address_t at;
  int64_t strides[ATTENTION_ARGS_RANK], group, row, dims[ATTENTION_ARGS_RANK];
  int32_t rank;
  float fill;
} attention_args_mask_t;

typedef struct attention_args {
  attention_side_t q, k, v, y;
  divisor_t batch[ATTENTION_ARGS_RANK], tiles, heads, period;
  int32_t q_len, kv_len, size, v_size;
  float scale, cap;
  float exponent, growth;  // exp2_weights.h; with FOLDED, of products without their scale
  int32_t left, right, zero_unseen;
  // Where queries see keys before them, those that see most, of all heads, are the first blocks, so
  // that the last ones to begin are short; not where keys and values would come from far each time.
  int32_t last_first;
  attention_args_mask_t masks[ATTENTION_ARGS_MASKS];
} attention_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ARGS_H_
