// Models: what they own, and the types of values.
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "formats/format.h"
#include "ir/internal.h"

// ---- life -------------------------------------------------------------------------------------

assay_status_t assay_model_create(assay_model_t** out) {
  assay_model_t* m = NULL;
  ASSAY_TRY(ASSAY_NEW(&m));
  atomic_init(&m->refs, 1);
  m->path = m->shapes = m->domain = m->doc = m->producer_name = m->producer_version = "";
  m->folder = ".";
  assay_status_t st = assay_arena_create(&m->arena);
  if (!st) st = assay_dims_create(&m->dims);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}

assay_model_t* assay_model_retain(assay_model_t* model) {
  atomic_fetch_add_explicit(&model->refs, 1, memory_order_relaxed);
  return model;
}

void assay_model_release(assay_model_t* m) {
  if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
  for (size_t i = 0; i < m->n_graphs; i++) {
    assay_map_deinit(&m->graphs[i]->values);
    assay_map_deinit(&m->graphs[i]->labels);
  }
  // Tensors before mappings: their bytes may lie there.
  for (size_t i = 0; i < m->n_tensors; i++) assay_tensor_release(m->tensors[i]);
  for (size_t i = 0; i < m->n_mappings; i++) assay_mapping_release(m->mappings[i]);
  assay_free(m->graphs);
  assay_free(m->tensors);
  assay_free(m->mappings);
  assay_model_release(m->source);
  assay_dims_destroy(m->dims);
  assay_arena_destroy(m->arena);
  assay_free(m);
}

assay_status_t assay_model_warn(assay_model_t* m, const char* format, ...) {
  char line[512];
  const char* kept = NULL;
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (m->n_warnings == ASSAY_MAX_WARNINGS) return NULL;
  for (size_t i = 0; i < m->n_warnings; i++)
    if (strcmp(m->warnings[i], line) == 0) return NULL;
  if (m->n_warnings == ASSAY_MAX_WARNINGS - 1) snprintf(line, sizeof line, "and more like these");
  ASSAY_TRY(assay_arena_strdup(m->arena, line, &kept));
  ASSAY_TRY(ir_grow(m->arena, &m->warnings, &m->cap_warnings, m->n_warnings + 1, sizeof kept));
  m->warnings[m->n_warnings++] = kept;
  return NULL;
}

assay_status_t assay_model_take_tensor(assay_model_t* m, assay_tensor_t* take_tensor) {
  if (!take_tensor) return NULL;
  assay_status_t st =
      assay_grow(&m->tensors, &m->cap_tensors, m->n_tensors + 1, sizeof(assay_tensor_t*));
  if (st) return assay_tensor_release(take_tensor), st;
  m->tensors[m->n_tensors++] = take_tensor;
  return NULL;
}

assay_status_t assay_model_take_mapping(assay_model_t* m, assay_mapping_t* take) {
  if (!take) return NULL;
  assay_status_t st =
      assay_grow(&m->mappings, &m->cap_mappings, m->n_mappings + 1, sizeof(assay_mapping_t*));
  if (st) return assay_mapping_release(take), st;
  m->mappings[m->n_mappings++] = take;
  return NULL;
}

assay_status_t ir_grow(assay_arena_t* arena, void* array, size_t* capacity, size_t need,
                       size_t size) {
  if (need <= *capacity) return NULL;
  size_t grown = *capacity < 4 ? 4 : 2 * *capacity;
  if (grown < need) grown = need;
  void *fresh = NULL, *old;
  ASSAY_TRY(assay_arena_new(arena, grown, size, &fresh));
  memcpy(&old, array, sizeof old);
  if (*capacity) memcpy(fresh, old, *capacity * size);
  memcpy(array, &fresh, sizeof fresh);
  *capacity = grown;
  return NULL;
}

// ---- asking -----------------------------------------------------------------------------------

