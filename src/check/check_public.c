// The public face of checks: include/assay/check.h, but for what was found (findings.c) and reports
// (report/check_public.c).
#include "check/check_public.h"

#include <string.h>

#include "account/golden/golden.h"
#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "check/against_golden.h"
#include "data/sample_files.h"
#include "diagnose/chain.h"
#include "diagnose/golden/golden_content.h"
#include "exec/targets.h"
#include "onnx/onnx.h"

void assay_check_job_destroy(assay_check_job_t* j) {
  if (!j) return;
  assay_external_engine_destroy(j->engine);
  assay_name_map_deinit(&j->engine_names);
  assay_requirements_deinit(&j->require);
  assay_pictures_deinit(&j->pictures);
  for (size_t i = 0; i < j->n_passes_off; i++) assay_free(j->passes_off[i]);
  assay_free(j->passes_off);
  assay_free(j->inject);
  assay_free(j->engine_name);
  assay_free(j->engine_model);
  assay_free(j->dtype_used);
  assay_str_deinit(&j->notes);
  assay_samples_deinit(&j->rows);
  assay_samples_deinit(&j->golden_rows);
  assay_export_deinit(&j->repaired);
  assay_str_deinit(&j->repair_error);
  assay_free(j);
}

const char* assay_check_target_name(const assay_check_t* c) {
  return c->job && c->job->engine_name ? c->job->engine_name : c->options.backend->name;
}

assay_status_t assay_check_want_run(const assay_check_t* c) {
  return c->account ? NULL
                    : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                                  "the check has not run; call assay_check_run() first");
}

// ---- options ------------------------------------------------------------------------------------

static assay_status_t copy_text(const char* text, char** out) {
  const size_t n = strlen(text) + 1;
  ASSAY_TRY(assay_new_array(n, 1, out));
  memcpy(*out, text, n);
  return NULL;
}

static assay_status_t set_precision(const assay_model_t* m, const assay_check_options_t* o,
                                    assay_check_setting_t* s) {
  s->precision_name = o->precision ? assay_format_name(o->precision) : "as declared";
  return assay_precision_open(m, o->precision, o->accumulator, o->layer_precision, &s->precision);
}

static assay_status_t copy_texts(const assay_check_options_t* o, assay_check_job_t* j) {
  ASSAY_TRY(assay_new_array(o->n_passes_off, sizeof *j->passes_off, &j->passes_off));
  for (size_t i = 0; i < o->n_passes_off; i++) {
    ASSAY_TRY(copy_text(o->passes_off[i], &j->passes_off[i]));
    j->n_passes_off++;
  }
  return o->inject ? copy_text(o->inject, &j->inject) : NULL;
}

// A target that a plan is built for is judged by the plan that engines are built with; emu is about
// the model's own values, unless it is asked for a plan's.
static assay_status_t set_plan(const assay_check_options_t* o, const assay_check_job_t* j,
                               assay_check_setting_t* s) {
  s->plan = (assay_plan_options_t){
      .passes = {.off = (const char* const*)j->passes_off, .n_off = j->n_passes_off},
      .fp32 = o->fp32,
      .inject = j->inject};
  return assay_plan_options_settle(&s->plan, o->fusion,
                                   !s->backend->emulates || s->backend->is_like);
}

static assay_status_t set_requirements(const assay_model_t* m, const assay_check_options_t* o,
                                       assay_check_job_t* j) {
  for (size_t i = 0; i < o->n_requirements; i++)
    ASSAY_TRY(assay_require_parse(&j->require, o->requirements[i]));
  return assay_require_resolve(&j->require, m->graph);
}

static assay_status_t set_all(assay_model_t* m, const assay_check_options_t* o,
                              assay_check_job_t* j, assay_check_setting_t* s) {
  ASSAY_TRY(assay_target_find(o->target, ASSAY_TARGET_INSPECT, &s->backend));
  if (!s->backend)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown target '%s'; assay_target_name() has them",
                       o->target);
  j->engine_precision = assay_format_name(o->precision ? o->precision : ASSAY_FORMAT_FP32);
  ASSAY_TRY(copy_texts(o, j));
  ASSAY_TRY(set_plan(o, j, s));
  ASSAY_TRY(set_precision(m, o, s));
  return set_requirements(m, o, j);
}

