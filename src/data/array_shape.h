// How an array's shape relates to what the model declares: samples in it, and axes of one that it
// was saved without, as numpy.squeeze leaves it.
#ifndef ASSAY_DATA_ARRAY_SHAPE_H_
#define ASSAY_DATA_ARRAY_SHAPE_H_

#include "base/str.h"
#include "io/set.h"
#include "ir/ir.h"

typedef struct assay_array_cut {
  int64_t n;       // samples in an array
  bool extra_dim;  // the leading dimension counts samples and is dropped
} assay_array_cut_t;

// How an array of a value of this type is cut into samples; false: it has another shape.
bool assay_find_cut(const assay_valtype_t* want, const assay_tensor_t* t, assay_array_cut_t* out);

// The same arrays, and those whose shape is not their value's, but would be with axes of one put in
// in a single way, as of that shape: the order of elements is the same. Samples may be in a leading
// axis. of[k]: the value of array k; NULL: none. *notes: a line where there are any.
assay_status_t assay_put_axes_in(const assay_set_t* set, const assay_value_t* const* of,
                                 assay_str_t* notes, assay_set_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DATA_ARRAY_SHAPE_H_
