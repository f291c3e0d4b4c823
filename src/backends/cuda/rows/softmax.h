// In which order kernels of Softmax add a row up, for others that are to have their bits.
#ifndef ASSAY_BACKENDS_CUDA_ROWS_SOFTMAX_H_
#define ASSAY_BACKENDS_CUDA_ROWS_SOFTMAX_H_

#include "exec/kernel.h"

// `span` threads have a row of `terms` that lie side by side, `vector` of these at once, and keep
// so many vectors each (kernels/rows/rows.h).
typedef struct cuda_softmax_rows {
  int64_t terms;
  int span, keep, vector;
} cuda_softmax_rows_t;

// False: the kernel is no such one.
bool cuda_softmax_rows_of(const assay_kernel_t* k, cuda_softmax_rows_t* out);

#endif  // ASSAY_BACKENDS_CUDA_ROWS_SOFTMAX_H_
