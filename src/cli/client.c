// For verbs that are clients of the library: models, formats and samples from options, reports.
#include "cli/client.h"

#include <assay/memory.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "cli/inputs.h"
#include "cli/plan_options.h"
#include "cli/verbs/reading.h"

// ---- options ------------------------------------------------------------------------------------

assay_status_t cli_client_begin(const cli_reading_args_t* reading, const cli_shape_args_t* shapes,
                                cli_client_t* out) {
  cli_client_t c = {.reading_args = reading};
  assay_tensor_reading_t r;
  ASSAY_TRY(cli_reading_begin(reading, &r));
  c.reading = cli_samples_options(&r);
  memcpy(c.mean, r.images.mean, sizeof c.mean);
  memcpy(c.std, r.images.std, sizeof c.std);
  c.met = r.met;
  assay_status_t st = cli_shapes_parse(shapes, &c.shapes);
  if (st) return cli_client_end(&c), st;
  *out = c;
  return NULL;
}

void cli_client_end(cli_client_t* c) {
  assay_free(c->met);
  c->met = NULL;
  cli_shapes_free(&c->shapes);
}

assay_status_t cli_client_format(const char* what, const char* text, assay_format_t* out) {
  *out = text ? assay_format_parse(text) : ASSAY_FORMAT_NONE;
  if (!text || *out) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "unknown %s '%s'; use fp32, tf32, bf16, fp16, fp8e4m3, fp64 ...", what, text);
}

assay_status_t cli_client_precision(const char* text, assay_format_t* out) {
  return cli_parse_precision(text, out);
}

assay_status_t cli_client_accumulator(const char* text, assay_format_t* out) {
  return cli_parse_accumulator(text, out);
}

assay_format_t cli_client_find_float(const char* name) { return cli_find_float(name); }

assay_status_t cli_client_fp32(const char* text, assay_fp32_t* out) {
  return cli_parse_fp32(text, out);
}

assay_status_t cli_client_fix(const char* text, assay_fix_choice_t* out) {
  *out = ASSAY_FIX_ANY;
  for (int i = ASSAY_FIX_FEWEST; text && i <= ASSAY_FIX_BEST; i++)
    if (strcmp(text, assay_fix_choice_name((assay_fix_choice_t)i)) == 0)
      *out = (assay_fix_choice_t)i;
  return !text || *out != ASSAY_FIX_ANY
             ? NULL
             : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--fix is fewest or best, not '%s'", text);
}

assay_status_t cli_client_want_target(const char* name) { return cli_want_target(name); }

// ---- models and samples -------------------------------------------------------------------------

assay_status_t cli_client_model(const cli_client_t* c, const char* path, bool allow_unknown,
                                assay_model_t** out) {
  const cli_shapes_t* s = &c->shapes;
  assay_model_options_t o = ASSAY_MODEL_OPTIONS_INIT;
  o.shapes = s->shapes;
  o.n_shapes = s->n;
  o.dims = s->dims;
  o.n_dims = s->n_dims;
  o.batch = s->batch;
  o.allow_unknown = allow_unknown;
  ASSAY_TRY(assay_model_load_with(path, &o, out));
  cli_warn_of_model(path, *out);
  cli_client_tell_batch(c, assay_model_batch_used(*out));
  return NULL;
}

void cli_client_tell_batch(const cli_client_t* c, bool used) {
  if (c->shapes.batch && !used)
    fprintf(stderr,
            "assay: --batch %lld sets nothing: no input leaves its leading dimension open\n",
            (long long)c->shapes.batch);
}

assay_samples_options_t cli_client_reading(const cli_client_t* c) {
  assay_samples_options_t o = c->reading;
  o.image_mean = c->mean;
  o.image_std = c->std;
  return o;
}

// Said before anything else: what a model makes of such numbers may be anything.
static void warn_of_unfinite(const assay_samples_t* s) {
  char text[4096];
  if (*assay_samples_unfinite(s, text, sizeof text))
    assay_print(
        stderr,
        "assay: the inputs are not finite: %s; outputs that follow from them show no accuracy\n",
        text);
}

assay_status_t cli_client_samples(cli_client_t* c, const opt_list_t* files, assay_model_t* model,
                                  bool required, assay_samples_t** out) {
  assay_samples_options_t o = cli_client_reading(c);
  assay_samples_t* s = NULL;
  o.partial = !required;
  if (files->n) {
    ASSAY_TRY(assay_samples_load(model, files->n, files->items, &o, &s));
    for (size_t i = 0; i < o.n_dtypes; i++) c->met[i] |= assay_samples_dtype_used(s, i);
    c->n_images += assay_samples_image_count(s);
    fputs(assay_samples_notes(s), stderr);
    warn_of_unfinite(s);
  }
  *out = s;
  return NULL;
}

assay_status_t cli_client_inputs(cli_client_t* c, const opt_list_t* files, assay_model_t* model,
                                 uint64_t seed, assay_samples_t** out) {
  if (files->n) return cli_client_samples(c, files, model, true, out);
  ASSAY_TRY(cli_client_warn_of_random(model));
  return assay_samples_random(model, seed, 0, NULL, out);
}

assay_status_t cli_client_read(cli_client_t* c, assay_status_t read) {
  assay_tensor_reading_t r = {.dtypes = c->reading.dtypes,
                              .n_dtypes = c->reading.n_dtypes,
                              .met = c->met,
                              .n_images = c->n_images};
  c->met = NULL;  // goes along
  return cli_reading_end(c->reading_args, &r, read);
}

assay_status_t cli_client_warn_of_random(const assay_model_t* model) {
  if (!assay_model_input_count(model)) return NULL;
  return cli_shapes_report_ones(model, CLI_RANDOM_INPUTS);
}

void cli_client_report_ones(const char* ones) {
  if (*ones)
    fprintf(stderr, "assay: open sizes are 1: %s; --dim NAME=N, --batch or --shape give others\n",
            ones);
}

// ---- running and reports ------------------------------------------------------------------------

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
