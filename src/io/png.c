// Pictures as PNG files.
#include "io/png.h"

#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

static void put_u32(assay_str_t* out, uint32_t x) {
  const char bytes[4] = {(char)(x >> 24), (char)(x >> 16), (char)(x >> 8), (char)x};
  assay_str_append_n(out, bytes, sizeof bytes);
}

// Length, name, content, checksum of both.
static void put_chunk(assay_str_t* out, const char* name, const void* data, size_t n) {
  uLong sum = crc32(0, (const Bytef*)name, 4);
  if (n) sum = crc32_z(sum, data, n);
  put_u32(out, (uint32_t)n);
  assay_str_append_n(out, name, 4);
  assay_str_append_n(out, data, n);
  put_u32(out, (uint32_t)sum);
}

// Rows with a byte before each that says how it was filtered: as the row above differs from it.
static void put_rows(int64_t width, int64_t height, const uint8_t* rgb, uint8_t* out) {
  enum { UP = 2 };
  const size_t row = (size_t)width * 3;
  for (int64_t y = 0; y < height; y++) {
    const uint8_t* from = rgb + (size_t)y * row;
    *out++ = UP;
    for (size_t i = 0; i < row; i++) *out++ = (uint8_t)(from[i] - (y ? from[i - row] : 0));
  }
}

static assay_status_t write_rows(const char* path, int64_t width, int64_t height,
                                 const uint8_t* rows, size_t n) {
  // 8 bits a channel, colour; no interlacing
  static const char kind[] = {8, 2, 0, 0, 0};
  uLongf packed_n = compressBound((uLong)n);
  uint8_t* packed = assay_malloc(packed_n);
  assay_str_t head = {0}, file = {0};
  if (!packed) return assay_status_no_memory();
  assay_status_t st =
      compress(packed, &packed_n, rows, (uLong)n) == Z_OK ? NULL : assay_status_no_memory();
  if (!st) {
    put_u32(&head, (uint32_t)width);
    put_u32(&head, (uint32_t)height);
    assay_str_append_n(&head, kind, sizeof kind);
    assay_str_append_n(&file, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(&file, "IHDR", assay_str_get(&head), head.len);
    put_chunk(&file, "IDAT", packed, packed_n);
    put_chunk(&file, "IEND", "", 0);
    st = assay_status_join(assay_str_status(&head), assay_str_status(&file));
  }
  if (!st) st = assay_file_write(path, file.text, file.len);
  assay_free(packed);
  assay_str_deinit(&head);
  assay_str_deinit(&file);
  return st;
}

assay_status_t assay_png_write(const char* path, int64_t width, int64_t height,
                               const uint8_t* rgb) {
  enum { MAX = 1 << 30 };  // bytes
  int64_t row = 0, n = 0;
  uint8_t* rows = NULL;
  if (width < 1 || height < 1 || !assay_mul_i64(width, 3, &row) ||
      !assay_mul_i64(row + 1, height, &n) || n > MAX)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "'%s': a picture of %lld x %lld pixels cannot be written", path,
                       (long long)width, (long long)height);
  if (!(rows = assay_malloc((size_t)n))) return assay_status_no_memory();
  put_rows(width, height, rgb, rows);
  assay_status_t st = write_rows(path, width, height, rows, (size_t)n);
  assay_free(rows);
  return st;
}
