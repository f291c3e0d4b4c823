// trtexec's command lines, a word a line, and the small languages of its values; calibration
// caches; profiles of shapes. The first byte says which.
#include <stdlib.h>
#include <string.h>

#include "edit/weights/calibration_cache.h"
#include "frontends/trtexec/flags.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"
#include "runtime/profile.h"

enum { LONGEST = 1 << 16, MAX_WORDS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static assay_status_t command_line(char* text) {
  char* words[MAX_WORDS];
  char* save = NULL;
  int n = 0;
  trt_options_t o = {0};
  trt_outcome_t outcome = TRT_OUTCOME_HELP;
  for (char* w = strtok_r(text, "\n", &save); w && n < MAX_WORDS; w = strtok_r(NULL, "\n", &save))
    words[n++] = w;
  assay_status_t st = trt_options_parse(n, words, &o, &outcome);
  if (!st && outcome == TRT_OUTCOME_RUN) st = trt_options_check(&o);
  trt_options_deinit(&o);
  return st;
}

// NAME:VALUE lists, and their values as shapes and sizes.
static assay_status_t items(assay_arena_t* arena, const char* text) {
  trt_item_t* list = NULL;
  size_t n = 0;
  ASSAY_TRY(trt_items_parse(arena, "--x", text, &list, &n));
  for (size_t i = 0; i < n; i++) {
    int64_t dims[ASSAY_MAX_RANK];
    uint64_t bytes;
    int rank = 0;
    if (!*list[i].name) abort();
    (void)trt_name_matches(list[i].name, list[i].value);
    assay_status_free(trt_name_check("--x", list[i].name));
    assay_status_free(trt_size_parse("--x", list[i].value, 1, &bytes));
    assay_status_t st = trt_dims_parse("--x", &list[i], &rank, dims);
    if (!st && (rank < 0 || rank > ASSAY_MAX_RANK)) abort();
    assay_status_free(st);
  }
  return NULL;
}

static assay_status_t words(assay_arena_t* arena, const char* text) {
  const char** list = NULL;
  double* numbers = NULL;
  trt_io_format_t* formats = NULL;
  assay_str_t name = {0};
  size_t n = 0;
  assay_status_free(trt_words_parse(arena, "--x", text, &list, &n));
  assay_status_free(trt_percentiles_parse(arena, "--x", text, &numbers, &n));
  assay_status_free(trt_io_formats_parse(arena, "--x", text, &formats, &n));
  (void)trt_layer_type(text);
  trt_file_name(text, &name);
  if (name.len > 150) abort();
  assay_str_deinit(&name);
  return NULL;
}

static assay_status_t calibration(assay_arena_t* arena, const uint8_t* data, size_t size) {
  assay_edit_scale_t* scales = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_calibration_cache_parse(arena, (const char*)data, size, &scales, &n));
  for (size_t i = 0; i < n; i++)
    if (!(scales[i].scale >= 0) || !scales[i].name) abort();
  return NULL;
}

static assay_status_t profile(const char* text) {
  assay_profile_t p;
  ASSAY_TRY(assay_profile_parse("x", text, &p));
  for (int i = 0; i < p.rank; i++)
    if (p.min[i] < 1 || p.min[i] > p.opt[i] || p.opt[i] > p.max[i]) abort();
  return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_arena_t* arena = NULL;
  if (!size || size > LONGEST) return 0;
  trt_log_silent(true);
  char* text = malloc(size);
  assay_status_t st = text ? assay_arena_create(&arena) : assay_status_no_memory();
  if (!st) {
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    switch (*data % 5) {
      case 0:
        st = command_line(text);
        break;
      case 1:
        st = items(arena, text);
        break;
      case 2:
        st = words(arena, text);
        break;
      case 3:
        st = calibration(arena, data + 1, size - 1);
        break;
      default:
        st = profile(text);
    }
  }
  if (assay_status_code(st) == ASSAY_INTERNAL) abort();
  assay_status_free(st);
  assay_arena_destroy(arena);
  free(text);
  if (assay_alloc_live()) abort();
  return 0;
}
