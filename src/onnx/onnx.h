// ONNX files: models in and out, values of test data in and out, the checker, model functions.
#ifndef ASSAY_ONNX_ONNX_H_
#define ASSAY_ONNX_ONNX_H_

#include "ir/ir.h"

// Reads a model. Weights stay in the mapped file (and its external data) as long as the model
// lives; the file must not change meanwhile. Operators are not looked up: assay_onnx_check does.
// Errors: NOT_FOUND no such file; CORRUPT not valid ONNX; UNSUPPORTED past our limits.
assay_status_t assay_onnx_read(const char* path, assay_model_t** out) ASSAY_MUST_USE;
// The same for bytes in memory, which are copied. folder: of external data; NULL: refuse those.
assay_status_t assay_onnx_read_bytes(const void* data, size_t size, const char* folder,
                                     assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_ONNX_ONNX_H_
