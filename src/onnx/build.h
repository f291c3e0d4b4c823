// Building protobuf messages, with the elements of large tensors left where they are.
#ifndef ASSAY_ONNX_BUILD_H_
#define ASSAY_ONNX_BUILD_H_

#include "base/file.h"
#include "ir/ir.h"

// Elements of a tensor that go into the message at a place of its text.
typedef struct onnx_splice {
  size_t at;               // in the builder's bytes
  assay_tensor_t* tensor;  // retained; numbers
  uint64_t len;
} onnx_splice_t;

// As with assay_str_t, appending never returns an error; `status` keeps the first one.
typedef struct onnx_builder {
  uint8_t* bytes;
  size_t len, capacity;
  onnx_splice_t* splices;
  size_t n_splices, cap_splices;
  uint64_t spliced;  // bytes of all splices
  assay_status_t status;
} onnx_builder_t;

void onnx_builder_deinit(onnx_builder_t* b);

void onnx_put_bytes(onnx_builder_t* b, const void* data, size_t len);  // as they are
void onnx_put_int(onnx_builder_t* b, uint32_t number, int64_t v);
void onnx_put_float(onnx_builder_t* b, uint32_t number, float v);
void onnx_put_blob(onnx_builder_t* b, uint32_t number, const void* data, size_t len);
void onnx_put_text(onnx_builder_t* b, uint32_t number, const char* text);       // none if ""
void onnx_put_name(onnx_builder_t* b, uint32_t number, const char* text);       // "" too
void onnx_put_elements(onnx_builder_t* b, uint32_t number, assay_tensor_t* t);  // packed numbers

// A message within the message.
typedef struct onnx_mark {
  size_t content, n_splices;
  uint64_t spliced;
} onnx_mark_t;
onnx_mark_t onnx_begin(onnx_builder_t* b, uint32_t number);
void onnx_end(onnx_builder_t* b, onnx_mark_t mark);

uint64_t onnx_built_size(const onnx_builder_t* b);
// The whole message to a file, or to memory of onnx_built_size bytes.
assay_status_t onnx_built_write(const onnx_builder_t* b, assay_writer_t* w) ASSAY_MUST_USE;
assay_status_t onnx_built_copy(const onnx_builder_t* b, uint8_t* out) ASSAY_MUST_USE;
// The packed elements of a tensor to a file.
assay_status_t onnx_write_elements(assay_tensor_t* t, assay_writer_t* w) ASSAY_MUST_USE;

// Fields of a TensorProto: dims, data_type, and elements unless they go elsewhere.
void onnx_put_tensor(onnx_builder_t* b, assay_tensor_t* t, bool with_elements);
// A TensorProto or a SparseTensorProto as a field.
void onnx_put_tensor_field(onnx_builder_t* b, uint32_t number, assay_tensor_t* t);
void onnx_put_sparse_field(onnx_builder_t* b, uint32_t number, assay_tensor_t* t);

#endif  // ASSAY_ONNX_BUILD_H_
