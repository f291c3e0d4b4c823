// For verbs that are clients of the library: models, formats and samples from options, reports.
#include "cli/client.h"

#include <assay/memory.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/inputs.h"
#include "onnx/onnx.h"

assay_status_t cli_client_begin(const cli_reading_args_t* reading, const cli_shape_args_t* shapes,
                                cli_client_t* out) {
  cli_client_t c = {.reading_args = reading};
  ASSAY_TRY(cli_reading_begin(reading, &c.reading));
  assay_status_t st = cli_shapes_parse(shapes, &c.shapes);
  if (st) return cli_client_end(&c), st;
  *out = c;
  return NULL;
}

void cli_client_end(cli_client_t* c) {
  cli_reading_deinit(&c->reading);
  cli_shapes_free(&c->shapes);
}

assay_status_t cli_client_settle(cli_client_t* c, const char* path) {
  assay_model_t* raw = NULL;
  ASSAY_TRY(assay_onnx_read(path, &raw));
  assay_status_t st = cli_shapes_settle(raw, &c->shapes);
  assay_model_release(raw);
  return st;
}

assay_status_t cli_client_model(cli_client_t* c, const char* path, bool allow_unknown,
                                assay_model_t** out) {
  return cli_shapes_load(path, allow_unknown, &c->shapes, out);
}

assay_status_t cli_client_samples(cli_client_t* c, const opt_list_t* files, assay_model_t* model,
                                  bool required, assay_samples_t** out) {
  assay_samples_t* s = NULL;
  assay_status_t st = files->n ? ASSAY_NEW(&s) : NULL;
  if (!st && s) st = cli_samples_given(files, model, &c->reading, required, s);
  st = cli_reading_end(c->reading_args, &c->reading, st);
  if (st) return assay_samples_destroy(s), st;
  *out = s;
  return NULL;
}

assay_status_t cli_client_warn_of_random(const assay_model_t* model) {
  if (!assay_model_input_count(model)) return NULL;
  return cli_shapes_tell_ones(model, CLI_RANDOM_INPUTS);
}

void cli_client_tell_ones(const char* ones) {
  if (*ones)
    fprintf(stderr, "assay: open sizes are 1: %s; --dim NAME=N, --batch or --shape give others\n",
            ones);
}

assay_status_t cli_client_format(const char* what, const char* text, assay_format_t* out) {
  *out = text ? assay_format_parse(text) : ASSAY_FORMAT_NONE;
  if (!text || *out) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "unknown %s '%s'; use fp32, tf32, bf16, fp16, fp8e4m3, fp64 ...", what, text);
}

void cli_client_progress(void* user, const char* what, double fraction) {
  (void)user;
  assay_cli_progress(what, fraction);
}

assay_status_t cli_client_print(void* user, const char* data, size_t size) {
  (void)user;
  fwrite(data, 1, size, stdout);
  return NULL;
}

// Both are made before one is printed: what cannot be told is not told by half.
assay_status_t cli_client_report(cli_report_fn_t* report, const void* job, const char* path) {
  const bool instead = assay_cli_json_to_stdout(path);
  char *text = NULL, *json = NULL;
  assay_status_t st = report(job, ASSAY_REPORT_TEXT, assay_report_collect, &text);
  if (!st && path) st = report(job, ASSAY_REPORT_JSON, assay_report_collect, &json);
  if (!st) fputs(instead ? json : text, stdout);
  if (!st && path && !instead) st = assay_report_to_file(&path, json, strlen(json));
  assay_text_free(text);
  assay_text_free(json);
  return st;
}
