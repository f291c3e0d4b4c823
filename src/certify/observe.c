// What a certificate looks at: every value of a model, in truth and in an engine, as a sketch.
#include "certify/observe.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "formats/format.h"

// ---- values -------------------------------------------------------------------------------------

static bool may_be_numbers(const assay_value_t* v) {
  if (!v) return false;
  if (!v->type) return true;
  const assay_type_t t = v->type->elem;
  return v->type->kind == ASSAY_KIND_TENSOR && t != ASSAY_TYPE_STRING && !assay_type_is_complex(t);
}

assay_status_t assay_sources_of(const assay_model_t* model, assay_sources_t* out) {
  const assay_graph_t* g = model->graph;
  assay_sources_t s = {0};
  size_t capacity = 0;
  uint64_t names = 0;
  for (size_t k = 0; k < g->n_nodes; k++) capacity += g->nodes[k]->n_outputs;
  ASSAY_TRY(assay_new_array(capacity, sizeof *s.at, &s.at));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < g->n_nodes; k++) {
    const assay_node_t* node = g->nodes[k];
    if (!node->n_inputs) continue;  // a constant
    for (size_t i = 0; !st && i < node->n_outputs; i++) {
      const assay_value_t* v = node->outputs[i];
      if (!may_be_numbers(v)) continue;
      names = assay_hash(v->name, strlen(v->name) + 1, names);
      st = assay_map_put(&s.by_name, v->name, s.n, NULL);
      s.at[s.n++] = v;
    }
  }
  if (st) return assay_sources_deinit(&s), st;
  s.names = (uint32_t)names;
  *out = s;
  return NULL;
}

void assay_sources_deinit(assay_sources_t* s) {
  assay_free(s->at);
  assay_map_deinit(&s->by_name);
  *s = (assay_sources_t){0};
}

size_t assay_sources_find(const assay_sources_t* s, const assay_value_t* v) {
  uint64_t i;
  return v && assay_map_get(&s->by_name, v->name, &i) ? (size_t)i : SIZE_MAX;
}

uint16_t assay_source_name(const assay_value_t* v) {
  return (uint16_t)assay_hash(v->name, strlen(v->name), 0);
}

// ---- looking ------------------------------------------------------------------------------------

static uint32_t bits_of(const assay_tensor_t* t) {
  const uint64_t h =
      assay_hash(t->data, (size_t)t->size * assay_store_elem_bytes(t->store), (uint64_t)t->rank);
  const uint64_t all = assay_hash(t->dims, (size_t)t->rank * sizeof *t->dims, h);
  return (uint32_t)all ? (uint32_t)all : 1;
}

typedef struct watch {
  const assay_sources_t* sources;
  const assay_graph_t* graph;
  assay_observed_t* at;
} watch_t;

static void inspect(const watch_t* w, const assay_node_t* node, size_t n_out,
                    assay_tensor_t* const* out) {
  if (node->graph != w->graph) return;
  for (size_t i = 0; i < n_out; i++) {
    const size_t k = assay_sources_find(w->sources, node->outputs[i]);
    if (k == SIZE_MAX || !out[i]) continue;
    assay_observed_t* o = &w->at[k];
    o->seen = assay_sketch_of(out[i], &o->sketch);
    if (o->seen) o->bits = bits_of(out[i]);
  }
}

static assay_status_t after_truth(void* user, const assay_node_t* node, size_t n_in,
                                  assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  (void)n_in, (void)in;
  inspect(user, node, n_out, out);
  return NULL;
}

assay_status_t assay_observe_truth(const assay_model_t* model, const assay_sources_t* s,
                                   assay_tensor_t* const* inputs, bool unquantized, uint64_t seed,
                                   assay_observed_t** out, assay_evaluator_t** out_evaluator) {
  assay_observed_t* at = NULL;
  assay_evaluator_t* m = NULL;
  ASSAY_TRY(assay_new_array(s->n, sizeof *at, &at));
  watch_t w = {.sources = s, .graph = model->graph, .at = at};
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = unquantized,
                                           .seed = seed,
                                           .hooks = {.after = after_truth, .user = &w}};
  assay_status_t st = assay_evaluator_create_run(model, &config, inputs, &m);
  if (st) return assay_free(at), assay_evaluator_destroy(m), st;
  *out = at;
  *out_evaluator = m;
  return NULL;
}

// ---- the engine ---------------------------------------------------------------------------------

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  (void)layer, (void)iteration, (void)n_in, (void)in;
  inspect(user, node, n_out, out);
  return NULL;
}

// What rounding may make of a layer's own error, RMS: the probable limit, and half an ulp of
// storing. Where weights are rounded on entering that shows in the error, and not in the limits: so
// no less than twice what was measured.
static double bound_of(const assay_layer_account_t* acc) {
  const assay_judgement_t* j = &acc->judged;
  if (!acc->bounded || !acc->own.finite) return 0;
  const assay_format_info_t* f = assay_format_info(acc->storage);
  const double limit = j->n_ratio ? j->sum_limit2 / (double)j->n_ratio : 0;
  const double size = acc->own.sum_ref2 / (double)acc->own.finite;
  const double stored = f->unit_roundoff * sqrt(size) + f->min_subnormal / 2;
  return fmax(sqrt(limit) + stored, 2 * assay_error_sum_rms(&acc->own));
}

static void note_account(const assay_sources_t* s, const assay_layer_account_t* acc,
                         assay_observed_t* at) {
  for (size_t i = 0; i < acc->node->n_outputs; i++) {
    const size_t k = assay_sources_find(s, acc->node->outputs[i]);
    if (k == SIZE_MAX || !at[k].seen) continue;
    assay_observed_t* o = &at[k];
    o->account = acc;
    o->bound = bound_of(acc);
    o->odd = (uint8_t)((o->sketch.unfinite ? ASSAY_ODD_ENGINE : 0) |
                       (acc->judged.underflowed ? ASSAY_ODD_UNDERFLOW : 0) |
                       (acc->verdict == ASSAY_VERDICT_DEFECT ? ASSAY_ODD_DEFECT : 0));
  }
}

assay_status_t assay_observe_engine(const assay_plan_t* plan, const assay_backend_t* backend,
                                    const assay_sources_t* s, assay_tensor_t* const* inputs,
                                    bool unquantized, assay_observed_t** out,
                                    assay_account_t** out_account) {
  assay_observed_t* at = NULL;
  assay_account_t* a = NULL;
  ASSAY_TRY(assay_new_array(s->n, sizeof *at, &at));
  watch_t w = {.sources = s, .graph = assay_plan_layers(plan)->model->graph, .at = at};
  const assay_account_options_t options = {
      .unquantized = unquantized, .own_only = true, .tap = {.layer = on_layer, .user = &w}};
  assay_status_t st = assay_account_create(plan, backend, &options, &a);
  if (!st) st = assay_account_run(a, inputs);
  if (st) return assay_account_destroy(a), assay_free(at), st;
  for (size_t i = 0; i < assay_account_layer_count(a); i++)
    note_account(s, assay_account_layer(a, i), at);
  *out = at;
  *out_account = a;
  return NULL;
}
