// Which graph pass changes the result: what `debug passes` finds.
#include "debug/pass_debug.h"

#include <math.h>
#include <string.h>

#include "account/runs.h"
#include "base/alloc.h"
#include "diagnose/export.h"
#include "diagnose/golden/golden_kind.h"

// The error of an output has grown where it is so many times what it was, and ulps of fp32.
static const double COARSER = 4, ULPS = 0x1p-22;

const char* assay_pass_effect_name(assay_pass_effect_t e) {
  static const char* const names[] = {"none", "rounding", "coarser", "engine", "truth"};
  return names[e];
}

typedef struct job {
  assay_model_t* model;
  const assay_check_setting_t* options;
  const assay_samples_t* inputs;
  const assay_samples_t* golden;
  assay_pass_blame_t* out;
  const char** off;  // names of all passes; those from `n_on` of the list on, and others, are off
  assay_runs_t* runs;
  assay_runs_setting_t setting;
  assay_plan_options_t plan;
  // Truth with the passes before, of the first sample, and its plan.
  assay_plan_t* before;
  assay_evaluator_t* truth;
} job_t;

static bool is_off(const assay_pass_options_t* o, const char* name) {
  for (size_t i = 0; i < o->n_off; i++)
    if (strcmp(o->off[i], name) == 0) return true;
  return false;
}

static size_t entries_of(const assay_rewrite_t* r, const assay_pass_t* p) {
  size_t n = 0;
  for (size_t i = 0; i < r->n_log; i++) n += strcmp(r->log[i].pass, p->name) == 0;
  return n;
}

// The passes that do something, with all on; the first of the list is none.
static assay_status_t list_passes(job_t* j) {
  assay_pass_blame_t* b = j->out;
  assay_plan_t* plan = NULL;
  const assay_check_setting_t* o = j->options;
  ASSAY_TRY(assay_new_array(assay_pass_count() + 1, sizeof *b->at, &b->at));
  ASSAY_TRY(assay_plan_create(j->model, &o->precision, &o->plan, o->seed, &plan));
  b->n = 1;
  for (size_t i = 0; i < assay_pass_count(); i++) {
    const assay_pass_t* p = assay_pass_at(i);
    const size_t n = entries_of(assay_plan_rewrite(plan), p);
    if (n) b->at[b->n++] = (assay_pass_account_t){.pass = p, .n_entries = n};
  }
  assay_plan_destroy(plan);
  return NULL;
}

// Switches the first n of the list on, and nothing else.
static void switch_on(job_t* j, size_t n) {
  size_t n_off = 0;
  for (size_t i = 0; i < assay_pass_count(); i++) {
    const assay_pass_t* p = assay_pass_at(i);
    bool on = false;
    for (size_t k = 0; k <= n; k++) on |= j->out->at[k].pass == p;
    if (!on || is_off(&j->options->plan.passes, p->name)) j->off[n_off++] = p->name;
  }
  j->plan.passes.off = j->off;
  j->plan.passes.n_off = n_off;
}

// ---- truth --------------------------------------------------------------------------------------

static assay_status_t truth_of(const job_t* j, const assay_model_t* m,
                               const assay_evaluator_hooks_t* hooks, assay_evaluator_t** out) {
  assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = j->options->unquantized, .seed = j->options->seed};
  if (hooks) config.hooks = *hooks;
  return assay_evaluator_create_run(m, &config, assay_samples_get(j->inputs, 0), out);
}

static void compare_output(assay_pass_account_t* a, const assay_tensor_t* was,
                           const assay_tensor_t* is) {
  const assay_difference_t d = assay_difference(is, was);
  if (!was || was->kind != ASSAY_KIND_TENSOR) return;
  if (!d.comparable) {
    a->truth_mismatched += was->size;
    return;
  }
  a->truth_mismatched += d.mismatched;
  if (d.max > 0) a->truth_moved = fmax(a->truth_moved, d.max / fmax(d.ref_max, 1e-300));
}

