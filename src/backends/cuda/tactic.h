// Tactics of GPUs: exec/kernel.h says what a tactic and a kernel are.
#ifndef ASSAY_BACKENDS_CUDA_TACTIC_H_
#define ASSAY_BACKENDS_CUDA_TACTIC_H_

#include "backends/cuda/own.h"
#include "backends/cuda/types.h"
#include "exec/kernel.h"

enum {
  CUDA_N_TACTICS = 0
#define CUDA_TACTIC(name) +1
#include "backends/cuda/tactics.inc"
#undef CUDA_TACTIC
};
extern const assay_tactic_t* const cuda_tactics[CUDA_N_TACTICS + 1];  // and NULL

// How sums of products of tf32 parts round (ops/matmul/tf32_products.h). Parts lose what lies below
// tf32's least number.
#define CUDA_PARTS_ROUNDING                                                      \
  {                                                                              \
    .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .fma = true, \
    .by_definition = true, .flushes = true, .function_ulps = 4,                  \
    .algorithm = ASSAY_ALGORITHM_TF32_3                                          \
  }

static inline const cuda_own_t* cuda_own_of(const assay_sized_layer_t* l) { return l->own; }

#endif  // ASSAY_BACKENDS_CUDA_TACTIC_H_
