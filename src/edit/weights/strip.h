// Models without the data of their weights, for where only their structure is wanted, and random
// data in their place.
#ifndef ASSAY_EDIT_WEIGHTS_STRIP_H_
#define ASSAY_EDIT_WEIGHTS_STRIP_H_

#include "edit/weights/sparsity.h"

// Strips weights of Conv, ConvTranspose, Gemm and MatMul, those of Gather and Slice and of
// operators that nobody knows from 1024 elements on, and such as go through Transpose or Q/DQ.
// Their names and the model's documentation say so (ASSAY_ONNX_STRIPPED).
//   kept    names that are left alone; found[i] is set where the model has such a weight
assay_status_t assay_strip_weights(assay_model_t* m, const char* const* kept, size_t n_kept,
                                   bool* found, size_t* out_stripped) ASSAY_MUST_USE;
// Fills what was stripped with normal random numbers, two of four zero where that was so. The mark
// stays.
assay_status_t assay_strip_fill(assay_model_t* m, uint64_t seed, size_t* out_filled) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_WEIGHTS_STRIP_H_
