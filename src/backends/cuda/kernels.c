// The sources of kernels.
#include "backends/cuda/kernels.h"

#include <string.h>

#include "backends/kernels.inc"

enum { N_FILES = sizeof kernel_files / sizeof *kernel_files };

const cuda_kernel_file_t* cuda_kernel_file_at(size_t i) {
  return i < N_FILES ? &kernel_files[i] : NULL;
}

const cuda_kernel_file_t* cuda_kernel_file_find(const char* name) {
  for (size_t i = 0; i < N_FILES; i++)
    if (strcmp(kernel_files[i].name, name) == 0) return &kernel_files[i];
  return NULL;
}

const char* cuda_kernel_files_digest(void) { return kernel_files_digest; }
