// Kernels of layers of pointwise nodes (kernels/chain.cu), alone and with a quantizer behind them.
#ifndef ASSAY_BACKENDS_CUDA_POINTWISE_CHAIN_H_
#define ASSAY_BACKENDS_CUDA_POINTWISE_CHAIN_H_

#include "backends/cuda/pointwise/program.h"

typedef struct cuda_chain {
  assay_kernel_t base;
  const cuda_own_t* own;
  cuda_program_t* program;
  cuda_kernel_t function;
  int64_t size;
} cuda_chain_t;

// *ok false: the layer is none. Closed with cuda_chain_close in any case. Errors: NO_MEMORY.
assay_status_t cuda_chain_open(const assay_sized_layer_t* l, cuda_chain_t* k,
                               bool* ok) ASSAY_MUST_USE;
void cuda_chain_close(cuda_chain_t* k);
assay_status_t cuda_chain_load(cuda_chain_t* k, const char* options) ASSAY_MUST_USE;
// quantizer: what the options QUANTIZED are for; NULL: they are not there.
assay_status_t cuda_chain_launch(const cuda_chain_t* k, assay_queue_t* q,
                                 const assay_device_ptr_t* in, assay_device_ptr_t out,
                                 const quantizer_args_t* quantizer) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_POINTWISE_CHAIN_H_
