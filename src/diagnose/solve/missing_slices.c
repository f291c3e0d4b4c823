// One slice of a value: the first token, the last step, a constant that was computed so.
#include <stdio.h>
#include <string.h>

#include "diagnose/solve/missing.h"

int64_t assay_missing_slice_of(const assay_tensor_t* x, const assay_tensor_t* want, int axis,
                               int64_t slots, int64_t j) {
  const int64_t outer = assay_dims_product(x->dims, 0, axis), d = x->dims[axis];
  const int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank);
  for (int64_t k = 0; k < d; k++) {
    bool same = true;
    for (int64_t o = 0; same && o < outer; o++)
      same = memcmp(assay_f64(x) + (o * d + k) * inner, assay_f64(want) + (o * slots + j) * inner,
                    (size_t)inner * sizeof(double)) == 0;
    if (same) return k;
  }
  return -1;
}

// Whether a value without one dimension has a shape.
static bool drops(const assay_tensor_t* x, int axis, const assay_tensor_t* want) {
  if (x->rank != want->rank + 1) return false;
  for (int i = 0; i < want->rank; i++)
    if (want->dims[i] != x->dims[i < axis ? i : i + 1]) return false;
  return true;
}

static assay_status_t try_slice(assay_missing_search_t* s, const assay_missing_place_t* p, int axis,
                                int64_t index) {
  char text[96];
  assay_formula_terms_t terms = {.program = "x gather", .axes = {axis}, .n_axes = 1};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 0, NULL, &terms.c));
  assay_i64(terms.c)[0] = index;
  if (index < 0)
    snprintf(text, sizeof text, "the last slice along dimension %d of", axis);
  else
    snprintf(text, sizeof text, "slice %lld along dimension %d of", (long long)index, axis);
  assay_status_t st = assay_missing_try(s, p, &terms, "missing operator", text);
  assay_tensor_release(terms.c);
  return st;
}

// The last one is named from the end first, since there may be more of them.
assay_status_t assay_missing_slices(assay_missing_search_t* s, const assay_missing_place_t* p) {
  if (!p->x || !p->want || !p->source || p->x->store != ASSAY_STORE_F64 ||
      p->want->store != ASSAY_STORE_F64 || p->want->size < 2)
    return NULL;
  for (int axis = 0; axis < p->x->rank; axis++) {
    const int64_t k =
        drops(p->x, axis, p->want) ? assay_missing_slice_of(p->x, p->want, axis, 1, 0) : -1;
    if (k >= 0 && k == p->x->dims[axis] - 1) ASSAY_TRY(try_slice(s, p, axis, -1));
    if (k >= 0 && !assay_missing_is_over(s)) ASSAY_TRY(try_slice(s, p, axis, k));
  }
  return NULL;
}
