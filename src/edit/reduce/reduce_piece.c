// Parts of a model: cut out, fed, written.
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/shown.h"
#include "edit/editor.h"
#include "edit/reduce/reduce_internal.h"
#include "eval/evaluator.h"
#include "formats/format.h"
#include "io/npz.h"
#include "onnx/onnx.h"

void assay_piece_deinit(assay_piece_t* p) {
  assay_model_release(p->prepared);
  assay_model_release(p->model);
  *p = (assay_piece_t){0};
}

// ---- cutting ------------------------------------------------------------------------------------

// Errors that belong to the part, not to us: it cannot be had, or does not run.
assay_status_t assay_reduce_forgive(assay_status_t st) {
  const assay_code_t c = st ? assay_status_code(st) : ASSAY_OK;
  if (!st || c == ASSAY_NO_MEMORY || c == ASSAY_INTERNAL) return st;
  assay_status_free(st);
  return NULL;
}

// A label as a pattern that matches nothing else.
static assay_status_t escape(assay_arena_t* a, const char* label, const char** out) {
  assay_str_t s = {0};
  for (const char* c = label; *c; c++) {
    if (strchr("*?[\\", *c)) assay_str_append(&s, "\\");
    assay_str_append_n(&s, c, 1);
  }
  assay_status_t st = assay_str_status(&s);
  if (!st) st = assay_arena_strdup(a, assay_str_get(&s), out);
  assay_str_deinit(&s);
  return st;
}

static assay_status_t request(assay_arena_t* a, const assay_graph_t* g, const bool* nodes,
                              assay_words_t* out) {
  const char** items = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(a, g->n_nodes, sizeof *items, &items));
  for (size_t i = 0; i < g->n_nodes; i++)
    if (nodes[i]) ASSAY_TRY(escape(a, g->nodes[i]->label, &items[n++]));
  *out = (assay_words_t){items, n};
  return NULL;
}

// Labels of nodes without names depend on what stands around them: what is written is called what
// it was called before.
static void name_nodes(assay_model_t* m) {
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    if (!*m->graph->nodes[i]->name) m->graph->nodes[i]->name = m->graph->nodes[i]->label;
}

static assay_status_t cut(assay_arena_t* a, assay_model_t* model, const bool* nodes,
                          assay_piece_t* out) {
  const assay_editor_options_t options = {.no_proof = true};
  assay_edit_requests_t requests = {0};
  assay_edit_result_t r = {0};
  ASSAY_TRY(request(a, model->graph, nodes, &requests.nodes));
  ASSAY_TRY(assay_editor_run(&assay_editor_extract, model, &requests, &options, &r));
  out->model = assay_model_retain(r.model);
  assay_edit_result_deinit(&r);
  name_nodes(out->model);
  assay_status_t st = assay_onnx_prepare(out->model, 0, NULL, &out->prepared);
  if (st) assay_piece_deinit(out);
  return st;
}

assay_status_t assay_piece_cut(assay_model_t* model, const bool* nodes, assay_piece_t* out,
                               bool* out_can) {
  assay_arena_t* a = NULL;
  assay_piece_t p = {0};
  ASSAY_TRY(assay_arena_create(&a));
  assay_status_t st = cut(a, model, nodes, &p);
  assay_arena_destroy(a);
  *out_can = !st;
  if (st) return assay_reduce_forgive(st);
  *out = p;
  return NULL;
}

// ---- feeding ------------------------------------------------------------------------------------

// Whether all elements of floats lie within +-most.
static assay_status_t is_within(assay_tensor_t* t, double maximum, bool* out) {
  assay_tensor_t* wide = NULL;
  *out = true;
  if (t->kind != ASSAY_KIND_TENSOR) return NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  for (int64_t i = 0; wide->store == ASSAY_STORE_F64 && i < wide->size; i++)
    *out &= fabs(assay_f64(wide)[i]) <= maximum;
  assay_tensor_release(wide);
  return NULL;
}

