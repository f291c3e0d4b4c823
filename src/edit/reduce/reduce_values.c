// What engine and truth made of the whole model's values: what parts of it are fed with.
#include <string.h>

#include "base/alloc.h"
#include "edit/reduce/reduce_internal.h"
#include "eval/evaluator.h"

// Beyond so many bytes values are kept only as long as one part needs them.
static const size_t CAPACITY = (size_t)512 << 20;

assay_status_t assay_reduce_values_init(assay_reduce_values_t* v, assay_model_t* model,
                                        const assay_samples_t* samples,
                                        const assay_reduce_options_t* o) {
  *v = (assay_reduce_values_t){.o = o, .model = model, .samples = samples};
  for (int s = 0; s < ASSAY_REDUCE_SOURCES; s++) {
    ASSAY_TRY(assay_new_array(samples->n * (size_t)model->n_values, sizeof **v->kept, &v->kept[s]));
    ASSAY_TRY(assay_new_array(samples->n, sizeof **v->ran, &v->ran[s]));
  }
  return NULL;
}

static void let_go(assay_reduce_values_t* v) {
  const size_t n = v->samples->n * (size_t)v->model->n_values;
  for (int s = 0; s < ASSAY_REDUCE_SOURCES; s++) {
    for (size_t i = 0; v->kept[s] && i < n; i++) {
      assay_tensor_release(v->kept[s][i]);
      v->kept[s][i] = NULL;
    }
    if (v->ran[s]) memset(v->ran[s], 0, v->samples->n * sizeof *v->ran[s]);
  }
  v->bytes = 0;
}

void assay_reduce_values_deinit(assay_reduce_values_t* v) {
  if (v->samples) let_go(v);
  for (int s = 0; s < ASSAY_REDUCE_SOURCES; s++) {
    assay_free(v->kept[s]);
    assay_free(v->ran[s]);
  }
  *v = (assay_reduce_values_t){0};
}

// ---- one run ------------------------------------------------------------------------------------

typedef struct run {
  assay_reduce_values_t* v;
  assay_reduce_source_t source;
  size_t sample;
  const assay_value_t* wanted;
  bool found, full;  // full: others than the wanted one were left out
} run_t;

static bool is_numbers(const assay_tensor_t* t) {
  return t->kind == ASSAY_KIND_TENSOR && t->store != ASSAY_STORE_STR;
}

// Models that were rewritten have values of the same names.
static assay_status_t keep(run_t* r, const char* name, assay_tensor_t* t) {
  assay_reduce_values_t* v = r->v;
  const assay_value_t* value = assay_graph_find(v->model->graph, name);
  if (!value || !t) return NULL;
  assay_tensor_t** slot =
      &v->kept[r->source][r->sample * (size_t)v->model->n_values + (size_t)value->id];
  if (*slot) return r->found |= value == r->wanted, NULL;
  const size_t bytes = is_numbers(t) ? (size_t)t->size * 8 : 64;
  if (value != r->wanted && v->bytes + bytes > CAPACITY) return r->full = true, NULL;
  if (is_numbers(t))
    ASSAY_TRY(assay_tensor_pack(t, slot));
  else
    *slot = assay_tensor_retain(t);
  v->bytes += bytes;
  r->found |= value == r->wanted;
  return NULL;
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  (void)layer, (void)iteration, (void)n_in, (void)in;
  if (node->graph->outer) return NULL;
  for (size_t i = 0; i < n_out && i < node->n_outputs; i++)
    if (node->outputs[i]) ASSAY_TRY(keep(user, node->outputs[i]->name, out[i]));
  return NULL;
}

static assay_status_t on_node(void* user, const assay_node_t* node, size_t n_in,
                              assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  return on_layer(user, NULL, node, 0, n_in, in, n_out, out);
}

