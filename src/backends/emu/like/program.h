// Pointwise nodes of a layer, element by element, with the functions of backends/vmath: the bits
// that kernels of GPUs give.
#ifndef ASSAY_BACKENDS_EMU_LIKE_PROGRAM_H_
#define ASSAY_BACKENDS_EMU_LIKE_PROGRAM_H_

#include "backends/emu/like/operands.h"
#include "backends/layers/pointwise.h"

// Runs code over all elements in the order of the output's memory. result: what stands before the
// nodes has made, one an element; NULL: there is nothing. y: not yet narrowed to the output's type.
assay_status_t emu_program_run(emu_operands_t* o, const pointwise_code_t* c, const float* result,
                               float* y) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_EMU_LIKE_PROGRAM_H_
