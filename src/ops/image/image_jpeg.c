// JPEG through libjpeg: accurate integer DCT and smooth chroma upsampling, as ImageDecoder asks.
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>
// after jpeglib.h
#include <jerror.h>

#include "base/alloc.h"
#include "ops/image/image_codec.h"

enum { MAX_SCANS = 256 };  // progressive files of more are made to waste time

typedef struct errors {
  struct jpeg_error_mgr base;  // first, libjpeg hands it back
  jmp_buf back;
  bool truncated;
} errors_t;

static void on_error(j_common_ptr info) {
  errors_t* e = (errors_t*)info->err;
  longjmp(e->back, 1);
}

// Libjpeg fills up what a truncated file lacks and warns; here it cannot be decoded.
static void on_message(j_common_ptr info, int level) {
  errors_t* e = (errors_t*)info->err;
  if (level < 0 && e->base.msg_code == JWRN_JPEG_EOF) e->truncated = true;
}

static void on_output(j_common_ptr info) { (void)info; }

static void on_progress(j_common_ptr info) {
  if (info->is_decompressor && ((j_decompress_ptr)info)->input_scan_number > MAX_SCANS)
    on_error(info);
}

// Four channels of ink, stored inverted where Adobe wrote them, to red, green and blue.
static void ink_row(const JSAMPLE* from, uint8_t* to, JDIMENSION width, bool inverted) {
  for (JDIMENSION x = 0; x < width; x++) {
    unsigned flip = inverted ? 255 : 0, light = 255 - (from[4 * x + 3] ^ flip);
    for (unsigned k = 0; k < 3; k++) {
      unsigned t = (from[4 * x + k] ^ flip) * light + 128;
      to[3 * x + k] = (uint8_t)(light - ((t + (t >> 8)) >> 8));
    }
  }
}

// Everything between setjmp and the end of the file. Nothing here is owned by a local variable.
static void read_rows(struct jpeg_decompress_struct* info, assay_image_t* image, JSAMPARRAY ink) {
  bool inverted = info->saw_Adobe_marker;
  while (info->output_scanline < info->output_height) {
    JSAMPROW row = image->rgb + 3 * (size_t)info->output_scanline * info->output_width;
    if (ink) {
      (void)jpeg_read_scanlines(info, ink, 1);
      ink_row(ink[0], row, info->output_width, inverted);
    } else {
      (void)jpeg_read_scanlines(info, &row, 1);
    }
  }
  (void)jpeg_finish_decompress(info);
}

assay_status_t assay_image_decode_jpeg(const uint8_t* data, size_t size, assay_image_t* image) {
  struct jpeg_decompress_struct info = {0};
  struct jpeg_progress_mgr progress = {.progress_monitor = on_progress};
  errors_t errors = {0};
  assay_status_t st = NULL;
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = on_error;
  errors.base.emit_message = on_message;
  errors.base.output_message = on_output;
  if (setjmp(errors.back)) {
    jpeg_destroy_decompress(&info);
    assay_image_drop(image);
    return NULL;
  }
  jpeg_create_decompress(&info);
  info.progress = &progress;
  info.mem->max_memory_to_use = 1L << 30;
  jpeg_mem_src(&info, data, (unsigned long)size);
  (void)jpeg_read_header(&info, TRUE);
  bool has_ink = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = has_ink ? JCS_CMYK : JCS_RGB;
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  if (assay_image_alloc(image, info.image_height, info.image_width, &st)) {
    (void)jpeg_start_decompress(&info);
    JSAMPARRAY ink =
        has_ink ? info.mem->alloc_sarray((j_common_ptr)&info, JPOOL_IMAGE, 4 * info.output_width, 1)
                : NULL;
    read_rows(&info, image, ink);
  }
  jpeg_destroy_decompress(&info);
  if (errors.truncated) assay_image_drop(image);
  return st;
}
