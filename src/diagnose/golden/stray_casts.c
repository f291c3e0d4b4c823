// Casts to 16 bits and back that the network does not have.
#include "diagnose/golden/stray_casts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"

// How many times farther from golden the rounded truth has to be; and what a pair has to move an
// output by, over its RMS, to matter.
static const double FARTHER = 16, MATTERS = 1e-5;

// ---- which pairs there are ---------------------------------------------------------------------

static assay_type_t type_of(const assay_value_t* v) {
  const assay_valtype_t* t = v ? (v->type ? v->type : v->declared) : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED;
}

static bool is_wide(assay_type_t t) { return t == ASSAY_TYPE_FLOAT || t == ASSAY_TYPE_DOUBLE; }
static bool is_narrow(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT16 || t == ASSAY_TYPE_BFLOAT16;
}

static bool is_cast(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "Cast") == 0 && n->n_inputs == 1 && n->n_outputs == 1 &&
         n->inputs[0] && n->outputs[0];
}

static bool narrows(const assay_node_t* n) {
  return is_cast(n) && is_wide(type_of(n->inputs[0])) && is_narrow(type_of(n->outputs[0]));
}

static bool widens(const assay_node_t* n) {
  return is_cast(n) && is_narrow(type_of(n->inputs[0])) && is_wide(type_of(n->outputs[0]));
}

// Whether 16 bits are there for pairs alone: what narrows is read by what widens, and nothing else
// is narrow.
static bool has_pairs_alone(const assay_graph_t* g) {
  bool any = false;
  for (size_t i = 0; i < g->n_inputs; i++)
    if (is_narrow(type_of(g->inputs[i]))) return false;
  for (size_t i = 0; i < g->n_outputs; i++)
    if (is_narrow(type_of(g->outputs[i]))) return false;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    any |= narrows(n);
    for (size_t k = 0; k < n->n_outputs; k++)
      if (is_narrow(type_of(n->outputs[k])) && !narrows(n)) return false;
    for (size_t k = 0; k < n->n_inputs; k++)
      if (is_narrow(type_of(n->inputs[k])) && !widens(n)) return false;
    // What a body reads is not listed.
    if (n->op && n->op->flags & ASSAY_OP_CONTROL) return false;
  }
  return any;
}

// ---- truth that rounds -------------------------------------------------------------------------

static assay_status_t round_narrow(void* user, const assay_node_t* n, size_t n_in,
                                   assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  (void)user, (void)n_in, (void)in;
  return n_out && out[0] && narrows(n)
             ? assay_round_replace(&out[0], assay_type_format(type_of(n->outputs[0])))
             : NULL;
}

typedef struct truths {
  assay_evaluator_t *plain, *rounded;
} truths_t;

static assay_status_t run_truths(const assay_golden_walk_t* w, assay_tensor_t* const* inputs,
                                 truths_t* t) {
  assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = w->options->unquantized, .seed = w->options->seed};
  ASSAY_TRY(assay_evaluator_create_run(w->model, &config, inputs, &t->plain));
  config.hooks.after = round_narrow;
  return assay_evaluator_create_run(w->model, &config, inputs, &t->rounded);
}

// Whether rounding moves an output so that it can be seen.
static bool matters(const assay_golden_walk_t* w, const truths_t* t) {
  const assay_graph_t* g = w->model->graph;
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_difference_t d = assay_difference(assay_evaluator_get(t->rounded, g->outputs[i]),
                                                  assay_evaluator_get(t->plain, g->outputs[i]));
    if (!d.comparable || d.mismatched || d.rms > MATTERS * d.ref_rms) return true;
  }
  return false;
}

// ---- what golden says --------------------------------------------------------------------------

typedef enum answer { SILENT, ROUNDS, DOES_NOT } answer_t;

// Of golden of a value, truth of it and truth that rounds.
static answer_t compare(const assay_tensor_t* golden, const assay_tensor_t* plain,
                        const assay_tensor_t* rounded, assay_difference_t* out) {
  const assay_difference_t p = assay_difference(plain, golden);
  *out = assay_difference(rounded, golden);
  if (!p.comparable || !out->comparable || p.mismatched || golden->store != ASSAY_STORE_F64)
    return SILENT;
  if (out->mismatched || (out->rms > MATTERS * p.ref_rms && out->rms > FARTHER * p.rms))
    return DOES_NOT;
  return out->rms < p.rms && p.rms > MATTERS * p.ref_rms ? ROUNDS : SILENT;
}