// Golden's value, in the declared type; NULL: it has none. In another shape than the model's (which
// is then what was exported wrong) as it is, or (fits) none.
static assay_status_t from_golden(const assay_set_t* golden, const assay_value_t* v, bool fits,
                                  assay_tensor_t** out) {
  assay_value_t* const list[1] = {(assay_value_t*)(uintptr_t)v};
  assay_samples_t s = {0};
  assay_tensor_t* t = assay_set_find(golden, v->name);
  if (!t) return NULL;
  assay_status_t st = assay_samples_from_set(golden, list, 1, false, &s);
  if (st && assay_status_code(st) == ASSAY_INVALID_ARGUMENT) {
    assay_status_free(st);
    *out = fits ? NULL : assay_tensor_retain(t);
    return NULL;
  }
  if (st) return st;
  if (s.n == 1 && s.at[0]) *out = assay_tensor_retain(s.at[0]);
  assay_samples_deinit(&s);
  return NULL;
}

// What one input is given; NULL: nobody has it.
static assay_status_t feed(assay_reduce_values_t* values, size_t sample, const assay_value_t* v,
                           bool finite, assay_tensor_t** out, bool* io_from_truth) {
  assay_tensor_t* t = NULL;
  bool fine = false;
  // Truth's may have the fault already, and a part after it would seem to fail.
  if (values->golden && !v->is_input) return from_golden(&values->golden[sample], v, true, out);
  ASSAY_TRY(assay_reduce_value(values, ASSAY_REDUCE_ENGINE, sample, v, &t));
  if (t) ASSAY_TRY(is_within(t, DBL_MAX, &fine));
  if (t && (fine || !finite)) return *out = assay_tensor_retain(t), NULL;
  ASSAY_TRY(assay_reduce_value(values, ASSAY_REDUCE_TRUTH, sample, v, &t));
  // What the precision cannot hold enters no layer: a part after it would seem to fail.
  if (t && t->type == ASSAY_TYPE_FLOAT)
    ASSAY_TRY(is_within(t, assay_format_info(values->o->check->precision.format)->max, &fine));
  else
    fine = t != NULL;
  if (fine) *io_from_truth = true;
  if (fine) *out = assay_tensor_retain(t);
  return NULL;
}

assay_status_t assay_piece_feed(const assay_piece_t* p, assay_reduce_values_t* values,
                                size_t sample, bool finite, assay_samples_t* out, bool* out_can,
                                bool* io_from_truth) {
  const assay_graph_t *g = p->prepared->graph, *whole = values->model->graph;
  size_t capacity = out->n * out->n_values;
  out->n_values = g->n_inputs;
  ASSAY_TRY(assay_grow(&out->at, &capacity, (out->n + 1) * g->n_inputs, sizeof *out->at));
  assay_tensor_t** at = out->at + out->n++ * g->n_inputs;
  if (g->n_inputs) memset(at, 0, g->n_inputs * sizeof *at);
  *out_can = true;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_value_t* v = assay_graph_find(whole, g->inputs[i]->name);
    if (v) ASSAY_TRY(feed(values, sample, v, finite, &at[i], io_from_truth));
    // npz files hold tensors.
    *out_can &= at[i] ? at[i]->kind == ASSAY_KIND_TENSOR : g->inputs[i]->constant != NULL;
  }
  return NULL;
}

// ---- what should come out -----------------------------------------------------------------------

static assay_status_t golden_of(const assay_model_t* m, assay_tensor_t* const* in,
                                const assay_evaluator_config_t* config, assay_tensor_t** out) {
  const assay_graph_t* g = m->graph;
  assay_evaluator_t* truth = NULL;
  assay_status_t st = assay_evaluator_create_run(m, config, in, &truth);
  for (size_t i = 0; !st && i < g->n_outputs; i++) {
    assay_tensor_t* t = assay_evaluator_get(truth, g->outputs[i]);
    if (t && t->kind == ASSAY_KIND_TENSOR && t->store != ASSAY_STORE_STR)
      st = assay_tensor_pack(t, &out[i]);
    else if (t)
      out[i] = assay_tensor_retain(t);
  }
  assay_evaluator_destroy(truth);
  return st;
}

assay_status_t assay_reduce_golden(const assay_model_t* m, const assay_samples_t* samples,
                                   const assay_check_setting_t* o, assay_samples_t* out) {
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = o->unquantized, .seed = o->seed};
  *out = (assay_samples_t){.n = samples->n, .n_values = m->graph->n_outputs};
  ASSAY_TRY(assay_new_array(out->n * out->n_values, sizeof *out->at, &out->at));
  for (size_t k = 0; k < samples->n; k++)
    ASSAY_TRY(golden_of(m, assay_samples_get(samples, k), &config, out->at + k * out->n_values));
  return NULL;
}

