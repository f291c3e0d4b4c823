// The table of tactics.
#include "backends/cuda/tactic.h"

#define CUDA_TACTIC(name) extern const assay_tactic_t cuda_tactic_##name;
#include "backends/cuda/tactics.inc"
#undef CUDA_TACTIC

#define CUDA_TACTIC(name) &cuda_tactic_##name,
const assay_tactic_t* const cuda_tactics[CUDA_N_TACTICS + 1] = {
#include "backends/cuda/tactics.inc"
    NULL};
#undef CUDA_TACTIC
