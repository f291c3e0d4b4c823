// NumPy's file of one array.
//
// Numbers become packed tensors that point into the file where its bytes are as ONNX has them.
// Types that NumPy lacks: bfloat16 is read from '<V2' (what ml_dtypes writes) or 'bfloat16', and
// written, like every float type of fewer bits, as float32; int4, int2 as int8, uint4, uint2 as
// uint8.
#ifndef ASSAY_IO_NPY_H_
#define ASSAY_IO_NPY_H_

#include "base/file.h"
#include "base/str.h"
#include "tensor/tensor.h"

// One reference goes to the caller. Errors: CORRUPT not what it should be; UNSUPPORTED pickled
// objects, structured types, dates.
assay_status_t assay_npy_read(const char* path, assay_tensor_t** out) ASSAY_MUST_USE;
// The same from bytes that belong to `owner`; release(owner) is called when they are not needed any
// more, also on failure. release NULL: the bytes are borrowed, for as long as the tensor lives.
assay_status_t assay_npy_parse(const uint8_t* data, size_t size, void (*release)(void* owner),
                               void* owner, assay_tensor_t** out) ASSAY_MUST_USE;

assay_status_t assay_npy_write(const char* path, assay_tensor_t* t) ASSAY_MUST_USE;

// The bytes of a file that is to be written: head, then body.
typedef struct assay_npy_image {
  assay_str_t head;
  const void* body;
  size_t body_len;
  assay_tensor_t* tensor;  // owner of the body, or
  void* bytes;             // so
} assay_npy_image_t;
assay_status_t assay_npy_image_make(assay_tensor_t* t, assay_npy_image_t* out) ASSAY_MUST_USE;
void assay_npy_image_deinit(assay_npy_image_t* image);

#endif  // ASSAY_IO_NPY_H_
