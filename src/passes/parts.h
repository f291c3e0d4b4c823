// Nodes that take parts of a tensor: Slice and Split.
#ifndef ASSAY_PASSES_PARTS_H_
#define ASSAY_PASSES_PARTS_H_

#include "ir/ir.h"

// A Slice, forwards, or a Split, of floats and by constants: backends can read the parts where they
// lie (backends/layers/slice.h).
bool assay_takes_parts(const assay_node_t* n);

#endif  // ASSAY_PASSES_PARTS_H_