assay_status_t assay_check_create(assay_model_t* model, const assay_check_options_t* options,
                                  assay_check_t** out) {
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_job_t* j = NULL;
  assay_check_t* c = NULL;
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(ASSAY_NEW(&j));
  assay_check_setting_t s = {.unquantized = o.unquantized,
                             .no_fix = o.no_fix,
                             .fix = o.fix,
                             .require = &j->require,
                             .shares = o.shares,
                             .pictures = o.pictures ? &j->pictures : NULL,
                             .seed = o.seed,
                             .search_seconds = o.search_seconds,
                             .progress = o.progress,
                             .judged = o.judged,
                             .user = o.user};
  assay_status_t st = set_all(model, &o, j, &s);
  if (!st) st = assay_check_make(model, &s, &c);
  if (!st) c->job = j;
  // What is wrong with the rules shows here.
  if (!st)
    st = assay_plan_create(model, &c->options.precision, &c->options.plan, c->options.seed,
                           &c->plan);
  assay_precision_deinit(&s.precision);  // empty, if it went over
  if (st && !c) assay_check_job_destroy(j);
  if (st) return assay_check_destroy(c), st;
  *out = c;
  return NULL;
}

bool assay_check_needs_golden(const assay_check_t* c) {
  return assay_require_needs_golden(c->options.require);
}

// ---- engines that are not Assay's ---------------------------------------------------------------

static assay_status_t want_external(const assay_check_t* c) {
  if (c->job->ran || c->job->engine)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the check has run, or has an engine already");
  if (c->n_added)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "samples have been added to the check");
  if (c->options.plan.fused || c->options.backend != assay_target_default(ASSAY_TARGET_INSPECT))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "a target, fusion and passes are about Assay's own plan; the layers of "
                       "other engines follow from their outputs");
  return NULL;
}

static void use_engine(assay_check_t* c) {
  assay_check_job_t* j = c->job;
  assay_str_append(&j->notes, assay_external_engine_notes(j->engine));
  c->options.backend = &assay_backend_recorded;
  c->options.plan.recorded = assay_external_engine_recorded(j->engine);
  assay_plan_destroy(c->plan);
  c->plan = NULL;
}

static assay_status_t prepare_external(assay_check_t* c, const assay_samples_t* inputs,
                                       const char* name, const char* name_map) {
  assay_check_job_t* j = c->job;
  ASSAY_TRY(want_external(c));
  ASSAY_TRY(assay_samples_fit(inputs, c->model, false));
  if (!j->engine_name) ASSAY_TRY(copy_text(name, &j->engine_name));
  return name_map && !j->engine_names.n ? assay_name_map_read(name_map, &j->engine_names) : NULL;
}

assay_status_t assay_check_use_command(assay_check_t* c, const char* command, const char* model,
                                       double seconds, const assay_samples_t* inputs,
                                       const char* name_map) {
  assay_check_job_t* j = c->job;
  ASSAY_TRY(prepare_external(c, inputs, command, name_map));
  if (!j->engine_model) ASSAY_TRY(copy_text(model, &j->engine_model));
  const assay_external_engine_command_t how = {.command = j->engine_name,
                                               .model = j->engine_model,
                                               .precision = j->engine_precision,
                                               .seconds = seconds > 0 ? seconds : 600};
  ASSAY_TRY(assay_external_engine_run(c->model, &how, inputs, &j->engine_names, &j->engine));
  use_engine(c);
  return assay_str_status(&j->notes);
}

