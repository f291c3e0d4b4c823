// The main job: run a model in a precision beside its truth, say what went wrong, and find a
// verified fix.
#include "check/check.h"

#include <math.h>

#include "account/external.h"
#include "account/samples_run.h"
#include "base/alloc.h"
#include "check/against_golden.h"
#include "check/check_public.h"
#include "check/fix.h"
#include "check/rounded_golden.h"
#include "eval/evaluator.h"
#include "formats/format.h"

const char* assay_blame_name(assay_blame_t b) {
  static const char* const names[] = {"none", "precision", "engine", "export", "model", "input"};
  return names[b];
}

// ---- blame --------------------------------------------------------------------------------------

// Whether some layer has a format below fp32, by the user's precision or by the types that the
// model declares: then that can be taken back.
static bool is_lowered(const assay_check_t* c) {
  if (c->options.precision.format != ASSAY_FORMAT_FP32 || c->options.precision.n_rules) return true;
  const assay_layers_t* l = assay_plan_layers(c->plan);
  for (size_t i = 0; i < l->n_all_layers; i++)
    if (assay_format_info(l->layers[i].format)->bits < 32) return true;
  return false;
}

// Whether an output shows a fault of the engine's, beside what cannot be judged.
static bool is_at_fault(const assay_check_t* c, const assay_output_check_t* o) {
  const assay_requirements_t* r = c->options.require;
  if (o->faithful) return false;
  if (o->error.mismatched || o->differing) return true;
  for (size_t i = 0; r && i < r->n; i++) {
    assay_requirement_result_t one;
    if (assay_require_judge(&r->at[i], o, &one) && one.known && !one.met) return true;
  }
  return !(r && r->n) && !assay_outputs_are_open(o, 1, NULL, NULL);
}

static bool engine_is_at_fault(const assay_check_t* c) {
  const assay_requirements_t* r = c->options.require;
  bool any = c->n_defects > 0;
  for (size_t i = 0; i < c->n_outputs; i++) any |= is_at_fault(c, &c->outputs[i]);
  for (size_t i = 0; r && i < r->n; i++) any |= r->at[i].command && !c->met[i];
  return any;
}

// NaN and infinities of truth that golden need not have, and no engine can avoid.
static bool truth_is_unfinite(const assay_check_t* c) {
  bool any = false;
  for (size_t i = 0; i < c->n_outputs; i++)
    any |= c->outputs[i].error.ref_nan || c->outputs[i].error.ref_inf;
  return any;
}

// Whether quantizers lose more of golden than they may.
static bool is_lossy(const assay_check_t* c) {
  return (c->quantizers.n_outputs && !c->quantizers.met) || assay_check_rounding_loses(c);
}

static assay_blame_t find_blame(const assay_check_t* c) {
  const bool by_inputs = c->unfinite_inputs.len && truth_is_unfinite(c);
  if (by_inputs && !c->faithful && !c->n_defects) return ASSAY_BLAME_INPUT;
  if (c->export.n || c->quantizers.suspected) return ASSAY_BLAME_EXPORT;
  if (is_lossy(c)) return ASSAY_BLAME_PRECISION;
  if (c->faithful) return ASSAY_BLAME_NONE;
  if (c->n_defects) return ASSAY_BLAME_ENGINE;
  if (c->undecided) return truth_is_unfinite(c) ? ASSAY_BLAME_MODEL : ASSAY_BLAME_INPUT;
  const bool lowered = is_lowered(c);
  // Where layers of another engine store a narrow type, or operators declare it themselves.
  if (c->culprits.n && c->culprits.at[0].verdict == ASSAY_VERDICT_OVERFLOW &&
      assay_culprit_range(c->culprits.at[0].account) < assay_format_info(ASSAY_FORMAT_BF16)->max)
    return ASSAY_BLAME_PRECISION;
  if (c->culprits.n && !lowered) return ASSAY_BLAME_MODEL;
  return lowered ? ASSAY_BLAME_PRECISION : ASSAY_BLAME_ENGINE;
}

