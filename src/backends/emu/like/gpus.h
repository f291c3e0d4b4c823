// GPUs of which it is known how their tensor cores sum.
//
// A step takes some exact products and the accumulator, aligns all of them to the largest exponent
// among them (of a product: the sum of its factors' exponents), cuts what is more than `fraction`
// bits behind the point, adds, and cuts the sum to a float32: nothing is ever rounded up.
// Sources: M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor
// cores", PeerJ Computer Science 7, 2021; F. A. Khattak, M. Mikaitis, "Accurate Models of NVIDIA
// Tensor Cores", arXiv 2512.07004, 2025, and its models (MATLAB-tensor-core), which were compared
// with each of these GPUs but ours. Compute capability 9.0 was measured here, on an H200: all
// finite ones of 49,152 outputs a format, and chains of 48 steps, have exactly these bits.
#ifndef ASSAY_BACKENDS_EMU_LIKE_GPUS_H_
#define ASSAY_BACKENDS_EMU_LIKE_GPUS_H_

#include <stdbool.h>

typedef struct emu_gpu {
  const char* name;   // "emu:sm_90"
  const char* chips;  // for people
  int terms;          // of a step of 16-bit floats; of tf32 half as many
  int fraction;       // bits behind the point
  bool measured;      // here; false: as the papers say
  bool exp2;          // its powers of 2 are those of exp2.h, and kernels use them
} emu_gpu_t;

extern const emu_gpu_t emu_gpus[];  // ends with name NULL
// The names, as assay_backend_t.likes has them.
extern const char* const emu_gpu_names[];

#endif  // ASSAY_BACKENDS_EMU_LIKE_GPUS_H_
