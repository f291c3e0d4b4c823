// Layers of the emulated engine that are computed on integers (ops/quant/int8.h).
#ifndef ASSAY_BACKENDS_EMU_INT8_H_
#define ASSAY_BACKENDS_EMU_INT8_H_

#include "eval/evaluator.h"
#include "exec/backend.h"

// Makes the output of such a layer. `sums` runs single nodes in float64, in which the sums are
// exact; values are taken from `values`.
assay_status_t emu_int8_run(const assay_layer_t* layer, assay_evaluator_t* sums,
                            const assay_evaluator_t* values, assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_EMU_INT8_H_
