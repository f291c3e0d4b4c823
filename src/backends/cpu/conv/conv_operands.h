// What a layer that begins with Conv reads, for the tactics that take such layers.
#ifndef ASSAY_BACKENDS_CPU_CONV_CONV_OPERANDS_H_
#define ASSAY_BACKENDS_CPU_CONV_CONV_OPERANDS_H_

#include "backends/cpu/tactic.h"
#include "ops/conv/conv.h"

typedef struct cpu_conv_operands {
  const assay_operand_t *x, *weights, *bias;  // bias NULL: none
} cpu_conv_operands_t;

// An operand's type and shape, as the functions of ops/ want them.
assay_tensor_t cpu_operand_head(const assay_operand_t* o);

// Whether a layer begins with Conv, of one to three axes, of kernel floats of one type, its weights
// and its bias constant, something in its input and in its output.
bool cpu_conv_operands(const assay_sized_layer_t* l, cpu_conv_operands_t* o);
// What the convolution is; *ok false: the bias has not an element for each channel. Errors: sizes
// that do not fit together.
assay_status_t cpu_conv_read(const assay_sized_layer_t* l, const cpu_conv_operands_t* o,
                             assay_conv_t* s, bool* ok) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CPU_CONV_CONV_OPERANDS_H_
