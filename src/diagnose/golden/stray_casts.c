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

// ---- which are meant ---------------------------------------------------------------------------

// Whether a value is not what the network computes: constants, shapes, choices.
static bool is_of_numbers(const assay_value_t* v) {
  return v && !v->constant && is_wide(type_of(v)) &&
         !(v->producer && strcmp(v->producer->op_type, "Constant") == 0);
}

static bool is_product(const assay_node_t* n) {
  static const char* const names[] = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"};
  for (size_t k = 0; !*n->domain && k < sizeof names / sizeof *names; k++)
    if (strcmp(n->op_type, names[k]) == 0) return true;
  return false;
}

// Whether all numbers that a node reads come out of pairs; of those that it gives, go into them.
static bool reads_narrow(const assay_node_t* n) {
  bool any = false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (!is_of_numbers(n->inputs[i])) continue;
    if (!n->inputs[i]->producer || !widens(n->inputs[i]->producer)) return false;
    any = true;
  }
  return any;
}

static bool gives_narrow(const assay_node_t* n) {
  const assay_graph_t* g = n->graph;
  const assay_value_t* v = n->n_outputs ? n->outputs[0] : NULL;
  bool any = false;
  if (!is_of_numbers(v) || v->is_output) return false;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++) {
      if (g->nodes[i]->inputs[k] != v) continue;
      if (!narrows(g->nodes[i])) return false;
      any = true;
    }
  return any;
}

// Whether a node is computed in few bits: all that it reads and gives goes through pairs.
static bool is_between(const assay_node_t* n) {
  return n && !is_cast(n) && reads_narrow(n) && gives_narrow(n);
}

// What networks in mixed precision have, as autocast makes them, is no slip: pairs at all products,
// on the same side of each. Two at least; a single pair may stand there by chance.
static bool are_at_all_products(const assay_graph_t* g) {
  size_t pairs = 0, products = 0;
  bool before = true, after = true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    pairs += widens(g->nodes[i]) && g->nodes[i]->inputs[0]->producer;
    if (!is_product(g->nodes[i])) continue;
    products++;
    before &= reads_narrow(g->nodes[i]);
    after &= gives_narrow(g->nodes[i]);
  }
  return pairs > 1 && products && (before || after);
}

// Whether a pair stands around a node that is computed in few bits.
static bool is_meant(const assay_node_t* widens_it) {
  const assay_graph_t* g = widens_it->graph;
  const assay_value_t* from = widens_it->inputs[0]->producer->inputs[0];
  if (is_between(from->producer)) return true;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == widens_it->outputs[0] && is_between(g->nodes[i])) return true;
  return false;
}

static bool is_any_meant(const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (widens(g->nodes[i]) && g->nodes[i]->inputs[0]->producer && is_meant(g->nodes[i]))
      return true;
  return false;
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
  if (is_any_meant(g)) outputs = SILENT;  // they do not say which
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    assay_difference_t d;
    answer_t a;
    if (!widens(n) || !n->inputs[0]->producer) continue;  // a constant in 16 bits is no pair
    if (is_meant(n)) continue;
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
  if (!has_pairs_alone(w->model->graph) || are_at_all_products(w->model->graph)) return NULL;
  assay_status_t st = run_truths(w, inputs, &t);
  if (!st && matters(w, &t)) st = ask_all(w, &t);
  assay_evaluator_destroy(t.plain);
  assay_evaluator_destroy(t.rounded);
  return st;
}
