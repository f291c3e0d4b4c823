// What include/assay/tune.h writes: reports, and files of the chosen assignment.
#include "tune/tune_public.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/shown.h"
#include "check/mixed_model.h"
#include "formats/format.h"
#include "onnx/onnx.h"
#include "report/report.h"
#include "report/report_public.h"

static assay_status_t want_chosen(const assay_tune_t* t) {
  ASSAY_TRY(assay_tune_want_run(t));
  return t->found.met ? NULL : ASSAY_ERROR(ASSAY_NOT_FOUND, "no assignment meets what is required");
}

// ---- files --------------------------------------------------------------------------------------

static assay_status_t want_16_bits(const assay_tuned_t* f) {
  for (size_t i = 0; i + 1 < f->options.n_formats; i++)
    if (f->fixes[i].n_nodes && f->options.formats[i] != ASSAY_FORMAT_FP16 &&
        f->options.formats[i] != ASSAY_FORMAT_BF16)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "--save writes models of fp16 or bf16, not of %s",
                         assay_format_name(f->options.formats[i]));
  return NULL;
}

assay_status_t assay_tune_write_model(const assay_tune_t* t, const char* path) {
  const assay_tuned_t* f = &t->found;
  assay_format_t* given = NULL;
  assay_model_t* mixed = NULL;
  ASSAY_TRY(want_chosen(t));
  ASSAY_TRY(want_16_bits(f));
  ASSAY_TRY(assay_new_array((size_t)f->model->n_node_ids, sizeof *given, &given));
  for (int i = 0; i < f->model->n_node_ids; i++) given[i] = ASSAY_FORMAT_FP32;
  for (size_t k = 0; k < f->options.n_formats; k++)
    for (size_t i = 0; i < f->fixes[k].n_nodes; i++)
      given[f->fixes[k].nodes[i]->id] = f->options.formats[k];
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32, .given = given};
  assay_status_t st = assay_mixed_model(f->model, &precision, f->setting.seed, &mixed);
  if (!st) st = assay_onnx_write(mixed, path, NULL);
  assay_model_release(mixed);
  assay_free(given);
  return st;
}

assay_status_t assay_tune_write_plan(const assay_tune_t* t, const char* path) {
  const assay_check_setting_t* s = &t->found.setting;
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t* engine = NULL;
  assay_str_t rules = {0};
  ASSAY_TRY(want_chosen(t));
  assay_report_tune_rules(&t->found, t->rules, &rules);
  o.target = s->backend->name;
  o.precision = assay_report_tune_base(&t->found);
  o.layer_precision = rules.len ? assay_str_get(&rules) : NULL;
  o.timing_cache = t->timing_cache;
  o.measure = true;
  o.fusion = s->plan.fused ? ASSAY_FUSION_ON : ASSAY_FUSION_OFF;
  o.seed = s->seed;
  o.fp32 = s->plan.fp32;
  assay_status_t st = assay_str_status(&rules);
  if (!st) st = assay_engine_build(t->found.model, &o, &engine);
  if (!st) st = assay_engine_save(engine, path);
  assay_engine_release(engine);
  assay_str_deinit(&rules);
  return st;
}

assay_status_t assay_tune_write_options(const assay_tune_t* t, const char* path) {
  assay_str_t s = {0}, options = {0}, trtexec = {0};
  ASSAY_TRY(want_chosen(t));
  assay_report_tune_options(&t->found, t->rules, &options);
  assay_report_tune_trtexec(&t->found, &trtexec);
  assay_str_printf_raw(&s,
                       "# assay and trtexec options of this assignment\n"
                       "# assay reads this file with --fix-file\n%s\n%s%s",
                       assay_str_get(&options), assay_str_get(&trtexec), trtexec.len ? "\n" : "");
  assay_status_t st = assay_str_status(&options);
  st = assay_status_join(st, assay_str_status(&trtexec));
  st = assay_status_join(st, assay_str_status(&s));
  if (!st) st = assay_file_write(path, assay_str_get(&s), s.len);
  assay_str_deinit(&s);
  assay_str_deinit(&options);
  assay_str_deinit(&trtexec);
  return st;
}

// ---- reports ------------------------------------------------------------------------------------

static assay_report_tune_t names_of(const assay_tune_t* t,
                                    const assay_tune_report_options_t* given) {
  assay_tune_report_options_t n = ASSAY_TUNE_REPORT_OPTIONS_INIT;
  assay_report_options_read(given, given ? given->struct_size : 0, &n, sizeof n);
  return (assay_report_tune_t){.model = n.model ? n.model : "model",
                               .target = t->check->options.backend->name,
                               .rules = t->rules,
                               .save = n.saved_model,
                               .plan = n.saved_plan,
                               .options = n.saved_options,
                               .seconds = t->seconds};
}

static assay_status_t make(const assay_tune_t* t, assay_report_kind_t kind,
                           const assay_tune_report_options_t* given, assay_str_t* out) {
  const assay_report_tune_t names = names_of(t, given);
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "tunings"));
  ASSAY_TRY(assay_tune_want_run(t));
  if (kind == ASSAY_REPORT_TEXT) return assay_report_tune_text(&t->found, &names, out);
  assay_status_t st = assay_report_tune_json(&t->found, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_tune_report(const assay_tune_t* t, assay_report_kind_t kind,
                                 const assay_tune_report_options_t* options,
                                 assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = make(t, kind, options, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_tune_write_report(const assay_tune_t* t, assay_report_kind_t kind,
                                       const assay_tune_report_options_t* options,
                                       const char* path) {
  return assay_tune_report(t, kind, options, assay_report_to_file, &path);
}
