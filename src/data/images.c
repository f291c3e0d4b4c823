// Image files (PNG, JPEG, PPM) as tensors.
#include "data/images.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/format.h"
#include "ops/image/image_codec.h"

// ---- decoding -----------------------------------------------------------------------------------

static bool is_png(const uint8_t* d, size_t n) {
  return assay_image_starts(d, n, 0, "\x89PNG\r\n\x1a\n", 8);
}
static bool is_jpeg(const uint8_t* d, size_t n) {
  return assay_image_starts(d, n, 0, "\xff\xd8\xff", 3);
}
static bool is_ppm(const uint8_t* d, size_t n) {
  return n >= 3 && d[0] == 'P' && d[1] >= '1' && d[1] <= '6' && isspace(d[2]);
}

static const assay_image_codec_t codecs[] = {{"PNG", is_png, assay_image_decode_png},
                                             {"JPEG", is_jpeg, assay_image_decode_jpeg},
                                             {"PPM", is_ppm, assay_image_decode_pnm}};

static const assay_image_codec_t* codec_of(const uint8_t* data, size_t size) {
  for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
    if (codecs[i].matches(data, size)) return &codecs[i];
  return NULL;
}

bool assay_image_is(const uint8_t* data, size_t size) { return codec_of(data, size) != NULL; }

// What the decoder leaves out, which gives 8 bits of red, green and blue.
static const char* left_out(const uint8_t* data, size_t size) {
  enum { DEPTH = 24, COLOUR = 25, ALPHA = 4 };
  if (!is_png(data, size) || size <= COLOUR) return "";
  if (data[DEPTH] == 16)
    return data[COLOUR] & ALPHA ? ", 16 bits as 8, without its transparency" : ", 16 bits as 8";
  return data[COLOUR] & ALPHA ? ", without its transparency" : "";
}

// ---- what the input wants -----------------------------------------------------------------------

typedef struct frame {
  assay_type_t elem;
  int rank, channel, row, column;  // axes
  int64_t channels;
  int64_t dims[4];  // -1: open
} frame_t;

static int64_t size_at(const assay_valtype_t* t, int d) {
  int64_t size;
  return assay_dim_value(t->dims[d], &size) ? size : -1;
}

static bool is_channels(int64_t n) { return n == 1 || n == 3; }

static assay_status_t choose_layout(const char* request, const assay_value_t* v, frame_t* f) {
  const int first = f->rank - 3, last = f->rank - 1;
  const bool front = is_channels(f->dims[first]), back = is_channels(f->dims[last]);
  bool behind = back && !front;
  if (request && strcmp(request, "nchw") != 0 && strcmp(request, "nhwc") != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a layout is nchw or nhwc, not '%s'", request);
  if (request) behind = strcmp(request, "nhwc") == 0;
  if (!request && v && front == back)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the shape of input '%s' does not tell where its channels are: say --layout "
                       "nchw or nhwc",
                       v->name);
  f->channel = behind ? last : first;
  f->row = behind ? first : first + 1;
  f->column = f->row + 1;
  f->channels = f->dims[f->channel] < 0 ? 3 : f->dims[f->channel];
  return is_channels(f->channels)
             ? NULL
             : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "input '%s' has %" PRId64 " channels there; images have 3 or 1",
                           v ? v->name : "", f->channels);
}

static assay_status_t read_input(const assay_value_t* v, const assay_image_request_t* w,
                                 frame_t* f) {
  const assay_valtype_t* t = v ? (v->type ? v->type : v->declared) : NULL;
  *f = (frame_t){.elem = ASSAY_TYPE_FLOAT, .rank = 4, .dims = {1, 3, -1, -1}};
  if (!v) return choose_layout(w->layout ? w->layout : "nchw", v, f);
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->rank < 3 || t->rank > 4)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' is %s: an image is of 3 or 4 dimensions",
                       v->name, ASSAY_VALTYPE_TEXT(t));
  f->elem = t->elem ? t->elem : ASSAY_TYPE_FLOAT;
  f->rank = t->rank;
  for (int d = 0; d < t->rank; d++) f->dims[d] = size_at(t, d);
  if (f->elem != ASSAY_TYPE_UINT8 && !assay_type_is_float(f->elem))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' is %s: images are of floats or uint8",
                       v->name, ASSAY_VALTYPE_TEXT(t));
  if (f->elem == ASSAY_TYPE_UINT8 && (w->n_mean || w->n_std || w->scale != 0))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "input '%s' is uint8: --mean, --std and --scale would leave no pixels of it",
                       v->name);
  return choose_layout(w->layout, v, f);
}

