#include "accuracy/chain.h"

#include <string.h>

#include "base/alloc.h"

enum { MOST_SAMPLES = 8 };

// ---- rows -----------------------------------------------------------------------------------------------

// Rows [first, first + n) of the leading dimension.
static assay_status_t rows_of(assay_tensor_t* t, int64_t first, int64_t n, assay_tensor_t** out) {
  if (first == 0 && n == t->dims[0]) return *out = assay_tensor_retain(t), NULL;
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* wide = NULL;
  memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
  dims[0] = n;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_tensor_create(t->type, t->rank, dims, out);
  const int64_t row = assay_dims_product(dims, 1, t->rank);
  const size_t bytes = assay_store_elem_bytes(wide->store);
  if (!st && wide->store == ASSAY_STORE_STR) {
    for (int64_t i = 0; !st && i < n * row; i++) {
      const assay_string_t* s = &assay_strings(wide)[first * row + i];
      st = assay_tensor_set_string(*out, i, s->text, s->len);
    }
    if (st) assay_tensor_release(*out);
  } else if (!st && n > 0 && row > 0) {
    memcpy((*out)->data, (const char*)wide->data + (size_t)(first * row) * bytes,
           (size_t)(n * row) * bytes);
  }
  assay_tensor_release(wide);
  return st;
}

static const assay_valtype_t* type_of(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && t->rank ? t : NULL;
}

// The leading dimension of a value: its number, or -1 where the model leaves it open; 0: no such thing.
static int64_t leading(const assay_value_t* v) {
  const assay_valtype_t* t = type_of(v);
  int64_t d;
  if (!t) return 0;
  return assay_dim_value(t->dims[0], &d) ? d : -1;
}

// How many rows an open batch has, over the inputs; 0: there is none, or they disagree.
static int64_t batch_of(const assay_graph_t* g, assay_tensor_t* const* inputs) {
  int64_t n = 0;
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_tensor_t* t = inputs[i];
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->rank || leading(g->inputs[i]) != -1) continue;
    if (t->dims[0] < 2) continue;
    if (n && n != t->dims[0]) return 0;
    n = t->dims[0];
  }
  return n;
}

// ---- golden of one sample -----------------------------------------------------------------------------------

static assay_status_t add(assay_golden_t* to, const assay_golden_tensor_t* from, assay_tensor_t* take) {
  assay_status_t st = assay_grow(&to->at, &to->capacity, to->n + 1, sizeof *to->at);
  if (st) return assay_tensor_release(take), st;
  to->at[to->n] = *from;
  to->at[to->n].name = NULL;
  to->at[to->n++].tensor = take;
  return NULL;
}

// Sample k of several: of an array that holds all of them; one that holds a single sample counts for the first.
static assay_status_t cut_sample(const assay_golden_tensor_t* g, size_t k, assay_golden_t* to) {
  const int64_t d = leading(g->value);
  const assay_tensor_t* t = g->tensor;
  assay_tensor_t* part = NULL;
  if (t->kind != ASSAY_KIND_TENSOR || !t->rank || d <= 0 || t->dims[0] == d) {
    if (k == 0) return add(to, g, assay_tensor_retain(g->tensor));
    return NULL;
  }
  const int64_t first = (int64_t)k * d;
  if (t->dims[0] % d != 0 || first + d > t->dims[0]) return NULL;
  ASSAY_TRY(rows_of(g->tensor, first, d, &part));
  return add(to, g, part);
}

// The first `rows` rows of a batch.
static assay_status_t cut_batch(const assay_golden_tensor_t* g, int64_t batch, int64_t rows,
                                assay_golden_t* to) {
  const assay_tensor_t* t = g->tensor;
  assay_tensor_t* part = NULL;
  const bool batched = t->kind == ASSAY_KIND_TENSOR && t->rank && t->dims[0] == batch;
  if (!batched || rows == batch) return add(to, g, assay_tensor_retain(g->tensor));
  ASSAY_TRY(rows_of(g->tensor, 0, rows, &part));
  return add(to, g, part);
}

// The fewest rows that a golden value of an open batch has.
static int64_t fewest_rows(const assay_golden_t* golden, int64_t batch) {
  int64_t rows = batch;
  for (size_t i = 0; i < golden->n; i++) {
    const assay_golden_tensor_t* g = &golden->at[i];
    if (!g->value || g->tensor->kind != ASSAY_KIND_TENSOR || !g->tensor->rank) continue;
    if (leading(g->value) == -1 && g->tensor->dims[0] > 0 && g->tensor->dims[0] < rows)
      rows = g->tensor->dims[0];
  }
  return rows;
}

static assay_status_t one_sample(const assay_model_t* m, assay_tensor_t* const* inputs, size_t k,
                                 bool several, const assay_golden_t* golden,
                                 const assay_export_options_t* options, assay_export_t* out) {
  const assay_graph_t* g = m->graph;
  const int64_t batch = several ? 0 : batch_of(g, inputs);
  const int64_t rows = batch ? fewest_rows(golden, batch) : 0;
  assay_golden_t part = {0};
  assay_tensor_t** in = NULL;
  assay_status_t st = assay_new_array(g->n_inputs, sizeof *in, &in);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    const bool cut = rows < batch && inputs[i] && leading(g->inputs[i]) == -1 && inputs[i]->rank &&
                     inputs[i]->dims[0] == batch;
    if (cut)
      st = rows_of(inputs[i], 0, rows, &in[i]);
    else
      in[i] = assay_tensor_retain(inputs[i]);
  }
  for (size_t i = 0; !st && i < golden->n; i++) {
    if (!golden->at[i].value) continue;
    st = several ? cut_sample(&golden->at[i], k, &part)
                 : cut_batch(&golden->at[i], batch, rows, &part);
  }
  if (!st && part.n) st = assay_export_check(m, in, &part, options, out);
  for (size_t i = 0; in && i < g->n_inputs; i++) assay_tensor_release(in[i]);
  assay_free(in);
  assay_golden_deinit(&part);
  return st;
}

assay_status_t assay_chain_run(const assay_model_t* model, const assay_samples_t* inputs,
                               const assay_golden_t* golden, const assay_export_options_t* options,
                               assay_export_t* out) {
  const size_t n = inputs->n < MOST_SAMPLES ? inputs->n : MOST_SAMPLES;
  for (size_t k = 0; k < n; k++) {
    assay_export_deinit(out);
    ASSAY_TRY(one_sample(model, assay_samples_get(inputs, k), k, inputs->n > 1, golden, options, out));
    if (out->n) break;
  }
  return NULL;
}

assay_status_t assay_chain_repair(const assay_export_t* e, assay_model_t* model, size_t* out_n) {
  *out_n = 0;
  for (size_t i = 0; i < e->n; i++) {
    if (!e->faults[i].restored) continue;
    ASSAY_TRY(assay_repair_apply(&e->faults[i].repair, model));
    (*out_n)++;
  }
  return NULL;
}
