// Options that say how files of inputs are read: types that NumPy lacks, images.
#include "cli/verbs/reading.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/shown.h"

static assay_status_t parse_numbers(const char* option, const char* text, double* out, int* out_n) {
  const char* at = text;
  *out_n = 0;
  while (text) {
    char* end;
    if (*out_n == ASSAY_IMAGE_CHANNELS) break;
    const double x = strtod(at, &end);
    if (end == at || !isfinite(x)) break;
    out[(*out_n)++] = x;
    if (!*end) return NULL;
    if (*end != ',') break;
    at = end + 1;
  }
  return text ? ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                            "%s '%s' is not one number, or three with ',' between", option, text)
              : NULL;
}

static assay_status_t parse_size(const char* option, const char* text, int64_t* out_height,
                                 int64_t* out_width) {
  long long h = 0, w = 0;
  int end = 0;
  if (!text) return NULL;
  if (sscanf(text, "%9lldx%9lld%n", &h, &w, &end) != 2 || text[end] || h < 1 || w < 1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s '%s' is not HxW, such as 224x224", option, text);
  *out_height = h;
  *out_width = w;
  return NULL;
}

// "--size 256": the shorter side.
static assay_status_t parse_sizes(const cli_reading_args_t* a, assay_image_request_t* w) {
  long long side = 0;
  int end = 0;
  ASSAY_TRY(parse_size("--crop", a->crop, &w->crop_height, &w->crop_width));
  if (a->size && sscanf(a->size, "%9lld%n", &side, &end) == 1 && !a->size[end] && side > 0) {
    w->shorter = side;
    return NULL;
  }
  return parse_size("--size", a->size, &w->height, &w->width);
}

assay_status_t cli_reading_begin(const cli_reading_args_t* a, assay_tensor_reading_t* out) {
  assay_image_request_t w = {.layout = a->layout, .scale = a->scale};
  ASSAY_TRY(parse_sizes(a, &w));
  ASSAY_TRY(parse_numbers("--mean", a->mean, w.mean, &w.n_mean));
  ASSAY_TRY(parse_numbers("--std", a->std, w.std, &w.n_std));
  for (int i = 0; i < w.n_std; i++)
    if (w.std[i] == 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--std '%s': nothing is divided by 0", a->std);
  for (size_t i = 0; i < a->dtypes.n; i++) ASSAY_TRY(assay_tensor_dtype_check(a->dtypes.items[i]));
  bool* met = NULL;
  ASSAY_TRY(assay_new_array(a->dtypes.n, sizeof *met, &met));
  *out = (assay_tensor_reading_t){
      .images = w, .dtypes = a->dtypes.items, .n_dtypes = a->dtypes.n, .met = met};
  return NULL;
}

assay_status_t cli_reading_end(const cli_reading_args_t* a, assay_tensor_reading_t* r,
                               assay_status_t read) {
  const char* given = a->size         ? "--size"
                      : a->crop       ? "--crop"
                      : a->scale != 0 ? "--scale"
                      : a->mean       ? "--mean"
                      : a->std        ? "--std"
                      : a->layout     ? "--layout"
                                      : NULL;
  if (r->notes.len) fputs(assay_str_get(&r->notes), stderr);
  if (!read && given && !r->n_images)
    assay_print(stderr, "assay: %s has no effect: no input is an image\n", given);
  for (size_t i = 0; !read && i < r->n_dtypes; i++)
    if (!r->met[i])
      read = ASSAY_ERROR(ASSAY_NOT_FOUND, "--dtype '%s': no file has such an array", r->dtypes[i]);
  cli_reading_deinit(r);
  return read;
}

void cli_reading_deinit(assay_tensor_reading_t* r) {
  assay_str_deinit(&r->notes);
  assay_str_deinit(&r->about);
  assay_free(r->met);
  *r = (assay_tensor_reading_t){0};
}
