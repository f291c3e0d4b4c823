#include "accuracy/account.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/extremes.h"
#include "formats/format.h"
#include "truth/machine.h"

// What the engine did in one run of a node, kept until truth comes to the same run.
typedef struct record {
  struct record* next;
  size_t n_out;
  assay_tensor_t** engine;  // outputs as stored
  assay_tensor_t** local;   // truth of the node on the engine's inputs; the engine's own for control nodes
} record_t;

typedef struct queue {
  record_t *first, **last;
} queue_t;

struct assay_account {
  const assay_layers_t* layers;
  const assay_backend_t* backend;
  void* engine;
  assay_account_options_t options;
  assay_machine_t *truth, *local;
  assay_machine_t* plain;          // truth that follows no flip; made when the first one is seen
  int64_t flipped;                 // in this sample
  bool has_plain;                  // `plain` has this sample's outputs
  assay_tap_t tap;
  queue_t* queues;                 // by node id
  assay_layer_account_t* accounts; // by node id
  const assay_node_t** order;      // nodes as they first ended
  size_t n_order, cap_order;
  assay_error_sum_t* outputs;    // by graph output
};

const char* assay_verdict_name(assay_verdict_t v) {
  static const char* const names[] = {"exact",     "unclassified", "flipped",
                                      "underflow", "overflow",     "invalid"};
  return names[v];
}

