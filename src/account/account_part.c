// Accounts of parts of the samples: as bytes, and joined to that of the samples before them.
#include <math.h>
#include <stddef.h>

#include "account/account_internal.h"
#include "base/alloc.h"

enum { NONE = -1 };

// ---- joining ------------------------------------------------------------------------------------

static void join_judgement(assay_layer_sums_t* sums, assay_judgement_t* to,
                           const assay_layer_sums_t* more_sums, const assay_judgement_t* more) {
  assay_judgement_join(to, more);
  assay_exact_join(&sums->ratio2, &more_sums->ratio2);
  assay_exact_join(&sums->error2, &more_sums->error2);
  assay_exact_join(&sums->limit2, &more_sums->limit2);
  assay_exact_join(&sums->truth2, &more_sums->truth2);
  assay_exact_join(&sums->error_truth, &more_sums->error_truth);
  assay_exact_join(&sums->whole2, &more_sums->whole2);
  assay_account_settle_judgement(sums, to);
}

static void join_gated(assay_layer_account_t* acc, assay_layer_sums_t* sums,
                       const assay_layer_account_t* more, const assay_layer_sums_t* more_sums) {
  if (!acc->gated.here) acc->gated.gate = more->gated.gate;
  acc->gated.here |= more->gated.here;
  assay_exact_join_to(&sums->gated_own2, &acc->gated.own2, &more_sums->gated_own2);
  assay_exact_join_to(&sums->gated_plain2, &acc->gated.plain2, &more_sums->gated_plain2);
  assay_exact_join_to(&sums->gated_bound2, &acc->gated.bound2, &more_sums->gated_bound2);
}

static void join_risk(assay_risk_t* to, const assay_risk_t* more) {
  const int64_t count = to->count + more->count;
  if (more->max > to->max) *to = *more;
  to->count = count;
}

// What is found in one run, and looked for in those after it only if it is worse.
static void join_firsts(assay_layer_account_t* acc, const assay_layer_account_t* more) {
  if (more->perturbed_at > acc->perturbed_at) {
    acc->perturbed_at = more->perturbed_at;
    acc->perturbations = more->perturbations;
  }
  // None is looked at after one that does not absorb what passes the range.
  if (acc->absorbed == acc->past_range) acc->absorbed += more->absorbed;
  acc->past_range += more->past_range;
  const bool shorter = more->storage && (!acc->storage || assay_format_info(more->storage)->max <
                                                              assay_format_info(acc->storage)->max);
  if (shorter) acc->storage = more->storage;
}

void assay_account_join_layer(assay_layer_account_t* acc, assay_layer_sums_t* sums,
                              const assay_layer_account_t* more,
                              const assay_layer_sums_t* more_sums) {
  if (!acc->runs) {
    acc->cost = more->cost;
    acc->bounded = more->bounded;
  }
  acc->bounded &= more->bounded;
  acc->runs += more->runs;
  assay_error_exact_join(&sums->own, &acc->own, &more_sums->own, &more->own);
  assay_error_exact_join(&sums->inherited, &acc->inherited, &more_sums->inherited,
                         &more->inherited);
  assay_error_exact_join(&sums->total, &acc->total, &more_sums->total, &more->total);
  join_judgement(sums, &acc->judged, more_sums, &more->judged);
  join_gated(acc, sums, more, more_sums);
  join_risk(&acc->at_risk, &more->at_risk);
  join_firsts(acc, more);
  acc->suspected += more->suspected;
  acc->outlying += more->outlying;
  acc->shape_mismatches += more->shape_mismatches;
  acc->flipped += more->flipped;
  acc->injected.here |= more->injected.here;
  acc->injected.changed += more->injected.changed;
  acc->injected.past += more->injected.past;
  acc->stores_float |= more->stores_float;
  acc->outlying_by = fmax(acc->outlying_by, more->outlying_by);
  acc->truth_max = fmax(acc->truth_max, more->truth_max);
  acc->truth_max_in = fmax(acc->truth_max_in, more->truth_max_in);
  acc->local_max = fmax(acc->local_max, more->local_max);
  acc->own_worst_rms = fmax(acc->own_worst_rms, more->own_worst_rms);
  acc->condition = fmax(acc->condition, more->condition);
  acc->perturbation = fmax(acc->perturbation, more->perturbation);
}

// ---- values of a layer by number ----------------------------------------------------------------

