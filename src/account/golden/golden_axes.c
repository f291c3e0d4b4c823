// Golden that was saved without axes of one.
#include "account/golden/golden_axes.h"

#include "base/alloc.h"
#include "data/array_shape.h"

static const assay_valtype_t* type_of(const assay_value_t* v) {
  const assay_valtype_t* t = v ? v->type ? v->type : v->declared : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape ? t : NULL;
}

static bool has_ones(const assay_saved_t* runs) {
  for (size_t r = 0; r < runs->n; r++)
    for (size_t k = 0; k < runs->runs[r].n; k++) {
      const assay_tensor_t* t = runs->runs[r].tensors[k];
      if (t->kind != ASSAY_KIND_TENSOR) continue;
      for (int i = 0; i < t->rank; i++)
        if (t->dims[i] == 1) return true;
    }
  return false;
}

static assay_status_t put_in_run(const assay_saved_t* runs, size_t r, const assay_model_t* model,
                                 const assay_name_map_t* map, assay_golden_value_t* value_of,
                                 assay_str_t* notes, assay_saved_t* out) {
  const assay_set_t* set = &runs->runs[r];
  const assay_value_t** of = NULL;
  assay_str_t more = {0};
  assay_set_t* to = NULL;
  ASSAY_TRY(assay_new_array(set->n, sizeof *of, &of));
  for (size_t k = 0; k < set->n; k++) {
    of[k] = value_of(model, map, set->names[k]);
    if (!type_of(of[k])) of[k] = NULL;
  }
  assay_status_t st = assay_saved_add_run(out, &to);
  if (!st) st = assay_put_axes_in(set, of, r ? &more : notes, to);  // the others say the same
  assay_str_deinit(&more);
  assay_free(of);
  return st;
}

// An array that lacks an axis of one where others have theirs may be of another network than the
// model, in which a layer lost an axis or has one more. Where no array of all has one, they were
// saved so.
assay_status_t assay_golden_put_axes_in(assay_saved_t* runs, const assay_model_t* model,
                                        const assay_name_map_t* map, assay_golden_value_t* value_of,
                                        assay_str_t* notes, bool* out_lost) {
  assay_saved_t made = {0};
  *out_lost = !has_ones(runs);
  if (!*out_lost) return NULL;
  assay_status_t st = NULL;
  for (size_t r = 0; !st && r < runs->n; r++)
    st = put_in_run(runs, r, model, map, value_of, notes, &made);
  if (st) return assay_saved_deinit(&made), st;
  for (size_t r = 0; r < runs->n; r++) {
    const assay_set_t old = runs->runs[r];
    runs->runs[r] = made.runs[r];
    made.runs[r] = old;
  }
  assay_saved_deinit(&made);
  return NULL;
}
