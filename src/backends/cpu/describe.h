// Layers as tactics see them: with the sizes that they have in a run.
#ifndef ASSAY_BACKENDS_CPU_DESCRIBE_H_
#define ASSAY_BACKENDS_CPU_DESCRIBE_H_

#include "backends/cpu/sizes.h"
#include "backends/cpu/tactic.h"

// The type that holds a value's elements where it is stored; UNDEFINED: no tensor, or in no type of
// a CPU's.
assay_type_t cpu_stored_type(const assay_layers_t* layers, const assay_value_t* v);

// Fills in rank, dims, size, layout and constant of a value that a layer reads; false: not known.
typedef bool cpu_look_t(void* user, const assay_value_t* v, cpu_operand_t* out);

// Layer i; false: not for tactics (formats that no kernel has, sizes that are not known).
bool cpu_describe(const assay_layers_t* layers, size_t i, const cpu_sizes_t* sizes,
                  cpu_look_t* look, void* user, cpu_layer_t* out);

#endif  // ASSAY_BACKENDS_CPU_DESCRIBE_H_
