// From a file to a graph that can be run: read, check, inline functions, infer.
#include "onnx/load.h"

#include "onnx/onnx.h"
#include "ops/infer.h"

// The type of an input before any size was given. One without a shape has the rank that is given.
static assay_status_t keep_open(assay_model_t* m, assay_value_t* v, const assay_valtype_t* t,
                                int rank) {
  const assay_dim_t* unknown[ASSAY_MAX_RANK] = {NULL};
  if (v->open) return NULL;
  if (t && t->has_shape) return v->open = t, NULL;
  return assay_valtype_tensor(m, t ? t->elem : ASSAY_TYPE_UNDEFINED, rank, unknown, &v->open);
}

// Replaces the declared shape of one input.
static assay_status_t apply_shape(assay_model_t* m, const assay_input_shape_t* s) {
  assay_value_t* v = assay_graph_find(m->graph, s->name);
  if (!v || !v->is_input)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the model has no input '%s'%s", s->name,
                       ASSAY_VALUES_NEAR_TEXT(m->graph->inputs, m->graph->n_inputs, s->name));
  const assay_valtype_t* t = v->declared;
  if (t && t->kind != ASSAY_KIND_TENSOR)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' is %s and has no shape", s->name,
                       ASSAY_VALTYPE_TEXT(t));
  if (t && t->has_shape && t->rank != s->rank)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "input '%s' is %s; the shape given has %d dimensions", s->name,
                       ASSAY_VALTYPE_TEXT(t), s->rank);
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < s->rank; i++) {
    dims[i] = t && t->has_shape ? t->dims[i] : NULL;
    int64_t fixed;
    if (s->dims[i] < 0) continue;
    if (assay_dim_value(dims[i], &fixed) && fixed != s->dims[i])
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "input '%s' is %s: dimension %d is fixed and cannot be %lld", s->name,
                         ASSAY_VALTYPE_TEXT(t), i, (long long)s->dims[i]);
    dims[i] = assay_dim_const(m->dims, s->dims[i]);
  }
  ASSAY_TRY(keep_open(m, v, t, s->rank));
  return assay_valtype_tensor(m, t ? t->elem : ASSAY_TYPE_UNDEFINED, s->rank, dims, &v->declared);
}

static assay_status_t prepare(assay_model_t* model, bool known_only, size_t n_shapes,
                              const assay_input_shape_t* shapes, assay_model_t** out) {
  assay_model_t *checked = NULL, *m = NULL;
  ASSAY_TRY(assay_model_clone(model, &checked));
  assay_status_t st = known_only ? assay_onnx_check_known(checked) : assay_onnx_check(checked);
  if (!st && checked->n_functions) {
    st = assay_onnx_inline_functions(checked, &m);
    assay_model_release(checked);
  } else {
    m = checked;
  }
  for (size_t i = 0; !st && i < n_shapes; i++) st = apply_shape(m, &shapes[i]);
  if (!st) st = assay_infer_model(m);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}

assay_status_t assay_onnx_prepare(assay_model_t* model, size_t n_shapes,
                                  const assay_input_shape_t* shapes, assay_model_t** out) {
  return prepare(model, false, n_shapes, shapes, out);
}

assay_status_t assay_onnx_prepare_known(assay_model_t* model, size_t n_shapes,
                                        const assay_input_shape_t* shapes, assay_model_t** out) {
  return prepare(model, true, n_shapes, shapes, out);
}

// "a=1x?x3;b=2"
static assay_status_t print_shapes(size_t n, const assay_input_shape_t* shapes, assay_str_t* out) {
  for (size_t i = 0; i < n; i++) {
    assay_str_printf(out, "%s%s=", i ? ";" : "", shapes[i].name);
    for (int d = 0; d < shapes[i].rank; d++) {
      if (d) assay_str_append(out, "x");
      if (shapes[i].dims[d] < 0)
        assay_str_append(out, "?");
      else
        assay_str_printf(out, "%lld", (long long)shapes[i].dims[d]);
    }
  }
  return assay_str_status(out);
}

assay_status_t assay_onnx_open(assay_model_t* model, bool known, size_t n_shapes,
                               const assay_input_shape_t* shapes, assay_model_t** out) {
  assay_str_t text = {0};
  assay_model_t* m = NULL;
  ASSAY_TRY(prepare(model, known, n_shapes, shapes, &m));
  assay_status_t st = print_shapes(n_shapes, shapes, &text);
  if (!st) st = assay_arena_strdup(m->arena, assay_str_get(&text), &m->shapes);
  assay_str_deinit(&text);
  if (st) return assay_model_release(m), st;
  m->source = assay_model_retain(model);
  *out = m;
  return NULL;
}

const assay_node_t* assay_onnx_unknown(const assay_model_t* m) {
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
      if (!m->graphs[g]->nodes[i]->schema && !m->graphs[g]->nodes[i]->function)
        return m->graphs[g]->nodes[i];
  return NULL;
}

assay_status_t assay_onnx_want_known(const assay_model_t* m) {
  const assay_node_t* unknown = assay_onnx_unknown(m);
  if (!unknown) return NULL;
  return ASSAY_NODE_ERROR(unknown, ASSAY_UNSUPPORTED,
                          "the operator is not known here: the model cannot be run");
}

assay_status_t assay_onnx_reshape(const assay_model_t* model, size_t n_shapes,
                                  const assay_input_shape_t* shapes, assay_model_t** out) {
  assay_model_t* m = NULL;
  ASSAY_TRY(assay_model_clone(model, &m));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n_shapes; i++) st = apply_shape(m, &shapes[i]);
  if (!st) st = assay_infer_model(m);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}

assay_status_t assay_onnx_load(const char* path, size_t n_shapes, const assay_input_shape_t* shapes,
                               assay_model_t** out) {
  assay_model_t* model = NULL;
  ASSAY_TRY(assay_onnx_read(path, &model));  // names the file itself
  assay_status_t st = assay_onnx_prepare(model, n_shapes, shapes, out);
  assay_model_release(model);
  return assay_status_note(st, "'%s'", path);
}
