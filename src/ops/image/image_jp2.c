// JPEG 2000 through OpenJPEG: JP2 files and bare code streams.
#include <openjpeg.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/image/image_codec.h"

typedef struct source {
  const uint8_t* data;
  size_t size, at;
} source_t;

static OPJ_SIZE_T on_read(void* to, OPJ_SIZE_T n, void* user) {
  source_t* s = user;
  size_t left = s->size - s->at, take = n < left ? n : left;
  if (!left) return (OPJ_SIZE_T)-1;
  memcpy(to, s->data + s->at, take);
  s->at += take;
  return take;
}

static OPJ_OFF_T on_skip(OPJ_OFF_T n, void* user) {
  source_t* s = user;
  if (n < 0) return -1;
  size_t left = s->size - s->at, take = (uint64_t)n < left ? (size_t)n : left;
  s->at += take;
  return (OPJ_OFF_T)take;
}

static OPJ_BOOL on_seek(OPJ_OFF_T at, void* user) {
  source_t* s = user;
  if (at < 0 || (uint64_t)at > s->size) return OPJ_FALSE;
  s->at = (size_t)at;
  return OPJ_TRUE;
}

static void on_message(const char* text, void* user) {
  (void)text;
  (void)user;
}

// A sample as an unsigned 8-bit number; subsampled components repeat theirs.
static int sample(const opj_image_comp_t* c, int64_t y, int64_t x) {
  int64_t cy = y / (c->dy ? c->dy : 1), cx = x / (c->dx ? c->dx : 1);
  if (cy >= c->h) cy = (int64_t)c->h - 1;
  if (cx >= c->w) cx = (int64_t)c->w - 1;
  int64_t v = c->data[cy * (int64_t)c->w + cx];
  if (c->sgnd) v += INT64_C(1) << (c->prec - 1);
  v = c->prec > 8 ? v >> (c->prec - 8) : v << (8 - c->prec);
  return v < 0 ? 0 : v > 255 ? 255 : (int)v;
}

static uint8_t clamp(double v) { return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)(v + 0.5); }

// ITU-R 601, full range (the sYCC of ISO/IEC 15444-1).
static void ycc_to_rgb(uint8_t* p) {
  double y = p[0], cb = p[1] - 128.0, cr = p[2] - 128.0;
  p[0] = clamp(y + 1.402 * cr);
  p[1] = clamp(y - 0.344136 * cb - 0.714136 * cr);
  p[2] = clamp(y + 1.772 * cb);
}

static bool components_ok(const opj_image_t* j) {
  if (!j->numcomps) return false;
  for (uint32_t k = 0; k < j->numcomps && k < 3; k++) {
    const opj_image_comp_t* c = &j->comps[k];
    if (!c->data || !c->w || !c->h || !c->prec || c->prec > 31) return false;
  }
  return true;
}

static void copy_pixels(const opj_image_t* j, const assay_image_t* image) {
  uint32_t channels = j->numcomps >= 3 ? 3 : 1;
  uint8_t* to = image->rgb;
  for (int64_t y = 0; y < image->height; y++) {
    for (int64_t x = 0; x < image->width; x++, to += 3) {
      for (uint32_t k = 0; k < 3; k++)
        to[k] = (uint8_t)sample(&j->comps[channels == 3 ? k : 0], y, x);
      if (channels == 3 && j->color_space == OPJ_CLRSPC_SYCC) ycc_to_rgb(to);
    }
  }
}

static assay_status_t read_image(opj_codec_t* codec, opj_stream_t* stream, opj_image_t** j,
                                 assay_image_t* image) {
  opj_dparameters_t parameters;
  assay_status_t st = NULL;
  opj_set_default_decoder_parameters(&parameters);
  opj_set_info_handler(codec, on_message, NULL);
  opj_set_warning_handler(codec, on_message, NULL);
  opj_set_error_handler(codec, on_message, NULL);
  if (!opj_setup_decoder(codec, &parameters) || !opj_read_header(stream, codec, j)) return NULL;
  int64_t width = (int64_t)(*j)->x1 - (*j)->x0, height = (int64_t)(*j)->y1 - (*j)->y0;
  if (!assay_image_size_ok(height, width) || (*j)->numcomps > 64) return NULL;
  if (!opj_decode(codec, stream, *j) || !opj_end_decompress(codec, stream) || !components_ok(*j))
    return NULL;
  if (assay_image_alloc(image, height, width, &st)) copy_pixels(*j, image);
  return st;
}

assay_status_t assay_image_decode_jp2(const uint8_t* data, size_t size, assay_image_t* image) {
  source_t source = {data, size, 0};
  assay_status_t st = NULL;
  opj_image_t* j = NULL;
  opj_codec_t* codec = opj_create_decompress(data[0] ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  opj_stream_t* stream = opj_stream_default_create(OPJ_TRUE);
  if (codec && stream) {
    opj_stream_set_user_data(stream, &source, NULL);
    opj_stream_set_user_data_length(stream, size);
    opj_stream_set_read_function(stream, on_read);
    opj_stream_set_skip_function(stream, on_skip);
    opj_stream_set_seek_function(stream, on_seek);
    st = read_image(codec, stream, &j, image);
  } else {
    st = assay_status_no_memory();
  }
  if (j) opj_image_destroy(j);
  if (stream) opj_stream_destroy(stream);
  if (codec) opj_destroy_codec(codec);
  return st;
}
