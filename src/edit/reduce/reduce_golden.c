// Golden values of several samples, apart.
#include <string.h>

#include "account/golden/golden.h"
#include "base/alloc.h"
#include "edit/reduce/reduce_internal.h"

// One of `n` equal parts along the first axis, which is dropped where it counts the samples.
static assay_status_t cut(const assay_tensor_t* t, size_t n, size_t k, bool drop,
                          assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* y = NULL;
  memcpy(dims, t->dims, (size_t)t->rank * sizeof *dims);
  dims[0] /= (int64_t)n;
  ASSAY_TRY(assay_tensor_create(t->type, t->rank - drop, dims + drop, &y));
  const size_t bytes = (size_t)y->size * assay_store_elem_bytes(y->store);
  memcpy(y->data, (const char*)t->data + k * bytes, bytes);
  *out = y;
  return NULL;
}

static bool counts_samples(const assay_value_t* v, const assay_tensor_t* t, size_t n) {
  return v->type && v->type->has_shape && t->rank == v->type->rank + 1 && t->dims[0] == (int64_t)n;
}

static assay_status_t add_parts(const assay_golden_tensor_t* g, size_t n, assay_set_t* out) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(g->tensor, &wide));
  assay_status_t st = NULL;
  if (wide->kind != ASSAY_KIND_TENSOR || wide->store == ASSAY_STORE_STR || !wide->rank ||
      wide->dims[0] % (int64_t)n)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "golden '%s' is %s: it does not hold the %zu samples of the inputs", g->name,
                     ASSAY_DIMS_TEXT(wide), n);
  for (size_t k = 0; !st && k < n; k++) {
    assay_tensor_t* part = NULL;
    st = cut(wide, n, k, counts_samples(g->value, wide, n), &part);
    if (!st) st = assay_set_add(&out[k], g->value->name, part);
  }
  assay_tensor_release(wide);
  return st;
}

// Every sample's own array of a value, by the name that it has in its run.
static assay_status_t add_own(const assay_golden_tensor_t* g, const assay_saved_t* runs,
                              assay_set_t* out) {
  for (size_t k = 0; k < runs->n; k++) {
    assay_tensor_t *t = assay_set_find(&runs->runs[k], g->name), *wide = NULL;
    if (!t) continue;
    ASSAY_TRY(assay_tensor_widen(t, &wide));
    ASSAY_TRY(assay_set_add(&out[k], g->value->name, wide));
  }
  return NULL;
}

void assay_reduce_free_golden(assay_set_t* sets, size_t n) {
  for (size_t k = 0; sets && k < n; k++) assay_set_deinit(&sets[k]);
  assay_free(sets);
}

assay_status_t assay_reduce_split_golden(const assay_model_t* m, const assay_reduce_options_t* o,
                                         size_t n, assay_set_t** out) {
  const assay_set_t* all = o->golden;
  const assay_saved_t* runs = o->golden_runs && o->golden_runs->n == n ? o->golden_runs : NULL;
  assay_set_t* sets = NULL;
  assay_golden_t g = {0};
  ASSAY_TRY(assay_new_array(n, sizeof *sets, &sets));
  assay_status_t st = assay_golden_match(all, m, NULL, &g);
  for (size_t i = 0; !st && n > 1 && i < g.n; i++)
    if (g.at[i].value) st = runs ? add_own(&g.at[i], runs, sets) : add_parts(&g.at[i], n, sets);
  for (size_t i = 0; !st && n == 1 && i < all->n; i++)
    st = assay_set_add(&sets[0], all->names[i], assay_tensor_retain(all->tensors[i]));
  assay_golden_deinit(&g);
  if (st) return assay_reduce_free_golden(sets, n), st;
  *out = sets;
  return NULL;
}