assay_status_t assay_check_use_outputs(assay_check_t* c, const char* file,
                                       const assay_samples_options_t* reading,
                                       const assay_samples_t* inputs, const char* name_map) {
  assay_check_job_t* j = c->job;
  assay_tensor_reading_t how;
  ASSAY_TRY(prepare_external(c, inputs, file, name_map));
  ASSAY_TRY(assay_samples_reading(reading, &how));
  assay_status_t st =
      assay_external_engine_read(c->model, file, &how, inputs->n, &j->engine_names, &j->engine);
  assay_str_append(&j->notes, assay_str_get(&how.notes));
  assay_free(j->dtype_used);
  j->dtype_used = how.met;
  j->n_dtypes = how.n_dtypes;
  how.met = NULL;
  assay_samples_reading_deinit(&how);
  if (st) return st;
  use_engine(c);
  return assay_str_status(&j->notes);
}

bool assay_check_dtype_used(const assay_check_t* c, size_t i) {
  return i < c->job->n_dtypes && c->job->dtype_used[i];
}

// ---- running ------------------------------------------------------------------------------------

static assay_status_t match_golden(assay_check_t* c, const assay_samples_t* inputs,
                                   assay_golden_t* golden) {
  if (assay_golden_model(golden) != c->model)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "golden is of another model than the check");
  bool unnamed = false;
  for (size_t i = 0; i < golden->n; i++) unnamed |= !golden->at[i].value;
  if (unnamed) ASSAY_TRY(assay_check_find_golden_kind(c, inputs, golden, NULL));
  const assay_content_options_t options = {.unquantized = assay_check_compares_unquantized(c),
                                           .seed = c->options.seed};
  if (inputs->n)
    ASSAY_TRY(assay_golden_match_content(golden, c->model, assay_samples_get(inputs, 0), &options));
  ASSAY_TRY(assay_golden_settle(golden));
  c->options.golden = golden;
  return NULL;
}

assay_status_t assay_check_set_golden(assay_check_t* c, const assay_samples_t* inputs,
                                      assay_golden_t* golden) {
  ASSAY_TRY(assay_samples_fit(inputs, c->model, false));
  if (!golden && assay_check_needs_golden(c))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a requirement is about golden: give golden");
  return golden ? match_golden(c, inputs, golden) : NULL;
}

// A model that cannot take a whole batch may still be right row by row. Without rows, `why` stays.
static assay_status_t run_rows(assay_check_t* c, const assay_samples_t* inputs,
                               const assay_samples_t* golden, assay_status_t why) {
  const assay_graph_t* g = c->model->graph;
  assay_check_job_t* j = c->job;
  bool cut = false, golden_cut = false;
  assay_status_t st = assay_samples_cut_batch(inputs, g->inputs, &j->rows, &cut);
  if (!st && cut && golden)
    st = assay_samples_cut_batch(golden, g->outputs, &j->golden_rows, &golden_cut);
  if (!st && cut && golden_cut == (golden != NULL)) {
    c->options.whole_batch = inputs;
    assay_check_clear(c);
    st = assay_check_run_samples(c, &j->rows, golden ? &j->golden_rows : NULL);
    if (!st) {
      assay_str_printf(&j->notes,
                       "note: a batch of %zu does not run: %s; each row is checked by itself\n",
                       j->rows.n, assay_status_message(why));
      return assay_status_free(why), assay_str_status(&j->notes);
    }
  }
  assay_status_free(st);
  return why;
}

// Which network golden is of may show in all samples only: then parts were judged otherwise.
static assay_status_t settle_parts(assay_check_t* c, const assay_samples_t* inputs,
                                   const assay_golden_t* golden, const assay_samples_t* outputs) {
  const bool quantized = c->golden_quantized;
  if (c->n_added != inputs->n || c->parts_have_golden != (outputs != NULL))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%zu samples were added %s golden, and the run is of %zu %s", c->n_added,
                       c->parts_have_golden ? "with" : "without", inputs->n,
                       outputs ? "with it" : "without it");
  ASSAY_TRY(assay_check_find_golden_kind(c, inputs, golden, outputs));
  if (c->golden_quantized == quantized) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "only all samples together show whether golden is of the quantized network; "
                     "check them on one machine");
}

