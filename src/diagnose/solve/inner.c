// Where golden holds inner values: what it tells of one node, whose inputs and output it knows.
#include "diagnose/solve/inner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/holdout.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/solve.h"

// A model that a fault makes amplify rounding explains anything: no repair may leave more than this
// part of golden's size.
static const double MAX_LEFT = 1. / 64;

static double left_at_most(double explained, double size) {
  return size > 0 ? fmin(explained, MAX_LEFT * size) : explained;
}

assay_search_target_t assay_inner_target(const assay_golden_walk_t* w, const assay_value_t* v) {
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

// A repair that restores golden, in place of what was found before.
void assay_inner_take(const assay_node_t* node, const assay_repair_t* r, assay_fault_t* found,
                      size_t* n_found) {
  for (size_t i = 0; i < *n_found; i++) assay_repair_deinit(&found[i].repair);
  found[0] = (assay_fault_t){.node = node, .has_repair = true, .restored = true, .repair = *r};
  *n_found = 1;
}

static bool is_constant_node(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "Constant") == 0;
}

// Whether a repair of the target's node gives what the target knows.
assay_status_t assay_inner_restores(assay_golden_walk_t* w, const assay_repair_t* r,
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

// Scales of a quantizer, unless golden has other integers that give all of it; values that no input
// reaches.
static assay_status_t solve_whole(assay_golden_walk_t* w, const assay_search_target_t* target,
                                  assay_repair_t* out, bool* out_found) {
  const assay_node_t* node = target->value->producer;
  assay_repair_t scales = {0}, folded = {0};
  bool has_scales = false, has_folded = false, restores = false;
  ASSAY_TRY(assay_solve_quantizer(w->truth, node, target, &scales, &has_scales));
  assay_status_t st = has_scales ? assay_inner_restores(w, &scales, target, &restores) : NULL;
  if (!st && !restores)
    st = assay_solve_folded(w->truth, node, target, false, &folded, &has_folded);
  *out_found = !st && (has_scales || has_folded);
  if (st || has_folded) assay_repair_deinit(&scales);
  *out = has_folded ? folded : scales;
  return st;
}

// Where golden knows what goes into the node, its constant can be solved for: by that, or by the
// outputs of other samples as well. *out_tested: as assay_solve_constant has it.
static assay_status_t solve(assay_golden_walk_t* w, const assay_search_target_t* target,
                            assay_holdout_t* holdout, bool by_samples, double deadline,
                            bool* out_tested, assay_fault_t* found, size_t* n_found) {
  assay_repair_t r = {0};
  double left = 0;
  bool is_solved = false;
  const assay_node_t* node = target->value->producer;
  *out_tested = true;
  if (!node || node->graph != w->model->graph || (*n_found && found[0].restored)) return NULL;
  if (!by_samples) ASSAY_TRY(solve_whole(w, target, &r, &is_solved));
  if (is_solved) return assay_inner_take(node, &r, found, n_found), NULL;
  ASSAY_TRY(assay_solve_constant(w->truth, node, target, holdout, by_samples, deadline, &r, &left,
                                 out_tested, &is_solved));
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

// Whether golden knows what is dequantized from a value.
static bool knows_dequantized(const assay_golden_walk_t* w, const assay_value_t* v) {
  const assay_graph_t* g = w->model->graph;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    if (!*n->domain && strcmp(n->op_type, "DequantizeLinear") == 0 && n->inputs[0] == v &&
        n->outputs[0] && w->golden_of[n->outputs[0]->id])
      return true;
  }
  return false;
}

assay_status_t assay_inner_quantizer(assay_golden_walk_t* w, const assay_search_target_t* target,
                                     assay_fault_t* found, size_t* n_found) {
  const assay_node_t* node = target->value->producer;
  assay_repair_t r = {0};
  bool solved = false, restores = false;
  if (!node || node->graph != w->model->graph || *n_found ||
      strcmp(node->op_type, "QuantizeLinear") != 0 || !knows_dequantized(w, target->value))
    return NULL;
  ASSAY_TRY(assay_solve_quantizer(w->truth, node, target, &r, &solved));
  assay_status_t st = solved ? assay_inner_restores(w, &r, target, &restores) : NULL;
  if (st || !restores) return assay_repair_deinit(&r), st;
  assay_inner_take(node, &r, found, n_found);
  return NULL;
}

// Whether a repair that restores this sample does better on the others than one before it. Of two
// that hold there the later one is better, which is not made of so many numbers.
static assay_status_t is_better_elsewhere(assay_holdout_t* holdout, const assay_repair_t* r,
                                          const assay_repair_t* than, bool* out) {
  static const double MUCH = 0.9;
  assay_holdout_answer_t before = ASSAY_HOLDOUT_SILENT, said = ASSAY_HOLDOUT_SILENT;
  *out = true;
  ASSAY_TRY(assay_holdout_ask(holdout, 0, than, &before));
  const double left = assay_holdout_left(holdout);
  if (before == ASSAY_HOLDOUT_SILENT) return NULL;
  ASSAY_TRY(assay_holdout_ask(holdout, 0, r, &said));
  const double now = assay_holdout_left(holdout);
  if (before == ASSAY_HOLDOUT_FAILS)
    *out = said != ASSAY_HOLDOUT_FAILS || now < MUCH * left;
  else
    *out = said == ASSAY_HOLDOUT_HOLDS ||
           (before == ASSAY_HOLDOUT_NEAR && said == ASSAY_HOLDOUT_NEAR && now < MUCH * left);
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
  ASSAY_TRY(assay_solve_missing(w->truth, node, target, &w->golden, w->faulty, holdout, deadline,
                                &r, &is_found));
  if (!is_found) return NULL;
  bool better = true;
  if (*n_found) ASSAY_TRY(is_better_elsewhere(holdout, &r, &found[0].repair, &better));
  if (better)
    assay_inner_take(node, &r, found, n_found);
  else
    assay_repair_deinit(&r);
  return NULL;
}

static bool reads(const assay_node_t* n, const assay_value_t* v) {
  for (size_t k = 0; k < n->n_inputs; k++)
    if (n->inputs[k] == v) return true;
  return false;
}

static bool is_read_at_all(const assay_graph_t* g, const assay_node_t* n) {
  for (size_t k = 0; k < n->n_outputs; k++) {
    const assay_value_t* v = n->outputs[k];
    if (v && v->is_output) return true;
    for (size_t i = 0; v && i < g->n_nodes; i++)
      if (reads(g->nodes[i], v)) return true;
  }
  return n->op && n->op->flags & ASSAY_OP_CONTROL;
}

// Whether a node reads it that is itself read.
static bool is_read(const assay_graph_t* g, const assay_value_t* v) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (reads(g->nodes[i], v) && is_read_at_all(g, g->nodes[i])) return true;
  return false;
}

