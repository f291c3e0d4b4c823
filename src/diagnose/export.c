// Is the export to blame? Truth of a model against golden tensors of the network that it was made
// from.
#include "diagnose/export.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/golden/stray_casts.h"
#include "diagnose/golden/walk.h"
#include "diagnose/outputs/others.h"
#include "diagnose/search.h"
#include "diagnose/solve/holdout.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/solve.h"
#include "diagnose/kinds/undone.h"
#include "eval/evaluator.h"

// Lists the nodes that the targets are made by, back to golden values, constants and graph inputs.
static size_t list_nodes(const assay_golden_walk_t* w, bool* wanted, const assay_node_t** nodes) {
  const assay_graph_t* g = w->model->graph;
  size_t n = 0;
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* node = g->nodes[i];
    bool needed = false;
    for (size_t k = 0; k < node->n_outputs; k++)
      needed |= node->outputs[k] && wanted[node->outputs[k]->id];
    if (!needed) continue;
    nodes[n++] = node;
    for (size_t k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] && !w->golden_of[node->inputs[k]->id]) wanted[node->inputs[k]->id] = true;
  }
  for (size_t a = 0, b = n; a + 1 < b; a++) {
    const assay_node_t* x = nodes[a];
    nodes[a] = nodes[--b];
    nodes[b] = x;
  }
  return n;
}

// A model that a fault makes amplify rounding explains anything: no repair may leave more than this
// part of golden's size.
static const double MAX_LEFT = 1. / 64;

static double left_at_most(double explained, double size) {
  return size > 0 ? fmin(explained, MAX_LEFT * size) : explained;
}

static assay_search_target_t target_of(const assay_golden_walk_t* w, const assay_value_t* v) {
  assay_tensor_t* golden = w->golden_of[v->id]->tensor;
  const assay_difference_t d = assay_difference(golden, golden);  // for its size
  const assay_difference_t* e = &w->explained[v->id];
  return (assay_search_target_t){
      .value = v,
      .golden = golden,
      .truth = w->missed[v->id],
      .explained_rms = left_at_most(assay_golden_allowed(e->rms, golden, d.ref_rms), d.ref_rms),
      .explained_max = left_at_most(assay_golden_allowed(e->max, golden, d.ref_max), d.ref_max)};
}

// The part of the time that is kept for what is tried where a node is missing.
static const double KEPT_FOR_MISSING = 0.3;

// Takes what was found over: the first into the fault, the others after it.
static assay_status_t take_found(assay_golden_walk_t* w, size_t fault, assay_fault_t* found,
                                 size_t n) {
  assay_export_t* e = w->out;
  assay_status_t st =
      n > 1 ? assay_grow(&e->faults, &e->capacity, e->n + n - 1, sizeof *e->faults) : NULL;
  if (st) {
    for (size_t i = 0; i < n; i++) assay_repair_deinit(&found[i].repair);
    return st;
  }
  if (n > 1)
    memmove(&e->faults[fault + n], &e->faults[fault + 1], (e->n - fault - 1) * sizeof *e->faults);
  const assay_fault_t known = e->faults[fault];
  for (size_t i = 0; i < n; i++) {
    found[i].value = known.value;
    found[i].difference = known.difference;
    found[i].explained = known.explained;
    found[i].shape = known.shape;
    e->faults[fault + i] = found[i];
  }
  e->n += n ? n - 1 : 0;
  return NULL;
}

// A repair that restores golden, in place of what was found before.
static void take_restored(const assay_node_t* node, const assay_repair_t* r, assay_fault_t* found,
                          size_t* n_found) {
  for (size_t i = 0; i < *n_found; i++) assay_repair_deinit(&found[i].repair);
  found[0] = (assay_fault_t){.node = node, .has_repair = true, .restored = true, .repair = *r};
  *n_found = 1;
}

static bool is_constant_node(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "Constant") == 0;
}

