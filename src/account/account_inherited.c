// Inherited error and flips: in truth's hook, after the engine or without one.
#include <math.h>

#include "account/absorb.h"
#include "account/account_internal.h"
#include "base/alloc.h"
#include "formats/format.h"

// An ill-conditioned layer is told only where it stands out from the storage format's rounding.
static const double STANDS_OUT = 16;

// Whether two sequences or optionals hold as many items, of the same shapes.
static bool same_structure(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != b->kind || a->n_items != b->n_items) return false;
  if (a->kind == ASSAY_KIND_TENSOR) return assay_tensor_same_shape(a, b);
  for (int64_t i = 0; i < a->n_items; i++)
    if (!same_structure(a->items[i], b->items[i])) return false;
  return true;
}

static void replace(assay_tensor_t** slot, assay_tensor_t* by) {
  assay_tensor_retain(by);
  assay_tensor_release(*slot);
  *slot = by;
}

// How many elements of two outputs of one shape differ; those of strings and containers are not
// looked into.
static int64_t differing(const assay_tensor_t* a, const assay_tensor_t* b) {
  int64_t n = 0;
  if (a->store == ASSAY_STORE_I64)
    for (int64_t i = 0; i < a->size; i++) n += assay_i64(a)[i] != assay_i64(b)[i];
  if (a->store == ASSAY_STORE_F64)
    for (int64_t i = 0; i < a->size; i++) {
      double x = assay_f64(a)[i], y = assay_f64(b)[i];
      n += x != y && !(x != x && y != y);
    }
  return n;
}

// Discrete floats (Floor, Round, ...): truth takes over the elements that came out differently.
static assay_status_t adopt_elements(assay_tensor_t** truth, const assay_tensor_t* local,
                                     const assay_tensor_t* engine) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_copy(*truth, &t));
  for (int64_t i = 0; i < t->size; i++)
    if (assay_f64(local)[i] != assay_f64(t)[i]) assay_f64(t)[i] = assay_f64(engine)[i];
  assay_tensor_release(*truth);
  *truth = t;
  return NULL;
}

// Whether a float output is a discrete choice. An operator whose output type the model names (Cast)
// rounds like any store to a float of 16 bits or more; to fewer bits it quantizes.
static bool is_discrete(const assay_node_t* node, size_t i, const assay_tensor_t* t) {
  if (!node->op || !(node->op->discrete >> i & 1)) return false;
  return !(node->op->flags & ASSAY_OP_KEEPS_TYPE) || assay_type_bits(t->type) < 16;
}

static double relative(const assay_error_sum_t* e) {
  return e->sum_ref2 > 0 && !e->mismatched ? sqrt(e->sum_err2 / e->sum_ref2) : 0;
}

// How the layer's condition shows in one output: what came in over what it became.
static void note_condition(assay_account_t* a, assay_layer_account_t* acc, const assay_value_t* v,
                           const assay_error_sum_t* inherited, const assay_tensor_t* engine,
                           const assay_tensor_t* truth) {
  assay_error_sum_t total = ASSAY_ERROR_SUM_INIT;
  if (assay_tensor_same_shape(engine, truth))
    assay_error_sum_add(&total, assay_f64(engine), assay_f64(truth), (size_t)truth->size);
  assay_layer_sums_t* sums = assay_account_sums(a, acc);
  assay_error_exact_add(&sums->total, &acc->total, &total);
  a->value_error[v->id] = relative(&total);
  const double left = relative(inherited);
  const double u = assay_bound_unit(assay_layer_storage(acc->layer, truth->type));
  if (sums->perturbation <= 0 || left <= STANDS_OUT * u) return;
  sums->condition = fmax(sums->condition, left / sums->perturbation);
  acc->condition = fmax(acc->condition, sums->condition);
}

