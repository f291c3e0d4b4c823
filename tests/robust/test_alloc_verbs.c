// Every allocation fails once in what the verbs audit, debug precision, debug batch and edit do
// with small models.
#include "debug/batch_debug.h"
#include "debug/precision.h"
#include "edit/editor.h"
#include "io/json.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "ranges/audit.h"
#include "report/audit/audit_report.h"
#include "report/edit_report.h"
#include "report/report.h"
#include "robust/alloc_case.h"

// What is told counts for the digest; times are left out of it.
static assay_status_t reported(assay_status_t st, assay_str_t* text, json_t* json) {
  if (!st) assay_json_print(json, 1, text);
  if (!st) st = assay_str_status(text);
  if (!st) alloc_digest_add(assay_str_get(text), text->len);
  json_decref(json);
  assay_str_deinit(text);
  return st;
}

// ---- audit --------------------------------------------------------------------------------------

static assay_status_t report_audit(assay_audit_t* a) {
  const assay_audit_names_t names = {.model = "model.onnx",
                                     .precision = "fp16",
                                     .broadcasts = true,
                                     .constants = true,
                                     .operators = true,
                                     .hazards = true};
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = assay_report_audit_text(a, &names, &text);
  if (!st) st = assay_report_audit_json(a, &names, &json);
  if (!st) json_object_del(json, "seconds");
  return reported(st, &text, json);
}

static assay_status_t run_audit(const char* path) {
  assay_precision_t precision = {.format = ASSAY_FORMAT_FP16};
  const assay_audit_job_t options = {.precision = &precision, .seconds = 1000};
  assay_model_t *raw = NULL, *open = NULL, *model = NULL;
  assay_audit_t audit = {0};
  assay_status_t st = assay_onnx_read(path, &raw);
  if (!st) st = assay_onnx_prepare_known(raw, 0, NULL, &open);
  if (!st) st = assay_onnx_close_sizes(open, 1, 0, NULL, &model);
  if (!st) st = assay_audit_find(open, model, &options, &audit);
  if (!st) st = report_audit(&audit);
  assay_audit_deinit(&audit);
  assay_model_release(model);
  assay_model_release(open);
  assay_model_release(raw);
  return st;
}

// ---- debug --------------------------------------------------------------------------------------

typedef struct job {
  assay_model_t* model;
  assay_samples_t samples;
  assay_check_setting_t options;
} job_t;

static assay_status_t open_job(const char* path, job_t* j) {
  *j = (job_t){.options = {.precision = {.format = ASSAY_FORMAT_FP16},
                           .precision_name = "fp16",
                           .backend = assay_backend_find("emu")}};
  ASSAY_TRY(assay_onnx_load(path, 0, NULL, &j->model));
  return assay_samples_generate(j->model, 1, &j->samples);
}

static void close_job(job_t* j) {
  assay_precision_deinit(&j->options.precision);
  assay_samples_deinit(&j->samples);
  assay_model_release(j->model);
}

static assay_status_t run_precision_mode(const char* path, assay_precision_mode_t mode) {
  const assay_precision_options_t how = {.mode = mode, .as_asked = mode == ASSAY_PRECISION_ACCOUNT};
  const assay_report_precision_t names = {
      .model = "model.onnx", .target = "emu", .precision = "fp16", .mode = "account"};
  assay_precision_found_t found = {0};
  assay_str_t text = {0};
  json_t* json = NULL;
  job_t j;
  assay_status_t st = open_job(path, &j);
  if (!st) st = assay_precision_find(j.model, &j.options, &how, &j.samples, NULL, &found);
  if (!st) st = assay_report_precision_text(&found, &names, &text);
  if (!st) st = assay_report_precision_json(&found, &names, &json);
  st = reported(st, &text, json);
  if (found.model) assay_precision_found_deinit(&found);
  close_job(&j);
  return st;
}

static assay_status_t run_precision(const char* path) {
  return run_precision_mode(path, ASSAY_PRECISION_ACCOUNT);
}
static assay_status_t run_bisection(const char* path) {
  return run_precision_mode(path, ASSAY_PRECISION_BISECT);
}

static assay_status_t run_batch(const char* path) {
  const assay_batch_options_t how = {0};
  const assay_report_debug_t names = {.model = "model.onnx", .target = "emu", .precision = "fp16"};
  assay_batch_blame_t blame = {0};
  assay_str_t text = {0};
  json_t* json = NULL;
  job_t j;
  assay_status_t st = open_job(path, &j);
  if (!st) st = assay_batch_debug(j.model, &j.options, &how, &j.samples, &blame);
  if (!st) st = assay_report_batch_text(&blame, &names, &text);
  if (!st) st = assay_report_batch_json(&blame, &names, &json);
  st = reported(st, &text, json);
  assay_batch_blame_deinit(&blame);
  close_job(&j);
  return st;
}

// ---- edit ---------------------------------------------------------------------------------------

static assay_status_t run_editor(const char* path, const char* edit,
                                 const assay_edit_requests_t* requests) {
  const assay_editor_options_t options = {.seed = 3};
  const assay_edit_names_t names = {.model = "model.onnx", .all = true};
  assay_model_t* raw = NULL;
  assay_edit_result_t r = {0};
  assay_str_t text = {0};
  json_t* json = NULL;
  assay_status_t st = assay_onnx_read(path, &raw);
  if (!st) st = assay_editor_run(assay_editor_find(edit), raw, requests, &options, &r);
  if (!st) st = assay_report_edit_text(&r, &names, &text);
  if (!st) st = assay_report_edit_json(&r, &names, &json);
  // What cannot be proven for want of memory is told so, and not written.
  if (!st && r.verdict == ASSAY_EDIT_NOT_PROVEN && strstr(assay_str_get(&r.why_not), "memory"))
    st = assay_status_no_memory();
  st = reported(st, &text, json);
  assay_edit_result_deinit(&r);
  assay_model_release(raw);
  return st;
}

static assay_status_t run_edits(const char* path) {
  static const assay_edit_requests_t none = {0}, half = {.format = "fp16"};
  ASSAY_TRY(run_editor(path, "cast", &half));
  ASSAY_TRY(run_editor(path, "sanitize", &none));
  ASSAY_TRY(run_editor(path, "decompose", &none));
  ASSAY_TRY(run_editor(path, "broadcasts", &none));
  return run_editor(path, "quantize", &none);
}

// ---- the tests ----------------------------------------------------------------------------------

static void fail_some(assay_status_t (*run)(const char* path), const char* const* models) {
  const alloc_case_t c = {.run = run, .one_by_one = 300, .samples = 150};
  for (; *models; models++) alloc_fail_each(&c, *models);
}

static void audit(void** state) {
  (void)state;
  fail_some(run_audit, (const char* const[]){"cnn", "loop", "quantized", "if_sequence", NULL});
}
static void precision(void** state) {
  (void)state;
  fail_some(run_precision, (const char* const[]){"cnn", "external", "loop", NULL});
}
static void bisection(void** state) {
  (void)state;
  fail_some(run_bisection, (const char* const[]){"cnn", NULL});
}
static void batch(void** state) {
  (void)state;
  fail_some(run_batch, (const char* const[]){"cnn", "external", NULL});
}
// Of models without open sizes: of others a proof of fewer sizes is one, too, and says so.
static void edits(void** state) {
  (void)state;
  fail_some(run_edits, (const char* const[]){"cnn", "quantized", NULL});
}

int main(void) {
  json_set_alloc_funcs(assay_malloc, assay_free);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(audit), cmocka_unit_test(precision), cmocka_unit_test(bisection),
      cmocka_unit_test(batch), cmocka_unit_test(edits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
