// What a file is that was taken for an ONNX model and is not one, told by its first bytes.
#ifndef ASSAY_ONNX_FILE_KIND_H_
#define ASSAY_ONNX_FILE_KIND_H_

#include <stddef.h>

// "a zip archive (.npz or a PyTorch file), not an ONNX model; ..."; NULL: nothing that is known
// here.
const char* assay_file_kind(const void* data, size_t n);

#endif  // ASSAY_ONNX_FILE_KIND_H_
