// WebP through libwebp: lossy and lossless pictures; animations are not decoded.
#include <webp/decode.h>

#include "ops/image/image_codec.h"

assay_status_t assay_image_decode_webp(const uint8_t* data, size_t size, assay_image_t* image) {
  int width = 0, height = 0;
  assay_status_t st = NULL;
  if (!WebPGetInfo(data, size, &width, &height)) return NULL;
  if (!assay_image_alloc(image, height, width, &st)) return st;
  size_t bytes = (size_t)height * (size_t)width * 3;
  if (!WebPDecodeRGBInto(data, size, image->rgb, bytes, 3 * width)) assay_image_drop(image);
  return NULL;
}
