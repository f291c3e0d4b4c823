// Arguments of quantized attention (attention/attention_int8.cu).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_INT8_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_INT8_ARGS_H_

#include "divisor_args.h"
#include "quantizer_args.h"

enum { ATTENTION_INT8_RANK = 4 };

// Queries, keys, values or the result, bytes: distances from one head, row, column to the next.
// Rows of keys are keys.
typedef struct attention_int8_side {
  address_t at;
  int64_t batch[ATTENTION_INT8_RANK], row, column;
} attention_int8_side_t;

// Bytes, and between which they lie.
typedef struct attention_int8_quantizer {
  quantizer_args_t numbers;
  int32_t min, max;
} attention_int8_quantizer_t;

typedef struct attention_int8_args {
  attention_int8_side_t q, k, v, y;
  attention_int8_side_t mask;  // with MASKED: floats, which are added to scores
  divisor_t batch[ATTENTION_INT8_RANK], tiles;
  int32_t q_len, kv_len, size, v_size;
  int32_t zero_q, zero_k, zero_w, zero_v;  // w: weights
  // A score is its sum times factor, plus shift, times scalar, within limits.
  float factor, shift, scalar, low, high;
  float y_factor, y_shift;
  attention_int8_quantizer_t of_w, of_y;
} attention_int8_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_INT8_ARGS_H_
