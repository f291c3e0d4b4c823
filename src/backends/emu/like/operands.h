// What a layer reads, as float32 numbers in the order of a layout.
#ifndef ASSAY_BACKENDS_EMU_LIKE_OPERANDS_H_
#define ASSAY_BACKENDS_EMU_LIKE_OPERANDS_H_

#include "exec/kernel.h"

typedef struct emu_operands {
  const assay_sized_layer_t* l;
  assay_tensor_t* tensors[ASSAY_KERNEL_OPERANDS];  // borrowed: the layer's inputs
  float* floats[ASSAY_KERNEL_OPERANDS][2];         // by layout; NULL: nobody asked
} emu_operands_t;

void emu_operands_deinit(emu_operands_t* o);
// Input i of the layer, rounded as it enters it; borrowed. Errors: NO_MEMORY.
assay_status_t emu_operand_get(emu_operands_t* o, int i, assay_layout_t layout,
                               const float** out) ASSAY_MUST_USE;
// Elements of a tensor of these dimensions from one layout into another.
void emu_relayout(int rank, const int64_t* dims, assay_layout_t from, const float* x, float* y);

#endif  // ASSAY_BACKENDS_EMU_LIKE_OPERANDS_H_