// Whether all that is wrong is ill-conditioned: wrong in fp32 by as much as the model has it.
static bool is_ill(const assay_check_t* c) {
  bool any = false;
  if (c->has_fix || !c->front.wide || c->blame != ASSAY_BLAME_PRECISION) return false;
  for (size_t i = 0; i < c->n_outputs; i++) {
    if (c->outputs[i].faithful) continue;
    if (!assay_fix_front_is_ill(&c->front.wide[i])) return false;
    any = true;
  }
  return any;
}

// Whether a float32 constant has finite elements past a format's range.
static assay_status_t passes_range(const assay_value_t* v, double max, bool* out) {
  assay_tensor_t* wide = NULL;
  bool past = *out = false;
  if (!v->constant || v->constant->kind != ASSAY_KIND_TENSOR ||
      v->constant->type != ASSAY_TYPE_FLOAT)
    return NULL;
  ASSAY_TRY(assay_tensor_widen(v->constant, &wide));
  for (int64_t k = 0; k < wide->size; k++) {
    double x = fabs(assay_f64(wide)[k]);
    past |= x > max && x <= 0x1.fffffep127;
  }
  assay_tensor_release(wide);
  *out = past;
  return NULL;
}

static assay_status_t audit_constants(assay_check_t* c) {
  bool past = false;
  double max = assay_format_info(c->options.precision.format)->max;
  for (size_t g = 0; g < c->model->n_graphs; g++) {
    const assay_graph_t* graph = c->model->graphs[g];
    for (size_t i = 0; i < graph->n_initializers; i++) {
      const assay_value_t* v = graph->initializers[i];
      ASSAY_TRY(passes_range(v, max, &past));
      if (past && !c->constants_out_of_range++) c->first_constant_out_of_range = v->name;
    }
  }
  ASSAY_TRY(assay_odd_constants_find(c->plan, &c->odd_constants));
  ASSAY_TRY(assay_broadcasts_find(c->model, &c->broadcasts));
  return assay_risks_of_constants(c->plan, &c->folded);
}

// ---- what the passes did to truth --------------------------------------------------------------

static assay_status_t run_truth(const assay_model_t* m, const assay_check_setting_t* o,
                                assay_tensor_t* const* inputs, assay_evaluator_t** out) {
  const assay_evaluator_config_t truth = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = o->unquantized, .seed = o->seed};
  return assay_evaluator_create_run(m, &truth, inputs, out);
}

static void compare_rewritten(assay_check_t* c, const assay_tensor_t* was,
                              const assay_tensor_t* is) {
  if (!assay_tensor_alike(was, is)) {
    c->rewriting_mismatched += was && was->kind == ASSAY_KIND_TENSOR ? was->size : 0;
  } else if (was->store == ASSAY_STORE_F64) {
    assay_error_sum_t e = ASSAY_ERROR_SUM_INIT;
    assay_error_sum_add(&e, assay_f64(is), assay_f64(was), (size_t)was->size);
    c->rewriting_mismatched += e.mismatched;
    if (e.max_abs > 0) c->rewriting = fmax(c->rewriting, e.max_abs / fmax(e.ref_max, 1e-300));
  } else if (was->store == ASSAY_STORE_I64) {
    for (int64_t k = 0; k < was->size; k++)
      c->rewriting_mismatched += assay_i64(was)[k] != assay_i64(is)[k];
  }
}

static assay_status_t check_rewriting(assay_check_t* c, const assay_samples_t* inputs) {
  const assay_rewrite_t* r = assay_plan_rewrite(c->plan);
  assay_evaluator_t *was = NULL, *is = NULL;
  if (!c->options.plan.fused || !r || !inputs->n) return NULL;
  assay_status_t st = run_truth(r->original, &c->options, assay_samples_get(inputs, 0), &was);
  if (!st) st = run_truth(r->model, &c->options, assay_samples_get(inputs, 0), &is);
  for (size_t i = 0; !st && i < r->original->graph->n_outputs; i++) {
    assay_tensor_t *a = NULL, *b = NULL;
    st = assay_tensor_widen(assay_evaluator_get(was, r->original->graph->outputs[i]), &a);
    if (!st) st = assay_tensor_widen(assay_evaluator_get(is, r->model->graph->outputs[i]), &b);
    if (!st) compare_rewritten(c, a, b);
    assay_tensor_release(a);
    assay_tensor_release(b);
  }
  assay_evaluator_destroy(was);
  assay_evaluator_destroy(is);
  return st;
}

