// Named tensors, in order: what an npz file, a folder of test data, or a run's inputs hold.
#include "io/set.h"

#include <string.h>

#include "base/alloc.h"

void assay_set_deinit(assay_set_t* s) {
  for (size_t i = 0; i < s->n; i++) {
    assay_free(s->names[i]);
    assay_tensor_release(s->tensors[i]);
  }
  assay_free(s->names);
  assay_free(s->tensors);
  *s = (assay_set_t){0};
}

assay_tensor_t* assay_set_find(const assay_set_t* s, const char* name) {
  for (size_t i = 0; i < s->n; i++)
    if (strcmp(s->names[i], name) == 0) return s->tensors[i];
  return NULL;
}

assay_status_t assay_set_add(assay_set_t* s, const char* name, assay_tensor_t* take_tensor) {
  assay_status_t st = NULL;
  size_t len = strlen(name);
  char* copy = NULL;
  if (assay_set_find(s, name))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "two tensors are named '%s'", name);
  if (!st) st = assay_grow(&s->names, &s->cap_names, s->n + 1, sizeof *s->names);
  if (!st) st = assay_grow(&s->tensors, &s->cap_tensors, s->n + 1, sizeof *s->tensors);
  if (!st && !(copy = assay_malloc(len + 1))) st = assay_status_no_memory();
  if (st) return assay_tensor_release(take_tensor), st;
  memcpy(copy, name, len + 1);
  s->names[s->n] = copy;
  s->tensors[s->n++] = take_tensor;
  return NULL;
}

assay_status_t assay_set_add_all(assay_set_t* s, const assay_set_t* from) {
  for (size_t i = 0; i < from->n; i++)
    ASSAY_TRY(assay_set_add(s, from->names[i], assay_tensor_retain(from->tensors[i])));
  return NULL;
}

assay_nearest_t assay_set_near(const assay_set_t* s, const char* name) {
  assay_nearest_t near = {.wanted = name};
  for (size_t i = 0; i < s->n; i++) assay_nearest_offer(&near, s->names[i]);
  return near;
}