// ---- sizes --------------------------------------------------------------------------------------

// What becomes of an image: resized, and cut out of that.
typedef struct extent {
  int64_t height, width;  // as it is resized, or was
  int64_t top, left, cut_height, cut_width;
} extent_t;

static bool is_resized(const assay_image_request_t* w) { return w->height || w->shorter; }

static assay_status_t find_extent(const assay_image_t* image, const assay_image_request_t* w,
                                  extent_t* out) {
  extent_t e = {.height = image->height, .width = image->width};
  if (w->height) {
    e.height = w->height;
    e.width = w->width;
  } else if (w->shorter) {  // the other side in proportion, rounded down
    const bool tall = e.height > e.width;
    const int64_t side = tall ? e.height : e.width, less = tall ? e.width : e.height;
    int64_t longer;
    if (!assay_mul_i64(w->shorter, side, &longer)) return assay_status_no_memory();
    e.height = tall ? longer / less : w->shorter;
    e.width = tall ? w->shorter : longer / less;
  }
  if (is_resized(w) && !assay_image_size_ok(e.height, e.width))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "an image cannot be resized to %" PRId64 " x %" PRId64, e.height, e.width);
  e.cut_height = w->crop_height ? w->crop_height : e.height;
  e.cut_width = w->crop_height ? w->crop_width : e.width;
  if (e.cut_height > e.height || e.cut_width > e.width)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "it is %" PRId64 " x %" PRId64 ": --crop %" PRId64 "x%" PRId64
                       " is larger; resize it with --size",
                       e.height, e.width, e.cut_height, e.cut_width);
  e.top = (int64_t)nearbyint((double)(e.height - e.cut_height) / 2);
  e.left = (int64_t)nearbyint((double)(e.width - e.cut_width) / 2);
  *out = e;
  return NULL;
}

// ---- pixels -------------------------------------------------------------------------------------

// Weights of the pixels under pixel `at` of a line that gets n pixels in place of `from`: bilinear,
// over as many as it stands for where it gets fewer.
static void resample(const double* in, int64_t from, int64_t stride, int64_t n, int64_t at,
                     double* out) {
  const double ratio = (double)from / (double)n, reach = fmax(ratio, 1);
  const double centre = ((double)at + 0.5) * ratio;
  double sum = 0, weights = 0;
  int64_t first = (int64_t)floor(centre - reach), last = (int64_t)ceil(centre + reach);
  if (first < 0) first = 0;
  if (last > from) last = from;
  for (int64_t i = first; i < last; i++) {
    const double w = 1 - fabs((double)i + 0.5 - centre) / reach;
    if (w <= 0) continue;
    sum += w * in[i * stride];
    weights += w;
  }
  *out = weights > 0 ? sum / weights : 0;
}

// Rows of pixels of three channels, resized first along rows, then along columns.
static assay_status_t resize(const assay_image_t* image, int64_t height, int64_t width,
                             double** out) {
  enum { C = ASSAY_IMAGE_CHANNELS };
  double *pixels = NULL, *narrow = NULL, *made = NULL;
  const int64_t h = image->height, w = image->width;
  ASSAY_TRY(assay_new_array((size_t)(h * w * C), sizeof *pixels, &pixels));
  assay_status_t st = assay_new_array((size_t)(h * width * C), sizeof *narrow, &narrow);
  if (!st) st = assay_new_array((size_t)(height * width * C), sizeof *made, &made);
  for (int64_t i = 0; !st && i < h * w * C; i++) pixels[i] = (double)image->rgb[i];
  for (int64_t y = 0; !st && y < h; y++)
    for (int64_t x = 0; x < width; x++)
      for (int c = 0; c < C; c++)
        resample(pixels + y * w * C + c, w, C, width, x, &narrow[(y * width + x) * C + c]);
  for (int64_t y = 0; !st && y < height; y++)
    for (int64_t x = 0; x < width * C; x++)
      resample(narrow + x, h, width * C, height, y, &made[y * width * C + x]);
  assay_free(pixels);
  assay_free(narrow);
  if (st) return assay_free(made), st;
  *out = made;
  return NULL;
}

