// BMP and the portable formats (PBM, PGM, PPM), which need no library.
#include <string.h>

#include "base/alloc.h"
#include "ops/image/image_codec.h"

// ---- BMP ---------------------------------------------------------------------------------------
//
// Source: Windows GDI, BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER to BITMAPV5HEADER.

typedef struct bmp {
  const uint8_t* data;
  size_t size;
  uint32_t offset, header, compression, bits, colors;
  int64_t width, height;
  bool top_down;
  size_t palette, entry;  // position; bytes of an entry
  uint32_t masks[3];      // red, green, blue of 16 and 32 bits
} bmp_t;

enum { BMP_RGB = 0, BMP_RLE8 = 1, BMP_RLE4 = 2, BMP_BITFIELDS = 3, BMP_ALPHA_BITFIELDS = 6 };

static uint32_t le16(const uint8_t* p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t le32(const uint8_t* p) { return le16(p) | le16(p + 2) << 16; }

static bool bmp_header(bmp_t* b) {
  const uint8_t* d = b->data;
  if (b->size < 26) return false;
  b->offset = le32(d + 10);
  b->header = le32(d + 14);
  if (b->header == 12) {
    b->width = le16(d + 18);
    b->height = le16(d + 20);
    b->bits = le16(d + 24);
    b->entry = 3;
  } else {
    if (b->header < 40 || b->header > 1024 || b->size < 14 + (size_t)b->header) return false;
    b->width = (int32_t)le32(d + 18);
    b->height = (int32_t)le32(d + 22);
    b->bits = le16(d + 28);
    b->compression = le32(d + 30);
    b->colors = le32(d + 46);
    b->entry = 4;
  }
  b->top_down = b->height < 0;
  if (b->top_down) b->height = -b->height;
  b->palette = 14 + (size_t)b->header;
  if (b->bits <= 8 && (!b->colors || b->colors > 256)) b->colors = UINT32_C(1) << b->bits;
  return b->offset <= b->size;
}

// The masks of 16- and 32-bit pixels: given, or those of the plain formats.
static bool bmp_masks(bmp_t* b) {
  if (b->bits == 16) memcpy(b->masks, (uint32_t[]){0x7C00, 0x3E0, 0x1F}, sizeof b->masks);
  if (b->bits == 32) memcpy(b->masks, (uint32_t[]){0xFF0000, 0xFF00, 0xFF}, sizeof b->masks);
  if (b->compression != BMP_BITFIELDS && b->compression != BMP_ALPHA_BITFIELDS) return true;
  if (b->size < 14 + 40 + 12) return false;
  for (int k = 0; k < 3; k++) b->masks[k] = le32(b->data + 54 + 4 * k);
  return b->bits == 16 || b->bits == 32;
}

// The bits under a mask, stretched to 8.
static uint8_t masked(uint32_t pixel, uint32_t mask) {
  if (!mask) return 0;
  int shift = __builtin_ctz(mask);
  uint64_t maximum = mask >> shift, v = (pixel & mask) >> shift;
  return (uint8_t)((v * 255 + maximum / 2) / maximum);
}

static void bmp_color(const bmp_t* b, uint32_t index, uint8_t* to) {
  size_t at = b->palette + (size_t)index * b->entry;
  if (index >= b->colors || at + 3 > b->size) return;  // black
  for (int k = 0; k < 3; k++) to[k] = b->data[at + 2 - (size_t)k];
}

static void bmp_pixel(const bmp_t* b, const uint8_t* row, int64_t x, uint8_t* to) {
  const uint8_t* p;
  uint32_t pixel;
  switch (b->bits) {
    case 24:
      p = row + 3 * x;
      for (int k = 0; k < 3; k++) to[k] = p[2 - k];
      return;
    case 16:
    case 32:
      pixel = b->bits == 16 ? le16(row + 2 * x) : le32(row + 4 * x);
      for (int k = 0; k < 3; k++) to[k] = masked(pixel, b->masks[k]);
      return;
    default:  // 1, 4, 8: a palette, the first pixel in the high bits
      pixel = (uint32_t)row[x * b->bits / 8] >> (8 - b->bits - (uint32_t)(x * b->bits % 8));
      bmp_color(b, pixel & ((UINT32_C(1) << b->bits) - 1), to);
  }
}

static uint8_t* bmp_row(const bmp_t* b, const assay_image_t* image, int64_t y) {
  return image->rgb + 3 * b->width * (b->top_down ? y : b->height - 1 - y);
}

static bool bmp_plain(const bmp_t* b, const assay_image_t* image) {
  size_t stride = (size_t)((b->width * b->bits + 31) / 32 * 4);
  // The last row may lack its padding.
  size_t need = stride * (size_t)(b->height - 1) + (size_t)((b->width * b->bits + 7) / 8);
  if (b->size - b->offset < need) return false;
  for (int64_t y = 0; y < b->height; y++)
    for (int64_t x = 0; x < b->width; x++)
      bmp_pixel(b, b->data + b->offset + stride * (size_t)y, x, bmp_row(b, image, y) + 3 * x);
  return true;
}

// Run lengths: (n, color) repeats; (0, 0) ends a row, (0, 1) the image, (0, 2, dx, dy) moves on,
// and (0, n, ...) gives n pixels as they are, padded to 16 bits.
static bool bmp_runs(const bmp_t* b, const assay_image_t* image) {
  const uint8_t *p = b->data + b->offset, *end = b->data + b->size;
  bool nibbles = b->bits == 4;
  int64_t x = 0, y = 0;
  while (end - p >= 2 && y < b->height) {
    int n = p[0], v = p[1];
    p += 2;
    if (!n && v == 0) {
      x = 0;
      y++;
      continue;
    }
    if (!n && v == 1) return true;
    if (!n && v == 2) {
      if (end - p < 2) return false;
      x += p[0];
      y += p[1];
      p += 2;
      continue;
    }
    int count = n ? n : v;
    ptrdiff_t bytes = nibbles ? (count + 1) / 2 : count;
    if (!n && end - p < bytes) return false;
    for (int i = 0; i < count && x < b->width; i++, x++) {
      int byte = n ? v : nibbles ? p[i / 2] : p[i];
      int color = !nibbles ? byte : i % 2 ? byte & 15 : byte >> 4;
      bmp_color(b, (uint32_t)color, bmp_row(b, image, y) + 3 * x);
    }
    if (!n) p += bytes + (bytes & 1 && end - p > bytes);
  }
  return y >= b->height;
}

assay_status_t assay_image_decode_bmp(const uint8_t* data, size_t size, assay_image_t* image) {
  bmp_t b = {.data = data, .size = size};
  assay_status_t st = NULL;
  bool runs = false;
  if (!bmp_header(&b) || !bmp_masks(&b)) return NULL;
  if (b.bits != 1 && b.bits != 4 && b.bits != 8 && b.bits != 16 && b.bits != 24 && b.bits != 32)
    return NULL;
  if (b.compression == BMP_RLE8 || b.compression == BMP_RLE4) {
    if (b.bits != (b.compression == BMP_RLE8 ? 8u : 4u)) return NULL;
    runs = true;
  } else if (b.compression != BMP_RGB && b.compression != BMP_BITFIELDS &&
             b.compression != BMP_ALPHA_BITFIELDS) {
    return NULL;
  }
  if (!assay_image_alloc(image, b.height, b.width, &st)) return st;
  if (!(runs ? bmp_runs(&b, image) : bmp_plain(&b, image))) assay_image_drop(image);
  return NULL;
}

// ---- PBM, PGM, PPM -----------------------------------------------------------------------------
//
// Source: Netpbm, pbm(5), pgm(5), ppm(5).

typedef struct pnm {
  const uint8_t *p, *end;
} pnm_t;

static bool is_space(uint8_t c) { return c == ' ' || (c >= 9 && c <= 13); }

static void pnm_skip(pnm_t* s) {
  for (; s->p < s->end; s->p++) {
    if (*s->p == '#')
      while (s->p < s->end && *s->p != '\n') s->p++;
    else if (!is_space(*s->p))
      return;
    if (s->p == s->end) return;
  }
}

static bool pnm_number(pnm_t* s, int64_t* out) {
  int64_t v = 0;
  pnm_skip(s);
  if (s->p == s->end || *s->p < '0' || *s->p > '9') return false;
  for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
    v = v * 10 + (*s->p - '0');
    if (v > 1 << 24) return false;
  }
  *out = v;
  return true;
}

