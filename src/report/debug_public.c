// What include/assay/debug.h writes: reports of experiments, and files of what they found.
#include "debug/debug_public.h"

#include "base/file.h"
#include "check/mixed_model.h"
#include "formats/format.h"
#include "onnx/onnx.h"
#include "passes/float_types.h"
#include "report/reduce.h"
#include "report/report.h"
#include "report/report_public.h"

static assay_debug_report_options_t read_options(const assay_debug_t* d,
                                                 const assay_debug_report_options_t* given) {
  assay_debug_report_options_t n = ASSAY_DEBUG_REPORT_OPTIONS_INIT;
  assay_report_options_read(given, given ? given->struct_size : 0, &n, sizeof n);
  if (!n.model) n.model = "model";
  if (!n.precision) n.precision = d->check->options.precision_name;
  return n;
}

// ---- precision ----------------------------------------------------------------------------------

static assay_status_t want_nodes(const assay_precision_search_t* s) {
  return assay_precision_search_node_count(s)
             ? NULL
             : ASSAY_ERROR(ASSAY_NOT_FOUND, "there are no layers to keep in higher precision");
}

assay_status_t assay_precision_search_write_model(const assay_precision_search_t* s,
                                                  const char* path) {
  const assay_precision_found_t* f = &s->found;
  const assay_format_t asked = f->options.precision.format;
  assay_model_t* mixed = NULL;
  const bool typed = asked == ASSAY_FORMAT_FP32 && assay_float_types_has_narrow(f->model);
  ASSAY_TRY(want_nodes(s));
  if (asked != ASSAY_FORMAT_FP16 && asked != ASSAY_FORMAT_BF16 && !typed)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "--save writes models of fp16 or bf16, not of %s",
                       f->options.precision_name);
  ASSAY_TRY(assay_mixed_model_of_fix(f->model, &f->options.precision, &f->fewest.fix,
                                     f->options.seed, &mixed));
  assay_status_t st = assay_onnx_write(mixed, path, NULL);
  assay_model_release(mixed);
  return st;
}

assay_status_t assay_precision_search_write_options(const assay_precision_search_t* s,
                                                    const char* path) {
  assay_str_t text = {0};
  ASSAY_TRY(want_nodes(s));
  assay_report_fix_file(&s->found.fewest.fix, &text);
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_file_write(path, assay_str_get(&text), text.len);
  assay_str_deinit(&text);
  return st;
}

