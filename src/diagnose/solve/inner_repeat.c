// What mended one node, at another: of its other outputs, of what else reads the same value, of the
// same numbers stored once more.
#include <stdio.h>

#include "diagnose/solve/inner.h"

// What another node has to read in the place of a value that this one reads, too: the value is what
// was lost, and each of its readers a fault. *out_found false: there is no such repair.
static assay_status_t read_alike(const assay_repair_t* r, const assay_node_t* node,
                                 assay_repair_t* take, bool* out_found) {
  const assay_repair_edit_t* e = &r->edits[0];
  *out_found = false;
  if (r->n_edits != 1 || e->kind != ASSAY_EDIT_BEFORE || e->input >= r->node->n_inputs) return NULL;
  const assay_value_t* v = r->node->inputs[e->input];
  for (size_t i = 0; i < node->n_inputs && v && !*out_found; i++) {
    if (node->inputs[i] != v || node == r->node) continue;
    ASSAY_TRY(assay_repair_copy(r, take));
    take->node = node;
    take->edits[0].input = i;
    *out_found = true;
  }
  return NULL;
}

static assay_status_t repeat_at_reader(assay_golden_walk_t* w, const assay_search_target_t* target,
                                       const assay_repair_t* r, assay_fault_t* found,
                                       size_t* n_found) {
  assay_repair_t take = {0};
  bool fits = false, restores = false;
  ASSAY_TRY(read_alike(r, target->value->producer, &take, &fits));
  assay_status_t st = fits ? assay_inner_restores(w, &take, target, &restores) : NULL;
  if (restores && !st)
    assay_inner_take(target->value->producer, &take, found, n_found);
  else if (fits)
    assay_repair_deinit(&take);
  return st;
}

// The same numbers are stored twice, and one of them is mended: what it became does for the other.
static assay_status_t repeat_constant(assay_golden_walk_t* w, const assay_search_target_t* target,
                                      const assay_repair_t* r, assay_fault_t* found,
                                      size_t* n_found) {
  const assay_node_t* node = target->value->producer;
  const assay_repair_edit_t* e = &r->edits[0];
  const assay_value_t* was = NULL;
  if (r->n_edits != 1 || *n_found || !e->tensor) return NULL;
  if (e->kind == ASSAY_EDIT_CONSTANT && e->input < r->node->n_inputs)
    was = r->node->inputs[e->input];
  if (e->kind == ASSAY_EDIT_VALUE) was = r->node->outputs[0];
  for (size_t i = 0; was && i < node->n_inputs && !*n_found; i++) {
    const assay_value_t* v = node->inputs[i];
    bool restores = false;
    if (!v || !v->constant || !assay_tensor_alike(v->constant, e->tensor)) continue;
    assay_repair_t take = {.node = node, .cause = r->cause};
    take.edits[take.n_edits++] = (assay_repair_edit_t){
        .kind = ASSAY_EDIT_CONSTANT, .input = i, .tensor = assay_tensor_retain(e->tensor)};
    snprintf(take.text, sizeof take.text, "'%.60s' as what '%.60s' becomes", v->name, was->name);
    assay_status_t st = assay_inner_restores(w, &take, target, &restores);
    if (restores && !st)
      assay_inner_take(node, &take, found, n_found);
    else
      assay_repair_deinit(&take);
    if (st) return st;
  }
  return NULL;
}

// What mended another output of the same node, or another reader of a value.
assay_status_t assay_inner_repeat(assay_golden_walk_t* w, const assay_search_target_t* target,
                                  size_t fault, assay_fault_t* found, size_t* n_found) {
  const assay_export_t* e = w->out;
  for (size_t k = 0; k < fault && !*n_found; k++) {
    const assay_fault_t* f = &e->faults[k];
    bool restores = false;
    if (!f->restored || !target->value->producer) continue;
    if (f->repair.node != target->value->producer) {
      ASSAY_TRY(repeat_at_reader(w, target, &f->repair, found, n_found));
      ASSAY_TRY(repeat_constant(w, target, &f->repair, found, n_found));
      continue;
    }
    ASSAY_TRY(assay_inner_restores(w, &f->repair, target, &restores));
    if (!restores) continue;
    found[0] = (assay_fault_t){.node = f->repair.node, .has_repair = true, .restored = true};
    ASSAY_TRY(assay_repair_copy(&f->repair, &found[0].repair));
    *n_found = 1;
  }
  return NULL;
}
