// Scratch memory of kernels: what a run is given begins anywhere, what kernels use at a cache line.
#ifndef ASSAY_BACKENDS_CPU_SCRATCH_H_
#define ASSAY_BACKENDS_CPU_SCRATCH_H_

#include <stdint.h>

enum { CPU_SCRATCH_ALIGNMENT = 64 };  // bytes: kernels ask for so many more than they use

// The first cache line's begin in it.
static inline void* cpu_scratch(void* scratch) {
  const uintptr_t line = CPU_SCRATCH_ALIGNMENT;
  return (void*)(((uintptr_t)scratch + line - 1) / line * line);
}

#endif  // ASSAY_BACKENDS_CPU_SCRATCH_H_