// Counts the defects: one is enough to make the engine unfaithful, though no output shows it.
static void count_defects(assay_check_t* c) {
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++)
    c->n_defects += assay_account_layer(c->account, i)->verdict == ASSAY_VERDICT_DEFECT;
}

// Whether any layer does worse than an approximation does.
static bool has_failed_layer(const assay_check_t* c) {
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++)
    if (assay_account_layer(c->account, i)->verdict > ASSAY_VERDICT_UNCLASSIFIED) return true;
  return false;
}

static void count_absorbed(assay_check_t* c) {
  if (!c->faithful) return;
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++) {
    assay_verdict_t v = assay_account_layer(c->account, i)->verdict;
    c->n_absorbed += v >= ASSAY_VERDICT_FLIPPED;
  }
}

// ---- the whole ---------------------------------------------------------------------------------

// What truth cannot answer for, before anything runs.
static assay_status_t note_unfinite_inputs(assay_check_t* c, const assay_samples_t* inputs) {
  const assay_graph_t* g = c->model->graph;
  assay_samples_describe_unfinite(inputs, g->inputs, g->n_inputs, &c->unfinite_inputs);
  return assay_str_status(&c->unfinite_inputs);
}

// Appends what is required and does not hold; whether some of it cannot be judged.
static bool note_unmet(assay_check_t* c) {
  const assay_requirements_t* r = c->options.require;
  assay_str_t open = {0};
  const bool is_open = assay_outputs_are_open(c->outputs, c->n_outputs, r, &open);
  for (size_t i = 0; r && i < c->n_outputs; i++)
    if (!c->outputs[i].faithful) assay_require_holds(r, &c->outputs[i], &c->unmet);
  // What is about no output, and what is not required in words.
  if (is_open && !c->unmet.len) assay_str_append(&c->unmet, assay_str_get(&open));
  assay_str_deinit(&open);
  return is_open;
}

// Whether what outputs are off by is of near ties of quantizers alone: then they are as the model
// has it. What the user requires is about truth as it is.
static assay_status_t explain_by_ties(assay_check_t* c, const assay_samples_t* inputs) {
  const assay_requirements_t* r = c->options.require;
  assay_output_check_t* outputs = NULL;
  assay_near_ties_t steps = {0};
  if (c->faithful || c->dead || (r && r->n) || c->options.unquantized ||
      !assay_model_quantizes(c->model) || assay_plan_rewrite(c->plan) ||
      c->options.backend->external)
    return NULL;
  ASSAY_TRY(assay_output_checks_create(c->model->graph, NULL, &outputs));
  assay_status_t st =
      assay_near_ties_run(c->plan, c->options.backend, inputs, c->options.seed, outputs, &steps);
  if (!st && steps.elements && assay_outputs_hold(outputs, c->n_outputs, NULL)) {
    c->steps = steps;
    c->faithful = true;
    for (size_t i = 0; i < c->n_outputs; i++) c->outputs[i].faithful = true;
  }
  assay_free(outputs);
  return st;
}

// Slices of outputs that are constant where truth varies: as little faithful as NaN, whatever the
// cosine of the whole. What the user requires is about statistics alone.
static void find_dead(assay_check_t* c) {
  const assay_requirements_t* r = c->options.require;
  for (size_t i = 0; i < c->n_outputs && !(r && r->n); i++) {
    assay_output_check_t* o = &c->outputs[i];
    if (!o->slices || !o->slices_of_truth || !assay_slices_judge(o->slices).dead) continue;
    o->faithful = c->faithful = false;
    c->dead = true;
  }
}

