// Single layers as the emulated engine computes them, from and to memory of the host.
#ifndef ASSAY_BACKENDS_CUDA_HOST_EVALUATE_H_
#define ASSAY_BACKENDS_CUDA_HOST_EVALUATE_H_

#include "exec/kernel.h"

// An engine for single layers of a plan, which take turns.
typedef struct cuda_evaluator cuda_evaluator_t;

// The layers outlive it.
assay_status_t cuda_evaluator_create(const assay_layers_t* layers,
                                     cuda_evaluator_t** out) ASSAY_MUST_USE;
void cuda_evaluator_destroy(cuda_evaluator_t* e);  // NULL is allowed

// Runs the layer: in and out as its operands are declared, row-major; in NULL: what is known of the
// operand before the run. Threads: any.
assay_status_t cuda_evaluate(cuda_evaluator_t* e, const assay_sized_layer_t* l,
                             const void* const* in, void* const* out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_HOST_EVALUATE_H_