assay_status_t assay_check_run(assay_check_t* c, const assay_samples_t* inputs,
                               assay_golden_t* golden) {
  assay_check_job_t* j = c->job;
  if (j->ran) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the check has run; make another one");
  ASSAY_TRY(assay_check_set_golden(c, inputs, golden));
  const assay_samples_t* outputs = golden ? assay_golden_samples(golden) : NULL;
  if (outputs && !outputs->n) outputs = NULL;
  const bool added = c->n_added > 0;
  assay_status_t st = added ? settle_parts(c, inputs, golden, outputs) : NULL;
  j->ran = true;
  if (!st) st = assay_check_run_samples(c, inputs, outputs);
  if (assay_status_code(st) == ASSAY_INVALID_ARGUMENT && !j->engine && !added)
    st = run_rows(c, inputs, outputs, st);
  // What a search takes for a trial that failed is none.
  if (!st) st = assay_cancel_check();
  // What was borrowed for the run.
  c->options.whole_batch = NULL;
  c->options.golden = NULL;
  if (st) assay_check_clear(c);
  return st;
}

const char* assay_check_notes(const assay_check_t* c) { return assay_str_get(&c->job->notes); }

// ---- repairs ------------------------------------------------------------------------------------

assay_status_t assay_check_input_shapes(const assay_model_t* m, assay_input_shape_t** out,
                                        int64_t** dims, size_t* out_n) {
  const assay_graph_t* g = m->graph;
  size_t n_dims = 0;
  for (size_t i = 0; i < g->n_inputs; i++)
    n_dims += g->inputs[i]->type ? (size_t)g->inputs[i]->type->rank : 0;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof **out, out));
  ASSAY_TRY(assay_new_array(n_dims, sizeof **dims, dims));
  int64_t* at = *dims;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = g->inputs[i]->type;
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || g->inputs[i]->constant) continue;
    (*out)[(*out_n)++] = (assay_input_shape_t){g->inputs[i]->name, t->rank, at};
    for (int d = 0; d < t->rank; d++, at++)
      if (!assay_dim_value(t->dims[d], at)) *at = -1;
  }
  return NULL;
}

static assay_status_t prepare(const assay_check_t* c, assay_model_t* raw, assay_model_t** out) {
  assay_input_shape_t* shapes = NULL;
  int64_t* dims = NULL;
  size_t n = 0;
  assay_status_t st = assay_check_input_shapes(c->model, &shapes, &dims, &n);
  if (!st) st = assay_onnx_prepare(raw, n, shapes, out);
  assay_free(shapes);
  assay_free(dims);
  return st;
}

// Writes a changed model. What mends one node may ask for another change beside it: a model that
// does not run, or is no graph any more, is not handed over, and the job knows why.
static assay_status_t hand_over(assay_check_job_t* j, assay_status_t ran, assay_model_t* raw,
                                const char* path) {
  const bool runs = !ran;
  assay_status_t st = runs && path ? assay_onnx_write(raw, path, NULL) : ran;
  const assay_code_t code = assay_status_code(st);
  if (!st || (runs ? code != ASSAY_CORRUPT : code == ASSAY_NO_MEMORY)) return st;
  assay_str_append(&j->repair_error, assay_status_message(st));
  assay_status_free(st);
  j->n_repairs = 0;
  return assay_str_status(&j->repair_error);
}

// What follows a node takes its output's name. Where golden agrees with the node as it is, what it
// has under that name is not what stands there now.
static void forget_followed(const assay_export_t* e, const assay_model_t* model,
                            assay_golden_t* golden) {
  for (size_t i = 0; i < e->n; i++) {
    const assay_fault_t* f = &e->faults[i];
    for (size_t k = 0; f->restored && k < f->repair.n_edits; k++) {
      const assay_repair_edit_t* edit = &f->repair.edits[k];
      const bool chain = edit->kind == ASSAY_EDIT_CHAIN && !edit->at_input;
      if (!chain && edit->kind != ASSAY_EDIT_AFTER) continue;
      const assay_value_t* v = f->repair.node->outputs[chain ? 0 : edit->input];
      assay_golden_tensor_t* g =
          v && v != f->value && !v->is_output
              ? assay_golden_of(golden, assay_graph_find(model->graph, v->name))
              : NULL;
      bool is_fault = false;  // of its own
      for (size_t j = 0; j < e->n; j++) is_fault |= e->faults[j].value == v;
      if (g && !is_fault) g->value = NULL;
    }
  }
}

