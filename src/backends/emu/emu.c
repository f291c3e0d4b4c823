// The emu backend: any layer in any format on any machine, with correct rounding.
//
// A layer's inputs are rounded to its format as they enter it, sums inside are kept in its
// accumulator in the order that the operators document, and what leaves it is rounded to its format
// again. Hidden values are kept in the accumulator's format. tf32 is a format of operands: only
// contractions round their inputs to it, and everything is stored as fp32. Tensors declared in
// another type than float32 keep that type. Layers that are computed on integers are so as
// ops/quant/int8.h says. As "emu:sm_90" and the like, sums of products are those of a GPU's tensor
// cores (like/layer.h).
#include "backends/emu/inject.h"
#include "backends/emu/int8.h"
#include "backends/emu/like/attention.h"
#include "backends/emu/like/layer.h"
#include "base/alloc.h"
#include "base/random.h"
#include "eval/evaluator.h"
#include "exec/backend.h"
#include "formats/format.h"

typedef struct emu {
  const assay_layers_t* layers;
  const assay_tap_t* tap;
  assay_evaluator_t* evaluator;
  assay_evaluator_t* sums;    // for those of integers; made when the first one is run
  assay_injection_t* inject;  // NULL: nothing is wrong on purpose
  emu_like_t* like;           // NULL: no hardware in particular
  assay_tensor_t** entering;  // inputs of the layer being run, as stored, for the tap
  size_t n_entering, cap_entering;
} emu_t;

static const assay_layer_t* layer_of(const emu_t* e, const assay_node_t* node) {
  int i = e->layers->layer_of_node[node->id];
  return i < 0 ? NULL : &e->layers->layers[i];
}

static void configure(void* user, const assay_node_t* node, assay_eval_t* c) {
  const emu_t* e = user;
  assay_layer_arithmetic(layer_of(e, node), c);
  if (e->layers->draws) {
    c->arith = ASSAY_ARITH_NARROW;
    c->accumulator = ASSAY_FORMAT_FP64;
  }
  assay_injection_evaluation(e->inject, node, c);
}

// Keeps what enters a layer: the inputs of its nodes, one after the other.
static assay_status_t note_entering(emu_t* e, const assay_layer_t* layer, const assay_node_t* node,
                                    size_t n_in, assay_tensor_t* const* in) {
  if (!layer || layer->nodes[0] == node) {
    for (size_t i = 0; i < e->n_entering; i++) assay_tensor_release(e->entering[i]);
    e->n_entering = 0;
  }
  ASSAY_TRY(assay_grow(&e->entering, &e->cap_entering, e->n_entering + n_in, sizeof *e->entering));
  for (size_t i = 0; i < n_in; i++) {
    bool hidden = in[i] && node->inputs[i] && e->layers->hidden_value[node->inputs[i]->id];
    e->entering[e->n_entering++] = hidden ? NULL : assay_tensor_retain(in[i]);
  }
  return NULL;
}

static assay_status_t before(void* user, const assay_node_t* node, size_t n_in,
                             assay_tensor_t** in) {
  emu_t* e = user;
  const assay_layer_t* layer = layer_of(e, node);
  if (e->tap) ASSAY_TRY(note_entering(e, layer, node, n_in, in));
  for (size_t i = 0; i < n_in; i++) {
    assay_format_t format = assay_layer_operand(e->layers, layer, node, i, in[i]);
    if (format == ASSAY_FORMAT_NONE) continue;
    assay_tensor_t* rounded = NULL;
    ASSAY_TRY(assay_round_tensor(in[i], format, &rounded));
    assay_tensor_release(in[i]);
    in[i] = rounded;
  }
  return assay_injection_inputs(e->inject, node, n_in, in);
}

// Puts the tensor, rounded up or down by chance, in the place of *t.
static assay_status_t round_by_chance(const emu_t* e, const assay_value_t* v, assay_format_t format,
                                      assay_tensor_t** t) {
  const assay_random_t draws =
      assay_random_make(e->layers->draws, v->name, assay_evaluator_iteration(e->evaluator));
  assay_tensor_t* rounded = NULL;
  if ((*t)->store != ASSAY_STORE_F64) return assay_round_replace(t, format);
  ASSAY_TRY(assay_tensor_copy(*t, &rounded));
  double* x = assay_f64(rounded);
#pragma omp parallel for schedule(static) if (rounded->size > 10000)
  for (int64_t i = 0; i < rounded->size; i++)
    x[i] = assay_format_round_stochastic(format, x[i], assay_random_uniform(&draws, (uint64_t)i));
  assay_tensor_release(*t);
  *t = rounded;
  return NULL;
}

