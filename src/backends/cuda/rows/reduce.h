// Reductions of floats (kernels/rows/reduce.cu), with what may be behind them.
#ifndef ASSAY_BACKENDS_CUDA_ROWS_REDUCE_H_
#define ASSAY_BACKENDS_CUDA_ROWS_REDUCE_H_

#include "backends/cuda/kernels/quantizer_args.h"
#include "backends/cuda/tactic.h"

// A quantizer behind results (int8/quantizer.h): its numbers, and the kernel's options.
typedef struct cuda_reduce_quantizer {
  quantizer_args_t args;
  const char* options;
  bool hides;  // it alone reads the floats, which are not stored
} cuda_reduce_quantizer_t;

// A kernel of a layer that reduces floats, and of the quantizer behind it, whose bytes are its
// second output; quantizer NULL: there is none. *out stays NULL where the layer is none.
assay_status_t cuda_reduce_make(const assay_sized_layer_t* l,
                                const cuda_reduce_quantizer_t* quantizer,
                                assay_kernel_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_ROWS_REDUCE_H_