// Where golden knows what goes into the node, its constant can be solved for: by that, or by the
// outputs of other samples as well.
static assay_status_t solve(assay_golden_walk_t* w, const assay_search_target_t* target,
                            assay_holdout_t* holdout, bool by_samples, double deadline,
                            assay_fault_t* found, size_t* n_found) {
  assay_repair_t r = {0};
  double left = 0;
  bool is_solved = false;
  const assay_node_t* node = target->value->producer;
  if (!node || node->graph != w->model->graph || (*n_found && found[0].restored)) return NULL;
  if (!by_samples) ASSAY_TRY(assay_solve_quantizer(w->truth, node, target, &r, &is_solved));
  if (is_solved) return take_restored(node, &r, found, n_found), NULL;
  ASSAY_TRY(assay_solve_constant(w->truth, node, target, holdout, by_samples, deadline, &r, &left,
                                 &is_solved));
  if (!is_solved) return NULL;
  const assay_difference_t d = assay_difference(target->truth, target->golden);
  const bool restored = left * d.rms <= target->explained_rms;
  if (!restored && *n_found && found[0].remains <= left) return assay_repair_deinit(&r), NULL;
  for (size_t i = 0; i < *n_found; i++) assay_repair_deinit(&found[i].repair);
  found[0] = (assay_fault_t){
      .node = node, .has_repair = true, .restored = restored, .repair = r, .remains = left};
  *n_found = 1;
  return NULL;
}

// Whether a repair of the target's node gives what the target knows.
static assay_status_t repair_restores(assay_golden_walk_t* w, const assay_repair_t* r,
                                      const assay_search_target_t* target, bool* out) {
  const assay_node_t* node = target->value->producer;
  assay_tensor_t** in = NULL;
  *out = false;
  ASSAY_TRY(assay_new_array(node->n_inputs, sizeof *in, &in));
  for (size_t i = 0; i < node->n_inputs; i++)
    in[i] = node->inputs[i] ? assay_evaluator_get(w->truth, node->inputs[i]) : NULL;
  assay_status_t st = assay_solve_restores(w->truth, r, target, node->n_inputs, in, out);
  assay_free(in);
  return st;
}

// What mended another output of the same node.
static assay_status_t repeat(assay_golden_walk_t* w, const assay_search_target_t* target,
                             size_t fault, assay_fault_t* found, size_t* n_found) {
  const assay_export_t* e = w->out;
  for (size_t k = 0; k < fault && !*n_found; k++) {
    const assay_fault_t* f = &e->faults[k];
    bool restores = false;
    if (!f->restored || !target->value->producer || f->repair.node != target->value->producer)
      continue;
    ASSAY_TRY(repair_restores(w, &f->repair, target, &restores));
    if (!restores) continue;
    found[0] = (assay_fault_t){.node = f->repair.node, .has_repair = true, .restored = true};
    ASSAY_TRY(assay_repair_copy(&f->repair, &found[0].repair));
    *n_found = 1;
  }
  return NULL;
}

// Where the node's own numbers are right, another node may be missing beside it.
static assay_status_t insert(assay_golden_walk_t* w, const assay_search_target_t* target,
                             assay_holdout_t* holdout, double deadline, assay_fault_t* found,
                             size_t* n_found) {
  assay_repair_t r = {0};
  bool is_found = false;
  const assay_node_t* node = target->value->producer;
  if (!node || node->graph != w->model->graph || (*n_found && found[0].restored)) return NULL;
  ASSAY_TRY(
      assay_solve_missing(w->truth, node, target, &w->golden, holdout, deadline, &r, &is_found));
  if (is_found) take_restored(node, &r, found, n_found);
  return NULL;
}

static bool is_read(const assay_graph_t* g, const assay_value_t* v) {
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == v) return true;
  return false;
}

// Other samples, by the outputs that golden knows and no node reads. *targets: to be freed after
// the holdout. Where another node is at fault as well, nothing restores outputs by itself.
static assay_status_t find_holdout(assay_golden_walk_t* w, assay_search_target_t** targets,
                                   assay_holdout_t** out) {
  const assay_graph_t* g = w->model->graph;
  size_t n = 0;
  for (size_t i = 1; i < w->out->n; i++)
    if (w->out->faults[i].node != w->out->faults[0].node) return NULL;
  ASSAY_TRY(assay_new_array(g->n_outputs, sizeof **targets, targets));
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    const assay_tensor_t* t = w->golden_of[v->id] ? w->golden_of[v->id]->tensor : NULL;
    // Integers may be as many as a threshold lets through: their shapes differ.
    if (t && t->store == ASSAY_STORE_F64 && v->producer && w->missed[v->id] && !is_read(g, v))
      (*targets)[n++] = target_of(w, v);
  }
  return assay_holdout_create(w->options, w->model, w->truth, *targets, n, out);
}

