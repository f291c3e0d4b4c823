// Golden of several samples whose arrays differ in shape: a batch of its own in each, other
// lengths.
#include <string.h>

#include "account/golden/golden.h"

static bool differs(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (!b || a->kind != b->kind) return true;
  return a->kind == ASSAY_KIND_TENSOR && !assay_tensor_same_shape(a, b);
}

bool assay_golden_runs_differ(const assay_saved_t* runs) {
  for (size_t r = 1; r < runs->n; r++) {
    const assay_set_t *first = &runs->runs[0], *run = &runs->runs[r];
    if (run->n != first->n) return true;
    for (size_t i = 0; i < first->n; i++)
      if (differs(first->tensors[i], assay_set_find(run, first->names[i]))) return true;
  }
  return false;
}

assay_status_t assay_golden_as_read(assay_tensor_t* t, assay_tensor_t** out) {
  if (t->kind != ASSAY_KIND_TENSOR || t->store == ASSAY_STORE_LATE)
    return assay_tensor_widen(t, out);
  *out = assay_tensor_retain(t);
  return NULL;
}

assay_status_t assay_golden_of_sample(const assay_saved_t* runs, const char* name, size_t k,
                                      size_t n, bool* out_known, assay_tensor_t** out) {
  *out = NULL;
  *out_known = false;
  if (!runs || runs->n != n || !name) return NULL;
  for (size_t r = 0; r < n; r++) *out_known |= assay_set_find(&runs->runs[r], name) != NULL;
  assay_tensor_t* t = assay_set_find(&runs->runs[k], name);
  return t ? assay_golden_as_read(t, out) : NULL;
}
