// Kernels by their sources: compiled or found compiled, loaded once for all contexts of an engine.
#ifndef ASSAY_BACKENDS_CUDA_FUNCTION_H_
#define ASSAY_BACKENDS_CUDA_FUNCTION_H_

#include "backends/cuda/launch.h"
#include "exec/weights.h"

typedef struct cuda_functions cuda_functions_t;

// store: where plans keep compiled code (exec/device/code.h). Both outlive it.
assay_status_t cuda_functions_create(assay_device_t* d, assay_weights_t* store,
                                     cuda_functions_t** out) ASSAY_MUST_USE;
void cuda_functions_destroy(cuda_functions_t* f);  // NULL is allowed

typedef struct cuda_source {
  const char* file;     // "rows.cu"
  const char* kernel;   // one of its kernels
  const char* options;  // "-DT=f16"; "": none
  const char* program;  // what it includes as "program.h"; NULL: nothing
  int shared_bytes;     // of dynamic shared memory that a launch may ask for
  bool at_once;         // it is launched before a rehearsal ends, such as for a constant
} cuda_source_t;

// While an engine's choice is rehearsed, kernels are asked for that nobody runs: their sources are
// noted, and compiled side by side at its end, for whoever asks for them then. A compiler takes
// half a second for one, and of each layer several compete. Errors of the end: as of
// cuda_function_get
void cuda_functions_rehearse(cuda_functions_t* f);
assay_status_t cuda_functions_rehearsed(cuda_functions_t* f) ASSAY_MUST_USE;

// The kernel of a source. Threads: any; one compiles at a time. Errors: DEVICE: there is no
// compiler and it was not compiled before, or the GPU does not take it; INTERNAL: the source is
// wrong
assay_status_t cuda_function_get(cuda_functions_t* f, const cuda_source_t* source,
                                 cuda_kernel_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_FUNCTION_H_
