// Whether two tensors agree within a tolerance, as onnx.backend.test does it.
#ifndef ASSAY_COMPARE_COMPARE_H_
#define ASSAY_COMPARE_COMPARE_H_

#include "base/str.h"
#include "tensor/tensor.h"

typedef struct assay_case_tolerance {
  double rtol, atol;
  bool shape_only;  // random outputs: only kind, type and shape
} assay_case_tolerance_t;

// Appends to *why in what they differ; appends nothing if they agree: same kind, element type and
// shape; strings equal; |got - want| <= atol + rtol * |want|, NaN equal to NaN, with rtol at least
// 2^-6 for bfloat16. Tensors may be packed.
// Source: onnx.backend.test.runner, Runner.assert_similar_outputs.
assay_status_t assay_compare_close(assay_tensor_t* want, assay_tensor_t* got,
                                   const assay_case_tolerance_t* tolerance,
                                   assay_str_t* why) ASSAY_MUST_USE;

#endif  // ASSAY_COMPARE_COMPARE_H_
