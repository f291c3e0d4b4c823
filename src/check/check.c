// The main job: run a model in a precision beside its truth, say what went wrong, and find a
// verified fix.
#include "check/check.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "check/fix.h"
#include "diagnose/chain.h"
#include "eval/evaluator.h"
#include "formats/format.h"

const char* assay_blame_name(assay_blame_t b) {
  static const char* const names[] = {"none", "precision", "engine", "export", "model", "input"};
  return names[b];
}

// ---- outputs ------------------------------------------------------------------------------------

// Adds the outputs of one sample. plain: holds truth for the comparison with golden; NULL: the
// account's.
static assay_status_t add_outputs(assay_account_t* account, const assay_graph_t* g,
                                  const assay_evaluator_t* plain, assay_tensor_t* const* golden,
                                  assay_output_check_t* outputs) {
  for (size_t i = 0; i < g->n_outputs; i++) {
    assay_output_check_t* o = &outputs[i];
    assay_tensor_t* e = assay_account_engine_output(account, i);
    assay_tensor_t* t = assay_account_truth_output(account, i);
    if (!e || !t) continue;
    ASSAY_TRY(assay_output_add(o, e, t));
    const assay_tensor_t* exported = plain ? assay_evaluator_get(plain, g->outputs[i]) : t;
    if (golden && golden[i]) ASSAY_TRY(assay_output_add_golden(o, e, exported, golden[i]));
  }
  return NULL;
}

// Outputs of all samples, for the user's commands.
static void keep_outputs(assay_account_t* account, size_t sample, size_t n_outputs,
                         assay_script_data_t* kept) {
  for (size_t i = 0; kept->engine && i < n_outputs; i++) {
    kept->engine[sample * n_outputs + i] =
        assay_tensor_retain(assay_account_engine_output(account, i));
    kept->truth[sample * n_outputs + i] =
        assay_tensor_retain(assay_account_truth_output(account, i));
  }
}

static assay_status_t run_sample(assay_account_t* account, const assay_model_t* model,
                                 assay_tensor_t* const* inputs, assay_tensor_t* const* golden,
                                 assay_output_check_t* outputs) {
  assay_evaluator_t* plain = NULL;
  assay_status_t st = assay_account_run(account, inputs);
  if (!st && golden && assay_model_quantizes(model))
    st = assay_truth_unquantized(model, inputs, &plain);
  if (!st) st = add_outputs(account, model->graph, plain, golden, outputs);
  assay_evaluator_destroy(plain);
  return st;
}

static assay_status_t run_all(assay_account_t* account, const assay_requirements_t* require,
                              assay_script_data_t* data, assay_output_check_t* outputs,
                              bool* out_faithful, bool* met, assay_str_t* unmet) {
  const assay_graph_t* g = data->model->graph;
  const assay_samples_t* golden = data->golden;
  for (size_t k = 0; k < data->inputs->n; k++) {
    assay_tensor_t* const* want =
        golden && golden->n ? assay_samples_get(golden, golden->n == 1 ? 0 : k) : NULL;
    assay_outputs_note_inputs(outputs, g->n_outputs, g->n_inputs,
                              assay_samples_get(data->inputs, k));
    ASSAY_TRY(run_sample(account, data->model, assay_samples_get(data->inputs, k), want, outputs));
    keep_outputs(account, k, g->n_outputs, data);
  }
  ASSAY_TRY(assay_outputs_want_any(outputs, g->n_outputs));
  *out_faithful = assay_outputs_hold(outputs, g->n_outputs, require);
  return data->engine ? assay_outputs_ask(require, data, out_faithful, met, unmet) : NULL;
}