static bool is_gray(const assay_image_t* image) {
  for (int64_t i = 0; i < image->height * image->width; i++)
    if (image->rgb[3 * i] != image->rgb[3 * i + 1] || image->rgb[3 * i] != image->rgb[3 * i + 2])
      return false;
  return true;
}

static double adjust(const assay_image_request_t* w, double pixel, int channel) {
  double x = w->scale != 0 ? pixel * w->scale : pixel;
  if (w->n_mean) x -= w->mean[w->n_mean > 1 ? channel : 0];
  return w->n_std ? x / w->std[w->n_std > 1 ? channel : 0] : x;
}

// pixels: resized ones; NULL: those of the image.
static void fill(const assay_image_t* image, const double* pixels, const extent_t* e,
                 const frame_t* f, const assay_image_request_t* w, assay_tensor_t* t) {
  const int64_t height = t->dims[f->row], width = t->dims[f->column];
  const bool floats = t->store == ASSAY_STORE_F64, behind = f->channel == f->rank - 1;
  for (int64_t y = 0; y < height; y++)
    for (int64_t x = 0; x < width; x++)
      for (int64_t c = 0; c < f->channels; c++) {
        const int64_t from = ((e->top + y) * e->width + e->left + x) * 3 + c;
        const int64_t to =
            behind ? (y * width + x) * f->channels + c : (c * height + y) * width + x;
        const double pixel = pixels ? pixels[from] : (double)image->rgb[from];
        if (floats)
          assay_f64(t)[to] = assay_format_round(assay_type_format(f->elem),
                                                adjust(w, pixel, (int)c), ASSAY_OVERFLOW_SATURATE);
        else
          assay_i64(t)[to] = (int64_t)nearbyint(pixel);
      }
}

// ---- the whole ----------------------------------------------------------------------------------

static void note_numbers(assay_str_t* notes, const char* what, const double* x, int n) {
  for (int i = 0; i < n; i++) assay_str_printf(notes, "%s%g", i ? "," : what, x[i]);
}

static void note(assay_str_t* notes, const char* name, const char* kind, const char* less,
                 const assay_image_t* image, const assay_image_request_t* w, const extent_t* e,
                 const assay_tensor_t* t) {
  if (!notes) return;
  assay_str_printf(notes, "'%s': %s of %" PRId64 " x %" PRId64 "%s", name, kind, image->height,
                   image->width, less);
  if (is_resized(w))
    assay_str_printf(notes, ", resized to %" PRId64 " x %" PRId64 " (bilinear)", e->height,
                     e->width);
  if (w->crop_height)
    assay_str_printf(notes, ", cut to the %" PRId64 " x %" PRId64 " in its middle", e->cut_height,
                     e->cut_width);
  if (w->scale != 0) assay_str_printf(notes, ", times %g", w->scale);
  note_numbers(notes, ", minus ", w->mean, w->n_mean);
  note_numbers(notes, ", divided by ", w->std, w->n_std);
  assay_str_printf(notes, ", as %s%s\n", assay_type_name(t->type), ASSAY_DIMS_TEXT(t));
}

