// Tensors of strings as the server has them: each with 4 bytes of length, little endian, in front.
#ifndef ASSAY_TRITON_STRINGS_H_
#define ASSAY_TRITON_STRINGS_H_

#include "errors.h"

// A tensor of the strings in `data`, as many as the shape has.
// Errors: INVALID_ARG more or fewer strings, or one that is cut off
TRITONSERVER_Error* strings_read(const char* name, int rank, const int64_t* dims,
                                 const uint8_t* data, size_t bytes, assay_tensor_t** out);
// How many bytes strings first to first + n take; UNSUPPORTED one of 4 GiB or more.
TRITONSERVER_Error* strings_size(const assay_tensor_t* t, int64_t first, int64_t n,
                                 uint64_t* out_bytes);
void strings_write(const assay_tensor_t* t, int64_t first, int64_t n, uint8_t* out);

#endif  // ASSAY_TRITON_STRINGS_H_