assay_status_t assay_run_samples(assay_account_t* account, const assay_model_t* model,
                                 const assay_samples_t* inputs, const assay_samples_t* golden,
                                 const assay_requirements_t* require, assay_output_check_t* outputs,
                                 bool* out_faithful, bool* met, assay_str_t* unmet) {
  assay_script_data_t data = {.model = model, .inputs = inputs, .golden = golden};
  const size_t n = inputs->n * model->graph->n_outputs;
  assay_status_t st = NULL;
  if (require && assay_require_has_commands(require)) {
    st = assay_new_array(n, sizeof *data.engine, &data.engine);
    if (!st) st = assay_new_array(n, sizeof *data.truth, &data.truth);
  }
  if (!st) st = run_all(account, require, &data, outputs, out_faithful, met, unmet);
  for (size_t i = 0; i < n; i++) {
    if (data.engine) assay_tensor_release(data.engine[i]);
    if (data.truth) assay_tensor_release(data.truth[i]);
  }
  assay_free(data.engine);
  assay_free(data.truth);
  return st;
}

// ---- culprits -----------------------------------------------------------------------------------

static double range_of(const assay_layer_account_t* a) {
  return a->layer && a->storage ? assay_format_info(a->storage)->max : (double)INFINITY;
}

static void why_defect(const assay_layer_account_t* a, char* why, size_t room) {
  const assay_judgement_t* j = &a->judged;
  if (j->beyond)
    snprintf(why, room,
             "defect: %lld of %lld elements off by more than rounding can do; %.9g where truth is "
             "%.9g and rounding explains %.2g",
             (long long)j->beyond, (long long)j->elements, j->worst_engine, j->worst_truth,
             j->worst_limit);
  else if (a->shape_mismatches)
    snprintf(why, room, "defect: another shape than the operator gives, of %lld elements",
             (long long)a->shape_mismatches);
  else
    snprintf(why, room, "defect: RMS error %.3g, %.1f times what rounding in other orders shows",
             assay_error_sum_rms(&a->own), a->outlying_by);
}

static void why_amplified(const assay_layer_account_t* a, char* why, size_t room) {
  const assay_perturbation_t* p = a->perturbations.n ? &a->perturbations.at[0] : NULL;
  if (p)
    snprintf(
        why, room,
        "amplified: '%s' comes in with an error of %.2g of its values and leaves with %.2g, %.0f "
        "times as much",
        p->value->name, p->in, p->out, p->condition);
  else
    snprintf(why, room, "amplified: errors that come in leave %.0f times larger", a->condition);
}

static assay_status_t add_culprit(assay_check_t* c, const assay_layer_account_t* a,
                                  assay_verdict_t verdict, bool born) {
  ASSAY_TRY(assay_grow(&c->culprits, &c->cap_culprits, c->n_culprits + 1, sizeof *c->culprits));
  assay_culprit_t* u = &c->culprits[c->n_culprits++];
  *u = (assay_culprit_t){.account = a, .verdict = verdict, .born = born};
  const assay_format_info_t* f = assay_format_info(a->storage ? a->storage : ASSAY_FORMAT_FP32);
  double value = fmax(a->truth_max, a->local_max);
  switch (verdict) {
    case ASSAY_VERDICT_OVERFLOW:
      if (!(value > f->max)) value = fmax(value, a->truth_max_in);
      snprintf(u->why, sizeof u->why, "overflow: %.3g, %s ends at %.6g", value, f->name, f->max);
      break;
    case ASSAY_VERDICT_INVALID:
      snprintf(u->why, sizeof u->why, "invalid: NaN arises here in %lld elements",
               (long long)a->judged.born_nan);
      break;
    case ASSAY_VERDICT_UNDERFLOW:
      snprintf(u->why, sizeof u->why,
               "underflow: %lld of %lld elements vanish, %s begins at %.3g; RMS error %.3g",
               (long long)a->judged.underflowed, (long long)a->judged.elements, f->name,
               f->min_subnormal, assay_error_sum_rms(&a->own));
      break;
    case ASSAY_VERDICT_AMPLIFIED:
      why_amplified(a, u->why, sizeof u->why);
      break;
    case ASSAY_VERDICT_DEFECT:
      why_defect(a, u->why, sizeof u->why);
      break;
    default:
      snprintf(u->why, sizeof u->why, "error: RMS %.3g of values up to %.3g",
               assay_error_sum_rms(&a->own), value);
  }
  return NULL;
}

