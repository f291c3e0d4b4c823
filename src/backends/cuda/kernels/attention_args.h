// Arguments of attention (backends/layers/attention.h).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ARGS_H_

#include "types.h"

enum { ATTENTION_ARGS_RANK = 8, ATTENTION_ARGS_MASKS = 3 };

// Queries, keys, values or the result: distances in elements.
typedef struct attention_side {
  address_t at;
  int64_t start, batch[ATTENTION_ARGS_RANK], row, column;
} attention_side_t;

// kind 0: floats that are added; 1: bytes, where 0 the score is `fill`; 2: where not 0.
typedef struct attention_args_mask {
  address_t at;
  int64_t key, dims[ATTENTION_ARGS_RANK], strides[ATTENTION_ARGS_RANK];
  int32_t rank, kind;
  float fill;
} attention_args_mask_t;

typedef struct attention_args {
  attention_side_t q, k, v, y;
  int64_t batch[ATTENTION_ARGS_RANK];
  int32_t n_batch, q_len, kv_len, size, v_size;
  float scale, cap;
  int32_t left, right, period, zero_unseen;
  attention_args_mask_t masks[ATTENTION_ARGS_MASKS];
} attention_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ARGS_H_
