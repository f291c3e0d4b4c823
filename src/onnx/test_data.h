// Folders of test data, as ONNX's operator tests and model zoo have them: input_0.pb, input_1.pb,
// ..., output_0.pb, ..., by position.
#ifndef ASSAY_ONNX_TEST_DATA_H_
#define ASSAY_ONNX_TEST_DATA_H_

#include "ir/ir.h"

// Whether a folder holds files STEM_J.pb ("input" or "output").
bool assay_onnx_is_test_data(const char* folder, const char* stem);

// Reads STEM_J.pb for value J: of all values, or of those without initializer if the last number
// says that there are no others. out has n_values places; those whose file is missing or empty (an
// optional input that is not given) become NULL. On failure none are set.
assay_status_t assay_onnx_read_test_data(const char* folder, const char* stem,
                                         assay_value_t* const* values, size_t n_values,
                                         assay_tensor_t** out) ASSAY_MUST_USE;
// Writes tensor J as STEM_J.pb; the folder is made. NULL tensors get no file.
assay_status_t assay_onnx_write_test_data(const char* folder, const char* stem, size_t n,
                                          assay_tensor_t* const* tensors,
                                          const char* const* names) ASSAY_MUST_USE;

#endif  // ASSAY_ONNX_TEST_DATA_H_
