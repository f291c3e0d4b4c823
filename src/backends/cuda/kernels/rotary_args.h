// Arguments of rotary.cu.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ROTARY_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ROTARY_ARGS_H_

#include "types.h"

// Tokens [batch, length] with heads of `size` channels each, of which the first 2 half are rotated.
typedef struct rotary_args {
  address_t x, y, cosines, sines;  // caches: [positions, half]
  address_t ids;                   // positions, with POSITIONS
  int64_t batch, heads, length, size, half;
  int64_t batch_step, head_step, row_step;  // in elements of x and y
  int64_t positions;
  int64_t n;  // threads' work: half pairs, and what is not rotated, of each head of each token
} rotary_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ROTARY_ARGS_H_