static const assay_value_t* value_in(const assay_layer_account_t* acc, int64_t number) {
  const size_t n = acc->layer ? acc->layer->n_nodes : 1;
  for (size_t k = 0; number >= 0 && k < n; k++) {
    const assay_node_t* node = acc->layer ? acc->layer->nodes[k] : acc->node;
    const int64_t n_in = (int64_t)node->n_inputs, n_all = n_in + (int64_t)node->n_outputs;
    if (number < n_in) return node->inputs[number];
    if (number < n_all) return node->outputs[number - n_in];
    number -= n_all;
  }
  return NULL;
}

static int64_t number_of(const assay_layer_account_t* acc, const assay_value_t* v) {
  int64_t end = 0;
  const size_t n = acc->layer ? acc->layer->n_nodes : 1;
  for (size_t k = 0; k < n; k++) {
    const assay_node_t* node = acc->layer ? acc->layer->nodes[k] : acc->node;
    end += (int64_t)(node->n_inputs + node->n_outputs);
  }
  for (int64_t i = 0; v && i < end; i++)
    if (value_in(acc, i) == v) return i;
  return NONE;
}

static void pack_value(assay_packing_t* p, const assay_layer_account_t* acc,
                       const assay_value_t** v) {
  int64_t number = assay_packing_reads(p) ? NONE : number_of(acc, *v);
  assay_pack_i64(p, &number);
  if (!assay_packing_reads(p)) return;
  *v = value_in(acc, number);
  p->failed |= number != NONE && !*v;
}

// ---- one layer ----------------------------------------------------------------------------------

static void pack_judgement(assay_packing_t* p, assay_judgement_t* j, assay_layer_sums_t* s) {
  int64_t* const counts[] = {&j->elements,    &j->exact,    &j->explained, &j->uncertain,
                             &j->flipped,     &j->between,  &j->beyond,    &j->overflowed,
                             &j->underflowed, &j->born_nan, &j->unbounded, &j->not_judged,
                             &j->n_ratio};
  double* const worst[] = {&j->worst, &j->worst_engine, &j->worst_truth, &j->worst_limit};
  assay_exact_sum_t* const sums[] = {&s->ratio2, &s->error2,      &s->limit2,
                                     &s->truth2, &s->error_truth, &s->whole2};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) assay_pack_tally(p, counts[i]);
  assay_pack_place(p, &j->worst_index);
  for (size_t i = 0; i < sizeof worst / sizeof *worst; i++) assay_pack_f64(p, worst[i]);
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) assay_exact_pack(p, sums[i]);
  assay_account_settle_judgement(s, j);
}

// What a gate asked is the plan's, and is asked of the backend again.
static void pack_gated(const assay_account_t* a, assay_packing_t* p, assay_layer_account_t* acc,
                       assay_layer_sums_t* s) {
  assay_pack_bool(p, &acc->gated.here);
  if (!acc->gated.here) return;
  assay_exact_pack(p, &s->gated_own2);
  assay_exact_pack(p, &s->gated_plain2);
  assay_exact_pack(p, &s->gated_bound2);
  if (!assay_packing_reads(p)) return;
  const assay_accuracy_gate_t* gate =
      acc->layer && a->backend->gate
          ? a->backend->gate(a->engine, (size_t)(acc->layer - a->layers->layers))
          : NULL;
  p->failed |= !gate;
  if (gate) acc->gated.gate = *gate;
}

static void pack_perturbations(assay_packing_t* p, assay_layer_account_t* acc) {
  uint64_t n = acc->perturbations.n;
  assay_pack_count(p, &n, ASSAY_PERTURBATIONS);
  acc->perturbations.n = (size_t)n;
  for (size_t i = 0; i < acc->perturbations.n; i++) {
    assay_perturbation_t* one = &acc->perturbations.at[i];
    pack_value(p, acc, &one->value);
    p->failed |= !one->value;
    assay_pack_f64(p, &one->in);
    assay_pack_f64(p, &one->out);
    assay_pack_f64(p, &one->condition);
  }
}

static void pack_risk(assay_packing_t* p, assay_layer_account_t* acc) {
  assay_risk_t* r = &acc->at_risk;
  assay_pack_tally(p, &r->count);
  assay_pack_f64(p, &r->max);
  pack_value(p, acc, &r->value);
  if (!assay_packing_reads(p) || !r->value) return;
  p->failed |= !acc->layer;
  r->layer = acc->layer;
  r->format = acc->layer ? acc->layer->format : ASSAY_FORMAT_NONE;
}