static assay_status_t check_fit(const assay_image_t* image, const extent_t* e, const frame_t* f,
                                const assay_value_t* v, const assay_image_request_t* w) {
  const int64_t h = e->cut_height, want_h = f->dims[f->row];
  const int64_t x = e->cut_width, want_x = f->dims[f->column];
  if ((want_h >= 0 && want_h != h) || (want_x >= 0 && want_x != x))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "it is %" PRId64 " x %" PRId64 "; input '%s' takes %" PRId64 " x %" PRId64
                       ": resize it with --size, such as --size %" PRId64 "x%" PRId64,
                       h, x, v->name, want_h, want_x, want_h < 0 ? h : want_h,
                       want_x < 0 ? x : want_x);
  if (f->channels == 1 && !is_gray(image))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "it is in colour, and input '%s' takes one channel: make it gray before",
                       v->name);
  if ((w->n_mean > 1 && w->n_mean != f->channels) || (w->n_std > 1 && w->n_std != f->channels))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--mean and --std have one number, or one for each of %" PRId64 " channels",
                       f->channels);
  return NULL;
}

static assay_status_t make(const assay_image_t* image, const extent_t* e, const frame_t* f,
                           const assay_image_request_t* w, assay_tensor_t** out) {
  int64_t dims[4] = {1, 1, 1, 1};
  double* pixels = NULL;
  assay_tensor_t* t = NULL;
  dims[f->channel] = f->channels;
  dims[f->row] = e->cut_height;
  dims[f->column] = e->cut_width;
  ASSAY_TRY(assay_tensor_create(f->elem, f->rank, dims, &t));
  assay_status_t st = NULL;
  if (is_resized(w)) st = resize(image, e->height, e->width, &pixels);
  if (!st) fill(image, pixels, e, f, w, t);
  assay_free(pixels);
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

assay_status_t assay_image_tensor(const uint8_t* data, size_t size, const char* name,
                                  const assay_value_t* input, const assay_image_request_t* request,
                                  assay_str_t* notes, assay_tensor_t** out) {
  static const assay_image_request_t none = {0};
  const assay_image_request_t* w = request ? request : &none;
  const assay_image_codec_t* codec = codec_of(data, size);
  assay_image_t image = {0};
  frame_t frame;
  extent_t extent = {0};
  ASSAY_TRY(read_input(input, w, &frame));
  if (codec) ASSAY_TRY(codec->decode(data, size, &image));
  if (!image.rgb)
    return ASSAY_ERROR(ASSAY_CORRUPT, "it begins as %s does, and cannot be decoded",
                       codec ? codec->name : "no image");
  assay_tensor_t* t = NULL;
  assay_status_t st = find_extent(&image, w, &extent);
  if (!st) st = check_fit(&image, &extent, &frame, input, w);
  if (!st) st = make(&image, &extent, &frame, w, &t);
  if (!st) note(notes, name, codec->name, left_out(data, size), &image, w, &extent, t);
  assay_image_drop(&image);
  if (st) return st;
  *out = t;
  return NULL;
}

// ---- one of many --------------------------------------------------------------------------------

typedef struct late {
  char* path;
  const assay_value_t* input;
  assay_image_request_t request;
} late_t;

static void late_free(void* owner) {
  late_t* l = owner;
  assay_free(l->path);
  assay_free(l);
}

static assay_status_t read_path(const char* path, const assay_value_t* input,
                                const assay_image_request_t* request, assay_str_t* notes,
                                assay_tensor_t** out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st = assay_image_tensor(assay_mapping_data(m), assay_mapping_size(m), path, input,
                                         request, notes, out);
  assay_mapping_release(m);
  return st;
}

static assay_status_t late_make(void* owner, assay_tensor_t** out) {
  const late_t* l = owner;
  return assay_status_note(read_path(l->path, l->input, &l->request, NULL, out), "'%s'", l->path);
}

assay_status_t assay_image_tensor_late(const char* path, const assay_value_t* input,
                                       const assay_image_request_t* request, assay_str_t* notes,
                                       assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  late_t* l = NULL;
  ASSAY_TRY(read_path(path, input, request, notes, &t));
  assay_status_t st = ASSAY_NEW(&l);
  if (!st) st = assay_new_array(strlen(path) + 1, 1, &l->path);
  if (st) {
    assay_free(l);
    return assay_tensor_release(t), st;
  }
  strcpy(l->path, path);
  l->input = input;
  if (request) l->request = *request;
  st = assay_tensor_create_late(t->type, t->rank, t->dims, late_make, late_free, l, out);
  assay_tensor_release(t);
  return st;
}
