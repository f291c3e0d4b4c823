// Arguments of recurrent.cu.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_RECURRENT_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_RECURRENT_ARGS_H_

#include "types.h"

// Addresses may be 0 where it says so. What has no type is float32.
typedef struct recurrent_args {
  address_t from_x;                // [length and batch, directions, gates, hidden]
  address_t r;                     // of type T, [directions, gates, hidden, hidden]
  address_t bias;                  // [directions, 2, gates, hidden]; 0: none
  address_t peepholes;             // [directions, 3, hidden]; 0: none
  address_t lengths;               // int32_t [batch]; 0: all full
  address_t initial_h, initial_c;  // as y_h; 0: zeros
  // [directions, batch, hidden]: the state before a step and after it; cells; of a GRU that resets
  // its state before it multiplies it, the update gate and that state.
  address_t before, after, cells, update, restated;
  address_t y;         // of type Y, [length, directions, batch, hidden]; 0: not wanted
  address_t y_h, y_c;  // of types Y_H, Y_C, [directions, batch, hidden]; 0: not wanted
  int64_t length, batch, hidden, step;
  int32_t directions;
  int32_t reverse;      // of a single direction
  int32_t batch_first;  // y [batch, length, directions, hidden], y_h [batch, directions, hidden]
  float clip;           // of gates' sums; infinite: none
  float parameters[2][3][2];  // of the functions of each direction
} recurrent_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_RECURRENT_ARGS_H_
