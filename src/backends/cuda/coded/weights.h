// Weights of 4 and 8 bits with scales in a device's memory (kernels/coded_args.h).
#ifndef ASSAY_BACKENDS_CUDA_CODED_WEIGHTS_H_
#define ASSAY_BACKENDS_CUDA_CODED_WEIGHTS_H_

#include "backends/cuda/kernels/coded_args.h"
#include "backends/cuda/tactic.h"
#include "ops/quant/coded_matrix.h"

// Sets where codes, scales, zeros and the bias lie. *ok false: float32 does not hold a zero point.
assay_status_t cuda_coded_bring(const assay_sized_layer_t* l, const assay_coded_matrix_t* m,
                                coded_args_t* args, bool* ok) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_CODED_WEIGHTS_H_
