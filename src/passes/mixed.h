// A model in mixed precision: the same graph with 16-bit values where the caller wants them, and
// explicit Casts.
#ifndef ASSAY_PASSES_MIXED_H_
#define ASSAY_PASSES_MIXED_H_

#include "ir/ir.h"

// Makes a copy of a prepared model in which each node with format_of[node->id] FP16 or BF16 reads
// and makes values of that type wherever its operator's schema allows the type; all other nodes
// stay as they are. A Cast to float32 that has such a format rounds, and becomes one to that type.
// Graph inputs and outputs keep their types; a Cast stands wherever a value changes its type, one
// for each value and type, so that values between two nodes of one format are never converted.
// Initializers are rounded once.
//   format_of  by node id, as many as model->n_node_ids
// Errors: UNSUPPORTED if the operator set is too old for the type.
assay_status_t assay_mixed_create(const assay_model_t* model, const assay_format_t* format_of,
                                  assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_PASSES_MIXED_H_
