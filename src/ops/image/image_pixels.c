// The pixels that decoders of all formats fill.
#include "base/alloc.h"
#include "ops/image/image_codec.h"

enum { MAX_PIXELS = 1 << 27, MAX_SIDE = 1 << 20 };

bool assay_image_size_ok(int64_t height, int64_t width) {
  return height >= 1 && width >= 1 && height <= MAX_SIDE && width <= MAX_SIDE &&
         height * width <= MAX_PIXELS;
}

bool assay_image_alloc(assay_image_t* image, int64_t height, int64_t width, assay_status_t* st) {
  if (!assay_image_size_ok(height, width)) return false;
  image->rgb = assay_calloc((size_t)(height * width), 3);
  if (!image->rgb) {
    *st = assay_status_no_memory();
    return false;
  }
  image->height = height;
  image->width = width;
  return true;
}

void assay_image_drop(assay_image_t* image) {
  assay_free(image->rgb);
  *image = (assay_image_t){0};
}