// Outputs that golden knows: those that no node reads, or, where there are none, as where a
// suppression reads all scores and boxes, those that are read. Returns how many.
static size_t list_outputs(assay_golden_walk_t* w, bool read, assay_search_target_t* targets) {
  const assay_graph_t* g = w->model->graph;
  size_t n = 0;
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    const assay_tensor_t* t = w->golden_of[v->id] ? w->golden_of[v->id]->tensor : NULL;
    // Integers may be as many as a threshold lets through: their shapes differ.
    if (t && t->store == ASSAY_STORE_F64 && v->producer && w->missed[v->id] &&
        is_read(g, v) == read)
      targets[n++] = assay_inner_target(w, v);
  }
  return n;
}

// Other samples, by the outputs that golden knows; repairs of other nodes at fault are taken as
// made. *targets: to be freed after the holdout. Where another node is at fault whose repair is not
// known, nothing restores outputs.
static assay_status_t find_holdout(assay_golden_walk_t* w, const assay_node_t* node,
                                   assay_search_target_t** targets, assay_holdout_t** out) {
  for (size_t i = 0; i < w->out->n; i++)
    if (w->out->faults[i].node != node && !w->out->faults[i].restored) return NULL;
  ASSAY_TRY(assay_new_array(w->model->graph->n_outputs, sizeof **targets, targets));
  size_t n = list_outputs(w, false, *targets);
  if (!n) n = list_outputs(w, true, *targets);
  ASSAY_TRY(assay_holdout_create(w->options, w->model, w->truth, *targets, n, out));
  for (size_t i = 0; i < w->out->n; i++) {
    const assay_fault_t* f = &w->out->faults[i];
    if (f->repair.node == node || f->node == node || assay_holdout_adopt(*out, &f->repair))
      continue;
    assay_holdout_destroy(*out);
    *out = NULL;
    return NULL;
  }
  return NULL;
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
  bool tested = false;
  ASSAY_TRY(solve(w, target, holdout, false, deadline, &tested, as_golden, &n));
  assay_status_t st = n && as_golden[0].restored
                          ? assay_holdout_ask(holdout, 0, &as_golden[0].repair, &said)
                          : NULL;
  const double left = assay_holdout_left(holdout);
  if (!st && said != ASSAY_HOLDOUT_HOLDS) st = insert(w, target, holdout, deadline, found, n_found);
  // What is found may fail on other samples as well, and worse.
  bool holds = *n_found && found[0].restored;
  if (!st && holds && n) st = assay_holdout_ask(holdout, 0, &found[0].repair, &said);
  if (said == ASSAY_HOLDOUT_FAILS && left < 0.9 * assay_holdout_left(holdout)) holds = false;
  if (!st && n && !holds) {
    for (size_t i = 0; i < *n_found; i++) assay_repair_deinit(&found[i].repair);
    found[0] = as_golden[0];
    *n_found = 1;
  } else if (n) {
    assay_repair_deinit(&as_golden[0].repair);
  }
  return st;
}

