// Layers as tactics see them: with the sizes that they have in a run.
#ifndef ASSAY_EXEC_CHOICE_DESCRIBE_H_
#define ASSAY_EXEC_CHOICE_DESCRIBE_H_

#include "exec/kernel.h"
#include "exec/segment/sizes.h"

// The type that holds a value's elements where it is stored; UNDEFINED: no tensor, or in a
// format that no type has.
assay_type_t assay_stored_type(const assay_layers_t* layers, const assay_value_t* v);

// Fills in rank, dims, size, layout and constant of a value that a layer reads; false: not known.
typedef bool assay_describe_value_t(void* user, const assay_value_t* v, assay_operand_t* out);

// Layer i; false: not for tactics (formats that no kernel has, sizes that are not known).
bool assay_describe_layer(const assay_layers_t* layers, size_t i, const assay_sizes_t* sizes,
                          assay_describe_value_t* describe_value, void* user,
                          assay_sized_layer_t* out);

#endif  // ASSAY_EXEC_CHOICE_DESCRIBE_H_