// Up to the layer that shows what is wanted.
static assay_status_t run_ours(run_t* r, assay_tensor_t* const* in) {
  const assay_check_setting_t* c = r->v->o->check;
  const assay_tap_t tap = {.layer = on_layer, .user = r};
  assay_plan_t* plan = NULL;
  void* state = NULL;
  size_t l = 0;
  ASSAY_TRY(assay_plan_create(r->v->model, &c->precision, &c->plan, c->seed, &plan));
  const assay_layers_t* layers = assay_plan_layers(plan);
  assay_status_t st = assay_backend_open(c->backend, layers, NULL, &tap, &state);
  if (!st) st = assay_backend_set_inputs(c->backend, state, layers->model->graph, in);
  for (; !st && l < layers->n_layers && !r->found; l++) st = c->backend->step(state, l);
  if (!st && l == layers->n_layers) r->v->ran[r->source][r->sample] = !r->full;
  if (state) c->backend->close(state);
  assay_plan_destroy(plan);
  return st;
}

static assay_status_t run_other(run_t* r) {
  assay_reduce_values_t* v = r->v;
  const assay_samples_t one = assay_reduce_view(v->samples, r->sample, 1);
  const assay_name_map_t names = {0};
  assay_external_engine_t* e = NULL;
  assay_tensor_t** got = NULL;
  ASSAY_TRY(assay_new_array((size_t)v->model->n_values, sizeof *got, &got));
  assay_status_t st = assay_external_engine_run(v->model, v->o->exec, &one, &names, &e);
  if (!st) {
    const assay_recorded_t* d = assay_external_engine_recorded(e);
    st = d->fetch(d->user, 0, got);
  }
  for (size_t i = 0; !st && i < v->model->graph->n_nodes; i++) {
    const assay_node_t* n = v->model->graph->nodes[i];
    for (size_t k = 0; !st && k < n->n_outputs; k++)
      if (n->outputs[k]) st = keep(r, n->outputs[k]->name, got[n->outputs[k]->id]);
  }
  if (!st) v->ran[r->source][r->sample] = !r->full;
  for (int i = 0; i < v->model->n_values; i++) assay_tensor_release(got[i]);
  assay_free(got);
  assay_external_engine_destroy(e);
  return st;
}

static assay_status_t run_truth(run_t* r, assay_tensor_t* const* in) {
  assay_reduce_values_t* v = r->v;
  const assay_graph_t* g = v->model->graph;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = v->o->check->unquantized,
                                           .seed = v->o->check->seed,
                                           .hooks = {.after = on_node, .user = r}};
  assay_evaluator_t* m = NULL;
  ASSAY_TRY(assay_evaluator_create(v->model, &config, &m));
  assay_evaluator_set_inputs(m, in);
  assay_status_t st = NULL;
  size_t i = 0;
  for (; !st && i < g->n_nodes && !r->found; i++) st = assay_evaluator_step(m, g->nodes[i]);
  if (!st && i == g->n_nodes) v->ran[r->source][r->sample] = !r->full;
  assay_evaluator_destroy(m);
  return st;
}

assay_status_t assay_reduce_value(assay_reduce_values_t* v, assay_reduce_source_t source,
                                  size_t sample, const assay_value_t* value, assay_tensor_t** out) {
  assay_tensor_t* const* in = assay_samples_get(v->samples, sample);
  const size_t at = sample * (size_t)v->model->n_values + (size_t)value->id;
  run_t r = {.v = v, .source = source, .sample = sample, .wanted = value};
  for (size_t i = 0; i < v->model->graph->n_inputs; i++)
    if (v->model->graph->inputs[i] == value) return *out = in[i], NULL;
  *out = NULL;
  if (!v->kept[source][at] && !v->ran[source][sample]) {
    if (v->bytes > CAPACITY) let_go(v);
    if (source == ASSAY_REDUCE_TRUTH)
      ASSAY_TRY(run_truth(&r, in));
    else
      ASSAY_TRY(v->o->exec ? run_other(&r) : run_ours(&r, in));
  }
  *out = v->kept[source][at];
  return NULL;
}

assay_samples_t assay_reduce_view(const assay_samples_t* s, size_t first, size_t n) {
  return (assay_samples_t){.n = n, .n_values = s->n_values, .at = s->at + first * s->n_values};
}