static assay_status_t print_precision(const assay_precision_search_t* s, assay_report_kind_t kind,
                                      const assay_debug_report_options_t* given, assay_str_t* out) {
  static const char* const modes[] = {[ASSAY_PRECISION_ACCOUNT] = "account",
                                      [ASSAY_PRECISION_BISECT] = "bisect",
                                      [ASSAY_PRECISION_LINEAR] = "linear"};
  const assay_debug_report_options_t n = read_options(s->debug, given);
  const assay_report_precision_t names = {.model = n.model,
                                          .target = s->found.options.backend->name,
                                          .precision = n.precision,
                                          .mode = modes[s->mode],
                                          .save = n.saved_model,
                                          .options = n.saved_options,
                                          .seconds = s->seconds};
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "precision searches"));
  if (kind == ASSAY_REPORT_TEXT) return assay_report_precision_text(&s->found, &names, out);
  assay_status_t st = assay_report_precision_json(&s->found, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_precision_search_report(const assay_precision_search_t* s,
                                             assay_report_kind_t kind,
                                             const assay_debug_report_options_t* names,
                                             assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = print_precision(s, kind, names, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_precision_search_write_report(const assay_precision_search_t* s,
                                                   assay_report_kind_t kind,
                                                   const assay_debug_report_options_t* names,
                                                   const char* path) {
  return assay_precision_search_report(s, kind, names, assay_report_to_file, &path);
}

// ---- batch --------------------------------------------------------------------------------------

static assay_status_t print_batch(const assay_batch_search_t* s, assay_report_kind_t kind,
                                  const assay_debug_report_options_t* given, assay_str_t* out) {
  const assay_debug_report_options_t n = read_options(s->debug, given);
  const assay_report_debug_t names = {
      .model = n.model,
      .precision = n.precision,
      .target = s->command ? s->command : s->debug->check->options.backend->name,
      .seconds = s->seconds};
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "batch searches"));
  if (kind == ASSAY_REPORT_TEXT) return assay_report_batch_text(&s->found, &names, out);
  assay_status_t st = assay_report_batch_json(&s->found, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_batch_search_report(const assay_batch_search_t* s, assay_report_kind_t kind,
                                         const assay_debug_report_options_t* names,
                                         assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = print_batch(s, kind, names, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_batch_search_write_report(const assay_batch_search_t* s,
                                               assay_report_kind_t kind,
                                               const assay_debug_report_options_t* names,
                                               const char* path) {
  return assay_batch_search_report(s, kind, names, assay_report_to_file, &path);
}

// ---- passes -------------------------------------------------------------------------------------

static assay_status_t print_passes(const assay_pass_search_t* s, assay_report_kind_t kind,
                                   const assay_debug_report_options_t* given, assay_str_t* out) {
  const assay_debug_report_options_t n = read_options(s->debug, given);
  const assay_report_debug_t names = {.model = n.model,
                                      .precision = n.precision,
                                      .target = s->debug->check->options.backend->name,
                                      .all = n.all,
                                      .seconds = s->seconds};
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "pass searches"));
  if (kind == ASSAY_REPORT_TEXT) return assay_report_passes_text(&s->found, &names, out);
  assay_status_t st = assay_report_passes_json(&s->found, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_pass_search_report(const assay_pass_search_t* s, assay_report_kind_t kind,
                                        const assay_debug_report_options_t* names,
                                        assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = print_passes(s, kind, names, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_pass_search_write_report(const assay_pass_search_t* s,
                                              assay_report_kind_t kind,
                                              const assay_debug_report_options_t* names,
                                              const char* path) {
  return assay_pass_search_report(s, kind, names, assay_report_to_file, &path);
}

// ---- tactics ------------------------------------------------------------------------------------

static assay_status_t print_tactics(const assay_tactic_search_t* s, assay_report_kind_t kind,
                                    const assay_debug_report_options_t* given, assay_str_t* out) {
  const assay_debug_report_options_t n = read_options(s->debug, given);
  const assay_report_debug_t names = {.model = n.model,
                                      .precision = n.precision,
                                      .target = s->debug->check->options.backend->name,
                                      .layer = s->layer,
                                      .all = n.all || s->layer,
                                      .seconds = s->seconds};
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "tactic searches"));
  if (kind == ASSAY_REPORT_TEXT) return assay_report_tactics_text(&s->found, &names, out);
  assay_status_t st = assay_report_tactics_json(&s->found, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_tactic_search_report(const assay_tactic_search_t* s, assay_report_kind_t kind,
                                          const assay_debug_report_options_t* names,
                                          assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = print_tactics(s, kind, names, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_tactic_search_write_report(const assay_tactic_search_t* s,
                                                assay_report_kind_t kind,
                                                const assay_debug_report_options_t* names,
                                                const char* path) {
  return assay_tactic_search_report(s, kind, names, assay_report_to_file, &path);
}

// ---- reductions ---------------------------------------------------------------------------------

static assay_status_t print_reduction(const assay_reduction_t* r, assay_report_kind_t kind,
                                      const assay_reduction_report_options_t* given,
                                      assay_str_t* out) {
  const assay_check_setting_t* s = &r->debug->check->options;
  assay_reduction_report_options_t n = ASSAY_REDUCTION_REPORT_OPTIONS_INIT;
  json_t* json = NULL;
  assay_report_options_read(given, given ? given->struct_size : 0, &n, sizeof n);
  const assay_reduce_names_t names = {.model = n.model ? n.model : "model",
                                      .target = r->command ? r->command : s->backend->name,
                                      .precision = n.precision ? n.precision : s->precision_name,
                                      .folder = n.folder,
                                      .written = n.samples,
                                      .command = n.command};
  ASSAY_TRY(assay_report_want_kind(kind, "reductions"));
  if (kind == ASSAY_REPORT_TEXT) return assay_report_reduce_text(&r->found, &names, out);
  assay_status_t st = assay_report_reduce_json(&r->found, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_reduction_report(const assay_reduction_t* r, assay_report_kind_t kind,
                                      const assay_reduction_report_options_t* names,
                                      assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = print_reduction(r, kind, names, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_reduction_write_report(const assay_reduction_t* r, assay_report_kind_t kind,
                                            const assay_reduction_report_options_t* names,
                                            const char* path) {
  return assay_reduction_report(r, kind, names, assay_report_to_file, &path);
}