static void report_progress(void* user, double fraction) {
  const assay_check_setting_t* o = user;
  if (o->progress) o->progress(o->user, "running", fraction);
}

static assay_status_t split_error(assay_check_t* c, const assay_samples_t* inputs) {
  const assay_shares_options_t options = {.unquantized = c->options.unquantized};
  if (!inputs->n || c->shares.n) return NULL;
  if (c->options.progress) c->options.progress(c->options.user, "splitting the error", 0);
  return assay_shares_run(c->plan, c->options.backend, assay_samples_get(inputs, 0), &options,
                          &c->shares);
}

// Of an engine that is like a piece of hardware golden may be what that gave: to the bit then.
static void want_bits(assay_check_t* c) {
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  const assay_graph_t* g = layers->model->graph;
  for (size_t i = 0; c->options.backend->is_like && i < c->n_outputs && i < g->n_outputs; i++) {
    const assay_node_t* maker = g->outputs[i]->producer;
    const int l = maker ? layers->layer_of_node[maker->id] : -1;
    c->outputs[i].bits = assay_layer_storage(l < 0 ? NULL : &layers->layers[l], ASSAY_TYPE_FLOAT);
  }
}

static void note_range(assay_check_t* c) {
  const bool wide = !is_lowered(c);
  for (size_t i = 0; i < c->n_outputs; i++) {
    c->outputs[i].float_range = wide;
    for (size_t k = 0; k < c->outputs[i].n_parts; k++) c->outputs[i].parts[k].float_range = wide;
  }
}

assay_status_t assay_check_begin(assay_check_t* c, const assay_samples_t* inputs,
                                 const assay_samples_t* golden) {
  assay_account_options_t account = {
      .unquantized = c->options.unquantized, .progress = report_progress, .user = &c->options};
  if (c->options.pictures) {
    assay_pictures_deinit(c->options.pictures);
    account.watch = assay_pictures_watch(c->options.pictures);
  }
  if (c->options.require) ASSAY_TRY(assay_require_resolve(c->options.require, c->model->graph));
  if (!c->plan)
    ASSAY_TRY(assay_plan_create(c->model, &c->options.precision, &c->options.plan, c->options.seed,
                                &c->plan));
  ASSAY_TRY(assay_account_create(c->plan, c->options.backend, &account, &c->account));
  ASSAY_TRY(assay_output_checks_create(c->model->graph, c->options.require, &c->outputs));
  if (c->options.require)
    ASSAY_TRY(assay_new_array(c->options.require->n, sizeof *c->met, &c->met));
  c->n_outputs = c->model->graph->n_outputs;
  want_bits(c);
  note_range(c);
  ASSAY_TRY(assay_check_find_golden_kind(c, inputs, c->options.golden, golden));
  return assay_outputs_want_slices(
      c->outputs, c->n_outputs, !assay_check_compares_quantizers(c, golden) || c->golden_quantized);
}

