#include "cli/trtexec/calibration.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/trtexec/job.h"
#include "cli/trtexec/log.h"

static assay_status_t bad_line(size_t number, const char* why) {
  return ASSAY_ERROR(ASSAY_CORRUPT, "line %zu of the calibration cache %s", number, why);
}

// "3c010a14" as the float of these bits.
static assay_status_t parse_scale(const char* digits, size_t n, size_t number, float* out) {
  uint32_t bits = 0;
  if (n != 8) return bad_line(number, "has no 8 hexadecimal digits behind its ': '");
  for (size_t i = 0; i < n; i++) {
    const int c = tolower((unsigned char)digits[i]);
    if (!isxdigit(c)) return bad_line(number, "has no 8 hexadecimal digits behind its ': '");
    bits = bits << 4 | (uint32_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
  }
  memcpy(out, &bits, sizeof bits);
  if (!isfinite(*out) || *out < 0)
    return bad_line(number, "has a scale that is negative or no number");
  return NULL;
}

assay_status_t trt_calibration_parse(assay_arena_t* arena, const char* text, size_t n,
                                     trt_scale_t** out, size_t* out_n) {
  trt_scale_t* scales = NULL;
  size_t lines = 1, count = 0;
  for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
  if (n < 4 || memcmp(text, "TRT-", 4) != 0)
    return bad_line(1, "is not TRT-VERSION-ALGORITHM: this is no calibration cache");
  ASSAY_TRY(assay_arena_new(arena, lines, sizeof *scales, &scales));
  for (size_t at = 0, number = 1; at < n; number++) {
    const char* line = text + at;
    const char* end = memchr(line, '\n', n - at);
    size_t len = end ? (size_t)(end - line) : n - at, colon = len;
    at += len + 1;
    if (len && line[len - 1] == '\r') len--;
    for (size_t i = 0; i < len; i++)
      if (line[i] == ':') colon = i;
    if (number == 1 || colon >= len) continue;
    if (colon + 1 == len || line[colon + 1] != ' ')
      return bad_line(number, "has no space behind its last ':'");
    ASSAY_TRY(parse_scale(line + colon + 2, len - colon - 2, number, &scales[count].scale));
    ASSAY_TRY(assay_arena_strndup(arena, line, colon, &scales[count++].name));
  }
  *out = scales;
  *out_n = count;
  return NULL;
}

assay_status_t trt_check_calibration(const trt_job_t* j) {
  const char* path = trt_text(j->options, TRT_FLAG_calib);
  assay_mapping_t* m = NULL;
  trt_scale_t* scales = NULL;
  size_t n = 0, known = 0;
  if (!path) return NULL;
  ASSAY_TRY(assay_status_note(assay_mapping_open(path, &m), "--calib"));
  assay_status_t st = trt_calibration_parse(j->arena, (const char*)assay_mapping_data(m),
                                            assay_mapping_size(m), &scales, &n);
  assay_mapping_release(m);
  if (st) return assay_status_note(st, "--calib=%s", path);
  for (size_t i = 0; i < n; i++) known += assay_graph_find(j->model->graph, scales[i].name) != NULL;
  trt_info("The calibration cache %s has %zu scales, %zu of them of values of the model", path, n,
           known);
  if (cli_has_quantizers(j->model))
    trt_warn("--calib is not used: the model has Q/DQ nodes, whose scales count");
  else if (!trt_given(j->options, TRT_FLAG_int8))
    trt_warn("--calib is not used without --int8");
  return NULL;
}
