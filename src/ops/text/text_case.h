// UTF-8 and the case of letters, the same on every machine: no locale is asked.
#ifndef ASSAY_OPS_TEXT_TEXT_CASE_H_
#define ASSAY_OPS_TEXT_TEXT_CASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

// Reads the code point at text[*at] and moves on. A byte that is not UTF-8 comes out as
// ASSAY_BAD_BYTE + the byte, one at a time.
enum { ASSAY_BAD_BYTE = 0x200000 };
uint32_t assay_utf8_read(const char* text, size_t len, size_t* at);
// Appends it, or the bad byte as it was.
void assay_utf8_append(assay_str_t* s, uint32_t code);

// Simple case mappings: one code point to one. Source: Unicode's UnicodeData.txt.
uint32_t assay_char_lower(uint32_t code);
uint32_t assay_char_upper(uint32_t code);
bool assay_char_is_space(uint32_t code);  // property White_Space

#endif  // ASSAY_OPS_TEXT_TEXT_CASE_H_
