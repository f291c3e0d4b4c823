// Normalizations of rows that lie one after the other, for kernels that make them by the way
// (kernels/rows/norm_rows.h).
#ifndef ASSAY_BACKENDS_CUDA_ROWS_NORM_H_
#define ASSAY_BACKENDS_CUDA_ROWS_NORM_H_

#include "backends/cuda/kernels/norm_args.h"
#include "backends/cuda/tactic.h"
#include "base/str.h"

typedef struct cuda_norm {
  int x, scale, bias;  // inputs of the layer; bias -1: there is none
  int64_t rows, terms;
  bool over;  // the output may be written over the input
  assay_storage_t in[ASSAY_KERNEL_OPERANDS], out;
  norm_args_t args;  // but for addresses of operands
  // As kernels/rows/rows.cu is compiled for the layer.
  bool centered;
  int span, keep, vector;
} cuda_norm_t;

// *ok false: the layer is none, or has other outputs besides, or rows too long for a warp. Errors:
// NO_MEMORY, DEVICE.
assay_status_t cuda_norm_read(const assay_sized_layer_t* l, cuda_norm_t* out,
                              bool* ok) ASSAY_MUST_USE;
// The options of kernels/rows/norm_rows.h.
void cuda_norm_print(const assay_sized_layer_t* l, const cuda_norm_t* n, assay_str_t* out);

#endif  // ASSAY_BACKENDS_CUDA_ROWS_NORM_H_
