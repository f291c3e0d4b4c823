// ImageDecoder: image files to tensors [height, width, channels].
#include <string.h>

#include "base/alloc.h"
#include "ops/families.h"
#include "ops/image/image_codec.h"

bool assay_image_starts(const uint8_t* data, size_t size, size_t at, const char* bytes, size_t n) {
  return size >= at && size - at >= n && memcmp(data + at, bytes, n) == 0;
}

// ---- formats -----------------------------------------------------------------------------------

static bool is_bmp(const uint8_t* d, size_t n) { return assay_image_starts(d, n, 0, "BM", 2); }
static bool is_jpeg(const uint8_t* d, size_t n) {
  return assay_image_starts(d, n, 0, "\xff\xd8\xff", 3);
}
static bool is_png(const uint8_t* d, size_t n) {
  return assay_image_starts(d, n, 0, "\x89PNG\r\n\x1a\n", 8);
}
static bool is_webp(const uint8_t* d, size_t n) {
  return assay_image_starts(d, n, 0, "RIFF", 4) && assay_image_starts(d, n, 8, "WEBP", 4);
}
static bool is_tiff(const uint8_t* d, size_t n) {
  return assay_image_starts(d, n, 0, "II*\0", 4) || assay_image_starts(d, n, 0, "MM\0*", 4) ||
         assay_image_starts(d, n, 0, "II+\0", 4) || assay_image_starts(d, n, 0, "MM\0+", 4);
}
static bool is_jp2(const uint8_t* d, size_t n) {
  return assay_image_starts(d, n, 0, "\0\0\0\x0cjP  \r\n\x87\n", 12) ||
         assay_image_starts(d, n, 0, "\xff\x4f\xff\x51", 4);
}
static bool is_pnm(const uint8_t* d, size_t n) {
  return n >= 3 && d[0] == 'P' && d[1] >= '1' && d[1] <= '6';
}

static const assay_image_codec_t codecs[] = {
    {"jpeg", is_jpeg, assay_image_decode_jpeg},   {"png", is_png, assay_image_decode_png},
    {"webp", is_webp, assay_image_decode_webp},   {"tiff", is_tiff, assay_image_decode_tiff},
    {"jpeg2000", is_jp2, assay_image_decode_jp2}, {"bmp", is_bmp, assay_image_decode_bmp},
    {"pnm", is_pnm, assay_image_decode_pnm},
};

static assay_status_t decode(const uint8_t* data, size_t size, assay_image_t* image) {
  for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
    if (codecs[i].matches(data, size)) return codecs[i].decode(data, size, image);
  return NULL;
}

// ---- the operator ------------------------------------------------------------------------------

typedef enum pixel_format { RGB, BGR, GRAYSCALE } pixel_format_t;

static assay_status_t read_format(const assay_node_t* n, pixel_format_t* out) {
  static const char* const names[] = {"RGB", "BGR", "Grayscale"};
  for (int i = 0; i < 3; i++) {
    if (!assay_attr_is(n, "pixel_format", names[i])) continue;
    *out = (pixel_format_t)i;
    return NULL;
  }
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                          "pixel_format is '%s'; RGB, BGR or Grayscale is expected",
                          assay_attr_str(n, "pixel_format", ""));
}

static assay_status_t decoder_infer(assay_infer_t* c) {
  pixel_format_t format = RGB;
  assay_shape_t y = {.known = true, .rank = 3};
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, 1));
  ASSAY_TRY(read_format(c->node, &format));
  y.dims[0] = assay_dim_fresh(c->dims, "height");
  y.dims[1] = assay_dim_fresh(c->dims, "width");
  y.dims[2] = assay_dim_const(c->dims, format == GRAYSCALE ? 1 : 3);
  return assay_infer_set(c, 0, ASSAY_TYPE_UINT8, &y);
}

// Gray is the luma of ITU-R 601 in 16-bit fixed point, as Pillow computes it.
static void convert(const assay_image_t* image, pixel_format_t format, int64_t* y) {
  int64_t n = image->height * image->width;
  const uint8_t* p = image->rgb;
  for (int64_t i = 0; i < n; i++, p += 3) {
    if (format == GRAYSCALE) {
      y[i] = (19595 * (int64_t)p[0] + 38470 * (int64_t)p[1] + 7471 * (int64_t)p[2] + 0x8000) >> 16;
    } else {
      for (int k = 0; k < 3; k++) y[3 * i + k] = p[format == BGR ? 2 - k : k];
    }
  }
}

// ai.onnx ImageDecoder-20. What cannot be decoded gives an empty image: the operator says so.
static assay_status_t decoder_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  pixel_format_t format = RGB;
  assay_image_t image = {0};
  assay_tensor_t* y = NULL;
  ASSAY_TRY(read_format(c->node, &format));
  if (x->rank != 1)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; rank 1 is expected", ASSAY_DIMS_TEXT(x));
  uint8_t* bytes = assay_malloc((size_t)x->size);
  if (!bytes) return assay_status_no_memory();
  for (int64_t i = 0; i < x->size; i++) bytes[i] = (uint8_t)assay_i64(x)[i];
  assay_status_t st = decode(bytes, (size_t)x->size, &image);
  assay_free(bytes);
  if (!st)
    st = assay_eval_output(c, 0, ASSAY_TYPE_UINT8, 3,
                           (int64_t[]){image.height, image.width, format == GRAYSCALE ? 1 : 3}, &y);
  if (!st && image.rgb) convert(&image, format, assay_i64(y));
  assay_image_drop(&image);
  return st;
}

const assay_op_t assay_ops_image[] = {{.domain = "",
                                       .name = "ImageDecoder",
                                       .since = 20,
                                       .infer = decoder_infer,
                                       .eval = decoder_eval},
                                      {0}};
