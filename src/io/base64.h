// Bytes as text. Source: RFC 4648, section 4.
#ifndef ASSAY_IO_BASE64_H_
#define ASSAY_IO_BASE64_H_

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

// The bytes of a text of n characters; white space is skipped, padding may be left out. *out is
// freed with assay_free. Errors: CORRUPT.
assay_status_t assay_base64_decode(const char* text, size_t n, uint8_t** out,
                                   size_t* out_n) ASSAY_MUST_USE;

// Appends the text of n bytes, without line breaks.
void assay_base64_encode(const void* data, size_t n, assay_str_t* out);

#endif  // ASSAY_IO_BASE64_H_
