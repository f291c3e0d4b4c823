// How much of a value's relative change arrives at the targets of a repair search, as a guess: what
// residual sums and concatenations dilute.
#include "diagnose/search_reach.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "base/spill.h"

// Sum of squares of what is finite, and how many elements there are; 0 for what is not a float.
static double energy(const assay_tensor_t* t) {
  double sum = 0;
  if (!t || t->kind != ASSAY_KIND_TENSOR) return 0;
  const assay_tensor_t* x = t;
  assay_tensor_t* wide = NULL;
  if (!assay_type_is_float(t->type)) return 0;
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)t, &wide);
  if (st) return assay_status_free(st), 0;
  x = wide;
  for (int64_t i = 0; x->store == ASSAY_STORE_F64 && i < x->size; i++)
    if (isfinite(assay_f64(x)[i])) sum += assay_f64(x)[i] * assay_f64(x)[i];
  assay_tensor_release(wide);
  return sum;
}

static bool is_one_of(const char* op, const char* const* names) {
  for (; *names; names++)
    if (strcmp(op, *names) == 0) return true;
  return false;
}

// The part of the node's output that input i is. Sums and concatenations dilute what changes in one
// of their inputs: by their sizes. Everything else hands relative changes on about as they come.
static double part(const assay_node_t* n, size_t i, const double* energies) {
  static const char* const sums[] = {"Add", "Sub", "Sum", "Mean", NULL};
  static const double MAX = 4;  // what cancels may grow; nobody knows by how much
  const bool joins = strcmp(n->op_type, "Concat") == 0;
  double all = 0;
  if (!joins && !is_one_of(n->op_type, sums)) return 1;
  if (joins)
    for (size_t k = 0; k < n->n_inputs; k++) all += n->inputs[k] ? energies[n->inputs[k]->id] : 0;
  else
    all = n->outputs[0] ? energies[n->outputs[0]->id] : 0;
  const double own = energies[n->inputs[i]->id];
  return all > 0 ? fmin(MAX, sqrt(own / all)) : 1;
}

static void add_reach(const assay_node_t* n, const double* energies, double* reach) {
  double out = 0;
  for (size_t k = 0; k < n->n_outputs; k++)
    if (n->outputs[k]) out += reach[n->outputs[k]->id] * reach[n->outputs[k]->id];
  if (!(out > 0)) return;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (v) reach[v->id] = assay_hypot(reach[v->id], sqrt(out) * part(n, i, energies));
  }
}

assay_status_t assay_search_reach(const assay_search_t* s, double** out) {
  const size_t values = (size_t)s->model->n_values;
  double *reach = NULL, *energies = NULL;
  assay_status_t st = assay_new_array(values, sizeof *reach, &reach);
  if (!st) st = assay_new_array(values, sizeof *energies, &energies);
  for (size_t i = 0; !st && i < s->n_nodes; i++) {
    const assay_node_t* n = s->nodes[i];
    for (size_t k = 0; k < n->n_inputs + n->n_outputs; k++) {
      const assay_value_t* v = k < n->n_inputs ? n->inputs[k] : n->outputs[k - n->n_inputs];
      if (v && energies[v->id] == 0) energies[v->id] = energy(assay_evaluator_get(s->evaluator, v));
    }
    assay_spill_trim();
  }
  for (size_t k = 0; !st && k < s->n_targets; k++) reach[s->targets[k].value->id] = 1;
  for (size_t i = s->n_nodes; !st && i-- > 0;) add_reach(s->nodes[i], energies, reach);
  assay_free(energies);
  if (st) return assay_free(reach), st;
  *out = reach;
  return NULL;
}