static assay_status_t note_entry(job_t* j, const assay_pass_entry_t* e) {
  assay_pass_blame_t* b = j->out;
  if (b->nodes) return NULL;
  ASSAY_TRY(assay_new_array(e->n_nodes, sizeof *b->nodes, &b->nodes));
  b->n_nodes = e->n_nodes;
  b->action = e->action;
  for (size_t i = 0; i < e->n_nodes; i++) b->nodes[i] = e->nodes[i];
  assay_str_append(&b->did, e->why ? e->why : "");
  return assay_str_status(&b->did);
}

// What the pass did to a node of the rewritten model: the entry that has most of what the node
// stands for.
static assay_status_t find_entry(job_t* j, const assay_plan_t* plan, const char* pass,
                                 const assay_node_t* node) {
  const assay_rewrite_t* r = assay_plan_rewrite(plan);
  const assay_pass_entry_t* best = NULL;
  size_t maximum = 0;
  if (!node) return NULL;
  const assay_origins_t o = assay_plan_origins(plan, &node);
  for (size_t i = 0; i < r->n_log; i++) {
    const assay_pass_entry_t* e = &r->log[i];
    size_t common = 0;
    if (strcmp(e->pass, pass) != 0) continue;
    for (size_t k = 0; k < e->n_nodes; k++)
      for (size_t m = 0; m < o.n; m++) common += e->nodes[k] == o.nodes[m];
    if (common <= maximum) continue;
    best = e;
    maximum = common;
  }
  return best ? note_entry(j, best) : NULL;
}

static assay_status_t blame_value(job_t* j, const assay_plan_t* plan, const char* pass,
                                  const assay_fault_t* f) {
  assay_pass_blame_t* b = j->out;
  if (f->shape)
    assay_str_append(&b->why, "it has another shape");
  else if (f->difference.mismatched)
    assay_str_printf(&b->why, "it differs in %lld of %lld places",
                     (long long)f->difference.mismatched, (long long)f->difference.n);
  else
    assay_str_printf(&b->why, "it moves by RMS %.3g of %.3g, where rounding explains %.2g",
                     f->difference.rms, f->difference.ref_rms, f->explained);
  assay_str_append(&b->value, f->value->name);
  assay_status_t st = assay_str_status(&b->why);
  if (!st) st = assay_str_status(&b->value);
  const assay_value_t* v = assay_graph_find(assay_plan_rewrite(plan)->model->graph, f->value->name);
  if (!st) st = find_entry(j, plan, pass, v ? v->producer : f->node);
  return st;
}

// Values of the rewritten model while its truth runs: those that are wanted, in their own types.
typedef struct collector {
  const bool* wanted;  // by value id
  assay_set_t* set;
} collector_t;

static assay_status_t on_node(void* user, const assay_node_t* node, size_t n_in,
                              assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  const collector_t* c = user;
  (void)n_in, (void)in;
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = node->outputs[i];
    assay_tensor_t* t = NULL;
    if (!v || !out[i] || !c->wanted[v->id] || out[i]->kind != ASSAY_KIND_TENSOR ||
        out[i]->store == ASSAY_STORE_STR)
      continue;
    ASSAY_TRY(assay_tensor_pack(out[i], &t));
    ASSAY_TRY(assay_set_add(c->set, v->name, t));
  }
  return NULL;
}

// Bytes of a value in its own type; one whose size is not known counts as a large one.
static double bytes_of(const assay_value_t* v) {
  double n = 4;
  if (!v->type || v->type->kind != ASSAY_KIND_TENSOR || !v->type->has_shape) return 1 << 20;
  for (int i = 0; i < v->type->rank; i++) {
    int64_t d = 64;
    if (!assay_dim_value(v->type->dims[i], &d)) d = 64;
    n *= (double)d;
  }
  return n;
}

// Values of both models by name, in the order of the nodes of the old one.
typedef struct values {
  const assay_value_t** at;  // of the new model
  size_t n;
} values_t;