// Where nothing tells what went wrong: golden in place of a value that no input reaches.
static assay_status_t take_golden(assay_golden_walk_t* w, const assay_search_target_t* target,
                                  assay_fault_t* found, size_t* n_found) {
  assay_repair_t r = {0};
  bool is_found = false;
  const assay_node_t* node = target->value->producer;
  if (!node || node->graph != w->model->graph || (*n_found && found[0].restored)) return NULL;
  ASSAY_TRY(assay_solve_folded(w->truth, node, target, true, &r, &is_found));
  if (is_found) assay_inner_take(node, &r, found, n_found);
  return NULL;
}

// A constant that holds on the others only because they show what this sample shows: for a short
// while something is looked for that needs fewer numbers.
static assay_status_t look_beside(assay_golden_walk_t* w, const assay_search_target_t* target,
                                  assay_holdout_t* holdout, double until, assay_fault_t* found,
                                  size_t* n_found) {
  static const double SECONDS = 2;
  found[0].restored = false;
  ASSAY_TRY(
      insert(w, target, holdout, fmin(until, assay_clock_seconds() + SECONDS), found, n_found));
  found[0].restored = true;
  return NULL;
}

// A constant, or a node that is missing beside it. What one sample says of a constant and the
// others do not bear out stands last.
static assay_status_t solve_or_insert(assay_golden_walk_t* w, const assay_search_target_t* target,
                                      assay_holdout_t* holdout, double deadline,
                                      assay_fault_t* found, size_t* n_found) {
  const double now = assay_clock_seconds(), part = now + 0.7 * fmax(0, deadline - now);
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  bool tested = false;
  ASSAY_TRY(solve(w, target, holdout, false, deadline, &tested, found, n_found));
  const bool solved = *n_found && found[0].restored;
  if (solved) ASSAY_TRY(assay_holdout_ask(holdout, 0, &found[0].repair, &said));
  if (solved && !tested && said == ASSAY_HOLDOUT_HOLDS)
    return look_beside(w, target, holdout, part, found, n_found);
  const bool doubted = said == ASSAY_HOLDOUT_NEAR || said == ASSAY_HOLDOUT_FAILS;
  if (doubted) found[0].restored = false;
  ASSAY_TRY(insert(w, target, holdout, part, found, n_found));
  ASSAY_TRY(solve(w, target, holdout, true, deadline, &tested, found, n_found));
  ASSAY_TRY(take_golden(w, target, found, n_found));
  if (doubted) found[0].restored = true;
  return NULL;
}

