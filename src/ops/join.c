// The type that covers two types: what a value is that comes from one of two places, such as the
// branches of If, the rounds of Loop or the items of a sequence.
#include "ops/join.h"

bool assay_valtype_agree(const assay_valtype_t* a, const assay_valtype_t* b) {
  if (!a || !b || a == b) return true;
  if (a->kind != b->kind) return false;
  if (a->elem && b->elem && a->elem != b->elem) return false;
  return a->kind == ASSAY_KIND_TENSOR || assay_valtype_agree(a->of, b->of);
}

bool assay_valtype_same(const assay_valtype_t* a, const assay_valtype_t* b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->elem != b->elem) return false;
  if (a->kind != ASSAY_KIND_TENSOR) return assay_valtype_same(a->of, b->of);
  if (a->has_shape != b->has_shape) return false;
  if (!a->has_shape) return true;
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i] && !assay_dim_same(a->dims[i], b->dims[i])) return false;
  return true;
}

assay_status_t assay_valtype_join(assay_model_t* m, const assay_valtype_t* a,
                                  const assay_valtype_t* b, const assay_valtype_t** out) {
  *out = a;
  if (assay_valtype_same(a, b)) return NULL;
  *out = NULL;
  if (!a || !b || a->kind != b->kind) return NULL;
  if (a->kind != ASSAY_KIND_TENSOR) {
    const assay_valtype_t* of = NULL;
    ASSAY_TRY(assay_valtype_join(m, a->of, b->of, &of));
    return assay_valtype_of(m, a->kind, a->elem, of, out);
  }
  assay_type_t elem = a->elem ? a->elem : b->elem;
  if (!a->has_shape || !b->has_shape || a->rank != b->rank)
    return assay_valtype_unranked(m, elem, out);
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < a->rank; i++)
    dims[i] = assay_dim_same(a->dims[i], b->dims[i]) ? a->dims[i] : NULL;
  return assay_valtype_tensor(m, elem, a->rank, dims, out);
}

assay_status_t assay_valtype_strip(assay_model_t* m, const assay_valtype_t* t,
                                   const assay_valtype_t** out) {
  *out = t;
  if (!t) return NULL;
  if (t->kind == ASSAY_KIND_TENSOR)
    return t->has_shape ? assay_valtype_unranked(m, t->elem, out) : NULL;
  const assay_valtype_t* of = NULL;
  ASSAY_TRY(assay_valtype_strip(m, t->of, &of));
  return of == t->of ? NULL : assay_valtype_of(m, t->kind, t->elem, of, out);
}

assay_status_t assay_valtype_container(assay_model_t* m, assay_kind_t kind, assay_type_t elem,
                                       const assay_valtype_t** out) {
  const assay_valtype_t* of = NULL;
  if (elem) ASSAY_TRY(assay_valtype_unranked(m, elem, &of));
  return assay_valtype_of(m, kind, ASSAY_TYPE_UNDEFINED, of, out);
}
