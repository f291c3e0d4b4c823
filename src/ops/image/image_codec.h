// Decoders of image files in memory: one for each format that ImageDecoder reads. All give 8-bit
// RGB; transparency is dropped, gray is three equal channels.
#ifndef ASSAY_OPS_IMAGE_IMAGE_CODEC_H_
#define ASSAY_OPS_IMAGE_IMAGE_CODEC_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct assay_image {
  int64_t height, width;
  uint8_t* rgb;  // height * width * 3, from assay_malloc; NULL: not decoded
} assay_image_t;

// Decodes a whole file. A file that cannot be decoded, for whatever reason, is not an error:
// image->rgb stays NULL. Errors: NO_MEMORY.
typedef assay_status_t (*assay_image_decode_fn)(const uint8_t* data, size_t size,
                                                assay_image_t* image);

// A row for each format, the first whose file begins like this one decodes it.
typedef struct assay_image_codec {
  const char* name;
  bool (*matches)(const uint8_t* data, size_t size);
  assay_image_decode_fn decode;
} assay_image_codec_t;

// Sets the size and makes room for the pixels. False, with nothing made: no pixels, or more than
// are allowed (a small file may claim any size). *st: NO_MEMORY.
bool assay_image_alloc(assay_image_t* image, int64_t height, int64_t width, assay_status_t* st);
// Whether that size would be allowed.
bool assay_image_size_ok(int64_t height, int64_t width);
// Throws the pixels away.
void assay_image_drop(assay_image_t* image);
// Bytes of the file at a position start with these.
bool assay_image_starts(const uint8_t* data, size_t size, size_t at, const char* bytes, size_t n);

assay_status_t assay_image_decode_bmp(const uint8_t* data, size_t size,
                                      assay_image_t* image) ASSAY_MUST_USE;
assay_status_t assay_image_decode_pnm(const uint8_t* data, size_t size,
                                      assay_image_t* image) ASSAY_MUST_USE;
assay_status_t assay_image_decode_jpeg(const uint8_t* data, size_t size,
                                       assay_image_t* image) ASSAY_MUST_USE;
assay_status_t assay_image_decode_png(const uint8_t* data, size_t size,
                                      assay_image_t* image) ASSAY_MUST_USE;
assay_status_t assay_image_decode_webp(const uint8_t* data, size_t size,
                                       assay_image_t* image) ASSAY_MUST_USE;
assay_status_t assay_image_decode_tiff(const uint8_t* data, size_t size,
                                       assay_image_t* image) ASSAY_MUST_USE;
assay_status_t assay_image_decode_jp2(const uint8_t* data, size_t size,
                                      assay_image_t* image) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_IMAGE_IMAGE_CODEC_H_
