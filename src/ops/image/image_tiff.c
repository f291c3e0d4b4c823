// TIFF through libtiff, first picture of the file, turned upright.
#include <tiffio.h>

#include "base/alloc.h"
#include "ops/image/image_codec.h"

typedef struct source {
  const uint8_t* data;
  size_t size, at;
} source_t;

static tmsize_t on_read(thandle_t handle, void* to, tmsize_t n) {
  source_t* s = handle;
  size_t left = s->at < s->size ? s->size - s->at : 0;
  size_t take = n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
  if (take) __builtin_memcpy(to, s->data + s->at, take);
  s->at += take;
  return (tmsize_t)take;
}

static tmsize_t on_write(thandle_t handle, void* from, tmsize_t n) {
  (void)handle;
  (void)from;
  (void)n;
  return 0;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  source_t* s = handle;
  size_t base = whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->size : 0;
  if (offset > SIZE_MAX - base) return (toff_t)-1;
  s->at = base + (size_t)offset;
  return s->at;
}

static int on_close(thandle_t handle) {
  (void)handle;
  return 0;
}

static toff_t on_size(thandle_t handle) { return ((source_t*)handle)->size; }

static int on_message(TIFF* tiff, void* user, const char* module, const char* format,
                      va_list args) {
  (void)tiff;
  (void)user;
  (void)module;
  (void)format;
  (void)args;
  return 1;  // dealt with: libtiff prints nothing
}

static bool read_pixels(TIFF* tiff, const assay_image_t* image, uint32_t* raster) {
  if (!TIFFReadRGBAImageOriented(tiff, (uint32_t)image->width, (uint32_t)image->height, raster,
                                 ORIENTATION_TOPLEFT, 1))
    return false;
  int64_t n = image->width * image->height;
  for (int64_t i = 0; i < n; i++) {
    image->rgb[3 * i] = (uint8_t)TIFFGetR(raster[i]);
    image->rgb[3 * i + 1] = (uint8_t)TIFFGetG(raster[i]);
    image->rgb[3 * i + 2] = (uint8_t)TIFFGetB(raster[i]);
  }
  return true;
}

assay_status_t assay_image_decode_tiff(const uint8_t* data, size_t size, assay_image_t* image) {
  source_t source = {data, size, 0};
  assay_status_t st = NULL;
  uint32_t width = 0, height = 0;
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (!options) return assay_status_no_memory();
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_message, NULL);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_message, NULL);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)1 << 30);
  TIFF* tiff = TIFFClientOpenExt("input", "rm", &source, on_read, on_write, on_seek, on_close,
                                 on_size, NULL, NULL, options);
  TIFFOpenOptionsFree(options);
  if (!tiff) return NULL;
  bool sized = TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) &&
               TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  if (sized && assay_image_alloc(image, height, width, &st)) {
    uint32_t* raster = assay_calloc((size_t)width * height, sizeof *raster);
    if (!raster) st = assay_status_no_memory();
    if (st || !read_pixels(tiff, image, raster)) assay_image_drop(image);
    assay_free(raster);
  }
  TIFFClose(tiff);
  return st;
}