static assay_status_t common_values(const job_t* j, const assay_model_t* is, values_t* out) {
  const assay_graph_t* g = assay_plan_layers(j->before)->model->graph;
  size_t n = 0;
  for (size_t i = 0; i < g->n_nodes; i++) n += g->nodes[i]->n_outputs;
  ASSAY_TRY(assay_new_array(n, sizeof *out->at, &out->at));
  for (size_t i = 0; i < g->n_nodes; i++) {
    for (size_t o = 0; o < g->nodes[i]->n_outputs; o++) {
      const assay_value_t* was = g->nodes[i]->outputs[o];
      const assay_value_t* v = was ? assay_graph_find(is->graph, was->name) : NULL;
      if (v && v->producer) out->at[out->n++] = v;
    }
  }
  return NULL;
}

// Holds the values [first, end) of the list, each `step` of them and the last, against truth of the
// old model; outputs only where the list is empty.
static assay_status_t hold_values(job_t* j, const assay_model_t* is, const values_t* list,
                                  size_t first, size_t end, size_t step, assay_export_t* out) {
  const assay_export_options_t options = {
      .unquantized = j->options->unquantized, .seed = j->options->seed, .no_search = true};
  const assay_model_t* was = assay_plan_layers(j->before)->model;
  assay_set_t set = {0};
  assay_golden_t golden = {0};
  assay_evaluator_t* truth = NULL;
  bool* wanted = NULL;
  ASSAY_TRY(assay_new_array((size_t)is->n_values, sizeof *wanted, &wanted));
  for (size_t i = 0; i < is->graph->n_outputs; i++) wanted[is->graph->outputs[i]->id] = true;
  for (size_t i = first; i < end; i++)
    if ((i - first) % step == step - 1 || i + 1 == end) wanted[list->at[i]->id] = true;
  collector_t c = {wanted, &set};
  const assay_evaluator_hooks_t hooks = {.after = on_node, .user = &c};
  assay_status_t st = truth_of(j, is, &hooks, &truth);
  if (!st) st = assay_golden_match(&set, was, NULL, &golden);
  if (!st) st = assay_export_check(was, assay_samples_get(j->inputs, 0), &golden, &options, out);
  assay_evaluator_destroy(truth);
  assay_golden_deinit(&golden);
  assay_set_deinit(&set);
  assay_free(wanted);
  return st;
}

static size_t place_of(const values_t* list, const char* name) {
  size_t i = 0;
  while (i < list->n && strcmp(list->at[i]->name, name) != 0) i++;
  return i;
}

// Finds the first value that changes: among some of all, so many as there is room for, then among
// those before the one that was found.
static assay_status_t find_value(job_t* j, const assay_pass_account_t* a,
                                 const assay_plan_t* plan) {
  static const double CAPACITY = 1e9;
  const assay_model_t* is = assay_plan_layers(plan)->model;
  values_t list = {0};
  ASSAY_TRY(common_values(j, is, &list));
  assay_status_t st = NULL;
  for (size_t first = 0, end = list.n, step = 2; !st && step > 1;) {
    assay_export_t e = {0};
    double bytes = 0;
    for (size_t i = first; i < end; i++) bytes += bytes_of(list.at[i]);
    step = (size_t)(bytes / CAPACITY) + 1;
    st = hold_values(j, is, &list, first, end, step, &e);
    const size_t at = !st && e.n ? place_of(&list, e.faults[0].value->name) : list.n;
    if (!st && e.n && (step == 1 || at == list.n))
      st = blame_value(j, plan, a->pass->name, &e.faults[0]);
    assay_export_deinit(&e);
    if (at == list.n) break;
    end = at + 1;
    first = at + 1 > step ? at + 1 - step : 0;
  }
  assay_free(list.at);
  return st;
}

