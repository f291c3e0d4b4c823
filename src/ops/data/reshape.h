// The target of a Reshape, for inference and evaluation alike.
#ifndef ASSAY_OPS_DATA_RESHAPE_H_
#define ASSAY_OPS_DATA_RESHAPE_H_

#include "ops/content.h"

// Reshape's rule on expressions: entries 0 copy a dim of the input (unless allow_zero), one entry
// -1 is what is left. Entries that are not known give unknown dims, but for one that all others
// fix.
assay_status_t assay_reshape_infer(assay_infer_t* c, const assay_shape_t* in, int64_t n,
                                   const assay_dim_t* const* target, bool allow_zero,
                                   assay_shape_t* out) ASSAY_MUST_USE;
// The same on numbers.
assay_status_t assay_reshape_eval(const assay_eval_t* c, const assay_tensor_t* in, int64_t n,
                                  const int64_t* target, bool allow_zero, int* out_rank,
                                  int64_t* out_dims) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_DATA_RESHAPE_H_
