#include "cli/reading.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

static assay_status_t parse_size(const char* text, assay_image_wish_t* out) {
  long long h = 0, w = 0;
  int end = 0;
  if (!text) return NULL;
  if (sscanf(text, "%9lldx%9lld%n", &h, &w, &end) != 2 || text[end] || h < 1 || w < 1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--size '%s' is not HxW, such as 224x224", text);
  out->height = h;
  out->width = w;
  return NULL;
}

assay_status_t cli_reading_parse(const cli_reading_args_t* a, assay_tensor_reading_t* out) {
  assay_image_wish_t w = {.layout = a->layout, .scale = a->scale};
  ASSAY_TRY(parse_size(a->size, &w));
  ASSAY_TRY(parse_numbers("--mean", a->mean, w.mean, &w.n_mean));
  ASSAY_TRY(parse_numbers("--std", a->std, w.std, &w.n_std));
  for (int i = 0; i < w.n_std; i++)
    if (w.std[i] == 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--std '%s': nothing is divided by 0", a->std);
  *out = (assay_tensor_reading_t){.images = w, .dtypes = a->dtypes.items, .n_dtypes = a->dtypes.n};
  return NULL;
}

void cli_reading_tell(const cli_reading_args_t* a, assay_tensor_reading_t* r, bool read) {
  const char* given = a->size         ? "--size"
                      : a->scale != 0 ? "--scale"
                      : a->mean       ? "--mean"
                      : a->std        ? "--std"
                      : a->layout     ? "--layout"
                                      : NULL;
  if (r->notes.len) fputs(assay_str_get(&r->notes), stderr);
  if (read && given && !r->n_images)
    fprintf(stderr, "assay: %s has no effect: no input is an image\n", given);
  assay_str_deinit(&r->notes);
}
