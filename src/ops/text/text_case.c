// UTF-8 and the case of letters, the same on every machine: no locale is asked.
#include "ops/text/text_case.h"

// A row maps first, first + step, ... last to itself plus delta.
typedef struct case_range {
  uint32_t first, last, step;
  int32_t delta;
} case_range_t;

#include "ops/text/text_case.inc"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

uint32_t assay_utf8_read(const char* text, size_t len, size_t* at) {
  const unsigned char* p = (const unsigned char*)text + *at;
  size_t left = len - *at;
  static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
  size_t n = p[0] < 0x80   ? 1
             : p[0] < 0xC2 ? 0
             : p[0] < 0xE0 ? 2
             : p[0] < 0xF0 ? 3
             : p[0] < 0xF5 ? 4
                           : 0;
  uint32_t code = n == 1 ? p[0] : p[0] & (0x7Fu >> n);
  bool ok = n > 0 && n <= left;
  for (size_t i = 1; ok && i < n; i++) {
    ok = (p[i] & 0xC0) == 0x80;
    code = code << 6 | (p[i] & 0x3Fu);
  }
  if (ok && n > 1) ok = code >= smallest[n] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  *at += ok ? n : 1;
  return ok ? code : (uint32_t)ASSAY_BAD_BYTE + p[0];
}

void assay_utf8_append(assay_str_t* s, uint32_t code) {
  char b[4];
  size_t n = 0;
  if (code >= ASSAY_BAD_BYTE) {
    b[n++] = (char)(code - ASSAY_BAD_BYTE);
  } else if (code < 0x80) {
    b[n++] = (char)code;
  } else {
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[4] = {0, 0xC0, 0xE0, 0xF0};
    b[n++] = (char)(lead[more] | code >> (6 * more));
    while (more--) b[n++] = (char)(0x80 | (code >> (6 * more) & 0x3F));
  }
  assay_str_append_n(s, b, n);
}

static uint32_t map(const case_range_t* ranges, size_t n, uint32_t code) {
  size_t low = 0, high = n;  // the first row whose last is not before code
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (ranges[mid].last < code)
      low = mid + 1;
    else
      high = mid;
  }
  // Rows of step 2 interleave with others, so the next row may hold it.
  for (; low < n && ranges[low].first <= code; low++)
    if (ranges[low].last >= code && (code - ranges[low].first) % ranges[low].step == 0)
      return (uint32_t)((int32_t)code + ranges[low].delta);
  return code;
}

uint32_t assay_char_lower(uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  return map(lower_ranges, LENGTH(lower_ranges), code);
}

uint32_t assay_char_upper(uint32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z' ? code - 32 : code;
  return map(upper_ranges, LENGTH(upper_ranges), code);
}

bool assay_char_is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}
