// The sources of kernels, which the build puts into the program (scripts/embed_kernels.py).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_H_

#include <stddef.h>

typedef struct cuda_kernel_file {
  const char* name;  // "move.cu", "prelude.h"
  const char* text;  // ends with a zero
  size_t bytes;      // without it
} cuda_kernel_file_t;

// File i; NULL: after the last.
const cuda_kernel_file_t* cuda_kernel_file_at(size_t i);
const cuda_kernel_file_t* cuda_kernel_file_find(const char* name);  // NULL: there is none
// Of all files, names and texts: 32 hexadecimal digits.
const char* cuda_kernel_files_digest(void);

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_H_