static void note_perturbation(assay_account_t* a, assay_layer_account_t* acc,
                              const assay_value_t* v) {
  assay_layer_sums_t* sums = a->sums ? assay_account_sums(a, acc) : NULL;
  acc->perturbation = fmax(acc->perturbation, a->value_error[v->id]);
  if (sums) sums->perturbation = fmax(sums->perturbation, a->value_error[v->id]);
}

// True inputs of a layer of several nodes, as they come by: the machine forgets them after their
// last reader.
static assay_status_t keep_entering(assay_account_t* a, const assay_layer_t* layer,
                                    const assay_node_t* node, size_t n_in,
                                    assay_tensor_t* const* in) {
  size_t n = 0, first = SIZE_MAX;
  for (size_t k = 0; k < layer->n_nodes; k++) {
    if (layer->nodes[k] == node) first = n;
    n += layer->nodes[k]->n_inputs;
  }
  if (first == SIZE_MAX) return NULL;
  assay_entering_t* e = &a->entering[layer->nodes[layer->n_nodes - 1]->id];
  if (!e->in) ASSAY_TRY(assay_new_array(n, sizeof *e->in, &e->in));
  e->n = n;
  for (size_t i = 0; i < n_in; i++) {
    const assay_value_t* v = node->inputs[i];
    if (!v || a->layers->hidden_value[v->id]) continue;
    assay_tensor_release(e->in[first + i]);
    e->in[first + i] = assay_tensor_retain(in[i]);
  }
  return NULL;
}

// Inputs that truth did not come by (of a node that an external engine's layers compute twice)
// cannot be told.
static bool all_entered(const assay_record_t* r, size_t n, assay_tensor_t* const* truth) {
  for (size_t i = 0; i < n; i++)
    if (r->in[i] && !truth[i]) return false;
  return true;
}

// Whether the layer minds true inputs past its format's range. `out` is truth of it.
static assay_status_t note_range(assay_account_t* a, assay_layer_account_t* acc, uint64_t iteration,
                                 size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                 assay_tensor_t* const* out) {
  if (!acc->layer || acc->layer->format == ASSAY_FORMAT_FP32) return NULL;
  const double range = assay_format_info(acc->layer->format)->max;
  bool absorbs = false;
  if (!(acc->truth_max_in > range)) return NULL;
  if (acc->absorbed < acc->past_range) return acc->past_range++, NULL;
  assay_locals_set_iteration(a->locals, iteration);
  ASSAY_TRY(assay_absorbs(a->locals, acc->layer, acc->node, n_in, in, n_out, out, &absorbs));
  acc->past_range++;
  acc->absorbed += absorbs;
  return NULL;
}

// Which input's error an ill-conditioned layer makes so large; asked for in its worst run.
static assay_status_t perturb(assay_account_t* a, assay_layer_account_t* acc,
                              const assay_record_t* r, size_t n_in, assay_tensor_t* const* in) {
  const double condition = assay_account_sums(a, acc)->condition;
  if (condition <= ASSAY_CONDITION_LIMIT || condition <= acc->perturbed_at) return NULL;
  if (!r->n_in || r->n_in != n_in || !all_entered(r, n_in, in)) return NULL;
  acc->perturbed_at = condition;
  assay_locals_set_iteration(a->locals, r->iteration);
  return assay_perturb(a->locals, acc->layer, acc->node, n_in, r->in, in, &acc->perturbations);
}

// What came into a layer by a node of it. Nodes that several layers compute were run by truth once.
static void note_inputs(assay_account_t* a, assay_layer_account_t* acc, const assay_node_t* node) {
  for (size_t i = 0; i < node->n_inputs; i++) {
    const assay_value_t* v = node->inputs[i];
    if (!v || a->layers->hidden_value[v->id]) continue;
    note_perturbation(a, acc, v);
    acc->truth_max_in = fmax(acc->truth_max_in, a->value_max[v->id]);
  }
}

