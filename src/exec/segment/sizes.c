// Sizes of dimensions while a model runs: names are bound as values that have them come into being.
#include "exec/segment/sizes.h"

#include <string.h>

#include "base/alloc.h"
#include "passes/pass.h"

void assay_sizes_deinit(assay_sizes_t* s) {
  assay_map_deinit(&s->index);
  assay_free(s->name);
  assay_free(s->size);
  assay_free(s->reports);
  *s = (assay_sizes_t){0};
}

void assay_sizes_clear(assay_sizes_t* s) {
  assay_map_deinit(&s->index);
  s->index = (assay_map_t){0};
  s->n = 0;
  assay_free(s->reports);
  s->reports = NULL;
  s->n_inferred = 0;
}

static assay_status_t bind(assay_sizes_t* s, const char* name, int64_t size) {
  ASSAY_TRY(assay_grow(&s->size, &s->cap, s->n + 1, sizeof *s->size));
  ASSAY_TRY(assay_grow(&s->name, &s->cap_names, s->n + 1, sizeof *s->name));
  ASSAY_TRY(assay_map_put(&s->index, name, s->n, NULL));
  s->name[s->n] = name;
  s->size[s->n++] = size;
  return NULL;
}

assay_status_t assay_sizes_bind(assay_sizes_t* s, const assay_valtype_t* type, int rank,
                                const int64_t* dims) {
  if (!type || type->kind != ASSAY_KIND_TENSOR || !type->has_shape || type->rank != rank)
    return NULL;
  for (int i = 0; i < rank; i++) {
    const char* name = type->dims[i] ? assay_dim_name(type->dims[i]) : NULL;
    if (!name || assay_map_get(&s->index, name, NULL)) continue;
    ASSAY_TRY(bind(s, name, dims[i]));
  }
  return NULL;
}

static bool size_of(void* user, const char* name, int64_t* out) {
  const assay_sizes_t* s = user;
  uint64_t at;
  if (!assay_map_get(&s->index, name, &at)) return false;
  *out = s->size[at];
  return true;
}

bool assay_sizes_eval(const assay_sizes_t* s, const assay_dim_t* d, int64_t* out) {
  return d && assay_dim_eval(d, size_of, (void*)(uintptr_t)s, out);
}

assay_status_t assay_sizes_copy(const assay_sizes_t* s, assay_sizes_t* out) {
  for (size_t i = 0; i < s->n; i++) ASSAY_TRY(bind(out, s->name[i], s->size[i]));
  return NULL;
}

bool assay_sizes_same(const assay_sizes_t* a, const assay_sizes_t* b) {
  if (a->n != b->n) return false;
  for (size_t i = 0; i < a->n; i++)
    if (a->size[i] != b->size[i] || a->name[i] != b->name[i]) return false;
  return true;
}

static const assay_growth_t* growth_of(const char* name, const assay_growth_t* growth, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(growth[i].name, name) == 0) return &growth[i];
  return NULL;
}

// What size i is at the capacity, the others being as they are.
static int64_t largest(const assay_sizes_t* s, size_t i, const assay_growth_t* g) {
  int64_t whole;
  if (!g->within || !assay_sizes_eval(s, g->within, &whole)) return g->capacity;
  return g->capacity - (whole - s->size[i]);
}

bool assay_sizes_grow(const assay_sizes_t* a, const assay_sizes_t* b, const assay_growth_t* growth,
                      size_t n) {
  if (a->n != b->n) return false;
  for (size_t i = 0; i < a->n; i++) {
    const assay_growth_t* g = growth_of(b->name[i], growth, n);
    if (a->name[i] != b->name[i] || (g ? b->size[i] > largest(b, i, g) : a->size[i] != b->size[i]))
      return false;
  }
  return true;
}

assay_status_t assay_sizes_at_capacity(const assay_sizes_t* s, const assay_growth_t* growth,
                                       size_t n, int64_t more, assay_sizes_t* out) {
  for (size_t i = 0; i < s->n; i++) {
    const assay_growth_t* g = growth_of(s->name[i], growth, n);
    const int64_t maximum = g ? largest(s, i, g) : s->size[i];
    ASSAY_TRY(
        bind(out, s->name[i], (maximum > s->size[i] ? maximum : s->size[i]) + (g ? more : 0)));
  }
  return NULL;
}

// ---- what no expression says --------------------------------------------------------------------

static bool known(const void* user, const assay_dim_t* d, int64_t* out) {
  return assay_sizes_eval(user, d, out) && *out >= 0;
}

static void note(assay_sizes_t* s, const assay_value_t* v) {
  const assay_valtype_t* t = v->type;
  assay_inferred_dims_t reports = {.rank = -1};
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->rank > ASSAY_INFERRED_RANK ||
      (size_t)v->id >= s->n_inferred)
    return;
  for (int i = 0; i < t->rank; i++)
    if (!t->dims[i] || !assay_dim_value(t->dims[i], &reports.dims[i])) return;
  reports.rank = t->rank;
  s->reports[v->id] = reports;
}

// What is wrong with a model for these sizes, the run itself will say.
static assay_status_t instance_of(const assay_sizes_t* s, const assay_model_t* model,
                                  assay_model_t** out) {
  const assay_sizes_known_t sizes = {known, s};
  assay_status_t st = assay_passes_instance(model, &sizes, out);
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  assay_status_free(st);
  return NULL;
}

assay_status_t assay_sizes_ask(assay_sizes_t* s, const assay_model_t* model) {
  assay_model_t* instance = NULL;
  if (s->reports) return NULL;
  ASSAY_TRY(assay_new_array((size_t)model->n_values + 1, sizeof *s->reports, &s->reports));
  s->n_inferred = (size_t)model->n_values;
  for (size_t i = 0; i < s->n_inferred; i++) s->reports[i].rank = -1;
  ASSAY_TRY(instance_of(s, model, &instance));
  for (size_t i = 0; instance && i < instance->graph->n_initializers; i++)
    note(s, instance->graph->initializers[i]);
  for (size_t i = 0; instance && i < instance->graph->n_nodes; i++)
    for (size_t k = 0; k < instance->graph->nodes[i]->n_outputs; k++)
      if (instance->graph->nodes[i]->outputs[k]) note(s, instance->graph->nodes[i]->outputs[k]);
  assay_model_release(instance);
  return NULL;
}

static bool evaluate(const assay_sizes_t* s, const assay_valtype_t* t, int max, int64_t* out_dims) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->rank > max) return false;
  for (int i = 0; i < t->rank; i++)
    if (!assay_sizes_eval(s, t->dims[i], &out_dims[i]) || out_dims[i] < 0) return false;
  return true;
}

bool assay_sizes_of(const assay_sizes_t* s, const assay_value_t* v, int max, int* out_rank,
                    int64_t* out_dims) {
  if (evaluate(s, v->type, max, out_dims)) {
    *out_rank = v->type->rank;
    return true;
  }
  const assay_inferred_dims_t* reports = (size_t)v->id < s->n_inferred ? &s->reports[v->id] : NULL;
  if (!reports || reports->rank < 0 || reports->rank > max) return false;
  *out_rank = reports->rank;
  memcpy(out_dims, reports->dims, sizeof *out_dims * (size_t)reports->rank);
  return true;
}
