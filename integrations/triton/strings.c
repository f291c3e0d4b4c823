// Tensors of strings as the server has them.
#include "strings.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 4 };

static uint32_t read_length(const uint8_t* p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

// The strings' places, n of them; the bytes have to end with the last one.
static TRITONSERVER_Error* find_strings(const char* name, const uint8_t* data, size_t bytes,
                                        size_t n, const char** texts, size_t* lengths) {
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    const bool has_length = bytes - at >= LENGTH_BYTES;
    const size_t length = has_length ? read_length(data + at) : 0;
    if (!has_length || bytes - at - LENGTH_BYTES < length)
      return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "input '%s': string %zu of %zu is cut off after %zu bytes", name, i + 1, n,
                       bytes);
    texts[i] = (const char*)data + at + LENGTH_BYTES;
    lengths[i] = length;
    at += LENGTH_BYTES + length;
  }
  if (at == bytes) return NULL;
  return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                   "input '%s': %zu bytes follow the last of %zu strings", name, bytes - at, n);
}

TRITONSERVER_Error* strings_read(const char* name, int rank, const int64_t* dims,
                                 const uint8_t* data, size_t bytes, assay_tensor_t** out) {
  size_t n = 1;
  for (int d = 0; d < rank; d++)
    if (dims[d] < 0 || __builtin_mul_overflow(n, (size_t)dims[d], &n)) n = SIZE_MAX;
  // Each takes its length at least: what is more than fits is not asked memory for.
  if (n > bytes / LENGTH_BYTES)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "input '%s' has %zu bytes, too few for its strings", name, bytes);
  const char** texts = calloc(n + 1, sizeof *texts);
  size_t* lengths = calloc(n + 1, sizeof *lengths);
  TRITONSERVER_Error* error = texts && lengths ? NULL : error_no_memory();
  if (!error) error = find_strings(name, data, bytes, n, texts, lengths);
  if (!error)
    error = error_of_status(assay_tensor_make_strings(rank, dims, texts, lengths, out),
                            "input '%s': ", name);
  free(texts);
  free(lengths);
  return error;
}

TRITONSERVER_Error* strings_size(const assay_tensor_t* t, int64_t first, int64_t n,
                                 uint64_t* out_bytes) {
  uint64_t bytes = 0;
  for (int64_t i = first; i < first + n; i++) {
    size_t length = 0;
    assay_tensor_string(t, i, &length);
    if (length > UINT32_MAX)
      return error_new(TRITONSERVER_ERROR_UNSUPPORTED, "a string has %zu bytes", length);
    bytes += LENGTH_BYTES + length;
  }
  *out_bytes = bytes;
  return NULL;
}

void strings_write(const assay_tensor_t* t, int64_t first, int64_t n, uint8_t* out) {
  for (int64_t i = first; i < first + n; i++) {
    size_t length = 0;
    const char* text = assay_tensor_string(t, i, &length);
    for (int b = 0; b < LENGTH_BYTES; b++) *out++ = (uint8_t)(length >> (8 * b));
    if (length) memcpy(out, text, length);
    out += length;
  }
}
