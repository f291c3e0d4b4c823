// Which layers an output's error comes from.
#include "account/shares.h"

#include <math.h>

#include "base/alloc.h"
#include "eval/evaluator.h"

// Graph outputs with the engine up to layer `cut` and truth from there on.
typedef struct hybrid {
  size_t cut;
  assay_tensor_t** outputs;
} hybrid_t;

struct assay_taken {
  const assay_layers_t* layers;
  const assay_graph_t* graph;
  assay_tensor_t** at;  // by value id: what the engine made in the top graph
  assay_tap_t tap;
  bool done;
};

typedef struct job {
  const assay_layers_t* layers;
  const assay_graph_t* graph;
  assay_tensor_t* const* inputs;
  assay_tensor_t* const* engine;  // by value id: what was taken
  size_t* last_reader;            // by value id: the last layer that reads it
  assay_evaluator_t* evaluator;
  hybrid_t* at;  // in the order of their cuts
  size_t n, capacity;
  int runs, max_runs;
} job_t;

// ---- what the engine made -----------------------------------------------------------------------

static assay_status_t keep(void* user, const assay_layer_t* layer, const assay_node_t* node,
                           uint64_t iteration, size_t n_in, assay_tensor_t* const* in, size_t n_out,
                           assay_tensor_t* const* out) {
  assay_taken_t* t = user;
  (void)iteration;
  (void)n_in;
  (void)in;
  const size_t at = layer ? (size_t)(layer - t->layers->layers) : SIZE_MAX;
  if (t->done || node->graph != t->graph || at >= t->layers->n_layers) return NULL;
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = node->outputs[i];
    if (!v || !out[i]) continue;
    assay_tensor_release(t->at[v->id]);
    t->at[v->id] = NULL;
    // float32 values take 4 bytes packed, and lose nothing: they are stored in fp32 or less.
    if (out[i]->kind == ASSAY_KIND_TENSOR && out[i]->type == ASSAY_TYPE_FLOAT)
      ASSAY_TRY(assay_tensor_pack(out[i], &t->at[v->id]));
    else
      t->at[v->id] = assay_tensor_retain(out[i]);
  }
  return NULL;
}

assay_status_t assay_taken_create(const assay_plan_t* plan, assay_taken_t** out) {
  assay_taken_t* t = NULL;
  ASSAY_TRY(ASSAY_NEW(&t));
  t->layers = assay_plan_layers(plan);
  t->graph = t->layers->model->graph;
  t->tap = (assay_tap_t){.layer = keep, .user = t};
  assay_status_t st = assay_new_array((size_t)t->layers->model->n_values, sizeof *t->at, &t->at);
  if (st) return assay_taken_destroy(t), st;
  *out = t;
  return NULL;
}

void assay_taken_destroy(assay_taken_t* t) {
  if (!t) return;
  for (int v = 0; t->at && v < t->layers->model->n_values; v++) assay_tensor_release(t->at[v]);
  assay_free(t->at);
  assay_free(t);
}

const assay_tap_t* assay_taken_tap(const assay_taken_t* t) { return &t->tap; }
void assay_taken_end(assay_taken_t* t) { t->done = true; }

// Nodes with bodies may read anything around them.
static void note_readers(job_t* j) {
  for (size_t l = 0; l < j->layers->n_layers; l++) {
    const assay_layer_t* layer = &j->layers->layers[l];
    for (size_t k = 0; k < layer->n_nodes; k++) {
      const assay_node_t* n = layer->nodes[k];
      for (size_t i = 0; i < n->n_inputs; i++)
        if (n->inputs[i]) j->last_reader[n->inputs[i]->id] = l;
      if (!n->op || !(n->op->flags & ASSAY_OP_CONTROL)) continue;
      for (int v = 0; v < j->layers->model->n_values; v++) j->last_reader[v] = l;
    }
  }
  for (size_t i = 0; i < j->graph->n_outputs; i++)
    j->last_reader[j->graph->outputs[i]->id] = j->layers->n_layers;
}

assay_tensor_t* assay_taken_get(const assay_taken_t* t, const assay_value_t* value) {
  return t->at[value->id];
}

assay_status_t assay_taken_run(assay_taken_t* t, const assay_backend_t* backend,
                               assay_tensor_t* const* inputs) {
  void* state = NULL;
  ASSAY_TRY(assay_backend_open(backend, t->layers, NULL, &t->tap, &state));
  assay_status_t st = assay_backend_set_inputs(backend, state, t->graph, inputs);
  for (size_t l = 0; !st && l < t->layers->n_layers; l++) st = backend->step(state, l);
  backend->close(state);
  return st;
}

// ---- hybrids ------------------------------------------------------------------------------------