static bool holds_floats(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// Of floats, as canonical ones or as packed.
static assay_extremes_t extremes_of(const assay_tensor_t* t) {
  bool packed = t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_PACKED &&
                assay_type_is_float(t->type);
  if (!packed && !holds_floats(t)) return (assay_extremes_t){0};
  return assay_extremes(packed ? t->type : ASSAY_TYPE_DOUBLE, t->data, t->size);
}

static double largest(const assay_tensor_t* t) { return extremes_of(t).largest; }

static bool has_nan(const assay_tensor_t* t) { return extremes_of(t).n_nan > 0; }

// ---- records ------------------------------------------------------------------------------------

static void record_free(record_t* r) {
  for (size_t i = 0; i < r->n_out; i++) {
    assay_tensor_release(r->engine[i]);
    assay_tensor_release(r->local[i]);
  }
  assay_free(r->engine);
  assay_free(r->local);
  assay_free(r);
}

static assay_status_t record_create(size_t n_out, assay_tensor_t* const* engine, record_t** out) {
  record_t* r = NULL;
  ASSAY_TRY(ASSAY_NEW(&r));
  assay_status_t st = assay_new_array(n_out, sizeof *r->engine, &r->engine);
  if (!st) st = assay_new_array(n_out, sizeof *r->local, &r->local);
  if (st) return record_free(r), st;
  r->n_out = n_out;
  for (size_t i = 0; i < n_out; i++) r->engine[i] = assay_tensor_retain(engine[i]);
  *out = r;
  return NULL;
}

static void push(queue_t* q, record_t* r) {
  if (!q->first) q->last = &q->first;
  *q->last = r;
  q->last = &r->next;
}

static record_t* pop(queue_t* q) {
  record_t* r = q->first;
  if (r) q->first = r->next;
  return r;
}

// ---- own error: in the engine's tap -----------------------------------------------------------------

static assay_format_t stored_format(const assay_layer_t* layer, assay_type_t type) {
  if (type != ASSAY_TYPE_FLOAT || !layer) return assay_type_format(type);
  return layer->format == ASSAY_FORMAT_TF32 ? ASSAY_FORMAT_FP32 : layer->format;
}

enum { CLASSIFIED = 1024 };  // elements at a time

// Counts the element classes of a part of one output.
static assay_layer_account_t classify_part(assay_format_t format, const double* e, const double* l,
                                           int64_t n, bool nan_came_in) {
  assay_layer_account_t a = {0};
  double once[CLASSIFIED];
  assay_format_round_n(format, l, once, (size_t)n, ASSAY_OVERFLOW_IEEE);
  for (int64_t i = 0; i < n; i++) {
    double x = e[i], y = l[i], m = fabs(y);
    bool finite = m <= 0x1.fffffffffffffp1023;
    if (finite && m > a.local_max) a.local_max = m;
    a.rounded_exactly += x == once[i] || (x != x && once[i] != once[i]);
    if (x != x) {
      a.born_nan += !nan_came_in;
      a.overflowed += nan_came_in && finite;
    } else if (isinf(x)) {
      a.overflowed += finite;
    } else {
      a.underflowed += x == 0 && y != 0;
    }
  }
  return a;
}

static void classify(assay_layer_account_t* a, const assay_tensor_t* engine,
                     const assay_tensor_t* local, bool nan_came_in) {
  assay_format_t format = stored_format(a->layer, engine->type);
  int64_t n = engine->size, exact = 0, over = 0, under = 0, born = 0;
  double max = a->local_max;
#pragma omp parallel for schedule(static) reduction(+ : exact, over, under, born) \
    reduction(max : max) if (n > 50000)
  for (int64_t i = 0; i < n; i += CLASSIFIED) {
    assay_layer_account_t part =
        classify_part(format, assay_f64(engine) + i, assay_f64(local) + i,
                      n - i < CLASSIFIED ? n - i : CLASSIFIED, nan_came_in);
    exact += part.rounded_exactly;
    over += part.overflowed;
    under += part.underflowed;
    born += part.born_nan;
    max = part.local_max > max ? part.local_max : max;
  }
  a->rounded_exactly += exact;
  a->overflowed += over;
  a->underflowed += under;
  a->born_nan += born;
  a->local_max = max;
  a->elements += n;
}

// Float64 values between the nodes of one layer.
typedef struct hidden {
  const assay_value_t** values;
  assay_tensor_t** tensors;
  size_t n;
} hidden_t;

static assay_tensor_t* hidden_find(const hidden_t* h, const assay_value_t* v) {
  for (size_t i = 0; i < h->n; i++)
    if (h->values[i] == v) return h->tensors[i];
  return NULL;
}

static void hidden_deinit(hidden_t* h) {
  for (size_t i = 0; i < h->n; i++) assay_tensor_release(h->tensors[i]);
  assay_free(h->values);
  assay_free(h->tensors);
}

// Finite elements of a hidden value that the layer's format could not hold.
static void note_risk(assay_layer_account_t* acc, const assay_layer_t* layer, const assay_value_t* v,
                      const assay_tensor_t* t) {
  if (!holds_floats(t) || t->type != ASSAY_TYPE_FLOAT) return;
  double range = assay_format_info(layer->format)->max, max = 0;
  const double* x = assay_f64(t);
  int64_t n = 0;
#pragma omp parallel for schedule(static) reduction(+ : n) reduction(max : max) if (t->size > 100000)
  for (int64_t i = 0; i < t->size; i++) {
    double m = fabs(x[i]);
    bool past = m > range && m <= 0x1.fffffffffffffp1023;
    n += past;
    if (past && m > max) max = m;
  }
  acc->at_risk += n;
  if (max <= acc->at_risk_max) return;
  acc->at_risk_max = max;
  acc->at_risk_value = v;
}

// Runs one node of a layer; `in` are its entering inputs, NULL where it reads what the layer hides.
static assay_status_t chain_node(assay_account_t* a, const assay_node_t* node, const hidden_t* h,
                                 assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_tensor_t** all = NULL;
  ASSAY_TRY(assay_new_array(node->n_inputs, sizeof *all, &all));
  for (size_t i = 0; i < node->n_inputs; i++)
    all[i] = in[i] ? in[i] : node->inputs[i] ? hidden_find(h, node->inputs[i]) : NULL;
  assay_status_t st = assay_machine_node(a->local, node, node->n_inputs, all, n_out, out);
  assay_free(all);
  return st;
}

// Truth of a layer of several nodes on what entered it.
static assay_status_t local_chain(assay_account_t* a, assay_layer_account_t* acc,
                                  const assay_layer_t* layer, assay_tensor_t* const* in, record_t* r) {
  hidden_t h = {0};
  size_t room = 0;
  for (size_t k = 0; k < layer->n_nodes; k++) room += layer->nodes[k]->n_outputs;
  assay_status_t st = assay_new_array(room, sizeof *h.values, &h.values);
  if (!st) st = assay_new_array(room, sizeof *h.tensors, &h.tensors);
  for (size_t k = 0; !st && k + 1 < layer->n_nodes; k++) {
    const assay_node_t* n = layer->nodes[k];
    for (size_t o = 0; o < n->n_outputs; o++) h.values[h.n + o] = n->outputs[o];
    st = chain_node(a, n, &h, in, n->n_outputs, &h.tensors[h.n]);
    if (st) break;
    for (size_t o = 0; o < n->n_outputs; o++)
      if (n->outputs[o]) note_risk(acc, layer, n->outputs[o], h.tensors[h.n + o]);
    h.n += n->n_outputs;
    in += n->n_inputs;
  }
  if (!st) st = chain_node(a, layer->nodes[layer->n_nodes - 1], &h, in, r->n_out, r->local);
  hidden_deinit(&h);
  return st;
}

static assay_status_t local_truth(assay_account_t* a, assay_layer_account_t* acc,
                                  const assay_layer_t* layer, const assay_node_t* node, size_t n_in,
                                  assay_tensor_t* const* in, record_t* r) {
  bool control = node->op && node->op->flags & ASSAY_OP_CONTROL;
  if (layer && layer->n_nodes > 1) return local_chain(a, acc, layer, in, r);
  if (!control) return assay_machine_node(a->local, node, n_in, in, r->n_out, r->local);
  // What a body does is judged node by node, run by run.
  for (size_t i = 0; i < r->n_out; i++) r->local[i] = assay_tensor_retain(r->engine[i]);
  return NULL;
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  assay_account_t* a = user;
  assay_layer_account_t* acc = &a->accounts[node->id];
  record_t* r = NULL;
  assay_machine_set_iteration(a->local, iteration);
  ASSAY_TRY(record_create(n_out, out, &r));
  assay_status_t st = local_truth(a, acc, layer, node, n_in, in, r);
  if (st) return record_free(r), st;
  if (!acc->node) {
    acc->node = node;
    acc->layer = layer;
    acc->own = acc->inherited = ASSAY_ERROR_SUM_INIT;
    st = assay_grow(&a->order, &a->cap_order, a->n_order + 1, sizeof *a->order);
    if (st) return record_free(r), st;
    a->order[a->n_order++] = node;
  }
  acc->runs++;
  bool nan_came_in = false;
  for (size_t i = 0; i < n_in; i++) nan_came_in |= has_nan(in[i]);
  assay_error_sum_t before = ASSAY_ERROR_SUM_INIT;
  for (size_t i = 0; i < n_out; i++) {
    assay_tensor_t *e = r->engine[i], *l = r->local[i];
    if (!holds_floats(e) || !holds_floats(l) || e->size != l->size) continue;
    acc->stores_float |= e->type == ASSAY_TYPE_FLOAT;
    assay_error_sum_add(&before, assay_f64(e), assay_f64(l), (size_t)e->size);
    classify(acc, e, l, nan_came_in);
  }
  acc->own_worst_rms = fmax(acc->own_worst_rms, assay_error_sum_rms(&before));
  assay_error_sum_join(&acc->own, &before);
  push(&a->queues[node->id], r);
  return NULL;
}

// ---- inherited error and flips: in truth's hook ------------------------------------------------------

static bool same_shape(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->kind == b->kind && a->kind == ASSAY_KIND_TENSOR && a->rank == b->rank &&
         !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// Whether two sequences or optionals hold as many items, of the same shapes.
static bool same_structure(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != b->kind || a->n_items != b->n_items) return false;
  if (a->kind == ASSAY_KIND_TENSOR) return same_shape(a, b);
  for (int64_t i = 0; i < a->n_items; i++)
    if (!same_structure(a->items[i], b->items[i])) return false;
  return true;
}

static void replace(assay_tensor_t** slot, assay_tensor_t* by) {
  assay_tensor_retain(by);
  assay_tensor_release(*slot);
  *slot = by;
}

// How many elements of two outputs of one shape differ; those of strings and containers are not looked into.
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

// Whether a float output is a discrete choice. An operator whose output type the model names (Cast) rounds like
// any store to a float of 16 bits or more; to fewer bits it quantizes.
static bool is_discrete(const assay_node_t* node, size_t i, const assay_tensor_t* t) {
  if (!node->op || !(node->op->discrete >> i & 1)) return false;
  return !(node->op->flags & ASSAY_OP_KEEPS_TYPE) || assay_type_bits(t->type) < 16;
}

static assay_status_t follow(assay_layer_account_t* acc, const assay_node_t* node, size_t i,
                             const record_t* r, assay_tensor_t** truth) {
  assay_tensor_t *e = r->engine[i], *l = r->local[i], *t = *truth;
  if (!e || !l || !t) return NULL;
  // Truth without quantization has real numbers where the engine has integers: no choice of the engine's.
  if (t->kind == ASSAY_KIND_TENSOR && e->kind == t->kind && t->store != e->store && same_shape(t, e))
    return NULL;
  bool floats = holds_floats(t) && holds_floats(e);
  // Truth keeps its own items; what differs in them shows in the layers that read them.
  if (t->kind != ASSAY_KIND_TENSOR && same_structure(t, e)) return NULL;
  if (!same_shape(t, e)) {
    // An empty or longer result: the choice was made by what came in. Truth goes on from here.
    acc->flipped += e->kind == ASSAY_KIND_TENSOR ? e->size : 1;
    replace(truth, e);
    return NULL;
  }
  if (!floats) {
    int64_t n = differing(t, e);
    acc->flipped += n;
    if (n && same_shape(l, e) && !differing(l, e)) replace(truth, e);
    return NULL;
  }
  if (same_shape(l, t)) {
    if (is_discrete(node, i, t)) {
      int64_t n = differing(l, t);
      acc->flipped += n;
      if (n) ASSAY_TRY(adopt_elements(truth, l, e));
      t = *truth;
    }
    assay_error_sum_add(&acc->inherited, assay_f64(l), assay_f64(t), (size_t)t->size);
  }
  acc->truth_max = fmax(acc->truth_max, largest(t));
  return NULL;
}

static assay_status_t after_truth(void* user, const assay_node_t* node, size_t n_in,
                                  assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_account_t* a = user;
  int l = a->layers->layer_of_node[node->id];
  const assay_layer_t* layer = l < 0 ? NULL : &a->layers->layers[l];
  const assay_node_t* last = layer ? layer->nodes[layer->n_nodes - 1] : node;
  assay_layer_account_t* acc = &a->accounts[last->id];
  if (!a->queues[last->id].first) return NULL;  // a body that the engine did not enter is not judged
  for (size_t i = 0; i < n_in; i++) {
    if (!in[i] || in[i]->kind != ASSAY_KIND_TENSOR) continue;
    if (node->inputs[i] && a->layers->hidden_value[node->inputs[i]->id]) continue;
    acc->truth_max_in = fmax(acc->truth_max_in, largest(in[i]));
  }
  if (node != last) return NULL;
  record_t* r = pop(&a->queues[last->id]);
  assay_status_t st = NULL;
  int64_t before = acc->flipped;
  for (size_t i = 0; !st && i < n_out; i++)
    if (node->outputs[i]) st = follow(acc, node, i, r, &out[i]);
  a->flipped += acc->flipped - before;
  record_free(r);
  return st;
}

// ---- running ------------------------------------------------------------------------------------

assay_status_t assay_account_create(const assay_plan_t* plan, const assay_backend_t* backend,
                                    const assay_account_options_t* options,
                                    assay_account_t** out) {
  assay_account_t* a = NULL;
  ASSAY_TRY(ASSAY_NEW(&a));
  a->layers = assay_plan_layers(plan);
  a->backend = backend;
  a->options = *options;
  const assay_model_t* m = a->layers->model;
  a->tap = (assay_tap_t){.layer = on_layer, .user = a};
  assay_machine_config_t local = {.mode = ASSAY_MODE_TRUTH, .unquantized = options->unquantized,
                                  .seed = a->layers->seed};
  assay_machine_config_t truth = local;
  if (!options->outputs_only)
    truth.hooks = (assay_machine_hooks_t){.after = after_truth, .user = a};
  assay_status_t st = assay_machine_create(m, &truth, &a->truth);
  if (!st) st = assay_machine_create(m, &local, &a->local);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *a->queues, &a->queues);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *a->accounts, &a->accounts);
  if (!st) st = assay_new_array(m->graph->n_outputs, sizeof *a->outputs, &a->outputs);
  for (size_t i = 0; !st && i < m->graph->n_outputs; i++) a->outputs[i] = ASSAY_ERROR_SUM_INIT;
  if (!st)
    st = backend->open(a->layers, options->outputs_only ? NULL : &a->tap, &a->engine);
  if (st) return assay_account_destroy(a), st;
  *out = a;
  return NULL;
}