static assay_status_t follow(assay_account_t* a, assay_layer_account_t* acc,
                             const assay_node_t* node, size_t i, const assay_record_t* r,
                             assay_tensor_t** truth) {
  assay_tensor_t *e = r->engine[i], *l = r->local[i], *t = *truth;
  if (!e || !l || !t) return NULL;
  if (acc->layer && acc->layer->drawn) return replace(truth, e), NULL;
  // Truth without quantization has real numbers where the engine has integers: no choice of the
  // engine's.
  if (t->kind == ASSAY_KIND_TENSOR && e->kind == t->kind && t->store != e->store &&
      assay_tensor_same_shape(t, e))
    return NULL;
  bool floats = assay_account_holds_floats(t) && assay_account_holds_floats(e);
  // Truth keeps its own items; what differs in them shows in the layers that read them.
  if (t->kind != ASSAY_KIND_TENSOR && same_structure(t, e)) return NULL;
  if (!assay_tensor_same_shape(t, e)) {
    // An empty or longer result: the choice was made by what came in. Truth goes on from here.
    acc->flipped += e->kind == ASSAY_KIND_TENSOR ? e->size : 1;
    replace(truth, e);
    return NULL;
  }
  if (!floats) {
    int64_t n = differing(t, e);
    acc->flipped += n;
    if (n && assay_tensor_same_shape(l, e) && !differing(l, e)) replace(truth, e);
    return NULL;
  }
  if (assay_tensor_same_shape(l, t)) {
    if (is_discrete(node, i, t)) {
      int64_t n = differing(l, t);
      acc->flipped += n;
      if (n) ASSAY_TRY(adopt_elements(truth, l, e));
      t = *truth;
    }
    assay_error_sum_t inherited = ASSAY_ERROR_SUM_INIT;
    assay_error_sum_add(&inherited, assay_f64(l), assay_f64(t), (size_t)t->size);
    assay_error_exact_add(&assay_account_sums(a, acc)->inherited, &acc->inherited, &inherited);
    note_condition(a, acc, node->outputs[i], &inherited, e, t);
    if (a->options.watch.value && assay_tensor_same_shape(e, t))
      a->options.watch.value(a->options.watch.user, acc, node->outputs[i], e, l, t);
  }
  acc->truth_max = fmax(acc->truth_max, assay_account_largest(t));
  return NULL;
}

// ---- what truth tells by itself -----------------------------------------------------------------

static assay_status_t predict_value(assay_account_t* a, const assay_layer_t* layer,
                                    const assay_value_t* v, assay_tensor_t* t) {
  if (!a->layers->hidden_value[v->id]) a->value_max[v->id] = assay_account_largest(t);
  return layer ? assay_stored_of(t, layer->format, &a->stored[v->id]) : NULL;
}

static void predict_output(assay_account_t* a, assay_layer_account_t* acc, const assay_value_t* v,
                           const assay_tensor_t* t) {
  if (!v || !assay_account_holds_floats(t)) return;
  acc->stores_float |= t->type == ASSAY_TYPE_FLOAT;
  acc->truth_max = fmax(acc->truth_max, a->value_max[v->id]);
  const assay_format_t stored = assay_layer_storage(acc->layer, t->type);
  if (!acc->storage || assay_format_info(stored)->max < assay_format_info(acc->storage)->max)
    acc->storage = stored;
}

