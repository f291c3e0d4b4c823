// Constants that a plan file holds in 16 bits: which ones do as it is written, and what is asked of
// them as it is read.
#include "runtime/narrowed.h"

#include "base/alloc.h"
#include "ir/compare.h"
#include "onnx/onnx.h"
#include "plan/narrow.h"

static bool is_narrow(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_NARROW;
}

static assay_status_t put(assay_model_t* m, assay_value_t* v, assay_tensor_t* t) {
  ASSAY_TRY(assay_model_take_tensor(m, assay_tensor_retain(t)));
  v->constant = t;
  return NULL;
}

// ---- what both models have ----------------------------------------------------------------------

// A plan's two models by their ids, which nodes and values that stayed have in common.
typedef struct both {
  const assay_model_t* source;
  assay_value_t** source_value;        // of its initializers
  const assay_node_t** compiled_node;  // as many as the source has ids
  bool* read_elsewhere;                // by value id of the source: a pass took it from some node
} both_t;

static void both_deinit(both_t* b) {
  assay_free(b->source_value);
  assay_free(b->compiled_node);
  assay_free(b->read_elsewhere);
}

static int count_reads(const assay_node_t* n, int value) {
  int count = 0;
  for (size_t i = 0; i < n->n_inputs; i++) count += n->inputs[i] && n->inputs[i]->id == value;
  return count;
}

static void note_reads(const both_t* b, const assay_node_t* n) {
  const assay_node_t* there = b->compiled_node[n->id];
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (!n->inputs[i]) continue;
    const int id = n->inputs[i]->id;
    if (!there || count_reads(there, id) != count_reads(n, id)) b->read_elsewhere[id] = true;
  }
}

static assay_status_t both_init(const assay_model_t* compiled, const assay_model_t* source,
                                both_t* b) {
  b->source = source;
  ASSAY_TRY(assay_new_array((size_t)source->n_values, sizeof(assay_value_t*), &b->source_value));
  ASSAY_TRY(assay_new_array((size_t)source->n_node_ids, sizeof(assay_node_t*), &b->compiled_node));
  ASSAY_TRY(assay_new_array((size_t)source->n_values, 1, &b->read_elsewhere));
  for (size_t g = 0; g < compiled->n_graphs; g++)
    for (size_t i = 0; i < compiled->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = compiled->graphs[g]->nodes[i];
      if (n->id < source->n_node_ids) b->compiled_node[n->id] = n;
    }
  for (size_t g = 0; g < source->n_graphs; g++) {
    const assay_graph_t* graph = source->graphs[g];
    for (size_t i = 0; i < graph->n_initializers; i++)
      b->source_value[graph->initializers[i]->id] = graph->initializers[i];
    for (size_t i = 0; i < graph->n_nodes; i++) note_reads(b, graph->nodes[i]);
  }
  return NULL;
}

// Whether a constant of the compiled model is one that the source stores.
static bool is_stored(const both_t* b, const assay_tensor_t* t) {
  for (int i = 0; i < b->source->n_values; i++) {
    const assay_tensor_t* s = b->source_value[i] ? b->source_value[i]->constant : NULL;
    if (s && s->data == t->data && s->size == t->size) return true;
  }
  return false;
}

// The value of the source that a constant of the compiled model is, if no pass reads its elements:
// then a refit makes the same of them when they are rounded. NULL: there is none.
static assay_value_t* same_in_source(const both_t* b, const assay_value_t* v) {
  if (v->id >= b->source->n_values) return NULL;
  assay_value_t* s = b->source_value[v->id];
  const bool same = s && s->constant && s->constant->data == v->constant->data &&
                    s->constant->size == v->constant->size;
  return same && !s->is_input && !s->is_output && !b->read_elsewhere[s->id] ? s : NULL;
}

// ---- writing ------------------------------------------------------------------------------------

static bool is_large(const assay_tensor_t* t) {
  return t->size >= ASSAY_ONNX_BESIDE_BYTES / (int64_t)sizeof(float);
}

static assay_status_t narrow(const both_t* b, const assay_narrow_t* as, assay_model_t* compiled,
                             assay_model_t* source, assay_value_t* v) {
  assay_tensor_t* t = NULL;
  if (!as->type || is_narrow(v->constant) || !is_large(v->constant)) return NULL;
  assay_value_t* s = as->factor ? same_in_source(b, v) : NULL;
  if (!s && is_stored(b, v->constant)) return NULL;
  ASSAY_TRY(assay_tensor_narrow(v->constant, as->type, &t));
  if (!t) return NULL;
  assay_status_t st = put(compiled, v, t);
  if (!st && s) st = put(source, s, t);
  assay_tensor_release(t);
  return st;
}

assay_status_t assay_narrow_models(const assay_plan_t* plan, const assay_backend_t* backend,
                                   assay_model_t* compiled, assay_model_t* source) {
  both_t b = {0};
  assay_narrow_t* found = NULL;
  // What was read from a file lies as it did there.
  if (!backend->narrow_constants || !assay_plan_source(plan)) return NULL;
  ASSAY_TRY(assay_narrow_find(assay_plan_layers(plan), &found));
  assay_status_t st = both_init(compiled, source, &b);
  for (size_t g = 0; !st && g < compiled->n_graphs; g++)
    for (size_t i = 0; !st && i < compiled->graphs[g]->n_initializers; i++) {
      assay_value_t* v = compiled->graphs[g]->initializers[i];
      st = narrow(&b, &found[v->id], compiled, source, v);
    }
  both_deinit(&b);
  assay_free(found);
  return st;
}

// ---- reading ------------------------------------------------------------------------------------

assay_status_t assay_narrow_check(const assay_plan_t* plan, const assay_backend_t* backend) {
  const assay_layers_t* l = assay_plan_layers(plan);
  assay_narrow_t* found = NULL;
  assay_status_t st = assay_narrow_find(l, &found);
  for (size_t g = 0; !st && g < l->model->n_graphs; g++)
    for (size_t i = 0; !st && i < l->model->graphs[g]->n_initializers; i++) {
      const assay_value_t* v = l->model->graphs[g]->initializers[i];
      if (!is_narrow(v->constant) ||
          (backend->narrow_constants && v->constant->narrow == found[v->id].type))
        continue;
      st = ASSAY_ERROR(ASSAY_CORRUPT,
                       "the plan file is damaged: constant '%s' lies in 16 bits, and its layers "
                       "read float32; build the plan again",
                       v->name);
    }
  assay_free(found);
  return st;
}

assay_status_t assay_narrow_widen(assay_model_t* m) {
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_initializers; i++) {
      assay_value_t* v = m->graphs[g]->initializers[i];
      assay_tensor_t* wide = NULL;
      if (!is_narrow(v->constant)) continue;
      ASSAY_TRY(assay_tensor_pack(v->constant, &wide));
      assay_status_t st = put(m, v, wide);
      assay_tensor_release(wide);
      if (st) return st;
    }
  return NULL;
}

assay_status_t assay_narrow_same(assay_tensor_t* stored, assay_tensor_t* t, bool* out) {
  assay_tensor_t* rounded = NULL;
  if (is_narrow(stored) && t->kind == ASSAY_KIND_TENSOR && t->type == ASSAY_TYPE_FLOAT)
    ASSAY_TRY(assay_tensor_narrow(t, stored->narrow, &rounded));
  assay_status_t st = assay_tensor_same(stored, rounded ? rounded : t, out);
  assay_tensor_release(rounded);
  return st;
}
