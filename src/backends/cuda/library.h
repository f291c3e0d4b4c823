// Libraries of NVIDIA's, which are opened when they are needed.
#ifndef ASSAY_BACKENDS_CUDA_LIBRARY_H_
#define ASSAY_BACKENDS_CUDA_LIBRARY_H_

#include "base/str.h"

// The first of some names (the last one NULL) that is found: in the folders that ASSAY_CUDA_PATH
// names ("A:B"), in this process, where the loader looks, and in the toolkit's folder (CUDA_PATH or
// CUDA_HOME). NULL: none is; `looked` says where it was looked for. It is never closed.
void* cuda_library_open(const char* const* names, assay_str_t* looked);

// The address of a library's function; NULL: it has none of that name.
void* cuda_library_symbol(void* library, const char* name);

#endif  // ASSAY_BACKENDS_CUDA_LIBRARY_H_