static assay_status_t add_fault(assay_golden_walk_t* w, const assay_node_t* n,
                                const assay_value_t* seen, const assay_difference_t* d) {
  assay_export_t* e = w->out;
  const assay_value_t* before = n->inputs[0]->producer->inputs[0];
  assay_repair_t r = {.node = n, .cause = "stray casts", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_INPUT, .input = 0, .value = before};
  snprintf(r.text, sizeof r.text,
           "'%.80s' is rounded to %s and cast back; golden is not: read '%.80s'", before->name,
           type_of(n->inputs[0]) == ASSAY_TYPE_FLOAT16 ? "float16" : "bfloat16", before->name);
  ASSAY_TRY(assay_grow(&e->faults, &e->capacity, e->n + 1, sizeof *e->faults));
  e->faults[e->n++] = (assay_fault_t){.value = seen,
                                      .node = n,
                                      .difference = *d,
                                      .explained = w->explained[seen->id].rms,
                                      .has_repair = true,
                                      .restored = true,
                                      .repair = r};
  return NULL;
}

// Where golden has what comes out of the pair: truth of it, which did not round, and the same
// rounded.
static assay_status_t ask_value(assay_golden_walk_t* w, const assay_node_t* n,
                                assay_difference_t* d, answer_t* out) {
  const assay_value_t* v = n->outputs[0];
  assay_tensor_t *golden = NULL, *rounded = NULL;
  *out = SILENT;
  if (!w->golden_of[v->id] || !w->missed[v->id]) return NULL;
  ASSAY_TRY(assay_golden_hold(w, v, &golden));
  ASSAY_TRY(
      assay_round_tensor(w->missed[v->id], assay_type_format(type_of(n->inputs[0])), &rounded));
  *out = compare(golden, w->missed[v->id], rounded, d);
  assay_tensor_release(rounded);
  return NULL;
}

// Of all pairs together, by the outputs.
static assay_status_t ask_outputs(assay_golden_walk_t* w, const truths_t* t,
                                  const assay_value_t** seen, assay_difference_t* d,
                                  answer_t* out) {
  const assay_graph_t* g = w->model->graph;
  *out = SILENT;
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    assay_difference_t one;
    assay_tensor_t* golden = NULL;
    if (!w->golden_of[v->id] || *out == ROUNDS) continue;
    ASSAY_TRY(assay_golden_hold(w, v, &golden));
    const answer_t a =
        compare(golden, assay_evaluator_get(t->plain, v), assay_evaluator_get(t->rounded, v), &one);
    if (a == SILENT) continue;
    *out = a;
    *seen = v;
    *d = one;
  }
  return NULL;
}

static assay_status_t ask_all(assay_golden_walk_t* w, const truths_t* t) {
  const assay_graph_t* g = w->model->graph;
  const assay_value_t* seen = NULL;
  assay_difference_t by_outputs = {0};
  answer_t outputs;
  ASSAY_TRY(ask_outputs(w, t, &seen, &by_outputs, &outputs));
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    assay_difference_t d;
    answer_t a;
    if (!widens(n) || !n->inputs[0]->producer) continue;  // a constant in 16 bits is no pair
    ASSAY_TRY(ask_value(w, n, &d, &a));
    if (a == DOES_NOT)
      ASSAY_TRY(add_fault(w, n, n->outputs[0], &d));
    else if (a == SILENT && outputs == DOES_NOT)
      ASSAY_TRY(add_fault(w, n, seen, &by_outputs));
  }
  return NULL;
}

assay_status_t assay_golden_find_stray_casts(assay_golden_walk_t* w,
                                             assay_tensor_t* const* inputs) {
  truths_t t = {0};
  if (!has_pairs_alone(w->model->graph)) return NULL;
  assay_status_t st = run_truths(w, inputs, &t);
  if (!st && matters(w, &t)) st = ask_all(w, &t);
  assay_evaluator_destroy(t.plain);
  assay_evaluator_destroy(t.rounded);
  return st;
}
