// Which layers need more precision because large values cancel after them: from truth alone.
//
// From the outputs on backwards, each value is given the relative error that the outputs can bear
// in it. A sum of large values that is small bears as much less of them; all else hands on what its
// own outputs bear. Where storing a value, or reading it, loses more than that by itself, the
// layers that do so are kept. Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms
// (2002), 1.7, on cancellation.
#include <math.h>
#include <string.h>

#include "account/stored.h"
#include "base/alloc.h"
#include "diagnose/fp32_set.h"

typedef struct walk {
  assay_fp32_set_t* keep;
  const assay_account_t* account;
  const assay_plan_t* plan;
  const assay_layers_t* layers;
  double* bears;  // by value id: relative RMS error; INFINITY: any
} walk_t;

static bool is_sum(const assay_node_t* n) {
  return !*n->domain &&
         (!strcmp(n->op_type, "Add") || !strcmp(n->op_type, "Sub") || !strcmp(n->op_type, "Sum"));
}

static bool holds_floats(const assay_value_t* v) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem == ASSAY_TYPE_FLOAT;
}

static const assay_layer_t* layer_of(const walk_t* w, const assay_node_t* n) {
  const int l = w->layers->layer_of_node[n->id];
  return l < 0 ? NULL : &w->layers->layers[l];
}

// Whether a layer's format takes more from the value than it bears.
static bool loses(const walk_t* w, const assay_node_t* n, const assay_value_t* v, double bears) {
  const assay_layer_t* l = layer_of(w, n);
  if (!l || l->format == ASSAY_FORMAT_FP32 || w->layers->hidden_value[v->id]) return false;
  const assay_storage_loss_t s = assay_account_stored(w->account, v);
  return s.rms > 0 && s.lost > bears * s.rms;
}

// Of the sums that read what is lost in them, the one with the smallest rest.
static void note_cancelling(walk_t* w, const assay_node_t* n, double from, double to) {
  assay_fp32_set_t* k = w->keep;
  if (!(to < from) || (k->cancels && to * k->cancels_from >= k->cancels_to * from)) return;
  k->cancels = n;
  k->cancels_from = from;
  k->cancels_to = to;
}

static void inspect(walk_t* w, const assay_node_t* n) {
  double bears = INFINITY;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!holds_floats(v)) continue;
    bears = fmin(bears, w->bears[v->id]);
    if (loses(w, n, v, w->bears[v->id])) assay_fp32_set_add(w->keep, w->plan, layer_of(w, n));
  }
  if (bears == (double)INFINITY) return;
  const double sum = is_sum(n) ? assay_account_stored(w->account, n->outputs[0]).rms : 0;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (!holds_floats(v)) continue;
    const double rms = assay_account_stored(w->account, v).rms;
    const double part = sum > 0 && rms > 0 ? bears * sum / rms : bears;
    w->bears[v->id] = fmin(w->bears[v->id], part);
    if (!loses(w, n, v, part)) continue;
    assay_fp32_set_add(w->keep, w->plan, layer_of(w, n));
    if (sum > 0) note_cancelling(w, n, rms, sum);
  }
}

assay_status_t assay_fp32_set_add_by_loss(assay_fp32_set_t* k, double tolerated) {
  const assay_fp32_subject_t* c = k->subject;
  walk_t w = {.keep = k, .account = c->account, .plan = c->plan};
  w.layers = assay_plan_layers(c->plan);
  const assay_model_t* m = w.layers->model;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *w.bears, &w.bears));
  for (int v = 0; v < m->n_values; v++) w.bears[v] = INFINITY;
  for (size_t i = 0; i < m->graph->n_outputs; i++) w.bears[m->graph->outputs[i]->id] = tolerated;
  for (size_t i = m->graph->n_nodes; i-- > 0;) inspect(&w, m->graph->nodes[i]);
  assay_free(w.bears);
  return NULL;
}
