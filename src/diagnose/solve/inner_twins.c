// The same fault at nodes that have the same part: steps of a loop that was unrolled, blocks.
//
// One sample may show a limit at one of them, and at another nothing that goes beyond it; so each
// takes what mends it there, and some need nothing. What mends one of them is tried at all, also
// where this sample shows no fault, and stands if the other samples bear that out and did not
// before.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/inner.h"

enum { DEPTH = 6, SURE = 2, CANDIDATES = 12 };

// ---- which values have the same part -----------------------------------------------------------

static bool is_varied(const assay_value_t* v) { return v->producer && v->producer->n_inputs; }

// By id of a value that `a` hangs on: the one in its place where `b` stands. False: they differ
// within the nearest nodes.
static bool pair_nodes(const assay_node_t* a, const assay_node_t* b, int depth,
                       const assay_value_t** to) {
  if (strcmp(a->op_type, b->op_type) != 0 || strcmp(a->domain, b->domain) != 0 ||
      a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs)
    return depth > SURE;
  for (size_t k = 0; k < a->n_outputs; k++)
    if (a->outputs[k]) to[a->outputs[k]->id] = b->outputs[k];
  for (size_t i = 0; i < a->n_inputs; i++) {
    const assay_value_t *x = a->inputs[i], *y = b->inputs[i];
    if (!x != !y) return depth > SURE;
    if (!x || x == y) continue;
    if (is_varied(x) != is_varied(y) && depth < SURE) return false;
    const bool known = to[x->id];
    if (!known) to[x->id] = y;
    if (!known && depth < DEPTH && is_varied(x) && is_varied(y) &&
        !pair_nodes(x->producer, y->producer, depth + 1, to))
      return false;
  }
  return true;
}

// ---- a repair at another node ------------------------------------------------------------------

// Names of the node's values are those of the other.
static void name_there(assay_repair_t* r, const assay_node_t* from,
                       const assay_value_t* const* to) {
  for (size_t i = 0; i < from->n_inputs + from->n_outputs; i++) {
    const assay_value_t* v =
        i < from->n_inputs ? from->inputs[i] : from->outputs[i - from->n_inputs];
    char was[96], text[sizeof r->text];
    if (!v || !to[v->id]) continue;
    snprintf(was, sizeof was, "'%.60s'", v->name);
    char* at = strstr(r->text, was);
    if (!at) continue;
    snprintf(text, sizeof text, "%.*s'%.60s'%s", (int)(at - r->text), r->text, to[v->id]->name,
             at + strlen(was));
    memcpy(r->text, text, sizeof text);
  }
}

// *out false: it reads what has no counterpart there.
static assay_status_t move(const assay_repair_t* r, const assay_node_t* node, size_t values,
                           assay_repair_t* take, bool* out) {
  const assay_value_t** to = NULL;
  *out = false;
  ASSAY_TRY(assay_new_array(values, sizeof *to, &to));
  bool fits = pair_nodes(r->node, node, 0, to);
  assay_status_t st = fits ? assay_repair_copy(r, take) : NULL;
  for (size_t i = 0; fits && !st && i < r->n_edits; i++) {
    const assay_repair_edit_t* e = &r->edits[i];
    assay_repair_edit_t* made = &take->edits[i];
    if (e->value || e->other_value || e->n_chain) fits = false;
    if (!e->formula) continue;
    assay_formula_release(made->formula);
    made->formula = NULL;
    st = assay_formula_translate(e->formula, to, &made->formula);
    fits = fits && made->formula;
  }
  if (fits && !st) {
    take->node = node;
    take->n_beside = 0;
    name_there(take, r->node, to);
  } else if (take->n_edits) {
    assay_repair_deinit(take);
  }
  assay_free(to);
  *out = fits && !st;
  return st;
}

// The value of a node that golden knows.
static const assay_value_t* known_output(const assay_golden_walk_t* w, const assay_node_t* n) {
  for (size_t k = 0; k < n->n_outputs; k++) {
    const assay_value_t* v = n->outputs[k];
    if (v && w->golden_of[v->id] && w->golden_of[v->id]->tensor) return v;
  }
  return NULL;
}

// The repair of one fault at a node, if it gives golden there.
static assay_status_t mend(assay_golden_walk_t* w, const assay_repair_t* r,
                           const assay_node_t* node, const assay_value_t* v, assay_repair_t* take,
                           bool* out) {
  bool restores = false;
  const assay_search_target_t target = assay_inner_target(w, v);
  *take = (assay_repair_t){0};
  ASSAY_TRY(move(r, node, (size_t)w->model->n_values, take, out));
  if (!*out) return NULL;
  assay_status_t st = assay_inner_restores(w, take, &target, &restores);
  if (!st && restores) return NULL;
  *out = false;
  assay_repair_deinit(take);
  return st;
}