static void empty_queues(assay_account_t* a) {
  if (!a->queues) return;
  for (int i = 0; i < a->layers->model->n_node_ids; i++)
    for (record_t* r; (r = pop(&a->queues[i]));) record_free(r);
}

void assay_account_destroy(assay_account_t* a) {
  if (!a) return;
  empty_queues(a);
  a->backend->close(a->engine);
  assay_machine_destroy(a->truth);
  assay_machine_destroy(a->local);
  assay_machine_destroy(a->plain);
  assay_free(a->queues);
  assay_free(a->accounts);
  assay_free(a->order);
  assay_free(a->outputs);
  assay_free(a);
}

static assay_status_t set_inputs(assay_account_t* a, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = a->layers->model->graph;
  assay_machine_reset(a->truth);
  a->backend->reset(a->engine);
  empty_queues(a);
  for (size_t i = 0; i < g->n_inputs; i++) {
    if (!inputs[i]) continue;
    assay_tensor_t* wide = NULL;
    ASSAY_TRY(assay_tensor_widen(inputs[i], &wide));
    assay_machine_set(a->truth, g->inputs[i], wide);
    assay_status_t st = a->backend->set(a->engine, g->inputs[i], wide);
    assay_tensor_release(wide);
    if (st) return st;
  }
  return assay_machine_check_inputs(a->truth);
}

