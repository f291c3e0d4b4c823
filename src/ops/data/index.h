// Indices of Gather, Scatter and their kin: checked once, then trusted.
#ifndef ASSAY_OPS_DATA_INDEX_H_
#define ASSAY_OPS_DATA_INDEX_H_

#include "ops/op.h"

// Makes an index of [-size, size) one of [0, size). The error names the index, where it stands in
// the input called `what`, and the dim of the data that it is for.
static inline bool assay_index_ok(int64_t index, int64_t size) {
  return index >= -size && index < size;
}
assay_status_t assay_index_error(const assay_eval_t* c, const char* what, int64_t index,
                                 int64_t position, int dim, int64_t size) ASSAY_MUST_USE;

// Offsets in elements of the slices that GatherND and ScatterND name: the tuples in the last dim of
// `indices`, for the dims of `data` after the first `batch_dims`. To be freed by assay_free.
//   out_slice  elements of one slice
//   out_n      tuples
// Errors: shapes that do not fit, indices out of range.
assay_status_t assay_index_tuples(const assay_eval_t* c, const assay_tensor_t* data,
                                  const assay_tensor_t* indices, int batch_dims, int64_t* out_n,
                                  int64_t* out_slice, int64_t** out_offsets) ASSAY_MUST_USE;

// Offsets in elements of the data that GatherElements and ScatterElements name: one for each
// element of `indices`, whose dims are within those of `data` but for `axis`.
assay_status_t assay_index_elements(const assay_eval_t* c, const assay_tensor_t* data,
                                    const assay_tensor_t* indices, int axis,
                                    int64_t** out_offsets) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_DATA_INDEX_H_
