#include "backends/sizes.h"

#include "base/alloc.h"

void assay_sizes_deinit(assay_sizes_t* s) {
  assay_map_deinit(&s->index);
  assay_free(s->name);
  assay_free(s->size);
  *s = (assay_sizes_t){0};
}

void assay_sizes_clear(assay_sizes_t* s) {
  assay_map_deinit(&s->index);
  s->index = (assay_map_t){0};
  s->n = 0;
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

bool assay_sizes_of(const assay_sizes_t* s, const assay_value_t* v, int max, int* out_rank,
                    int64_t* out_dims) {
  const assay_valtype_t* t = v->type;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->rank > max) return false;
  for (int i = 0; i < t->rank; i++)
    if (!assay_sizes_eval(s, t->dims[i], &out_dims[i]) || out_dims[i] < 0) return false;
  *out_rank = t->rank;
  return true;
}
