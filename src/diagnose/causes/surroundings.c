// What stands around a node: its readers, what it could read instead, its twins.
#include "diagnose/causes/surroundings.h"

#include <string.h>

#include "base/alloc.h"

// ---- readers -----------------------------------------------------------------------------------

static assay_status_t list_readers(assay_surroundings_t* a) {
  const assay_graph_t* g = a->model->graph;
  const size_t values = (size_t)a->model->n_values;
  size_t all = 0;
  ASSAY_TRY(assay_new_array(values + 1, sizeof *a->first, &a->first));
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k]) a->first[g->nodes[i]->inputs[k]->id + 1]++, all++;
  for (size_t i = 0; i < values; i++) a->first[i + 1] += a->first[i];
  ASSAY_TRY(assay_new_array(all, sizeof *a->readers, &a->readers));
  size_t* at = NULL;
  ASSAY_TRY(assay_new_array(values, sizeof *at, &at));
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++) {
      const assay_value_t* v = g->nodes[i]->inputs[k];
      if (v) a->readers[a->first[v->id] + at[v->id]++] = g->nodes[i];
    }
  assay_free(at);
  return NULL;
}

size_t assay_around_readers(const assay_surroundings_t* a, const assay_value_t* v,
                            const assay_node_t* const** out) {
  *out = a->readers + a->first[v->id];
  return a->first[v->id + 1] - a->first[v->id];
}

// ---- roles -------------------------------------------------------------------------------------

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

static uint64_t of_text(const char* text) {
  uint64_t x = 0x9e3779b97f4a7c15U;
  for (; *text; text++) x = mix(x ^ (unsigned char)*text);
  return x;
}

bool assay_around_is_constant(const assay_value_t* v) {
  if (!v) return false;
  return v->constant ||
         (v->producer && !*v->producer->domain && strcmp(v->producer->op_type, "Constant") == 0);
}

static int rank_of(const assay_value_t* v) {
  const assay_valtype_t* t = v->type;
  if (v->constant) return v->constant->rank;
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape ? t->rank : -1;
}

// What an input is made by, one node back.
static uint64_t of_input(const assay_value_t* v) {
  if (!v) return 1;
  if (assay_around_is_constant(v)) return mix(2 + (uint64_t)(rank_of(v) + 1));
  return v->producer ? of_text(v->producer->op_type) + (uint64_t)v->output_index : 3;
}

static uint64_t place_of(const assay_surroundings_t* a, const assay_node_t* n) {
  uint64_t x = n->n_inputs, readers = 0;
  // In any order: an exchange of inputs is a difference between twins, not another place.
  for (size_t i = 0; i < n->n_inputs; i++) x += mix(of_input(n->inputs[i]));
  for (size_t k = 0; k < n->n_outputs; k++) {
    const assay_node_t* const* list = NULL;
    const size_t count = n->outputs[k] ? assay_around_readers(a, n->outputs[k], &list) : 0;
    for (size_t i = 0; i < count; i++) readers += mix(of_text(list[i]->op_type) + k);
  }
  return mix(x ^ mix(readers));
}

assay_status_t assay_surroundings_init(const assay_model_t* model, assay_evaluator_t* evaluator,
                                       const bool* hidden, assay_surroundings_t* out) {
  const assay_graph_t* g = model->graph;
  const size_t ids = (size_t)model->n_node_ids;
  *out = (assay_surroundings_t){.model = model, .evaluator = evaluator, .hidden = hidden};
  assay_status_t st = list_readers(out);
  if (!st) st = assay_new_array(ids, sizeof *out->order, &out->order);
  if (!st) st = assay_new_array(ids, sizeof *out->role, &out->role);
  if (!st) st = assay_new_array(ids, sizeof *out->place, &out->place);
  if (!st) st = assay_new_array(ids, sizeof *out->after, &out->after);
  for (size_t i = 0; !st && i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    out->order[n->id] = i;
    out->place[n->id] = place_of(out, n);
    out->role[n->id] = mix(out->place[n->id] ^ of_text(n->op_type));
  }
  if (st) assay_surroundings_deinit(out);
  return st;
}

void assay_surroundings_deinit(assay_surroundings_t* a) {
  assay_free(a->order);
  assay_free(a->first);
  assay_free(a->readers);
  assay_free(a->role);
  assay_free(a->place);
  assay_free(a->after);
  *a = (assay_surroundings_t){0};
}

// ---- values ------------------------------------------------------------------------------------

assay_tensor_t* assay_around_tensor(const assay_surroundings_t* a, const assay_value_t* v) {
  if (!v || (a->hidden && a->hidden[v->id])) return NULL;
  assay_tensor_t* t = assay_evaluator_get(a->evaluator, v);
  return t && t->kind == ASSAY_KIND_TENSOR ? t : NULL;
}

// Marks all that is made from what a node gives.
static void mark_after(assay_surroundings_t* a, const assay_node_t* n) {
  const assay_graph_t* g = a->model->graph;
  memset(a->after, 0, (size_t)a->model->n_node_ids * sizeof *a->after);
  a->after[n->id] = true;
  for (size_t i = a->order[n->id] + 1; i < g->n_nodes; i++) {
    const assay_node_t* m = g->nodes[i];
    for (size_t k = 0; k < m->n_inputs && !a->after[m->id]; k++)
      a->after[m->id] =
          m->inputs[k] && m->inputs[k]->producer && a->after[m->inputs[k]->producer->id];
  }
  a->after_of = n;
}

bool assay_around_may_read(assay_surroundings_t* a, const assay_node_t* n, const assay_value_t* v) {
  if (v->graph != a->model->graph) return false;
  if (a->after_of != n) mark_after(a, n);
  return !v->producer || !a->after[v->producer->id];
}

// ---- nodes -------------------------------------------------------------------------------------

size_t assay_around_data_input(const assay_node_t* n) {
  size_t at = n->n_inputs;
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (!n->inputs[i] || assay_around_is_constant(n->inputs[i])) continue;
    if (at < n->n_inputs) return n->n_inputs;
    at = i;
  }
  return at;
}

static bool same_attr(const assay_attr_t* a, const assay_attr_t* b) {
  if (a->type != b->type || a->n != b->n) return false;
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
    case ASSAY_ATTR_INT:
      return a->u.i == b->u.i;
    case ASSAY_ATTR_STRING:
      return a->u.s.len == b->u.s.len && memcmp(a->u.s.text, b->u.s.text, a->u.s.len) == 0;
    case ASSAY_ATTR_INTS:
      return !a->n || memcmp(a->u.ints, b->u.ints, a->n * sizeof *a->u.ints) == 0;
    case ASSAY_ATTR_FLOATS:
      return !a->n || memcmp(a->u.floats, b->u.floats, a->n * sizeof *a->u.floats) == 0;
    default:
      return false;  // not compared: taken for another
  }
}

bool assay_around_same_attrs(const assay_node_t* a, const assay_node_t* b) {
  if (a->n_attrs != b->n_attrs) return false;
  for (size_t i = 0; i < a->n_attrs; i++) {
    const assay_attr_t* other = assay_node_attr(b, a->attrs[i].name);
    if (!other || !same_attr(&a->attrs[i], other)) return false;
  }
  return true;
}