// A constant in place of what the network computes fits one sample only: what computes it is looked
// for first, unless the constant does for the other samples, too.
static assay_status_t solve_constant_node(assay_golden_walk_t* w,
                                          const assay_search_target_t* target,
                                          assay_holdout_t* holdout, double deadline,
                                          assay_fault_t* found, size_t* n_found) {
  assay_fault_t as_golden[1] = {{0}};
  size_t n = 0;
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  ASSAY_TRY(solve(w, target, holdout, false, deadline, as_golden, &n));
  assay_status_t st = n && as_golden[0].restored
                          ? assay_holdout_ask(holdout, 0, &as_golden[0].repair, &said)
                          : NULL;
  if (!st && said != ASSAY_HOLDOUT_HOLDS) st = insert(w, target, holdout, deadline, found, n_found);
  if (!st && n && !(*n_found && found[0].restored)) {
    for (size_t i = 0; i < *n_found; i++) assay_repair_deinit(&found[i].repair);
    found[0] = as_golden[0];
    *n_found = 1;
  } else if (n) {
    assay_repair_deinit(&as_golden[0].repair);
  }
  return st;
}

// A constant, or a node that is missing beside it. What one sample says of a constant and the
// others do not bear out stands last.
static assay_status_t solve_or_insert(assay_golden_walk_t* w, const assay_search_target_t* target,
                                      assay_holdout_t* holdout, double deadline,
                                      assay_fault_t* found, size_t* n_found) {
  const double now = assay_clock_seconds(), part = now + 0.7 * fmax(0, deadline - now);
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  ASSAY_TRY(solve(w, target, holdout, false, deadline, found, n_found));
  const bool solved = *n_found && found[0].restored;
  if (solved) ASSAY_TRY(assay_holdout_ask(holdout, 0, &found[0].repair, &said));
  const bool doubted = said == ASSAY_HOLDOUT_NEAR || said == ASSAY_HOLDOUT_FAILS;
  if (doubted) found[0].restored = false;
  ASSAY_TRY(insert(w, target, holdout, part, found, n_found));
  ASSAY_TRY(solve(w, target, holdout, true, deadline, found, n_found));
  if (doubted) found[0].restored = true;
  return NULL;
}

// What golden's inner values tell of the target's node.
static assay_status_t solve_node(assay_golden_walk_t* w, const assay_search_target_t* target,
                                 double deadline, assay_fault_t* found, size_t* n_found) {
  assay_search_target_t* outputs = NULL;
  assay_holdout_t* holdout = NULL;
  const assay_node_t* node = target->value->producer;
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  const bool restored = *n_found && found[0].restored;
  assay_status_t st = find_holdout(w, &outputs, &holdout);
  // What restores this sample and fails on others is a guess: it stands if nothing better is found.
  if (!st && restored && *n_found == 1) st = assay_holdout_ask(holdout, 0, &found[0].repair, &said);
  const bool refuted = restored && said == ASSAY_HOLDOUT_FAILS;
  if (refuted) found[0].restored = false;
  if (st || (restored && !refuted))
    ;  // nothing more to find
  else if (node && is_constant_node(node))
    st = solve_constant_node(w, target, holdout, deadline, found, n_found);
  else
    st = solve_or_insert(w, target, holdout, deadline, found, n_found);
  if (refuted) found[0].restored = true;
  assay_holdout_destroy(holdout);
  assay_free(outputs);
  return st;
}

