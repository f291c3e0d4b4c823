// Sizes that depend on data, and bounds for them.
#ifndef ASSAY_EDIT_UNBOUNDED_H_
#define ASSAY_EDIT_UNBOUNDED_H_

#include "ir/ir.h"

// The values of the main graph that set sizes which nothing bounds: what Range, Pad, Resize, Tile
// and Expand read where their output has a size that no input of the model has. Values are of
// `prepared`, in the order of the nodes that read them; the list lives in its arena.
assay_status_t assay_unbounded_find(assay_model_t* prepared, assay_value_t* const** out,
                                    size_t* out_n) ASSAY_MUST_USE;
// Puts a Min with that bound after what makes the value. elem: its type.
// Errors: INVALID_ARGUMENT no node makes it; UNSUPPORTED it is not a number.
assay_status_t assay_unbounded_set(assay_model_t* m, const char* value, assay_type_t elem,
                                   int64_t bound) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_UNBOUNDED_H_