// The next sample; max 1 means a bit of plain PBM, which needs no space around it.
static bool pnm_plain(pnm_t* s, bool bit, int64_t* out) {
  if (!bit) return pnm_number(s, out);
  pnm_skip(s);
  if (s->p == s->end || (*s->p != '0' && *s->p != '1')) return false;
  *out = *s->p++ - '0';
  return true;
}

static bool pnm_rows(pnm_t* s, char kind, int64_t max, const assay_image_t* image) {
  bool bit = kind == '1' || kind == '4', plain = kind <= '3';
  int channels = kind == '3' || kind == '6' ? 3 : 1;
  size_t bytes = max > 255 ? 2 : 1;
  size_t row_bytes =
      bit ? (size_t)(image->width + 7) / 8 : (size_t)image->width * (size_t)channels * bytes;
  if (!plain && (size_t)(s->end - s->p) / row_bytes < (size_t)image->height) return false;
  uint8_t* to = image->rgb;
  for (int64_t y = 0; y < image->height; y++) {
    const uint8_t* row = plain ? NULL : s->p + row_bytes * (size_t)y;
    for (int64_t x = 0; x < image->width; x++, to += 3) {
      for (int k = 0; k < channels; k++) {
        int64_t v = 0, i = x * channels + k;
        if (plain) {
          if (!pnm_plain(s, bit, &v)) return false;
        } else if (bit) {
          v = row[x / 8] >> (7 - x % 8) & 1;
        } else {
          v = bytes == 2 ? row[2 * i] << 8 | row[2 * i + 1] : row[i];
        }
        if (v > max) v = max;
        to[k] = bit ? (v ? 0 : 255) : (uint8_t)((v * 255 + max / 2) / max);
      }
      if (channels == 1) to[1] = to[2] = to[0];
    }
  }
  return true;
}

assay_status_t assay_image_decode_pnm(const uint8_t* data, size_t size, assay_image_t* image) {
  pnm_t s = {data + 2, data + size};
  char kind = (char)data[1];
  int64_t width = 0, height = 0, max = 1;
  assay_status_t st = NULL;
  if (!pnm_number(&s, &width) || !pnm_number(&s, &height)) return NULL;
  if (kind != '1' && kind != '4' && !pnm_number(&s, &max)) return NULL;
  if (max < 1 || max > 65535) return NULL;
  // One space ends the header of the binary kinds.
  if (s.p == s.end || !is_space(*s.p)) return NULL;
  s.p++;
  if (!assay_image_alloc(image, height, width, &st)) return st;
  if (!pnm_rows(&s, kind, max, image)) assay_image_drop(image);
  return NULL;
}
