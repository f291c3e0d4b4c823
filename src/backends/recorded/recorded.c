// The recorded backend: an engine that is not ours, by what it gave.
//
// It computes nothing. Its layers are those of the record: a layer's inputs and outputs
// are values that the record holds, or the graph's inputs and constants. How the engine rounds in
// between is not known: what every engine may do in the layer's formats is allowed.
#include "base/alloc.h"
#include "exec/backend.h"

typedef struct recorded {
  const assay_layers_t* layers;
  const assay_tap_t* tap;
  assay_tensor_t** at;  // by value id: graph inputs, and what the engine made of this sample
  size_t started;       // by resets: the last one's sample is in progress; 0: the first
  bool fetched;         // what the engine made of it is there
} recorded_t;

static void recorded_reset(void* state) {
  recorded_t* d = state;
  for (int i = 0; i < d->layers->model->n_values; i++) {
    assay_tensor_release(d->at[i]);
    d->at[i] = NULL;
  }
  d->started++;
  d->fetched = false;
}

static void recorded_close(void* state) {
  recorded_t* d = state;
  if (!d) return;
  if (d->at) recorded_reset(d);
  assay_free(d->at);
  assay_free(d);
}

static assay_status_t recorded_open(const assay_layers_t* layers, void* shared,
                                    const assay_tap_t* tap, void** out_state) {
  (void)shared;
  recorded_t* d = NULL;
  if (!layers->recorded)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the plan is not one of an engine's outputs");
  ASSAY_TRY(ASSAY_NEW(&d));
  d->layers = layers;
  d->tap = tap;
  assay_status_t st = assay_new_array((size_t)layers->model->n_values, sizeof *d->at, &d->at);
  if (st) return recorded_close(d), st;
  *out_state = d;
  return NULL;
}

static assay_status_t recorded_set(void* state, const assay_value_t* value, assay_tensor_t* t) {
  recorded_t* d = state;
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_tensor_release(d->at[value->id]);
  d->at[value->id] = wide;
  return NULL;
}

static assay_tensor_t* recorded_get(void* state, const assay_value_t* value) {
  const recorded_t* d = state;
  return d->at[value->id] ? d->at[value->id] : value->constant;
}

static assay_status_t fetch(recorded_t* d) {
  const size_t sample = d->started ? d->started - 1 : 0;
  const assay_model_t* m = d->layers->model;
  assay_tensor_t** made = NULL;
  if (d->fetched) return NULL;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *made, &made));
  assay_status_t st = d->layers->recorded->fetch(d->layers->recorded->user, sample, made);
  for (int i = 0; i < m->n_values; i++) {
    // What is set is the engine's input: it is not asked what it makes of it.
    if (!st && made[i] && !d->at[i]) d->at[i] = assay_tensor_retain(made[i]);
    assay_tensor_release(made[i]);
  }
  assay_free(made);
  d->fetched = !st;
  return st;
}

// Values are kept as they were read: twice or four times as small. Those of the layer and those
// asked for are made canonical.
static assay_status_t canonical(recorded_t* d, const assay_value_t* v, assay_tensor_t** out) {
  assay_tensor_t* t = d->at[v->id] ? d->at[v->id] : v->constant;
  if (!t) return ASSAY_ERROR(ASSAY_NOT_FOUND, "the engine's outputs have no value '%s'", v->name);
  if (t == v->constant) return *out = assay_tensor_retain(t), NULL;
  return assay_tensor_widen(t, out);
}

static assay_status_t gather(recorded_t* d, const assay_layer_t* layer, assay_tensor_t** in,
                             assay_tensor_t** out) {
  const assay_node_t* last = layer->nodes[layer->n_nodes - 1];
  for (size_t k = 0; k < layer->n_nodes; k++)
    for (size_t i = 0; i < layer->nodes[k]->n_inputs; i++, in++) {
      const assay_value_t* v = layer->nodes[k]->inputs[i];
      if (v && !d->layers->hidden_value[v->id]) ASSAY_TRY(canonical(d, v, in));
    }
  for (size_t i = 0; i < last->n_outputs; i++) {
    const assay_value_t* v = last->outputs[i];
    if (!v || d->layers->hidden_value[v->id]) continue;
    ASSAY_TRY(canonical(d, v, &out[i]));
    // The account keeps it until truth comes to the layer, and outputs of the graph are asked for.
    if (v->is_output) ASSAY_TRY(recorded_set(d, v, out[i]));
  }
  return NULL;
}

static assay_status_t recorded_step(void* state, size_t number) {
  recorded_t* d = state;
  const assay_layer_t* layer = &d->layers->layers[number];
  const assay_node_t* last = layer->nodes[layer->n_nodes - 1];
  assay_tensor_t **in = NULL, **out = NULL;
  size_t n_in = 0;
  ASSAY_TRY(fetch(d));
  for (size_t k = 0; k < layer->n_nodes; k++) n_in += layer->nodes[k]->n_inputs;
  assay_status_t st = assay_new_array(n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(last->n_outputs, sizeof *out, &out);
  if (!st) st = gather(d, layer, in, out);
  if (!st && d->tap)
    st = d->tap->layer(d->tap->user, layer, last, 0, n_in, in, last->n_outputs, out);
  for (size_t i = 0; in && i < n_in; i++) assay_tensor_release(in[i]);
  for (size_t i = 0; out && i < last->n_outputs; i++) assay_tensor_release(out[i]);
  assay_free(in);
  assay_free(out);
  return st;
}

// The coarsest float format that a layer's nodes may compute in: its own, and the 16-bit ones that
// their outputs are declared in.
static assay_format_t compute_format(const assay_layer_t* layer) {
  assay_format_t f = layer->format == ASSAY_FORMAT_TF32 ? ASSAY_FORMAT_FP32 : layer->format;
  for (size_t k = 0; k < layer->n_nodes; k++)
    for (size_t i = 0; i < layer->nodes[k]->n_outputs; i++) {
      const assay_value_t* v = layer->nodes[k]->outputs[i];
      const assay_valtype_t* t = v ? v->type : NULL;
      if (!t || t->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(t->elem)) continue;
      if (assay_type_bits(t->elem) < 16) continue;  // stored so, computed wider
      const assay_format_t declared = assay_type_format(t->elem);
      if (assay_bound_unit(declared) > assay_bound_unit(f)) f = declared;
    }
  return f;
}

static void recorded_rounding(void* state, const assay_layer_t* layer, size_t n_in,
                              assay_tensor_t* const* in, assay_rounding_t* out) {
  (void)state;
  if (assay_layer_is_double(n_in, in))
    *out = assay_rounding_unknown(ASSAY_FORMAT_FP64, ASSAY_FORMAT_FP64);
  else
    *out = assay_rounding_unknown(compute_format(layer), layer->accumulator);
}

const assay_backend_t assay_backend_recorded = {.name = "recorded",
                                                .external = true,
                                                .open = recorded_open,
                                                .close = recorded_close,
                                                .set = recorded_set,
                                                .get = recorded_get,
                                                .step = recorded_step,
                                                .reset = recorded_reset,
                                                .rounding = recorded_rounding};
