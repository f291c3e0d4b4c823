// Compiled kernels on disk, for other processes: the folder that ASSAY_KERNEL_CACHE names has a
// file for each. Without that variable nothing is kept.
#ifndef ASSAY_BACKENDS_CUDA_COMPILED_H_
#define ASSAY_BACKENDS_CUDA_COMPILED_H_

#include <stddef.h>

#include "base/status.h"

// *out stays NULL where the folder has no code of that key, or damaged one; freed with assay_free.
// The key names all that the code depends on, the compiler's version too. Errors: NO_MEMORY
assay_status_t cuda_compiled_read(const char* key, void** out, size_t* out_bytes) ASSAY_MUST_USE;

// Keeps the code of a key; the folder is made. Errors: NO_MEMORY; others: it
// cannot be written
assay_status_t cuda_compiled_write(const char* key, const void* code, size_t bytes) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_COMPILED_H_