assay_status_t assay_check_add_culprit(assay_check_t* c, const assay_layer_account_t* layer,
                                       assay_verdict_t verdict, const char* why) {
  ASSAY_TRY(assay_grow(&c->culprits, &c->cap_culprits, c->n_culprits + 1, sizeof *c->culprits));
  assay_culprit_t* u = &c->culprits[c->n_culprits++];
  *u = (assay_culprit_t){.account = layer, .verdict = verdict};
  snprintf(u->why, sizeof u->why, "%s", why);
  return NULL;
}

// Whether all that a layer reads past its range comes from layers that held it: in fp32, say. Then
// it is lost here, and not before.
static bool is_first_to_lose(const assay_check_t* c, const assay_layer_account_t* a) {
  bool any = false;
  for (size_t k = 0; a->layer && k < a->layer->n_nodes; k++) {
    const assay_node_t* n = a->layer->nodes[k];
    for (size_t i = 0; i < n->n_inputs; i++) {
      const assay_node_t* maker = n->inputs[i] ? n->inputs[i]->producer : NULL;
      const assay_layer_account_t* m = maker ? assay_account_of_node(c->account, maker) : NULL;
      if (!m || m == a || !(m->truth_max > range_of(a))) continue;
      if (m->truth_max > range_of(m)) return false;
      any = true;
    }
  }
  return any;
}

// Layers that the engine was seen to fail in, then those whose truth passes the range while what
// they read is within it, or was held until then; what lies behind them is counted.
static assay_status_t find_culprits(assay_check_t* c) {
  size_t n = assay_account_layer_count(c->account);
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    if (a->verdict == ASSAY_VERDICT_DEFECT)
      ASSAY_TRY(add_culprit(c, a, ASSAY_VERDICT_DEFECT, true));
  }
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    if (a->verdict == ASSAY_VERDICT_OVERFLOW)
      ASSAY_TRY(add_culprit(c, a, ASSAY_VERDICT_OVERFLOW, true));
  }
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    const bool out = a->truth_max > range_of(a), in = a->truth_max_in > range_of(a);
    const bool first = in ? is_first_to_lose(c, a) : out;
    if (first && a->verdict != ASSAY_VERDICT_OVERFLOW)
      ASSAY_TRY(add_culprit(c, a, ASSAY_VERDICT_OVERFLOW, false));
    c->n_behind += out && in && !first;
  }
  for (size_t i = 0; i < n; i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    if (a->verdict == ASSAY_VERDICT_INVALID)
      ASSAY_TRY(add_culprit(c, a, ASSAY_VERDICT_INVALID, true));
  }
  return NULL;
}

// Without overflow: the layers from which most of an output's error comes.
static assay_status_t rank_by_share(assay_check_t* c) {
  enum { SHOWN = 5 };
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  double limit = (double)INFINITY;
  for (int k = 0; k < SHOWN; k++) {
    const assay_layer_account_t* worst = NULL;
    double most = 0;
    for (size_t l = 0; l < layers->n_layers; l++) {
      const assay_layer_t* layer = &layers->layers[l];
      const double share = assay_shares_of_layer(&c->shares, l);
      if (share <= most || share >= limit) continue;
      worst = assay_account_of_node(c->account, layer->nodes[layer->n_nodes - 1]);
      most = share;
    }
    if (!worst) break;
    limit = most;
    ASSAY_TRY(add_culprit(c, worst, worst->verdict, true));
    c->culprits[c->n_culprits - 1].share = most;
  }
  return NULL;
}