// Whether truth of the outputs moved by more than rounding explains, and where first.
static assay_status_t hold_truths(job_t* j, assay_pass_account_t* a, const assay_plan_t* plan) {
  const values_t none = {0};
  assay_export_t e = {0};
  ASSAY_TRY(hold_values(j, assay_plan_layers(plan)->model, &none, 0, 0, 1, &e));
  if (e.n) a->effect = ASSAY_EFFECT_TRUTH;
  assay_export_deinit(&e);
  return a->effect == ASSAY_EFFECT_TRUTH && !j->out->guilty ? find_value(j, a, plan) : NULL;
}

static assay_status_t compare_truth(job_t* j, assay_pass_account_t* a, const assay_plan_t* plan,
                                    const assay_evaluator_t* truth) {
  const assay_graph_t* was = assay_plan_layers(j->before)->model->graph;
  const assay_graph_t* is = assay_plan_layers(plan)->model->graph;
  for (size_t i = 0; i < is->n_outputs; i++)
    compare_output(a, assay_evaluator_get(j->truth, was->outputs[i]),
                   assay_evaluator_get(truth, is->outputs[i]));
  if (a->truth_moved <= 0 && !a->truth_mismatched) return NULL;
  a->effect = ASSAY_EFFECT_ROUNDING;
  return hold_truths(j, a, plan);
}

// ---- the engine ---------------------------------------------------------------------------------

static bool has_grown(const assay_output_check_t* was, const assay_output_check_t* is) {
  if (!is->is_float) return is->differing > was->differing;
  const double before = assay_error_sum_rms(&was->error), now = assay_error_sum_rms(&is->error);
  return now > COARSER * before && now > ULPS * is->error.ref_max;
}

static bool is_same(const assay_output_check_t* was, const assay_output_check_t* is) {
  return was->differing == is->differing && was->error.sum_err2 == is->error.sum_err2 &&
         was->error.max_abs == is->error.max_abs;
}

static void compare_engine(const job_t* j, const assay_pass_account_t* was,
                           assay_pass_account_t* is) {
  bool same = true, grown = false;
  for (size_t i = 0; i < j->out->n_outputs; i++) {
    same &= is_same(&was->outputs[i], &is->outputs[i]);
    grown |= has_grown(&was->outputs[i], &is->outputs[i]);
  }
  if (is->effect == ASSAY_EFFECT_TRUTH) return;
  if (grown || (was->faithful && !is->faithful))
    is->effect = ASSAY_EFFECT_COARSER;
  else if (!same)
    is->effect = ASSAY_EFFECT_ROUNDING;
}

// The pass from which on the outputs never do again; what a later pass mends is not a fault.
static void find_guilty(assay_pass_blame_t* b) {
  size_t k = b->n;
  while (k > 0 && !b->at[k - 1].faithful) k--;
  if (b->guilty || k == 0 || k == b->n) return;
  b->at[k].effect = ASSAY_EFFECT_ENGINE;
  b->guilty = &b->at[k];
}

