// Hugging Face's file of named tensors: a header in JSON, then the bytes.
//
// Types: F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0, I8 to I64, U8 to U64, BOOL, C64. What it has
// none for is written as npy writes it (int4 as int8, float4 as float32); strings are refused.
#ifndef ASSAY_IO_SAFETENSORS_H_
#define ASSAY_IO_SAFETENSORS_H_

#include "base/str.h"
#include "io/set.h"

// Whether bytes begin as such a file does.
bool assay_safetensors_is(const uint8_t* data, size_t size);

// Reads all tensors, in the header's order; they stay in the mapped file. Refused are offsets out
// of bounds, overlaps, bytes that belong to no tensor, and headers of more than 100 MB.
//   out_metadata  the header's "__metadata__", a JSON object as text, "" if it has none; NULL: not
//                 asked for. Appended to.
assay_status_t assay_safetensors_read(const char* path, assay_set_t* out,
                                      assay_str_t* out_metadata) ASSAY_MUST_USE;
assay_status_t assay_safetensors_parse(const void* data, size_t size, assay_set_t* out,
                                       assay_str_t* out_metadata) ASSAY_MUST_USE;

// Errors: CORRUPT a text that is not what assay_safetensors_write() takes as metadata.
assay_status_t assay_safetensors_check_metadata(const char* metadata) ASSAY_MUST_USE;
// Names stand in the set's order; bytes by the size of their elements, largest first, so that every
// tensor is aligned. Equal sets give equal files.
//   metadata  a JSON object whose values are strings; NULL or "": none
assay_status_t assay_safetensors_write(const char* path, const assay_set_t* set,
                                       const char* metadata) ASSAY_MUST_USE;

#endif  // ASSAY_IO_SAFETENSORS_H_