assay_status_t assay_check_run_samples(assay_check_t* c, const assay_samples_t* inputs,
                                       const assay_samples_t* golden) {
  const bool added = c->n_added > 0;
  if (!added) ASSAY_TRY(assay_check_begin(c, inputs, golden));
  ASSAY_TRY(note_unfinite_inputs(c, inputs));
  c->n_samples = inputs->n;
  if (added)
    ASSAY_TRY(assay_samples_judge(c->model, c->options.require, c->outputs, &c->faithful));
  else
    ASSAY_TRY(assay_samples_run(c->account, c->model, inputs, golden, c->golden_quantized,
                                c->options.require, c->outputs, &c->faithful, c->met, &c->unmet));
  if (c->options.pictures) ASSAY_TRY(assay_pictures_take_status(c->options.pictures));
  find_dead(c);
  ASSAY_TRY(explain_by_ties(c, inputs));
  ASSAY_TRY(check_rewriting(c, inputs));
  ASSAY_TRY(audit_constants(c));
  ASSAY_TRY(assay_check_against_golden(c, inputs, golden));
  count_absorbed(c);
  // Approximations that no output shows hurt nobody; where outputs are off and nothing else is
  // wrong, they do.
  if (!c->faithful && !has_failed_layer(c)) assay_external_blame_near(c->account);
  count_defects(c);
  if (c->n_defects) c->faithful = false;
  c->open = note_unmet(c);
  // Layers are to blame for what the engine does, not for what cannot be judged.
  c->undecided = c->open && !engine_is_at_fault(c);
  bool numbers_hold = c->faithful || c->undecided || (is_lossy(c) && !c->n_defects);
  if (!numbers_hold) ASSAY_TRY(assay_culprits_by_range(c->account, &c->culprits));
  if ((!numbers_hold && !c->culprits.n) || c->options.shares) ASSAY_TRY(split_error(c, inputs));
  if (!numbers_hold && !c->culprits.n)
    ASSAY_TRY(assay_culprits_by_share(c->plan, c->account, &c->shares, &c->culprits));
  if (!numbers_hold && !c->culprits.n) ASSAY_TRY(assay_culprits_by_error(c->account, &c->culprits));
  if (!numbers_hold) ASSAY_TRY(assay_mended_blame(c));
  c->blame = find_blame(c);
  if (c->blame == ASSAY_BLAME_EXPORT || is_lossy(c)) c->faithful = false;
  if (c->options.judged) c->options.judged(c->options.user, c);
  // A fix is verified by running its layers in other formats: another engine's cannot be told to.
  if (!numbers_hold && !c->open && !c->dead && c->blame != ASSAY_BLAME_MODEL &&
      c->blame != ASSAY_BLAME_ENGINE && is_lowered(c) && !c->options.no_fix &&
      !c->options.backend->external)
    ASSAY_TRY(assay_fix_search(c, inputs, golden));
  if (is_ill(c)) c->blame = ASSAY_BLAME_MODEL;
  return NULL;
}

assay_status_t assay_check_make(assay_model_t* model, assay_check_setting_t* options,
                                assay_check_t** out) {
  assay_check_t* c = NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  c->model = assay_model_retain(model);
  c->options = *options;
  options->precision = (assay_precision_t){0};
  *out = c;
  return NULL;
}

assay_status_t assay_check_model(assay_model_t* model, assay_check_setting_t* options,
                                 const assay_samples_t* inputs, const assay_samples_t* golden,
                                 assay_check_t** out) {
  assay_check_t* c = NULL;
  ASSAY_TRY(assay_check_make(model, options, &c));
  assay_status_t st = assay_check_run_samples(c, inputs, golden);
  if (st) return assay_check_destroy(c), st;
  *out = c;
  return NULL;
}

void assay_check_clear(assay_check_t* c) {
  const assay_check_t keep = {
      .model = c->model, .plan = c->plan, .options = c->options, .job = c->job};
  assay_export_deinit(&c->export);
  assay_undone_deinit(&c->undone);
  assay_quantizers_deinit(&c->quantizers);
  assay_rounded_deinit(&c->rounded);
  assay_shares_deinit(&c->shares);
  assay_str_deinit(&c->unmet);
  assay_str_deinit(&c->unfinite_inputs);
  assay_free(c->met);
  assay_odd_constants_deinit(&c->odd_constants);
  assay_broadcasts_deinit(&c->broadcasts);
  assay_risks_deinit(&c->folded);
  assay_account_destroy(c->account);
  assay_outputs_free(c->outputs, c->n_outputs);
  assay_culprits_deinit(&c->culprits);
  assay_mended_deinit(&c->mended);
  assay_fix_deinit(&c->fix);
  assay_fix_front_deinit(&c->front);
  *c = keep;
}

void assay_check_destroy(assay_check_t* c) {
  if (!c) return;
  assay_check_clear(c);
  assay_plan_destroy(c->plan);
  assay_precision_deinit(&c->options.precision);
  assay_model_release(c->model);
  assay_check_job_destroy(c->job);
  assay_free(c);
}
