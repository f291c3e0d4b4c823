// The public face of models: include/assay/model.h.
#include <assay/model.h>
#include <stdio.h>
#include <string.h>

#include "onnx/load.h"
#include "onnx/onnx.h"

assay_status_t assay_model_load(const char* path, assay_model_t** out) {
  return assay_onnx_load(path, 0, NULL, out);
}

assay_status_t assay_model_load_bytes(const void* data, size_t size, const char* folder,
                                      assay_model_t** out) {
  assay_model_t* model = NULL;
  ASSAY_TRY(assay_onnx_read_bytes(data, size, folder, &model));
  assay_status_t st = assay_onnx_prepare(model, 0, NULL, out);
  assay_model_release(model);
  return st;
}

// Input i of those without an initializer.
static const assay_value_t* input_at(const assay_model_t* m, size_t i) {
  for (size_t k = 0; k < m->graph->n_inputs; k++)
    if (!m->graph->inputs[k]->constant && i-- == 0) return m->graph->inputs[k];
  return NULL;
}

static const assay_value_t* output_at(const assay_model_t* m, size_t i) {
  return i < m->graph->n_outputs ? m->graph->outputs[i] : NULL;
}

static assay_status_t type_text(const assay_value_t* v, char* out_text, size_t capacity) {
  if (!v) return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has fewer inputs or outputs than that");
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  snprintf(out_text, capacity, "%s", ASSAY_VALTYPE_TEXT(t));
  return NULL;
}

size_t assay_model_input_count(const assay_model_t* m) {
  size_t n = 0;
  for (size_t k = 0; k < m->graph->n_inputs; k++) n += !m->graph->inputs[k]->constant;
  return n;
}

const char* assay_model_input_name(const assay_model_t* m, size_t i) {
  const assay_value_t* v = input_at(m, i);
  return v ? v->name : NULL;
}

assay_status_t assay_model_input_type(const assay_model_t* m, size_t i, char* out_text,
                                      size_t capacity) {
  return type_text(input_at(m, i), out_text, capacity);
}

assay_type_t assay_model_input_elem(const assay_model_t* m, size_t i) {
  const assay_value_t* v = input_at(m, i);
  const assay_valtype_t* t = v ? (v->type ? v->type : v->declared) : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED;
}

size_t assay_model_output_count(const assay_model_t* m) { return m->graph->n_outputs; }

const char* assay_model_output_name(const assay_model_t* m, size_t i) {
  const assay_value_t* v = output_at(m, i);
  return v ? v->name : NULL;
}

assay_status_t assay_model_output_type(const assay_model_t* m, size_t i, char* out_text,
                                       size_t capacity) {
  return type_text(output_at(m, i), out_text, capacity);
}
