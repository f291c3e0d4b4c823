// Kernels of softmax and normalizations (kernels/rows/rows.cu), before they are compiled.
#ifndef ASSAY_BACKENDS_CUDA_ROWS_ROWS_H_
#define ASSAY_BACKENDS_CUDA_ROWS_ROWS_H_

#include "backends/cuda/rows/geometry.h"

typedef struct cuda_rows_kernel {
  assay_kernel_t base;
  cuda_kernel_t function;
  cuda_rows_t rows;
  rows_args_t args;
  // Operands: of the layer's inputs, and of its outputs after the first.
  int x, skip, skip_bias, scale, bias, mean, inverse, sum;
  bool along_last, centered;  // a normalization of the last axes, with one row of parameters; that
                              // takes the mean off
  const char* kernel;
  assay_str_t options;  // until it is compiled
} cuda_rows_kernel_t;

// *ok false: the layer is none. Closed with cuda_rows_kernel_close in any case. Errors: NO_MEMORY,
// DEVICE.
assay_status_t cuda_rows_kernel_open(const assay_sized_layer_t* l, cuda_rows_kernel_t* k,
                                     bool* ok) ASSAY_MUST_USE;
void cuda_rows_kernel_close(cuda_rows_kernel_t* k);
// With its options, to which others may have been added.
assay_status_t cuda_rows_kernel_compile(const assay_sized_layer_t* l,
                                        cuda_rows_kernel_t* k) ASSAY_MUST_USE;
// The arguments for a run.
void cuda_rows_kernel_fill(const cuda_rows_kernel_t* k, const assay_device_ptr_t* in,
                           const assay_device_ptr_t* out, rows_args_t* args);

#endif  // ASSAY_BACKENDS_CUDA_ROWS_ROWS_H_