// Rounds to where a value is stored; containers item by item.
static assay_status_t store(const emu_t* e, const assay_layer_t* layer, const assay_value_t* v,
                            assay_tensor_t** t) {
  if ((*t)->kind != ASSAY_KIND_TENSOR) {
    ASSAY_TRY(assay_container_unshare(t));
    for (int64_t i = 0; i < (*t)->n_items; i++) ASSAY_TRY(store(e, layer, v, &(*t)->items[i]));
    return NULL;
  }
  assay_format_t format = assay_layer_storage(layer, (*t)->type);
  const bool hidden = e->layers->hidden_value[v->id];
  if (hidden && layer && (*t)->type == ASSAY_TYPE_FLOAT) format = layer->accumulator;
  return e->layers->draws ? round_by_chance(e, v, format, t) : assay_round_replace(t, format);
}

static assay_status_t note_sizes(emu_t* e, const assay_value_t* v, const assay_tensor_t* t) {
  if (!e->like || !v->type || t->kind != ASSAY_KIND_TENSOR) return NULL;
  return assay_sizes_bind(&e->like->sizes, v->type, t->rank, t->dims);
}

static assay_status_t after(void* user, const assay_node_t* node, size_t n_in,
                            assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  emu_t* e = user;
  const assay_layer_t* layer = layer_of(e, node);
  ASSAY_TRY(assay_injection_outputs(e->inject, node, layer, n_out, out));
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = node->outputs[i];
    if (v && out[i]) ASSAY_TRY(store(e, layer, v, &out[i]));
    if (v && out[i]) ASSAY_TRY(note_sizes(e, v, out[i]));
  }
  if (!e->tap || (layer && layer->nodes[layer->n_nodes - 1] != node)) return NULL;
  // A control node's body has overwritten `entering`: its own inputs are those that it holds.
  bool control = node->op && node->op->flags & ASSAY_OP_CONTROL;
  return e->tap->layer(e->tap->user, layer, node, assay_evaluator_iteration(e->evaluator),
                       control ? n_in : e->n_entering, control ? in : e->entering, n_out, out);
}

static void emu_close(void* state) {
  emu_t* e = state;
  if (!e) return;
  for (size_t i = 0; i < e->n_entering; i++) assay_tensor_release(e->entering[i]);
  assay_free(e->entering);
  assay_injection_destroy(e->inject);
  emu_like_destroy(e->like);
  assay_evaluator_destroy(e->evaluator);
  assay_evaluator_destroy(e->sums);
  assay_free(e);
}

static assay_status_t emu_open(const assay_layers_t* layers, void* shared, const assay_tap_t* tap,
                               void** out_state) {
  (void)shared;
  emu_t* e = NULL;
  ASSAY_TRY(ASSAY_NEW(&e));
  e->layers = layers;
  e->tap = tap;
  assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_PLAN,
      .arith = ASSAY_ARITH_F32,
      .seed = layers->seed,
      .hooks = {.configure = configure, .before = before, .after = after, .user = e}};
  assay_status_t st = assay_evaluator_create(layers->model, &config, &e->evaluator);
  if (!st && layers->inject) st = assay_injection_parse(layers->inject, layers, &e->inject);
  if (st) return emu_close(e), st;
  *out_state = e;
  return NULL;
}

// Device 0 is like nothing in particular, others are like a GPU.
static assay_status_t open_on(const assay_layers_t* layers, int device, const assay_tap_t* tap,
                              void** out_state) {
  emu_like_t* like = NULL;
  void* state = NULL;
  if (!device) return emu_open(layers, NULL, tap, out_state);
  ASSAY_TRY(emu_like_create(device - 1, layers, &like));
  assay_status_t st = emu_open(layers, NULL, tap, &state);
  if (st) return emu_like_destroy(like), st;
  ((emu_t*)state)->like = like;
  *out_state = state;
  return NULL;
}

static assay_status_t emu_set(void* state, const assay_value_t* value, assay_tensor_t* t) {
  emu_t* e = state;
  assay_evaluator_set(e->evaluator, value, t);
  return note_sizes(e, value, t);
}

static assay_tensor_t* emu_get(void* state, const assay_value_t* value) {
  return assay_evaluator_get(((emu_t*)state)->evaluator, value);
}

// What enters a layer that is run as a whole.
static assay_status_t note_all_entering(emu_t* e, const assay_layer_t* layer) {
  for (size_t k = 0; e->tap && k < layer->n_nodes; k++) {
    const assay_node_t* node = layer->nodes[k];
    assay_tensor_t** in = NULL;
    ASSAY_TRY(assay_new_array(node->n_inputs, sizeof *in, &in));
    for (size_t i = 0; i < node->n_inputs; i++)
      if (node->inputs[i]) in[i] = assay_evaluator_get(e->evaluator, node->inputs[i]);
    assay_status_t st = note_entering(e, layer, node, node->n_inputs, in);
    assay_free(in);
    if (st) return st;
  }
  return NULL;
}