// Where no layer range was cut down to single layers: those whose own error is largest against what
// they hold.
static assay_status_t rank_by_error(assay_check_t* c) {
  enum { SHOWN = 5 };
  double limit = (double)INFINITY;
  for (int k = 0; k < SHOWN; k++) {
    const assay_layer_account_t* worst = NULL;
    double worst_ratio = 0;
    for (size_t i = 0; i < assay_account_layer_count(c->account); i++) {
      const assay_layer_account_t* a = assay_account_layer(c->account, i);
      double scale = sqrt(a->own.sum_ref2), ratio = scale > 0 ? sqrt(a->own.sum_err2) / scale : 0;
      if (ratio > worst_ratio && ratio < limit) {
        worst = a;
        worst_ratio = ratio;
      }
    }
    if (!worst) break;
    limit = worst_ratio;
    ASSAY_TRY(add_culprit(c, worst, worst->verdict, true));
  }
  return NULL;
}

assay_status_t assay_check_blame_layers(assay_check_t* c) {
  ASSAY_TRY(find_culprits(c));
  return c->n_culprits ? NULL : rank_by_share(c);
}

// ---- blame --------------------------------------------------------------------------------------

// Truth against golden. Golden of a quantized model is that of the network before.
static assay_status_t check_export(assay_check_t* c, const assay_samples_t* inputs) {
  if (!c->options.golden) return NULL;
  const assay_export_options_t options = {
      .unquantized = c->options.unquantized || assay_model_quantizes(c->model),
      .seed = c->options.seed,
      .seconds = c->options.search_seconds,
      .no_search = c->options.no_fix,
      .progress = c->options.progress,
      .user = c->options.user};
  const assay_samples_t* whole = c->options.whole_batch;
  return assay_chain_run(c->model, whole ? whole : inputs, c->options.golden, &options, &c->export);
}

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