// The layer that the engine fails in, and what the pass did there.
static assay_status_t blame_layer(job_t* j, const char* pass) {
  assay_check_setting_t options = *j->options;
  assay_check_t* c = NULL;
  options.plan = j->plan;
  options.no_fix = true;
  ASSAY_TRY(assay_precision_copy(&j->options->precision, &options.precision));
  assay_status_t st = assay_check_model(j->model, &options, j->inputs, NULL, &c);
  assay_precision_deinit(&options.precision);
  for (size_t i = 0; !st && !j->out->nodes && i < c->culprits.n; i++) {
    const assay_culprit_t* u = &c->culprits.at[i];
    st = find_entry(j, c->plan, pass, u->account->node);
    if (st || !j->out->nodes) continue;
    assay_str_append(&j->out->why, u->why);
    if (u->account->node->n_outputs && u->account->node->outputs[0])
      assay_str_append(&j->out->value, u->account->node->outputs[0]->name);
  }
  assay_check_destroy(c);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t run_engine(job_t* j, assay_pass_account_t* a) {
  assay_run_result_t got = {0};
  ASSAY_TRY(assay_runs_try(j->runs, &j->options->precision, &got, NULL, NULL));
  a->outputs = got.outputs;
  a->faithful = got.faithful;
  assay_str_deinit(&got.unmet);
  return NULL;
}

static assay_status_t take_account(job_t* j, size_t n) {
  const assay_check_setting_t* o = j->options;
  assay_pass_account_t* a = &j->out->at[n];
  assay_plan_t* plan = NULL;
  assay_evaluator_t* truth = NULL;
  switch_on(j, n);
  assay_runs_drop(j->runs);
  ASSAY_TRY(assay_plan_create(j->model, &o->precision, &j->plan, o->seed, &plan));
  a->n_layers = assay_plan_layers(plan)->n_layers;
  assay_status_t st = truth_of(j, assay_plan_layers(plan)->model, NULL, &truth);
  if (!st && j->before) st = compare_truth(j, a, plan, truth);
  if (!st) st = run_engine(j, a);
  if (!st && n) compare_engine(j, a - 1, a);
  if (!st && !j->out->guilty && a->effect == ASSAY_EFFECT_TRUTH) j->out->guilty = a;
  assay_evaluator_destroy(j->truth);
  assay_plan_destroy(j->before);
  j->truth = truth;
  j->before = plan;
  return st;
}

static assay_status_t run(job_t* j) {
  const assay_check_setting_t* o = j->options;
  bool golden_quantized = false;
  if (!o->unquantized)
    ASSAY_TRY(assay_golden_outputs_are_quantized(j->model, j->inputs, j->golden, o->seed,
                                                 &golden_quantized));
  j->plan = o->plan;
  j->setting = (assay_runs_setting_t){.backend = o->backend,
                                      .plan = &j->plan,
                                      .require = o->require,
                                      .inputs = j->inputs,
                                      .golden = j->golden,
                                      .golden_quantized = golden_quantized,
                                      .unquantized = o->unquantized,
                                      .seed = o->seed};
  ASSAY_TRY(assay_new_array(assay_pass_count(), sizeof *j->off, &j->off));
  ASSAY_TRY(list_passes(j));
  ASSAY_TRY(assay_runs_create(j->model, &j->setting, &j->runs));
  for (size_t n = 0; n < j->out->n; n++) {
    if (o->progress)
      o->progress(o->user, n ? j->out->at[n].pass->name : "no passes",
                  (double)n / (double)j->out->n);
    ASSAY_TRY(take_account(j, n));
  }
  if (j->out->guilty) return NULL;
  find_guilty(j->out);
  if (!j->out->guilty) return NULL;
  switch_on(j, (size_t)(j->out->guilty - j->out->at));
  return blame_layer(j, j->out->guilty->pass->name);
}

assay_status_t assay_pass_debug(assay_model_t* model, const assay_check_setting_t* options,
                                const assay_samples_t* inputs, const assay_samples_t* golden,
                                assay_pass_blame_t* out) {
  assay_pass_blame_t b = {.model = assay_model_retain(model), .n_outputs = model->graph->n_outputs};
  job_t j = {.model = model, .options = options, .inputs = inputs, .golden = golden, .out = &b};
  assay_status_t st = inputs->n ? run(&j) : NULL;
  assay_runs_destroy(j.runs);
  assay_evaluator_destroy(j.truth);
  assay_plan_destroy(j.before);
  assay_free(j.off);
  if (st) return assay_pass_blame_deinit(&b), st;
  *out = b;
  return NULL;
}

void assay_pass_blame_deinit(assay_pass_blame_t* b) {
  for (size_t i = 0; i < b->n; i++) assay_free(b->at[i].outputs);
  assay_free(b->at);
  assay_free(b->nodes);
  assay_str_deinit(&b->did);
  assay_str_deinit(&b->value);
  assay_str_deinit(&b->why);
  assay_model_release(b->model);
  *b = (assay_pass_blame_t){0};
}