static assay_status_t repair(assay_check_t* c, assay_model_t* raw, const assay_samples_t* inputs,
                             const assay_golden_t* golden, const char* path) {
  assay_check_job_t* j = c->job;
  assay_model_t* prepared = NULL;
  assay_golden_t matched = {0};
  assay_rounded_weights_t rounded = {0};
  const assay_export_options_t options = {.unquantized = assay_check_compares_unquantized(c),
                                          .seed = c->options.seed,
                                          .arithmetic = c->golden_arithmetic,
                                          .rounded = &rounded,
                                          .no_search = true};
  assay_export_deinit(&j->repaired);
  assay_str_deinit(&j->repair_error);
  // Repairs that each hold may read from one another, which no graph can.
  assay_status_t st = assay_chain_repair(&c->export, raw, &j->n_repairs);
  if (st && assay_status_code(st) == ASSAY_CORRUPT) return hand_over(j, st, raw, path);
  if (st || !j->n_repairs) return st;
  st = prepare(c, raw, &prepared);
  if (!st) st = assay_golden_rematch(golden, prepared, &matched);
  if (!st) forget_followed(&c->export, prepared, &matched);
  if (!st && c->golden_rounded) st = assay_rounded_list(prepared, &rounded);
  if (!st) st = assay_chain_run(prepared, inputs, &matched, &options, &j->repaired);
  assay_golden_deinit(&matched);
  assay_rounded_deinit(&rounded);
  assay_model_release(prepared);
  return hand_over(j, st, raw, path);
}

// Other scales, or none, in the model as it is in its file; run as it declares, against golden.
static assay_status_t mend_quantizers(assay_check_t* c, assay_model_t* raw,
                                      const assay_samples_t* inputs, const assay_golden_t* golden,
                                      const char* path) {
  assay_check_job_t* j = c->job;
  assay_model_t* prepared = NULL;
  bool holds = false;
  assay_str_deinit(&j->repair_error);
  ASSAY_TRY(assay_quantizers_put(&c->quantizers, raw));
  j->n_repairs = c->quantizers.n_changed;
  assay_status_t st = prepare(c, raw, &prepared);
  if (!st)
    st = assay_quantizers_verify(&c->quantizers, prepared, inputs, assay_golden_samples(golden),
                                 c->options.require, &holds);
  assay_model_release(prepared);
  c->quantizers.verified = !st && holds;
  return hand_over(j, st, raw, path);
}

assay_status_t assay_check_repair(assay_check_t* c, const char* model,
                                  const assay_samples_t* inputs, const assay_golden_t* golden,
                                  const char* path, size_t* out_n, bool* out_holds) {
  assay_model_t* raw = NULL;
  ASSAY_TRY(assay_check_want_run(c));
  ASSAY_TRY(assay_samples_fit(inputs, c->model, false));
  const bool mends = c->quantizers.n_changed > 0;
  if (c->blame == ASSAY_BLAME_EXPORT || mends) {
    ASSAY_TRY(assay_onnx_read(model, &raw));
    assay_status_t st = mends ? mend_quantizers(c, raw, inputs, golden, path)
                              : repair(c, raw, inputs, golden, path);
    assay_model_release(raw);
    if (st) return st;
  }
  if (out_n) *out_n = c->job->n_repairs;
  if (out_holds)
    *out_holds = c->job->n_repairs && !c->job->repaired.n && (!mends || c->quantizers.verified);
  return NULL;
}