// ---- at all of them ----------------------------------------------------------------------------

static bool is_at_fault(const assay_export_t* e, const assay_node_t* n) {
  for (size_t i = 0; i < e->n; i++)
    if (e->faults[i].node == n) return true;
  return false;
}

static assay_status_t add(assay_golden_walk_t* w, const assay_fault_t* take) {
  assay_export_t* e = w->out;
  assay_fault_t f = *take;
  assay_status_t st = assay_grow(&e->faults, &e->capacity, e->n + 1, sizeof *e->faults);
  if (st) return assay_repair_deinit(&f.repair), st;
  e->faults[e->n++] = f;
  return NULL;
}

// Puts the repair of fault k in the place of others', and at nodes where this sample shows none.
static assay_status_t spread(assay_golden_walk_t* w, size_t k, assay_fault_t* was, bool* out_any) {
  assay_export_t* e = w->out;
  const assay_graph_t* g = w->model->graph;
  const size_t n = e->n;
  const assay_repair_t* r = &was[k].repair;
  for (size_t i = 0; i < n; i++) {
    assay_fault_t* f = &e->faults[i];
    assay_repair_t take;
    bool fits = false;
    const assay_node_t* node = f->value ? f->value->producer : NULL;
    if (i == k || !node || node == r->node || f->shape || node->graph != g) continue;
    ASSAY_TRY(mend(w, r, node, f->value, &take, &fits));
    if (!fits) continue;
    *f = (assay_fault_t){.value = f->value,
                         .node = node,
                         .difference = f->difference,
                         .explained = f->explained,
                         .has_repair = true,
                         .restored = true,
                         .repair = take};
    *out_any = true;
  }
  for (size_t i = 0; i < g->n_nodes && e->n < ASSAY_SEARCH_FAULTS - 1; i++) {
    const assay_node_t* node = g->nodes[i];
    const assay_value_t* v = known_output(w, node);
    assay_fault_t f = {.value = v, .node = node, .has_repair = true, .restored = true};
    bool fits = false;
    if (!v || is_at_fault(e, node) || node == r->node) continue;
    ASSAY_TRY(mend(w, r, node, v, &f.repair, &fits));
    if (!fits) continue;
    f.difference = assay_difference(w->golden_of[v->id]->tensor, w->golden_of[v->id]->tensor);
    ASSAY_TRY(add(w, &f));
    *out_any = true;
  }
  return NULL;
}

// Takes either what was there or what was tried; the other is released.
static void choose(assay_export_t* e, assay_fault_t* was, size_t n, bool tried) {
  for (size_t i = 0; i < n; i++) {
    const bool changed = memcmp(&e->faults[i], &was[i], sizeof *was) != 0;
    if (changed) assay_repair_deinit(tried ? &was[i].repair : &e->faults[i].repair);
    if (!tried) e->faults[i] = was[i];
  }
  for (size_t i = n; !tried && i < e->n; i++) assay_repair_deinit(&e->faults[i].repair);
  if (!tried) e->n = n;
}

static bool is_borne_out(assay_holdout_answer_t said) {
  return said == ASSAY_HOLDOUT_HOLDS || said == ASSAY_HOLDOUT_NEAR;
}

assay_status_t assay_inner_twins(assay_golden_walk_t* w) {
  const size_t n = w->out->n;
  assay_fault_t* was = NULL;
  assay_holdout_answer_t said = ASSAY_HOLDOUT_SILENT;
  if (!n || !w->options->n_others) return NULL;
  ASSAY_TRY(assay_inner_ask(w, &said));
  if (is_borne_out(said)) return NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *was, &was));
  memcpy(was, w->out->faults, n * sizeof *was);
  assay_status_t st = NULL;
  bool holds = false;
  for (size_t k = 0, tried = 0; k < n && tried < CANDIDATES && !holds && !st; k++) {
    bool any = false;
    if (!was[k].restored || !was[k].repair.n_edits) continue;
    st = spread(w, k, was, &any);
    if (!st && any) st = assay_inner_ask(w, &said);
    tried += any;
    holds = !st && any && is_borne_out(said);
    choose(w->out, was, n, holds);
  }
  assay_free(was);
  return st;
}
