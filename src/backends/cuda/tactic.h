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

static inline const cuda_own_t* cuda_own_of(const assay_sized_layer_t* l) { return l->own; }

#endif  // ASSAY_BACKENDS_CUDA_TACTIC_H_