// Puts in what the layers before the cut made and somebody after it reads.
static assay_status_t fill_slots(job_t* j, size_t cut) {
  assay_evaluator_reset(j->evaluator);
  ASSAY_TRY(assay_evaluator_set_inputs_widened(j->evaluator, j->inputs));
  for (size_t l = 0; l < cut; l++) {
    const assay_layer_t* layer = &j->layers->layers[l];
    const assay_node_t* n = layer->nodes[layer->n_nodes - 1];
    for (size_t i = 0; i < n->n_outputs; i++) {
      const assay_value_t* v = n->outputs[i];
      if (!v || !j->engine[v->id] || j->last_reader[v->id] < cut) continue;
      ASSAY_TRY(assay_evaluator_set_widened(j->evaluator, v, j->engine[v->id]));
    }
  }
  return NULL;
}

// Recorded layers may compute a node once more of which one before the cut has shown an output:
// that stays the engine's.
static assay_status_t restore(job_t* j, const assay_node_t* n, size_t cut) {
  const int ends = j->layers->layer_of_node[n->id];
  if (!j->layers->recorded || ends < 0 || (size_t)ends >= cut) return NULL;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (v && j->engine[v->id])
      ASSAY_TRY(assay_evaluator_set_widened(j->evaluator, v, j->engine[v->id]));
  }
  return NULL;
}

// The nodes of the layers from the cut on, in the graph's order, each once.
static assay_status_t run_nodes(job_t* j, size_t cut) {
  bool* wanted = NULL;
  ASSAY_TRY(assay_new_array((size_t)j->layers->model->n_node_ids, sizeof *wanted, &wanted));
  for (size_t l = cut; l < j->layers->n_layers; l++)
    for (size_t k = 0; k < j->layers->layers[l].n_nodes; k++)
      wanted[j->layers->layers[l].nodes[k]->id] = true;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < j->graph->n_nodes; i++) {
    if (!wanted[j->graph->nodes[i]->id]) continue;
    st = assay_evaluator_step(j->evaluator, j->graph->nodes[i]);
    if (!st) st = restore(j, j->graph->nodes[i], cut);
  }
  assay_free(wanted);
  return st;
}

static assay_status_t run_from(job_t* j, size_t cut, assay_tensor_t** outputs) {
  ASSAY_TRY(fill_slots(j, cut));
  ASSAY_TRY(run_nodes(j, cut));
  for (size_t i = 0; i < j->graph->n_outputs; i++) {
    assay_tensor_t* t = assay_evaluator_get(j->evaluator, j->graph->outputs[i]);
    if (t) ASSAY_TRY(assay_tensor_widen(t, &outputs[i]));
  }
  j->runs++;
  return NULL;
}

// Adds the hybrid of a cut, in its place.
static assay_status_t add_hybrid(job_t* j, size_t cut) {
  hybrid_t h = {.cut = cut};
  ASSAY_TRY(assay_grow(&j->at, &j->capacity, j->n + 1, sizeof *j->at));
  assay_status_t st = assay_new_array(j->graph->n_outputs, sizeof *h.outputs, &h.outputs);
  if (!st) st = run_from(j, cut, h.outputs);
  if (st) {
    for (size_t i = 0; h.outputs && i < j->graph->n_outputs; i++)
      assay_tensor_release(h.outputs[i]);
    assay_free(h.outputs);
    return st;
  }
  size_t at = j->n;
  for (; at > 0 && j->at[at - 1].cut > cut; at--) j->at[at] = j->at[at - 1];
  j->at[at] = h;
  j->n++;
  return NULL;
}

// ---- shares -------------------------------------------------------------------------------------

static const assay_tensor_t* floats_of(const hybrid_t* h, size_t output, int64_t size) {
  const assay_tensor_t* t = h->outputs[output];
  const bool ok = t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 &&
                  (size < 0 || t->size == size);
  return ok ? t : NULL;
}

static int64_t not_finite(const assay_tensor_t* t, const assay_tensor_t* truth) {
  int64_t n = 0;
  for (int64_t i = 0; i < t->size; i++)
    n += !isfinite(assay_f64(t)[i]) && isfinite(assay_f64(truth)[i]);
  return n;
}

// The part of one output's error that arose between two hybrids.
static double share_between(const job_t* j, const hybrid_t* a, const hybrid_t* b, size_t output) {
  const assay_tensor_t* truth = floats_of(&j->at[0], output, -1);
  if (!truth) return 0;
  const assay_tensor_t* engine = floats_of(&j->at[j->n - 1], output, truth->size);
  const assay_tensor_t* x = floats_of(a, output, truth->size);
  const assay_tensor_t* y = floats_of(b, output, truth->size);
  if (!engine || !x || !y) return 0;
  const int64_t appeared = not_finite(engine, truth);
  if (appeared) return (double)(not_finite(y, truth) - not_finite(x, truth)) / (double)appeared;
  double part = 0, whole = 0;
  for (int64_t i = 0; i < truth->size; i++) {
    const double e = assay_f64(engine)[i] - assay_f64(truth)[i];
    const double d = assay_f64(y)[i] - assay_f64(x)[i];
    if (!isfinite(e) || !isfinite(d)) continue;
    part += d * e;
    whole += e * e;
  }
  return whole > 0 ? part / whole : 0;
}

