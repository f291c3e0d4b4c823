// Bytes as text.
#include "io/base64.h"

#include "base/alloc.h"

// The value of a character; -1: white space, -2: none.
static int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return c == ' ' || c == '\n' || c == '\r' || c == '\t' ? -1 : -2;
}

assay_status_t assay_base64_decode(const char* text, size_t n, uint8_t** out, size_t* out_n) {
  uint8_t* bytes = assay_malloc(n / 4 * 3 + 3);
  uint32_t group = 0;
  size_t made = 0, characters = 0, i = 0;
  if (!bytes) return assay_status_no_memory();
  for (; i < n && text[i] != '='; i++) {
    const int v = value_of(text[i]);
    if (v == -1) continue;
    if (v < 0) break;
    group = group << 6 | (uint32_t)v;
    characters++;
    if (characters % 4) continue;
    bytes[made++] = (uint8_t)(group >> 16);
    bytes[made++] = (uint8_t)(group >> 8);
    bytes[made++] = (uint8_t)group;
  }
  const size_t rest = characters % 4, end = i;
  while (i < n && (text[i] == '=' || value_of(text[i]) == -1)) i++;
  if (i < n || rest == 1) {
    assay_free(bytes);
    return ASSAY_ERROR(ASSAY_CORRUPT, "base64: character %zu of %zu is none of its alphabet",
                       (i < n ? i : end) + 1, n);
  }
  if (rest) bytes[made++] = (uint8_t)(rest == 2 ? group >> 4 : group >> 10);
  if (rest == 3) bytes[made++] = (uint8_t)(group >> 2);
  *out = bytes;
  *out_n = made;
  return NULL;
}

void assay_base64_encode(const void* data, size_t n, assay_str_t* out) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const uint8_t* p = data;
  char text[4096];
  size_t made = 0;
  for (size_t i = 0; i < n; i += 3) {
    const size_t have = n - i < 3 ? n - i : 3;
    const uint32_t group = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                           (have > 2 ? p[i + 2] : 0u);
    text[made++] = letters[group >> 18];
    text[made++] = letters[group >> 12 & 63];
    text[made++] = have > 1 ? letters[group >> 6 & 63] : '=';
    text[made++] = have > 2 ? letters[group & 63] : '=';
    if (made < sizeof text && i + 3 < n) continue;
    assay_str_append_n(out, text, made);
    made = 0;
  }
}