static void judge(assay_layer_account_t* acc) {
  acc->verdict = acc->born_nan                                     ? ASSAY_VERDICT_INVALID
                 : acc->overflowed                                 ? ASSAY_VERDICT_OVERFLOW
                 : acc->underflowed                                ? ASSAY_VERDICT_UNDERFLOW
                 : acc->flipped                                    ? ASSAY_VERDICT_FLIPPED
                 : acc->rounded_exactly < acc->elements            ? ASSAY_VERDICT_UNCLASSIFIED
                                                                   : ASSAY_VERDICT_EXACT;
}

// Runs truth by itself, following nothing.
static assay_status_t run_plain(assay_account_t* a, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = a->layers->model->graph;
  assay_machine_config_t config = {.mode = ASSAY_MODE_TRUTH, .unquantized = a->options.unquantized,
                                   .seed = a->layers->seed};
  if (!a->plain) ASSAY_TRY(assay_machine_create(a->layers->model, &config, &a->plain));
  assay_machine_reset(a->plain);
  for (size_t i = 0; i < g->n_inputs; i++)
    if (inputs[i]) assay_machine_set(a->plain, g->inputs[i], inputs[i]);
  ASSAY_TRY(assay_machine_run(a->plain));
  a->has_plain = true;
  return NULL;
}

