// A normalization that is missing: of the mean, the variance or both, over which dimensions; with
// the scale and the bias that it had.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

typedef struct norm {
  const char *name, *program;
} norm_t;

static const norm_t NORMS[] = {
    {"a normalization (mean and variance)", "x x mean - dup dup * mean 1e-05 + Sqrt /"},
    {"a normalization (mean and variance, epsilon 1e-6)",
     "x x mean - dup dup * mean 1e-06 + Sqrt /"},
    {"a normalization (mean and variance, epsilon 1e-12)",
     "x x mean - dup dup * mean 1e-12 + Sqrt /"},
    {"a normalization by RMS", "x x x * mean 1e-06 + Sqrt /"},
    {"a normalization by RMS (epsilon 1e-5)", "x x x * mean 1e-05 + Sqrt /"},
    {"a normalization to length 1", "x x x * sum Sqrt 1e-12 max /"},
    {"the mean to be taken off", "x x mean -"},
};

// With the scale and the bias that it had.
static assay_status_t with_numbers(assay_missing_search_t* s, const assay_missing_place_t* p,
                                   const assay_formula_terms_t* terms, const char* name) {
  assay_formula_t* f = NULL;
  assay_tensor_t* made = NULL;
  if (!p->want || assay_missing_is_over(s)) return NULL;
  ASSAY_TRY(assay_formula_create(terms, &f));
  assay_status_t st = assay_formula_evaluate(f, s->m, s->node, p->x, &made);
  if (!st) st = assay_missing_fits_after(s, p, terms, made, name);
  assay_tensor_release(made);
  assay_formula_release(f);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

static assay_status_t by_axes(assay_missing_search_t* s, const assay_missing_place_t* p,
                              assay_formula_terms_t* terms) {
  for (size_t i = 0; i < sizeof NORMS / sizeof *NORMS && !assay_missing_is_over(s); i++) {
    char text[96];
    terms->program = NORMS[i].program;
    snprintf(text, sizeof text, "%s is missing", NORMS[i].name);
    ASSAY_TRY(assay_missing_try(s, p, terms, "missing node", text));
    ASSAY_TRY(with_numbers(s, p, terms, NORMS[i].name));
  }
  return NULL;
}

static assay_status_t softmaxes(assay_missing_search_t* s, const assay_missing_place_t* p) {
  for (int axis = p->x->rank; axis-- > 0 && !assay_missing_is_over(s);) {
    assay_formula_terms_t terms = {.program = "x softmax", .axes = {axis}, .n_axes = 1};
    ASSAY_TRY(assay_missing_try(s, p, &terms, "missing node", "Softmax is missing"));
    terms.program = "x logsoftmax";
    ASSAY_TRY(assay_missing_try(s, p, &terms, "missing node", "LogSoftmax is missing"));
  }
  return NULL;
}

// Over the last dimension, over the channels, over the image of each channel, over each row.
assay_status_t assay_missing_norms(assay_missing_search_t* s, const assay_missing_place_t* p) {
  if (!p->x || p->x->store != ASSAY_STORE_F64 || !p->x->rank ||
      (p->want && !assay_tensor_alike(p->x, p->want)))
    return NULL;
  const int rank = p->x->rank;
  assay_formula_terms_t terms = {.axes = {rank - 1}, .n_axes = 1};
  ASSAY_TRY(softmaxes(s, p));
  ASSAY_TRY(by_axes(s, p, &terms));
  terms.axes[0] = 1;
  if (rank > 2) ASSAY_TRY(by_axes(s, p, &terms));
  for (int from = 2; from >= 1; from--) {
    terms.n_axes = 0;
    for (int i = from; i < rank; i++) terms.axes[terms.n_axes++] = i;
    if (terms.n_axes > 1) ASSAY_TRY(by_axes(s, p, &terms));
  }
  return NULL;
}