// Gives a layer that was run as a whole its output, with what `after` does behind single nodes.
static assay_status_t put_whole(emu_t* e, const assay_layer_t* layer, assay_tensor_t* take_out) {
  const assay_node_t* last = layer->nodes[layer->n_nodes - 1];
  assay_tensor_t** out = NULL;
  assay_status_t st = assay_new_array(last->n_outputs, sizeof *out, &out);
  assay_evaluator_set(e->evaluator, last->outputs[0], take_out);
  if (!st) out[0] = take_out;
  if (!st) st = note_sizes(e, last->outputs[0], take_out);
  if (!st && e->tap)
    st = e->tap->layer(e->tap->user, layer, last, 0, e->n_entering, e->entering, last->n_outputs,
                       out);
  assay_tensor_release(take_out);
  assay_free(out);
  for (size_t k = 0; !st && k < layer->n_nodes; k++)
    assay_evaluator_pass(e->evaluator, layer->nodes[k]);
  return st;
}

// A layer on integers.
static assay_status_t step_int8(emu_t* e, const assay_layer_t* layer) {
  const assay_evaluator_config_t exact = {.mode = ASSAY_MODE_TRUTH};
  assay_tensor_t* out = NULL;
  if (!e->sums) ASSAY_TRY(assay_evaluator_create(e->layers->model, &exact, &e->sums));
  ASSAY_TRY(note_all_entering(e, layer));
  ASSAY_TRY(emu_int8_run(layer, e->sums, e->evaluator, &out));
  return put_whole(e, layer, out);
}

static assay_status_t step_nodes(emu_t* e, const assay_layer_t* layer) {
  // Nodes of a layer are neighbours in the plan's order, which the top graph has, too.
  for (size_t k = 0; k < layer->n_nodes; k++)
    ASSAY_TRY(assay_evaluator_step(e->evaluator, layer->nodes[k]));
  return NULL;
}

// A layer as the GPU computes it, where that is known.
static assay_status_t step_like(emu_t* e, size_t i) {
  const assay_layer_t* layer = &e->layers->layers[i];
  assay_tensor_t* out = NULL;
  ASSAY_TRY(emu_like_run(e->like, e->layers, i, e->evaluator, &out));
  if (!out) return step_nodes(e, layer);
  assay_status_t st = note_all_entering(e, layer);
  if (st) return assay_tensor_release(out), st;
  return put_whole(e, layer, out);
}

static assay_status_t emu_step(void* state, size_t i) {
  emu_t* e = state;
  const assay_layer_t* layer = &e->layers->layers[i];
  if (assay_injection_is_in(e->inject, layer)) return step_nodes(e, layer);
  if (layer->int8) return step_int8(e, layer);
  return e->like && !e->layers->draws ? step_like(e, i) : step_nodes(e, layer);
}

static const char* emu_tactic(void* state, size_t i) {
  const emu_t* e = state;
  return e->like ? emu_way_name(e->like->ways[i]) : assay_backend_emu.name;
}

static void emu_reset(void* state) {
  emu_t* e = state;
  assay_evaluator_reset(e->evaluator);
  if (e->like) emu_like_reset(e->like);
}

// Tensor cores cut what does not fit, weights of attention are rounded to the layer's format, and
// functions are those of backends/vmath. Layers that are computed otherwise are within that.
static void round_like(const emu_gpu_t* gpu, const assay_layer_t* layer, assay_rounding_t* out) {
  const bool narrow =
      layer && (layer->format == ASSAY_FORMAT_FP16 || layer->format == ASSAY_FORMAT_BF16);
  out->documented = false;
  out->truncates = narrow || (layer && layer->format == ASSAY_FORMAT_TF32);
  out->by_definition = out->flushes = true;
  out->function_ulps = 4;
  out->operands = narrow ? layer->format : ASSAY_FORMAT_NONE;
  out->weight_error = narrow && gpu->exp2 ? EMU_EXP2_WEIGHT_ERROR : 0;
}

// Functions are those of base/functions.h in float64, rounded once.
static void emu_rounding(void* state, const assay_layer_t* layer, size_t n_in,
                         assay_tensor_t* const* in, assay_rounding_t* out) {
  const emu_t* e = state;
  assay_format_t acc = layer ? layer->accumulator : ASSAY_FORMAT_FP32;
  if (assay_layer_is_double(n_in, in)) acc = ASSAY_FORMAT_FP64;
  *out =
      (assay_rounding_t){.accumulator = acc, .documented = true, .fma = true, .function_ulps = 1};
  out->compute = acc == ASSAY_FORMAT_FP64 ? ASSAY_FORMAT_FP64 : ASSAY_FORMAT_FP32;
  if (e && e->like && acc == ASSAY_FORMAT_FP32) round_like(e->like->gpu, layer, out);
}

const assay_backend_t assay_backend_emu = {.name = "emu",
                                           .emulates = true,
                                           .likes = emu_gpu_names,
                                           .open = emu_open,
                                           .open_on = open_on,
                                           .close = emu_close,
                                           .set = emu_set,
                                           .get = emu_get,
                                           .step = emu_step,
                                           .reset = emu_reset,
                                           .tactic = emu_tactic,
                                           .rounding = emu_rounding};
