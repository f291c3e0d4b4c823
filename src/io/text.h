// Numbers as text: separated by spaces, commas or line breaks; '#' begins a comment. What NumPy's
// savetxt and trtexec's users write. The type and the shape come from elsewhere.
#ifndef ASSAY_IO_TEXT_H_
#define ASSAY_IO_TEXT_H_

#include "tensor/tensor.h"

// Whether bytes are such text and nothing else: at least one number.
bool assay_text_is(const uint8_t* data, size_t size);
// How many numbers there are.
int64_t assay_text_count(const uint8_t* data, size_t size);

// Decimal and hexadecimal numbers, nan, inf. Integers may be written as floats (3.0e+00). Errors:
// CORRUPT a word that is not a number of the type, or another count than the shape has.
assay_status_t assay_text_parse(const uint8_t* data, size_t size, assay_type_t type, int rank,
                                const int64_t* dims, assay_tensor_t** out) ASSAY_MUST_USE;

// A line for each row of the last axis; digits enough to read every value back.
assay_status_t assay_text_write(const char* path, assay_tensor_t* t) ASSAY_MUST_USE;

#endif  // ASSAY_IO_TEXT_H_