const char* ir_domain(const char* domain) {
  return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int64_t assay_model_opset(const assay_model_t* model, const char* domain) {
  domain = ir_domain(domain);
  for (size_t i = 0; i < model->n_opsets; i++)
    if (strcmp(ir_domain(model->opsets[i].domain), domain) == 0) return model->opsets[i].version;
  return 0;
}

// ---- types ------------------------------------------------------------------------------------

assay_status_t assay_valtype_tensor(assay_model_t* m, assay_type_t elem, int rank,
                                    const assay_dim_t* const* dims, const assay_valtype_t** out) {
  if (rank < 0 || rank > ASSAY_MAX_RANK)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "a tensor type has rank %d; 0 to %d can be handled", rank,
                       (int)ASSAY_MAX_RANK);
  assay_valtype_t* t = NULL;
  ASSAY_TRY(assay_arena_new(m->arena, 1, sizeof *t, &t));
  t->kind = ASSAY_KIND_TENSOR;
  t->elem = elem;
  t->has_shape = true;
  t->rank = rank;
  t->denotation = "";
  if (rank) {
    ASSAY_TRY(assay_arena_new(m->arena, (size_t)rank, sizeof *t->dims, &t->dims));
    if (dims) memcpy(t->dims, dims, (size_t)rank * sizeof *t->dims);
  }
  *out = t;
  return NULL;
}

assay_status_t assay_valtype_unranked(assay_model_t* m, assay_type_t elem,
                                      const assay_valtype_t** out) {
  assay_valtype_t* t = NULL;
  ASSAY_TRY(assay_arena_new(m->arena, 1, sizeof *t, &t));
  t->kind = ASSAY_KIND_TENSOR;
  t->elem = elem;
  t->denotation = "";
  *out = t;
  return NULL;
}

assay_status_t assay_valtype_of(assay_model_t* m, assay_kind_t kind, assay_type_t key,
                                const assay_valtype_t* of, const assay_valtype_t** out) {
  int depth = 1;
  for (const assay_valtype_t* t = of; t; t = t->of) depth++;
  if (depth > IR_MAX_TYPE_DEPTH)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "a type is nested more than %d deep",
                       (int)IR_MAX_TYPE_DEPTH);
  assay_valtype_t* t = NULL;
  ASSAY_TRY(assay_arena_new(m->arena, 1, sizeof *t, &t));
  t->kind = kind;
  t->elem = key;
  t->of = of;
  t->denotation = "";
  *out = t;
  return NULL;
}

static void put_type(ir_cut_t* c, const assay_valtype_t* t) {
  if (!t) {
    ir_put(c, "?");
    return;
  }
  switch (t->kind) {
    case ASSAY_KIND_TENSOR:
      if (t->is_sparse) ir_put(c, "sparse(");
      ir_put(c, t->elem == ASSAY_TYPE_UNDEFINED ? "?" : assay_type_name(t->elem));
      ir_put(c, "[");
      if (!t->has_shape) ir_put(c, "...");
      for (int i = 0; i < t->rank; i++) {
        char dim[256];
        if (i) ir_put(c, ", ");
        ir_put(c, assay_dim_text(t->dims[i], dim, sizeof dim));
      }
      ir_put(c, "]");
      if (t->is_sparse) ir_put(c, ")");
      return;
    case ASSAY_KIND_SEQUENCE:
      ir_put(c, "seq(");
      break;
    case ASSAY_KIND_OPTIONAL:
      ir_put(c, "optional(");
      break;
    case ASSAY_KIND_MAP:
      ir_put(c, "map(");
      ir_put(c, assay_type_name(t->elem));
      ir_put(c, ", ");
      break;
  }
  put_type(c, t->of);
  ir_put(c, ")");
}

const char* assay_valtype_text(const assay_valtype_t* t, char* buffer, size_t capacity) {
  if (!capacity) return buffer;
  ir_cut_t c = {buffer, capacity, 0};
  buffer[0] = 0;
  put_type(&c, t);
  return buffer;
}

void assay_model_parameters(const assay_model_t* model, double* out_elements, double* out_bytes) {
  *out_elements = *out_bytes = 0;
  for (size_t g = 0; g < model->n_graphs; g++)
    for (size_t i = 0; i < model->graphs[g]->n_initializers; i++) {
      const assay_tensor_t* t = model->graphs[g]->initializers[i]->constant;
      if (!t) continue;
      *out_elements += (double)t->size;
      *out_bytes += (double)t->size * assay_type_bits(t->type) / 8;
    }
}
