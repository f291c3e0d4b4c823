// What include/assay/check.h writes: reports, and the files of the fix.
#include "check/check_public.h"

#include <assay/check.h>

#include "base/file.h"
#include "certify/certify.h"
#include "check/mixed_model.h"
#include "onnx/onnx.h"
#include "report/report.h"
#include "report/report_public.h"

// ---- the fix ------------------------------------------------------------------------------------

static assay_status_t want_fix(const assay_check_t* c) {
  return assay_check_fix_count(c) ? NULL
                                  : ASSAY_ERROR(ASSAY_NOT_FOUND, "the check has found no fix");
}

assay_status_t assay_check_write_model(const assay_check_t* c, const char* path) {
  assay_model_t* mixed = NULL;
  ASSAY_TRY(want_fix(c));
  ASSAY_TRY(
      assay_mixed_model_of_fix(c->model, &c->options.precision, &c->fix, c->options.seed, &mixed));
  assay_status_t st = assay_onnx_write(mixed, path, NULL);
  assay_model_release(mixed);
  return st;
}

assay_status_t assay_check_write_options(const assay_check_t* c, const char* path) {
  assay_str_t s = {0};
  ASSAY_TRY(want_fix(c));
  assay_report_fix_file(&c->fix, &s);
  assay_status_t st = assay_str_status(&s);
  if (!st) st = assay_file_write(path, assay_str_get(&s), s.len);
  assay_str_deinit(&s);
  return st;
}

assay_status_t assay_check_write_mended(const assay_check_t* c, const char* model,
                                        const char* path) {
  assay_model_t* raw = NULL;
  if (!assay_check_mended_count(c))
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the check has found no constants that mend the outputs");
  ASSAY_TRY(assay_onnx_read(model, &raw));
  assay_status_t st = assay_mended_apply(&c->mended, raw);
  if (!st) st = assay_onnx_write(raw, path, NULL);
  assay_model_release(raw);
  return st;
}

// ---- reports ------------------------------------------------------------------------------------

static assay_report_names_t names_of(const assay_check_t* c,
                                     const assay_check_report_options_t* given) {
  assay_check_report_options_t n = ASSAY_CHECK_REPORT_OPTIONS_INIT;
  assay_report_options_read(given, given ? given->struct_size : 0, &n, sizeof n);
  const assay_check_job_t* j = c->job;
  return (assay_report_names_t){
      .model = n.model ? n.model : "model",
      .target = assay_check_target_name(c),
      .precision = n.precision ? n.precision : c->options.precision_name,
      .files = n.files,
      .n_files = n.n_files,
      .to_write = n.to_write,
      .mended = n.mended,
      .golden = n.golden,
      .inputs = n.inputs,
      .n_inputs = n.n_inputs,
      .repairs = j->n_repairs,
      .repairs_hold = j->n_repairs && !j->repaired.n,
      .repair_error = j->repair_error.len ? assay_str_get(&j->repair_error) : NULL};
}

static assay_status_t make(const assay_check_t* c, assay_report_kind_t kind,
                           const assay_check_report_options_t* given, assay_str_t* out) {
  const assay_report_names_t names = names_of(c, given);
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, NULL));
  ASSAY_TRY(assay_check_want_run(c));
  if (kind == ASSAY_REPORT_TEXT) return assay_report_text(c, &names, out);
  if (kind == ASSAY_REPORT_PAGE) return assay_report_html(c, &names, &c->job->pictures, out);
  assay_status_t st = assay_report_json(c, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_check_report(const assay_check_t* c, assay_report_kind_t kind,
                                  const assay_check_report_options_t* options,
                                  assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = make(c, kind, options, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_check_write_report(const assay_check_t* c, assay_report_kind_t kind,
                                        const assay_check_report_options_t* options,
                                        const char* path) {
  return assay_check_report(c, kind, options, assay_report_to_file, &path);
}

assay_status_t assay_check_annotate(const assay_check_t* c,
                                    const assay_check_report_options_t* given, const char* model,
                                    const assay_samples_t* inputs, const char* command,
                                    const char* page, bool mark_names, const char* path) {
  const assay_report_names_t names = names_of(c, given);
  const assay_check_job_t* j = c->job;
  assay_model_t* raw = NULL;
  assay_report_notes_t notes = {
      .pictures = &j->pictures, .command = command, .page = page, .mark_names = mark_names};
  ASSAY_TRY(assay_check_want_run(c));
  ASSAY_TRY(assay_samples_fit(inputs, c->model, false));
  ASSAY_TRY(assay_certificate_inputs(j->rows.n ? &j->rows : inputs, &notes.inputs));
  ASSAY_TRY(assay_onnx_read(model, &raw));
  assay_status_t st = assay_report_annotate(c, &names, &notes, raw);
  if (!st) st = assay_onnx_write(raw, path, NULL);
  assay_model_release(raw);
  return st;
}