assay_status_t assay_reduce_take_golden(const assay_model_t* m, const assay_set_t* golden,
                                        assay_tensor_t** io) {
  for (size_t i = 0; i < m->graph->n_outputs; i++) {
    assay_tensor_t* t = NULL;
    ASSAY_TRY(from_golden(golden, m->graph->outputs[i], false, &t));
    if (!t) continue;
    assay_tensor_release(io[i]);
    io[i] = t;
  }
  return NULL;
}

// ---- files --------------------------------------------------------------------------------------

static bool alike(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (!a || !b) return a == b;
  return a->kind == ASSAY_KIND_TENSOR && b->kind == a->kind && a->type == b->type &&
         a->store != ASSAY_STORE_STR && b->store != ASSAY_STORE_STR && a->rank == b->rank &&
         a->rank < ASSAY_MAX_RANK && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// All samples' tensors of one value, along a new first dimension.
static assay_status_t stack(const assay_samples_t* s, size_t value, assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK] = {(int64_t)s->n};
  const assay_tensor_t* first = s->at[value];
  memcpy(dims + 1, first->dims, (size_t)first->rank * sizeof *dims);
  ASSAY_TRY(assay_tensor_create(first->type, first->rank + 1, dims, out));
  const size_t bytes = (size_t)first->size * assay_store_elem_bytes((*out)->store);
  for (size_t k = 0; k < s->n; k++) {
    assay_tensor_t* wide = NULL;
    assay_status_t st = assay_tensor_widen(s->at[k * s->n_values + value], &wide);
    if (st) return assay_tensor_release(*out), *out = NULL, st;
    if (bytes) memcpy((char*)(*out)->data + k * bytes, wide->data, bytes);
    assay_tensor_release(wide);
  }
  return NULL;
}

assay_status_t assay_reduce_write_values(const char* path, assay_value_t* const* values,
                                         const assay_samples_t* s, size_t* out_written) {
  assay_set_t set = {0};
  size_t n = s->n;
  for (size_t k = 1; k < s->n; k++)
    for (size_t i = 0; i < s->n_values; i++)
      if (!alike(s->at[i], s->at[k * s->n_values + i])) n = 1;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < s->n_values; i++) {
    assay_tensor_t* t = NULL;
    if (!s->at[i] || s->at[i]->kind != ASSAY_KIND_TENSOR) continue;
    if (n > 1)
      st = stack(s, i, &t);
    else
      t = assay_tensor_retain(s->at[i]);
    if (!st) st = assay_set_add(&set, values[i]->name, t);
  }
  if (!st) st = assay_npz_write(path, &set, false);
  assay_set_deinit(&set);
  *out_written = n;
  return st;
}

static assay_status_t in_folder(const char* folder, const char* name, assay_str_t* out) {
  out->len = 0;
  assay_str_printf_raw(out, "%s/%s", folder, name);
  return assay_str_status(out);
}

assay_status_t assay_reduced_write(const assay_reduced_t* r, const char* folder,
                                   size_t* out_written) {
  const assay_graph_t* g = r->model->graph;
  assay_samples_t inputs = r->inputs, golden = r->golden;
  assay_str_t path = {0};
  size_t n_in = 0, n_out = 0;
  assay_status_t st = assay_folder_make(folder);
  if (!st) st = in_folder(folder, "model.onnx", &path);
  if (!st) st = assay_onnx_write(r->model, assay_str_get(&path), NULL);
  if (!st) st = in_folder(folder, "inputs.npz", &path);
  if (!st) st = assay_reduce_write_values(assay_str_get(&path), g->inputs, &inputs, &n_in);
  if (!st) st = in_folder(folder, "golden.npz", &path);
  if (!st) st = assay_reduce_write_values(assay_str_get(&path), g->outputs, &golden, &n_out);
  // Both files hold the same samples.
  if (!st && n_in != n_out) {
    inputs.n = golden.n = 1;
    st = assay_reduce_write_values(assay_str_get(&path), g->outputs, &golden, &n_out);
    if (!st) st = in_folder(folder, "inputs.npz", &path);
    if (!st) st = assay_reduce_write_values(assay_str_get(&path), g->inputs, &inputs, &n_in);
  }
  assay_str_deinit(&path);
  if (!st) *out_written = n_in;
  return st;
}
