// The public face of models: include/assay/model.h.
#include <assay/model.h>
#include <stdio.h>
#include <string.h>

#include "onnx/load.h"
#include "onnx/onnx.h"
#include "onnx/sizes.h"

// raw: as it was read; else it is ready to be evaluated and stays so.
static assay_status_t open_settled(assay_model_t* model, bool raw, const assay_model_options_t* o,
                                   assay_model_t** out) {
  const assay_open_sizes_t sizes = {.n_shapes = o->n_shapes,
                                    .shapes = o->shapes,
                                    .n_dims = o->n_dims,
                                    .dims = o->dims,
                                    .batch = o->batch};
  assay_settled_t settled = {0};
  ASSAY_TRY(assay_sizes_settle(model, &sizes, &settled));
  assay_status_t st = raw ? assay_onnx_open(model, o->allow_unknown, settled.n, settled.shapes, out)
                          : assay_onnx_reshape(model, settled.n, settled.shapes, out);
  if (!st) (*out)->batch_used = o->batch && !settled.batch_is_nowhere;
  assay_settled_deinit(&settled);
  return st;
}

static assay_status_t read_options(const assay_model_options_t* options, assay_model_options_t* o) {
  if (options)  // an older caller's struct may be shorter
    memcpy(o, options, options->struct_size < sizeof *o ? options->struct_size : sizeof *o);
  if (o->batch < 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a batch of %lld: give 1 or more, or 0 for none",
                       (long long)o->batch);
  ASSAY_TRY(assay_input_shapes_check(o->n_shapes, o->shapes, NULL));
  for (size_t i = 0; i < o->n_dims; i++)
    if (!o->dims[i].name || o->dims[i].size < 1)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "dimension %zu has no name, or a size below 1", i);
  return NULL;
}

assay_status_t assay_model_load_with(const char* path, const assay_model_options_t* options,
                                     assay_model_t** out) {
  assay_model_options_t o = ASSAY_MODEL_OPTIONS_INIT;
  assay_model_t* raw = NULL;
  ASSAY_TRY(read_options(options, &o));
  ASSAY_TRY(assay_onnx_read(path, &raw));  // names the file itself
  assay_status_t st = open_settled(raw, true, &o, out);
  assay_model_release(raw);
  return assay_status_note(st, "'%s'", path);
}

assay_status_t assay_model_resize(assay_model_t* model, const assay_model_options_t* options,
                                  assay_model_t** out) {
  assay_model_options_t o = ASSAY_MODEL_OPTIONS_INIT;
  ASSAY_TRY(read_options(options, &o));
  return open_settled(model->source ? model->source : model, model->source != NULL, &o, out);
}

assay_status_t assay_model_load(const char* path, assay_model_t** out) {
  return assay_model_load_with(path, NULL, out);
}

assay_status_t assay_model_load_bytes(const void* data, size_t size, const char* folder,
                                      assay_model_t** out) {
  assay_model_t* model = NULL;
  ASSAY_TRY(assay_onnx_read_bytes(data, size, folder, &model));
  assay_status_t st = assay_onnx_open(model, false, 0, NULL, out);
  assay_model_release(model);
  return st;
}

assay_status_t assay_model_save(const assay_model_t* model, const char* path) {
  if (model->source) return assay_onnx_write(model->source, path, NULL);
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "this model was not read from a file, nor made by an edit: it cannot be "
                     "written");
}

const char* assay_model_warning(const assay_model_t* model, size_t i) {
  return i < model->n_warnings ? model->warnings[i] : NULL;
}

const char* assay_model_path(const assay_model_t* model) {
  return model->source ? model->source->path : model->path;
}

bool assay_model_batch_used(const assay_model_t* m) { return m->batch_used; }

assay_status_t assay_model_open_sizes(const assay_model_t* m, char** out) {
  const assay_open_sizes_t sizes = {.close = true};
  assay_settled_t settled = {0};
  ASSAY_TRY(assay_sizes_settle(m, &sizes, &settled));
  assay_status_t st = assay_str_take(&settled.ones, out);
  assay_settled_deinit(&settled);
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