assay_status_t assay_account_reference_only(void* user, const assay_node_t* node, size_t n_in,
                                            assay_tensor_t* const* in, size_t n_out,
                                            assay_tensor_t** out) {
  assay_account_t* a = user;
  const int l = a->layers->layer_of_node[node->id];
  const assay_layer_t* layer = l < 0 ? NULL : &a->layers->layers[l];
  const assay_node_t* last = layer ? layer->nodes[layer->n_nodes - 1] : node;
  assay_layer_account_t* acc = &a->accounts[last->id];
  // What a node makes is looked at as it is made, the rest as it is read.
  for (size_t i = 0; i < n_in; i++)
    if (in[i] && in[i]->kind == ASSAY_KIND_TENSOR && node->inputs[i] && !node->inputs[i]->producer)
      ASSAY_TRY(predict_value(a, layer, node->inputs[i], in[i]));
  for (size_t i = 0; i < n_out; i++)
    if (node->outputs[i]) ASSAY_TRY(predict_value(a, layer, node->outputs[i], out[i]));
  if (layer && layer->n_nodes > 1) ASSAY_TRY(keep_entering(a, layer, node, n_in, in));
  if (node != last) return NULL;
  ASSAY_TRY(assay_account_note_first(a, acc, layer, node));
  if (!acc->runs++)
    ASSAY_TRY(assay_account_note_cost(layer, node, n_in, in, n_out, out, &acc->cost));
  for (size_t k = 0; layer && k < layer->n_nodes; k++) note_inputs(a, acc, layer->nodes[k]);
  if (!layer) note_inputs(a, acc, node);
  for (size_t i = 0; i < n_out; i++) predict_output(a, acc, node->outputs[i], out[i]);
  assay_entering_t* e = &a->entering[last->id];
  assay_status_t st = NULL;
  if (!assay_account_is_control(node))
    st = note_range(a, acc, assay_evaluator_iteration(a->truth), e->n ? e->n : n_in,
                    e->n ? e->in : in, n_out, out);
  assay_entering_deinit(e);
  return st;
}

// ---- after the engine --------------------------------------------------------------------------

assay_status_t assay_account_after_truth(void* user, const assay_node_t* node, size_t n_in,
                                         assay_tensor_t* const* in, size_t n_out,
                                         assay_tensor_t** out) {
  assay_account_t* a = user;
  int l = a->layers->layer_of_node[node->id];
  const assay_layer_t* layer = l < 0 ? NULL : &a->layers->layers[l];
  const assay_node_t* last = layer ? layer->nodes[layer->n_nodes - 1] : node;
  assay_layer_account_t* acc = &a->accounts[last->id];
  if (!a->queues[last->id].first)
    return NULL;  // a body that the engine did not enter is not judged
  for (size_t i = 0; i < n_in; i++) {
    if (!in[i] || in[i]->kind != ASSAY_KIND_TENSOR || !node->inputs[i]) continue;
    if (a->layers->hidden_value[node->inputs[i]->id]) continue;
    note_perturbation(a, acc, node->inputs[i]);
    a->value_max[node->inputs[i]->id] = assay_account_largest(in[i]);
  }
  if (layer && layer->n_nodes > 1) ASSAY_TRY(keep_entering(a, layer, node, n_in, in));
  if (node != last) return NULL;
  if (layer)
    for (size_t k = 0; k < layer->n_nodes; k++) note_inputs(a, acc, layer->nodes[k]);
  else
    note_inputs(a, acc, node);
  assay_record_t* r = assay_record_pop(&a->queues[last->id]);
  assay_status_t st = NULL;
  int64_t before = acc->flipped;
  for (size_t i = 0; !st && i < n_out; i++)
    if (node->outputs[i]) st = follow(a, acc, node, i, r, &out[i]);
  a->flipped += acc->flipped - before;
  assay_entering_t* e = &a->entering[last->id];
  assay_tensor_t* const* entered = e->n ? e->in : in;
  const size_t n_entered = e->n ? e->n : n_in;
  if (!st) st = perturb(a, acc, r, n_entered, entered);
  if (!st && r->n_in && r->n_in == n_entered && all_entered(r, n_entered, entered))
    st = note_range(a, acc, r->iteration, n_entered, entered, n_out, out);
  assay_layer_sums_t* sums = assay_account_sums(a, acc);
  sums->perturbation = sums->condition = 0;
  assay_entering_deinit(e);
  assay_record_free(r);
  return st;
}