static void pack_layer(const assay_account_t* a, assay_packing_t* p, assay_layer_account_t* acc,
                       assay_layer_sums_t* s) {
  int64_t* const counts[] = {&acc->runs,     &acc->suspected,        &acc->outlying,
                             &acc->flipped,  &acc->shape_mismatches, &acc->past_range,
                             &acc->absorbed, &acc->injected.changed, &acc->injected.past};
  double* const numbers[] = {&acc->outlying_by,  &acc->truth_max,     &acc->truth_max_in,
                             &acc->local_max,    &acc->own_worst_rms, &acc->condition,
                             &acc->perturbation, &acc->perturbed_at,  &acc->cost.flops,
                             &acc->cost.bytes};
  uint64_t storage = acc->storage;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) assay_pack_tally(p, counts[i]);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) assay_pack_f64(p, numbers[i]);
  assay_pack_bool(p, &acc->bounded);
  assay_pack_bool(p, &acc->stores_float);
  assay_pack_bool(p, &acc->injected.here);
  assay_pack_count(p, &storage, ASSAY_FORMAT_COUNT - 1);
  acc->storage = (assay_format_t)storage;
  assay_error_exact_pack(p, &s->own, &acc->own);
  assay_error_exact_pack(p, &s->inherited, &acc->inherited);
  assay_error_exact_pack(p, &s->total, &acc->total);
  pack_judgement(p, &acc->judged, s);
  pack_gated(a, p, acc, s);
  pack_perturbations(p, acc);
  pack_risk(p, acc);
}

// ---- all of them --------------------------------------------------------------------------------

assay_status_t assay_account_save_part(const assay_account_t* a, assay_packing_t* to) {
  uint64_t n = a->n_order;
  assay_pack_u64(to, &n);
  for (size_t i = 0; i < a->n_order; i++) {
    const size_t id = (size_t)a->order[i]->id;
    const assay_layer_account_t* acc = &a->accounts[id];
    int64_t node = (int64_t)id, layer = acc->layer ? acc->layer - a->layers->layers : NONE;
    assay_pack_i64(to, &node);
    assay_pack_i64(to, &layer);
    pack_layer(a, to, &a->accounts[id], &a->sums[id]);
  }
  return to->to->failed ? assay_str_status(to->to) : NULL;
}

// Nodes by their id.
static assay_status_t map_nodes(const assay_model_t* m, const assay_node_t*** out) {
  const assay_node_t** nodes = NULL;
  ASSAY_TRY(assay_new_array((size_t)m->n_node_ids, sizeof *nodes, &nodes));
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
      nodes[m->graphs[g]->nodes[i]->id] = m->graphs[g]->nodes[i];
  *out = nodes;
  return NULL;
}

static assay_status_t add_layer(assay_account_t* a, const assay_node_t* const* nodes,
                                assay_packing_t* from, assay_layer_account_t* more,
                                assay_layer_sums_t* more_sums) {
  int64_t id = NONE, layer = NONE;
  assay_pack_i64(from, &id);
  assay_pack_i64(from, &layer);
  const bool known = id >= 0 && id < a->layers->model->n_node_ids && nodes[id] && layer >= NONE &&
                     layer < (int64_t)a->layers->n_all_layers;
  if (from->failed || !known) return from->failed = true, NULL;
  *more = (assay_layer_account_t){.node = nodes[id],
                                  .layer = layer < 0 ? NULL : &a->layers->layers[layer]};
  *more_sums = (assay_layer_sums_t){0};
  pack_layer(a, from, more, more_sums);
  if (from->failed) return NULL;
  assay_layer_account_t* acc = &a->accounts[id];
  ASSAY_TRY(assay_account_note_first(a, acc, more->layer, more->node));
  assay_account_join_layer(acc, &a->sums[id], more, more_sums);
  return NULL;
}

assay_status_t assay_account_add_part(assay_account_t* a, assay_packing_t* from) {
  const assay_node_t** nodes = NULL;
  assay_layer_account_t more;
  assay_layer_sums_t* more_sums = NULL;
  uint64_t n = 0;
  assay_pack_count(from, &n, (uint64_t)a->layers->model->n_node_ids);
  ASSAY_TRY(map_nodes(a->layers->model, &nodes));
  assay_status_t st = ASSAY_NEW(&more_sums);
  for (uint64_t i = 0; !st && !from->failed && i < n; i++)
    st = add_layer(a, nodes, from, &more, more_sums);
  assay_free(nodes);
  assay_free(more_sums);
  if (!st) assay_account_judge_all(a);
  return st;
}