static assay_status_t search(assay_golden_walk_t* w, const assay_value_t* const* values, size_t n,
                             double deadline, size_t fault) {
  const assay_graph_t* g = w->model->graph;
  bool* wanted = NULL;
  const assay_node_t** nodes = NULL;
  assay_search_target_t* targets = NULL;
  assay_fault_t found[ASSAY_SEARCH_FAULTS];
  size_t n_found = 0;
  assay_others_t others = {0};
  assay_search_t s = {.model = w->model,
                      .evaluator = w->truth,
                      .faulty = w->faulty,
                      .deadline = deadline,
                      .several = true};
  assay_status_t st = assay_new_array((size_t)w->model->n_values, sizeof *wanted, &wanted);
  if (!st) st = assay_new_array(g->n_nodes, sizeof *nodes, &nodes);
  if (!st) st = assay_new_array(n, sizeof *targets, &targets);
  for (size_t k = 0; !st && k < n; k++) {
    wanted[values[k]->id] = true;
    targets[s.n_targets++] = target_of(w, values[k]);
  }
  if (!st) s.n_nodes = list_nodes(w, wanted, nodes);
  s.nodes = nodes;
  s.targets = targets;
  const bool inner = !w->out->outputs_only && n == 1;
  if (inner) s.deadline -= KEPT_FOR_MISSING * fmax(0, deadline - assay_clock_seconds());
  if (!st && w->out->outputs_only) st = assay_others_init(w->options, &s, &others);
  if (!st && inner) st = repeat(w, &targets[0], fault, found, &n_found);
  if (!st && !n_found) st = assay_search_run(&s, found, &n_found);
  assay_others_deinit(&others);
  if (!st && inner) st = solve_node(w, &targets[0], deadline, found, &n_found);
  if (!st) st = take_found(w, fault, found, n_found);
  w->out->cut_short |= s.cut_short;
  w->out->trials += s.trials;
  assay_free(wanted);
  assay_free(nodes);
  assay_free(targets);
  return st;
}

// Without inner values all outputs that golden knows are looked at together: a fault may show in
// several.
static assay_status_t search_outputs(assay_golden_walk_t* w, double deadline) {
  const assay_value_t** values = NULL;
  size_t n = 0;
  assay_status_t st = assay_new_array(w->golden.n, sizeof *values, &values);
  for (size_t i = 0; !st && i < w->golden.n; i++) {
    const assay_value_t* v = w->golden.at[i].value;
    if (v && v->producer && w->golden_of[v->id]) values[n++] = v;
  }
  if (!st) st = search(w, values, n, deadline, 0);
  assay_free(values);
  return st;
}

static assay_status_t search_all(assay_golden_walk_t* w) {
  const double seconds = w->options->seconds > 0 ? w->options->seconds : 40;
  const double end = assay_clock_seconds() + seconds;
  if (w->out->outputs_only) return search_outputs(w, end);
  ASSAY_TRY(assay_new_array((size_t)w->model->n_node_ids, sizeof *w->faulty, &w->faulty));
  for (size_t i = 0; i < w->out->n; i++) w->faulty[w->out->faults[i].node->id] = true;
  for (size_t i = 0; i < w->out->n;) {
    // The time left, shared among the faults left.
    const double now = assay_clock_seconds();
    const size_t n = w->out->n;
    if (w->out->faults[i].restored) {  // it came with its repair
      i++;
      continue;
    }
    const double share = fmax(0, end - now) / (double)(n - i);
    ASSAY_TRY(search(w, &w->out->faults[i].value, 1, now + share, i));
    i += 1 + w->out->n - n;  // several may hide behind one value
  }
  return NULL;
}

assay_status_t assay_export_check(const assay_model_t* model, assay_tensor_t* const* inputs,
                                  const assay_golden_t* golden,
                                  const assay_export_options_t* options, assay_export_t* out) {
  assay_golden_walk_t w = {.model = model, .options = options, .out = out};
  if (options->undone)
    return assay_undone_add(options->undone, model, inputs, golden, options->seed);
  out->outputs_only = true;
  for (size_t i = 0; i < golden->n; i++)
    if (golden->at[i].value && !golden->at[i].value->is_output) out->outputs_only = false;
  assay_status_t st = assay_golden_walk_create(&w, golden, inputs);
  if (!st) st = assay_golden_walk_run(&w, inputs);
  const bool searched = !st && out->n && !options->no_search;
  if (!st && !options->probe && (!out->n || !out->outputs_only))
    st = assay_golden_find_stray_casts(&w, inputs);
  if (!st && searched) st = search_all(&w);
  assay_golden_walk_deinit(&w);
  if (st) assay_export_deinit(out);
  return st;
}

void assay_export_deinit(assay_export_t* e) {
  for (size_t i = 0; i < e->n; i++) assay_repair_deinit(&e->faults[i].repair);
  assay_free(e->faults);
  *e = (assay_export_t){0};
}