assay_status_t assay_account_run(assay_account_t* a, assay_tensor_t* const* inputs) {
  const assay_layers_t* l = a->layers;
  const assay_graph_t* g = l->model->graph;
  ASSAY_TRY(set_inputs(a, inputs));
  a->flipped = 0;
  a->has_plain = false;
  for (size_t i = 0; i < l->n_layers; i++) {
    ASSAY_TRY(a->backend->step(a->engine, i));
    for (size_t k = 0; k < l->layers[i].n_nodes; k++)
      ASSAY_TRY(assay_machine_step(a->truth, l->layers[i].nodes[k]));
    if (a->options.progress)
      a->options.progress(a->options.user, (double)(i + 1) / (double)l->n_layers);
  }
  // Outputs are judged by truth itself, not by truth that went on with the engine's choices.
  if (a->flipped) ASSAY_TRY(run_plain(a, inputs));
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_tensor_t* e = assay_account_engine_output(a, i);
    const assay_tensor_t* t = assay_account_truth_output(a, i);
    if (holds_floats(e) && holds_floats(t) && same_shape(e, t))
      assay_error_sum_add(&a->outputs[i], assay_f64(e), assay_f64(t), (size_t)e->size);
  }
  for (size_t i = 0; i < a->n_order; i++) judge(&a->accounts[a->order[i]->id]);
  return NULL;
}

assay_tensor_t* assay_account_engine_output(const assay_account_t* a, size_t i) {
  return a->backend->get(a->engine, a->layers->model->graph->outputs[i]);
}

assay_tensor_t* assay_account_truth_output(const assay_account_t* a, size_t i) {
  return assay_machine_get(a->has_plain ? a->plain : a->truth,
                           a->layers->model->graph->outputs[i]);
}

size_t assay_account_layer_count(const assay_account_t* a) { return a->n_order; }
const assay_layer_account_t* assay_account_layer(const assay_account_t* a, size_t i) {
  return &a->accounts[a->order[i]->id];
}
const assay_layer_account_t* assay_account_of_node(const assay_account_t* a,
                                                   const assay_node_t* node) {
  const assay_layer_account_t* acc = &a->accounts[node->id];
  return acc->node ? acc : NULL;
}
const assay_error_sum_t* assay_account_output(const assay_account_t* a, size_t i) {
  return &a->outputs[i];
}