static assay_blame_t find_blame(const assay_check_t* c) {
  const bool by_inputs = c->unfinite_inputs.len && truth_is_unfinite(c);
  if (by_inputs && !c->faithful && !c->n_defects) return ASSAY_BLAME_INPUT;
  if (c->export.n) return ASSAY_BLAME_EXPORT;
  if (c->faithful) return ASSAY_BLAME_NONE;
  if (c->n_defects) return ASSAY_BLAME_ENGINE;
  if (c->undecided) return truth_is_unfinite(c) ? ASSAY_BLAME_MODEL : ASSAY_BLAME_INPUT;
  const bool lowered = is_lowered(c);
  // Where layers of another engine store a narrow type, or operators declare it themselves.
  if (c->n_culprits && c->culprits[0].verdict == ASSAY_VERDICT_OVERFLOW &&
      range_of(c->culprits[0].account) < assay_format_info(ASSAY_FORMAT_BF16)->max)
    return ASSAY_BLAME_PRECISION;
  if (c->n_culprits && !lowered) return ASSAY_BLAME_MODEL;
  return lowered ? ASSAY_BLAME_PRECISION : ASSAY_BLAME_ENGINE;
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

static assay_status_t run_truth(const assay_model_t* m, const assay_check_options_t* o,
                                assay_tensor_t* const* inputs, assay_evaluator_t** out) {
  const assay_evaluator_config_t truth = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = o->unquantized, .seed = o->seed};
  ASSAY_TRY(assay_evaluator_create(m, &truth, out));
  for (size_t i = 0; i < m->graph->n_inputs; i++)
    if (inputs[i]) assay_evaluator_set(*out, m->graph->inputs[i], inputs[i]);
  return assay_evaluator_run(*out);
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

static void report_progress(void* user, double fraction) {
  const assay_check_options_t* o = user;
  if (o->progress) o->progress(o->user, "running", fraction);
}

static assay_status_t split_error(assay_check_t* c, const assay_samples_t* inputs) {
  const assay_shares_options_t options = {.unquantized = c->options.unquantized};
  if (!inputs->n || c->shares.n) return NULL;
  if (c->options.progress) c->options.progress(c->options.user, "splitting the error", 0);
  return assay_shares_run(c->plan, c->options.backend, assay_samples_get(inputs, 0), &options,
                          &c->shares);
}

static assay_status_t run(assay_check_t* c, const assay_samples_t* inputs,
                          const assay_samples_t* golden) {
  assay_account_options_t account = {
      .unquantized = c->options.unquantized, .progress = report_progress, .user = &c->options};
  if (c->options.pictures) {
    assay_pictures_deinit(c->options.pictures);
    account.watch = assay_pictures_watch(c->options.pictures);
  }
  if (c->options.require) ASSAY_TRY(assay_require_resolve(c->options.require, c->model->graph));
  ASSAY_TRY(assay_plan_create(c->model, &c->options.precision, &c->options.plan, c->options.seed,
                              &c->plan));
  ASSAY_TRY(assay_account_create(c->plan, c->options.backend, &account, &c->account));
  ASSAY_TRY(assay_outputs_create(c->model->graph, c->options.require, &c->outputs));
  if (c->options.require)
    ASSAY_TRY(assay_new_array(c->options.require->n, sizeof *c->met, &c->met));
  ASSAY_TRY(note_unfinite_inputs(c, inputs));
  c->n_outputs = c->model->graph->n_outputs;
  c->n_samples = inputs->n;
  ASSAY_TRY(assay_run_samples(c->account, c->model, inputs, golden, c->options.require, c->outputs,
                              &c->faithful, c->met, &c->unmet));
  if (c->options.pictures) ASSAY_TRY(assay_pictures_take_status(c->options.pictures));
  ASSAY_TRY(check_rewriting(c, inputs));
  ASSAY_TRY(audit_constants(c));
  ASSAY_TRY(check_export(c, inputs));
  count_absorbed(c);
  count_defects(c);
  if (c->n_defects) c->faithful = false;
  c->open = note_unmet(c);
  // Layers are to blame for what the engine does, not for what cannot be judged.
  c->undecided = c->open && !engine_is_at_fault(c);
  bool numbers_hold = c->faithful || c->undecided;
  if (!numbers_hold) ASSAY_TRY(find_culprits(c));
  if ((!numbers_hold && !c->n_culprits) || c->options.shares) ASSAY_TRY(split_error(c, inputs));
  if (!numbers_hold && !c->n_culprits) ASSAY_TRY(rank_by_share(c));
  if (!numbers_hold && !c->n_culprits) ASSAY_TRY(rank_by_error(c));
  c->blame = find_blame(c);
  if (c->blame == ASSAY_BLAME_EXPORT) c->faithful = false;
  if (c->options.judged) c->options.judged(c->options.user, c);
  // A fix is verified by running its layers in other formats: another engine's cannot be told to.
  if (!numbers_hold && !c->open && c->blame != ASSAY_BLAME_MODEL &&
      c->blame != ASSAY_BLAME_ENGINE && is_lowered(c) && !c->options.no_fix &&
      !c->options.backend->external)
    ASSAY_TRY(assay_fix_search(c, inputs, golden));
  return NULL;
}

assay_status_t assay_check_run(assay_model_t* model, assay_check_options_t* options,
                               const assay_samples_t* inputs, const assay_samples_t* golden,
                               assay_check_t** out) {
  assay_check_t* c = NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  c->model = assay_model_retain(model);
  c->options = *options;
  options->precision = (assay_precision_t){0};
  assay_status_t st = run(c, inputs, golden);
  if (st) return assay_check_destroy(c), st;
  *out = c;
  return NULL;
}

void assay_check_destroy(assay_check_t* c) {
  if (!c) return;
  assay_export_deinit(&c->export);
  assay_shares_deinit(&c->shares);
  assay_str_deinit(&c->unmet);
  assay_str_deinit(&c->unfinite_inputs);
  assay_free(c->met);
  assay_odd_constants_deinit(&c->odd_constants);
  assay_broadcasts_deinit(&c->broadcasts);
  assay_risks_deinit(&c->folded);
  assay_account_destroy(c->account);
  assay_plan_destroy(c->plan);
  assay_precision_deinit(&c->options.precision);
  assay_free(c->outputs);
  assay_free(c->culprits);
  assay_free(c->fix.nodes);
  assay_free(c->fix.outputs);
  assay_model_release(c->model);
  assay_free(c);
}