// Whether a repair says less than that something was lost: a node is left out, or a factor.
static bool is_vague(const assay_repair_t* r) {
  bool vague = strcmp(r->cause, "lost factor") == 0;
  for (size_t i = 0; i < r->n_edits; i++) vague |= r->edits[i].kind == ASSAY_EDIT_BYPASS;
  return vague;
}

// What is left out as if it divided by 1 may have been held at 1 on this sample: where golden has
// the array of what stood there, that is what the node needs.
static assay_status_t ask_arrays(assay_golden_walk_t* w, const assay_search_target_t* target,
                                 assay_holdout_t* holdout, assay_fault_t* found, size_t* n_found) {
  static const double SECONDS = 0.5;  // also where none is left: it is much shorter as a rule
  assay_repair_t r = {0};
  bool is_found = false;
  const assay_node_t* node = target->value->producer;
  if (!node || node->graph != w->model->graph || found[0].node != node) return NULL;
  assay_status_t st = assay_solve_array(w->truth, node, target, &w->golden, w->faulty, holdout,
                                        assay_clock_seconds() + SECONDS, false, &r, &is_found);
  if (!st && is_found) assay_inner_take(node, &r, found, n_found);
  return st;
}

assay_status_t assay_inner_unread(assay_golden_walk_t* w, const assay_search_target_t* target,
                                  assay_fault_t* found, size_t* n_found) {
  static const double SECONDS = 0.5;
  assay_repair_t r = {0};
  bool is_found = false;
  const assay_node_t* node = target->value->producer;
  if (*n_found || !node || node->graph != w->model->graph || !target->truth) return NULL;
  ASSAY_TRY(assay_solve_array(w->truth, node, target, &w->golden, w->faulty, NULL,
                              assay_clock_seconds() + SECONDS, true, &r, &is_found));
  if (is_found) assay_inner_take(node, &r, found, n_found);
  return NULL;
}

// What golden's inner values tell of the target's node.
assay_status_t assay_inner_solve(assay_golden_walk_t* w, const assay_search_target_t* target,
                                 double deadline, assay_fault_t* found, size_t* n_found) {
  assay_search_target_t* outputs = NULL;
  assay_holdout_t* holdout = NULL;
  const assay_node_t* node = target->value->producer;
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  const bool restored = *n_found && found[0].restored;
  assay_status_t st = find_holdout(w, node, &outputs, &holdout);
  // What restores this sample and fails on others is a guess: it stands if nothing better is found.
  if (!st && restored && *n_found == 1) st = assay_holdout_ask(holdout, 0, &found[0].repair, &said);
  const bool refuted = restored && said == ASSAY_HOLDOUT_FAILS;
  if (!st && restored && !refuted && *n_found == 1 && is_vague(&found[0].repair))
    st = ask_arrays(w, target, holdout, found, n_found);
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

assay_status_t assay_inner_ask(assay_golden_walk_t* w, assay_holdout_answer_t* out) {
  assay_search_target_t* outputs = NULL;
  assay_holdout_t* holdout = NULL;
  const assay_fault_t* first = &w->out->faults[0];
  *out = ASSAY_HOLDOUT_SILENT;
  assay_status_t st = find_holdout(w, first->repair.node, &outputs, &holdout);
  if (!st && holdout) st = assay_holdout_ask(holdout, 0, &first->repair, out);
  assay_holdout_destroy(holdout);
  assay_free(outputs);
  return st;
}

assay_status_t assay_inner_holds(assay_golden_walk_t* w, bool* out) {
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  ASSAY_TRY(assay_inner_ask(w, &said));
  *out = said != ASSAY_HOLDOUT_FAILS;
  return NULL;
}
