// What contexts of an engine share on a GPU: `own` of the layers that tactics see.
#ifndef ASSAY_BACKENDS_CUDA_OWN_H_
#define ASSAY_BACKENDS_CUDA_OWN_H_

#include "backends/cuda/function.h"
#include "exec/segment/reformat.h"

typedef struct cuda_own {
  assay_device_t* device;
  cuda_properties_t properties;
  cuda_functions_t* functions;
  struct cublaslt* cublaslt;  // a library's products (cublaslt.h)
  struct cuda_host* host;     // for layers that the host runs (host/host.h)
} cuda_own_t;

// Moves (exec/device/device_run.h) by a kernel.
bool cuda_move_is_possible(const assay_reformat_t* m);
assay_status_t cuda_move(const cuda_own_t* own, const assay_reformat_t* m, assay_queue_t* q,
                         assay_device_ptr_t from, assay_device_ptr_t to) ASSAY_MUST_USE;

// Blocks of so many threads for n elements, one a thread, as many as fill the GPU some times over:
// kernels go on by BLOCKS * THREADS.
int64_t cuda_blocks_for(const cuda_own_t* own, int64_t n, int threads);

#endif  // ASSAY_BACKENDS_CUDA_OWN_H_
