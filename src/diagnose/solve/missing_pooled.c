// A pooling that is missing: MaxPool or AveragePool, by its window, stride and padding.
#include <stdio.h>

#include "diagnose/solve/missing.h"

enum { MAX_WINDOW = 5, MAX_STRIDE = 4 };

typedef struct pooling {
  int64_t window, stride, begin, end;
} pooling_t;

// Whether the windows make what is wanted of the spatial dimensions; none is known: whether they
// are such as networks have.
static bool makes(const assay_missing_search_t* s, const assay_missing_place_t* p,
                  const pooling_t* k) {
  const bool usual = k->stride == 1 ? k->window % 2 == 1 : k->window <= k->stride + 1;
  for (int i = 2; i < p->x->rank; i++) {
    const int64_t room = p->x->dims[i] + k->begin + k->end - k->window;
    if (room < 0) return false;
    if (p->want && p->want->dims[i] != room / k->stride + 1) return false;
  }
  // Where shapes are as they have to be, a pooling keeps them.
  const bool keeps = k->stride == 1 && k->begin + k->end == k->window - 1;
  return p->want || (usual && k->begin == k->end && keeps != assay_missing_is_reshaped(s));
}

static assay_status_t try_pooling(assay_missing_search_t* s, const assay_missing_place_t* p,
                                  const pooling_t* k) {
  static const struct {
    const char *word, *name;
    int64_t counts;
  } FORMS[] = {
      {"maxpool", "MaxPool", 0}, {"meanpool", "AveragePool", 0}, {"meanpool", "AveragePool", 1}};
  for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS && !assay_missing_is_over(s); i++) {
    const int64_t list[] = {p->x->rank - 2, k->window, k->stride,
                            k->begin,       k->end,    FORMS[i].counts};
    char program[ASSAY_FORMULA_TEXT], text[96];
    const assay_formula_terms_t terms = {.program = program};
    if (FORMS[i].counts && !k->begin && !k->end) continue;
    size_t used = assay_formula_append(program, 0, "x", NULL, 0);
    used = assay_formula_append(program, used, FORMS[i].word, list, 6);
    if (used >= sizeof program) return NULL;
    snprintf(text, sizeof text, "%s by windows of %lld in steps of %lld %s", FORMS[i].name,
             (long long)k->window, (long long)k->stride, p->source ? "of" : "is missing");
    ASSAY_TRY(assay_missing_try(s, p, &terms, "missing node", text));
  }
  return NULL;
}

assay_status_t assay_missing_pooled(assay_missing_search_t* s, const assay_missing_place_t* p) {
  const assay_tensor_t *x = p->x, *want = p->want;
  pooling_t k;
  if (!x || x->store != ASSAY_STORE_F64 || x->rank < 3 || x->rank > 5 || !x->size) return NULL;
  if (want && (want->store != ASSAY_STORE_F64 || want->rank != x->rank ||
               want->dims[0] != x->dims[0] || want->dims[1] != x->dims[1]))
    return NULL;
  for (k.window = 2; k.window <= MAX_WINDOW; k.window++)
    for (k.stride = 1; k.stride <= MAX_STRIDE; k.stride++)
      for (k.begin = 0; 2 * k.begin <= k.window; k.begin++)
        for (k.end = 0; 2 * k.end <= k.window && !assay_missing_is_over(s); k.end++)
          if (makes(s, p, &k)) ASSAY_TRY(try_pooling(s, p, &k));
  return NULL;
}
