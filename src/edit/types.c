// Types of values as a file declares them: given anew, taken from another model, listed, forgotten.
#include "edit/types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "eval/evaluator.h"

static assay_status_t make_dim(assay_model_t* m, const char* text, const assay_dim_t** out) {
  char* end;
  errno = 0;
  const long long x = strtoll(text, &end, 10);
  *out = NULL;
  if (!*text) return NULL;
  if (*end) return *out = assay_dim_symbol(m->dims, text), NULL;
  // Tools write -1 for a size that is not known.
  if (x == -1 && !errno) return NULL;
  if (errno || x < 0) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is not a size", text);
  return *out = assay_dim_const(m->dims, x), NULL;
}

static bool is_tensor(const assay_valtype_t* t) { return !t || t->kind == ASSAY_KIND_TENSOR; }

assay_status_t assay_types_declare(assay_model_t* m, assay_value_t* v,
                                   const assay_given_type_t* given, const assay_valtype_t* known) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  if (!known) known = v->declared;
  if (!given->elem && !given->has_shape && known &&
      (known->kind != ASSAY_KIND_TENSOR || known->elem))
    return assay_types_copy(m, known, &v->declared);
  if (!is_tensor(known))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "value '%s' is not a tensor, and has no shape or type of one", v->name);
  const assay_type_t elem = given->elem ? given->elem : known ? known->elem : 0;
  if (!elem)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "the type of value '%s' is not known; give it", v->name);
  v->open = NULL;
  if (!given->has_shape && !(known && known->has_shape))
    return assay_valtype_unranked(m, elem, &v->declared);
  const int rank = given->has_shape ? given->rank : known->rank;
  for (int i = 0; i < rank; i++) {
    if (given->has_shape)
      ASSAY_TRY(assay_status_note(make_dim(m, given->dims[i], &dims[i]), "shape of '%s'", v->name));
    else
      dims[i] = assay_dim_copy(m->dims, known->dims[i]);
  }
  ASSAY_TRY(assay_dims_status(m->dims));
  return assay_valtype_tensor(m, elem, rank, dims, &v->declared);
}

assay_status_t assay_types_copy(assay_model_t* m, const assay_valtype_t* from,
                                const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  const assay_valtype_t* of = NULL;
  if (!from) return *out = NULL, NULL;
  if (from->kind != ASSAY_KIND_TENSOR) {
    ASSAY_TRY(assay_types_copy(m, from->of, &of));
    return assay_valtype_of(m, from->kind, from->elem, of, out);
  }
  if (!from->has_shape) return assay_valtype_unranked(m, from->elem, out);
  for (int i = 0; i < from->rank; i++) dims[i] = assay_dim_copy(m->dims, from->dims[i]);
  ASSAY_TRY(assay_dims_status(m->dims));
  return assay_valtype_tensor(m, from->elem, from->rank, dims, out);
}

void assay_types_forget(assay_model_t* m) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t o = 0; o < g->nodes[i]->n_outputs; o++)
        if (g->nodes[i]->outputs[o]) g->nodes[i]->outputs[o]->declared = NULL;
    for (size_t i = 0; i < g->n_value_info; i++) g->value_info[i]->in_value_info = false;
    g->n_value_info = 0;
  }
}

static bool is_said(const assay_value_t* v) {
  return v->type && (v->type->kind != ASSAY_KIND_TENSOR || v->type->elem);
}

assay_status_t assay_types_list(assay_model_t* m, size_t* added) {
  *added = 0;
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    size_t capacity = g->n_value_info;
    for (size_t i = 0; i < g->n_nodes; i++) capacity += g->nodes[i]->n_outputs;
    assay_value_t** list = NULL;
    ASSAY_TRY(assay_arena_new(m->arena, capacity, sizeof *list, &list));
    if (g->n_value_info) memcpy(list, g->value_info, g->n_value_info * sizeof *list);
    size_t n = g->n_value_info;
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t o = 0; o < g->nodes[i]->n_outputs; o++) {
        assay_value_t* v = g->nodes[i]->outputs[o];
        if (!v || v->is_output || !is_said(v)) continue;
        v->declared = v->type;
        if (v->in_value_info) continue;
        v->in_value_info = true;
        list[n++] = v;
        ++*added;
      }
    g->value_info = list;
    g->n_value_info = n;
  }
  return NULL;
}

static assay_status_t measure(assay_model_t* m, const assay_evaluator_t* evaluator,
                              assay_value_t* v) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  const assay_tensor_t* t = v ? assay_evaluator_get(evaluator, v) : NULL;
  if (!t || t->kind != ASSAY_KIND_TENSOR) return NULL;
  for (int i = 0; i < t->rank; i++) dims[i] = assay_dim_const(m->dims, t->dims[i]);
  ASSAY_TRY(assay_dims_status(m->dims));
  return assay_valtype_tensor(m, t->type, t->rank, dims, &v->type);
}

assay_status_t assay_types_measure(assay_model_t* m, assay_tensor_t* const* inputs) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_NATIVE, .seed = 1, .keep_all = true};
  const assay_graph_t* g = m->graph;
  assay_evaluator_t* evaluator = NULL;
  assay_status_t st = assay_evaluator_create_run(m, &config, inputs, &evaluator);
  for (size_t i = 0; !st && i < g->n_inputs; i++) st = measure(m, evaluator, g->inputs[i]);
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    for (size_t k = 0; !st && k < g->nodes[i]->n_outputs; k++)
      st = measure(m, evaluator, g->nodes[i]->outputs[k]);
  assay_evaluator_destroy(evaluator);
  return st;
}