static double largest_between(const job_t* j, size_t i) {
  double largest = 0;
  for (size_t o = 0; o < j->graph->n_outputs; o++)
    largest = fmax(largest, fabs(share_between(j, &j->at[i], &j->at[i + 1], o)));
  return largest;
}

// Cuts the layer range with the largest share in half, until all are small or single layers.
static assay_status_t refine(job_t* j, double smallest) {
  while (j->runs < j->max_runs) {
    size_t worst = 0;
    double max = smallest;
    for (size_t i = 0; i + 1 < j->n; i++) {
      if (j->at[i + 1].cut - j->at[i].cut < 2) continue;
      const double share = largest_between(j, i);
      if (share <= max) continue;
      max = share;
      worst = i + 1;
    }
    if (!worst) return NULL;
    ASSAY_TRY(add_hybrid(j, (j->at[worst - 1].cut + j->at[worst].cut) / 2));
  }
  return NULL;
}

static assay_status_t report(const job_t* j, assay_shares_t* out) {
  out->n_outputs = j->graph->n_outputs;
  out->runs = j->runs;
  ASSAY_TRY(assay_grow(&out->at, &out->capacity, j->n, sizeof *out->at));
  for (size_t i = 0; i + 1 < j->n; i++) {
    assay_layer_range_t* s = &out->at[out->n];
    *s = (assay_layer_range_t){.first = j->at[i].cut, .end = j->at[i + 1].cut};
    ASSAY_TRY(assay_new_array(out->n_outputs, sizeof *s->share, &s->share));
    out->n++;
    for (size_t o = 0; o < out->n_outputs; o++)
      s->share[o] = share_between(j, &j->at[i], &j->at[i + 1], o);
  }
  return NULL;
}

static assay_status_t run(job_t* j, const assay_shares_options_t* options, assay_shares_t* out) {
  const assay_model_t* m = j->layers->model;
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = options->unquantized, .seed = j->layers->seed};
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *j->last_reader, &j->last_reader));
  ASSAY_TRY(assay_evaluator_create(m, &config, &j->evaluator));
  note_readers(j);
  ASSAY_TRY(add_hybrid(j, 0));
  ASSAY_TRY(add_hybrid(j, j->layers->n_layers));
  ASSAY_TRY(refine(j, options->smallest > 0 ? options->smallest : 0.02));
  return report(j, out);
}

assay_status_t assay_shares_of(const assay_taken_t* taken, assay_tensor_t* const* inputs,
                               const assay_shares_options_t* options, assay_shares_t* out) {
  job_t j = {.layers = taken->layers, .graph = taken->graph, .inputs = inputs, .engine = taken->at};
  j.max_runs = options->runs > 0 ? options->runs : 32;
  assay_status_t st = run(&j, options, out);
  for (size_t i = 0; i < j.n; i++) {
    for (size_t o = 0; o < j.graph->n_outputs; o++) assay_tensor_release(j.at[i].outputs[o]);
    assay_free(j.at[i].outputs);
  }
  assay_free(j.at);
  assay_free(j.last_reader);
  assay_evaluator_destroy(j.evaluator);
  if (st) assay_shares_deinit(out);
  return st;
}

assay_status_t assay_shares_run(const assay_plan_t* plan, const assay_backend_t* backend,
                                assay_tensor_t* const* inputs,
                                const assay_shares_options_t* options, assay_shares_t* out) {
  assay_taken_t* taken = NULL;
  ASSAY_TRY(assay_taken_create(plan, &taken));
  assay_status_t st = assay_taken_run(taken, backend, inputs);
  if (!st) st = assay_shares_of(taken, inputs, options, out);
  assay_taken_destroy(taken);
  return st;
}

void assay_shares_deinit(assay_shares_t* s) {
  for (size_t i = 0; i < s->n; i++) assay_free(s->at[i].share);
  assay_free(s->at);
  *s = (assay_shares_t){0};
}

double assay_shares_of_layer(const assay_shares_t* s, size_t layer) {
  for (size_t i = 0; i < s->n; i++) {
    if (s->at[i].first != layer || s->at[i].end != layer + 1) continue;
    double largest = 0;
    for (size_t o = 0; o < s->n_outputs; o++) largest = fmax(largest, fabs(s->at[i].share[o]));
    return largest;
  }
  return 0;
}
