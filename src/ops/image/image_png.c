// PNG through libpng. 16-bit samples keep their high byte; palettes and small depths are expanded.
#include <png.h>
#include <setjmp.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/image/image_codec.h"

typedef struct source {
  const uint8_t* data;
  size_t left;
} source_t;

static void on_read(png_structp png, png_bytep to, size_t n) {
  source_t* s = png_get_io_ptr(png);
  if (n > s->left) png_error(png, "truncated");
  memcpy(to, s->data, n);
  s->data += n;
  s->left -= n;
}

static void on_error(png_structp png, png_const_charp text) {
  (void)text;
  png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
  (void)png;
  (void)text;
}

// Reads the image; libpng jumps out of here to the caller's setjmp on any error.
static void read_image(png_structp png, png_infop info, assay_image_t* image, assay_status_t* st) {
  png_read_info(png, info);
  if (!assay_image_alloc(image, png_get_image_height(png, info), png_get_image_width(png, info),
                         st))
    return;
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  size_t row_bytes = (size_t)image->width * 3;
  if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "unexpected format");
  for (int pass = 0; pass < passes; pass++)
    for (int64_t y = 0; y < image->height; y++)
      png_read_row(png, image->rgb + row_bytes * (size_t)y, NULL);
  png_read_end(png, NULL);
}

assay_status_t assay_image_decode_png(const uint8_t* data, size_t size, assay_image_t* image) {
  source_t source = {data, size};
  assay_status_t st = NULL;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  if (!info) {
    png_destroy_read_struct(&png, NULL, NULL);
    return assay_status_no_memory();
  }
  if (setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, &info, NULL);
    assay_image_drop(image);
    return NULL;
  }
  png_set_chunk_malloc_max(png, 8 << 20);
  png_set_read_fn(png, &source, on_read);
  read_image(png, info, image, &st);
  png_destroy_read_struct(&png, &info, NULL);
  return st;
}
