// What tools save of their runs: named tensors, one set a run (an iteration, a sample).
#include "io/saved.h"

#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "base/str.h"
#include "formats/format.h"

void assay_saved_deinit(assay_saved_t* s) {
  for (size_t i = 0; i < s->n; i++) assay_set_deinit(&s->runs[i]);
  assay_free(s->runs);
  assay_str_deinit(&s->about);
  *s = (assay_saved_t){0};
}

assay_status_t assay_saved_add_run(assay_saved_t* s, assay_set_t** out) {
  ASSAY_TRY(assay_grow(&s->runs, &s->cap, s->n + 1, sizeof *s->runs));
  s->runs[s->n] = (assay_set_t){0};
  *out = &s->runs[s->n++];
  return NULL;
}

// ---- runs one after the other ------------------------------------------------------------------

// Bytes of each element where all arrays of a name lie packed, in whole bytes; else 0.
static size_t packed_elem(const assay_saved_t* s, const char* name) {
  for (size_t i = 0; i < s->n; i++) {
    const assay_tensor_t* t = assay_set_find(&s->runs[i], name);
    if (!t || t->store != ASSAY_STORE_PACKED || assay_type_bits(t->type) % 8) return 0;
  }
  return (size_t)assay_type_bits(assay_set_find(&s->runs[0], name)->type) / 8;
}

static assay_status_t join_array(const assay_saved_t* s, const char* name, assay_tensor_t** out) {
  const assay_tensor_t* first = assay_set_find(&s->runs[0], name);
  int64_t dims[ASSAY_MAX_RANK] = {1};
  memcpy(dims, first->dims, (size_t)first->rank * sizeof *dims);
  int64_t rows = 0;
  const int rank = first->rank ? first->rank : 1;
  for (size_t i = 0; i < s->n; i++) {
    const assay_tensor_t* t = assay_set_find(&s->runs[i], name);
    if (!t || t->type != first->type || t->rank != first->rank ||
        (t->rank > 1 && memcmp(t->dims + 1, dims + 1, (size_t)(t->rank - 1) * sizeof *dims) != 0))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "array '%s' of iteration %zu is missing, or unlike the first's", name, i);
    if (t->type == ASSAY_TYPE_STRING)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "array '%s' holds strings", name);
    rows += t->rank ? t->dims[0] : 1;
  }
  dims[0] = rows;
  assay_tensor_t* all = NULL;
  const size_t packed = packed_elem(s, name);
  if (packed)
    ASSAY_TRY(assay_tensor_create_packed(first->type, rank, dims, &all));
  else
    ASSAY_TRY(assay_tensor_create(first->type, rank, dims, &all));
  const size_t elem = packed ? packed : assay_store_elem_bytes(all->store);
  assay_status_t st = NULL;
  size_t at = 0;
  for (size_t i = 0; !st && i < s->n; i++) {
    assay_tensor_t *t = assay_set_find(&s->runs[i], name), *one = NULL;
    if (packed)
      one = assay_tensor_retain(t);
    else
      st = assay_tensor_widen(t, &one);
    if (!st && one->size) memcpy((char*)all->data + at, one->data, (size_t)one->size * elem);
    if (!st) at += (size_t)one->size * elem;
    assay_tensor_release(one);
  }
  if (st) return assay_tensor_release(all), st;
  *out = all;
  return NULL;
}

assay_status_t assay_saved_join(assay_saved_t* s, assay_set_t* out) {
  assay_set_t set = {0};
  if (s->n == 1) {
    *out = s->runs[0];
    s->runs[0] = (assay_set_t){0};
    return NULL;
  }
  assay_status_t st = NULL;
  for (size_t i = 0; !st && s->n && i < s->runs[0].n; i++) {
    assay_tensor_t* t = NULL;
    st = join_array(s, s->runs[0].names[i], &t);
    if (!st) st = assay_set_add(&set, s->runs[0].names[i], t);
  }
  if (st) return assay_set_deinit(&set), st;
  *out = set;
  return NULL;
}
