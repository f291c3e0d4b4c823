// A factor, a bias or both that are missing beside a node, a number for each index of a dimension,
// where one sample has too few elements to tell them and a test: by the outputs of other samples,
// too, the last of which is the test (samples.c).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/solve/by_samples.h"
#include "diagnose/solve/missing.h"

static const struct {
  const char *program, *says;
  double from;  // what the first number leaves as it is
  bool both;
} FORMS[] = {{"x c +", "a bias", 0, false},
             {"x c *", "a factor", 1, false},
             {"x c * d +", "a factor and a bias", 1, true}};

// In four digits where it was meant so: golden's rounding is in what is fitted.
static double as_meant(double x) {
  char text[32];
  snprintf(text, sizeof text, "%.3e", x);
  const double y = strtod(text, NULL);
  return fabs(x - y) <= 1e-5 * fabs(y) + 1e-7 ? y : x;
}

static assay_status_t offer(assay_missing_search_t* s, const assay_by_samples_t* y,
                            assay_tensor_t* x, const char* says) {
  assay_repair_t r;
  const assay_by_samples_numbers_t* k = y->numbers;
  const bool after = k->kind == ASSAY_EDIT_AFTER;
  const assay_value_t* v = after ? s->node->outputs[k->index] : s->node->inputs[k->index];
  assay_status_t st = assay_by_samples_insert(y, x, &r);
  snprintf(r.text, sizeof r.text, "%s (%lld numbers) %s missing %s %zu '%.80s'", says,
           (long long)x->size, k->both ? "are" : "is",
           after ? "after its output" : "before its input", k->index, v ? v->name : "");
  if (!st) st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

static assay_status_t try_form(assay_missing_search_t* s, assay_by_samples_t* y, size_t form) {
  assay_tensor_t *start = NULL, *x = NULL;
  assay_by_samples_numbers_t k = *y->numbers;
  assay_by_samples_t own = *y;
  k.program = FORMS[form].program;
  k.both = FORMS[form].both;
  const int64_t n = assay_dims_product(k.dims, 0, k.rank);
  own.numbers = &k;
  own.n = n * (1 + k.both);
  ASSAY_TRY(assay_tensor_create_zero(k.type, 1, &own.n, &start));
  for (int64_t i = 0; i < n; i++) assay_f64(start)[i] = FORMS[form].from;
  own.start = start;
  assay_status_t st = assay_by_samples_solve(&own, s->deadline, &x);
  if (!st && x) {
    assay_tensor_t* meant = NULL;
    st = assay_tensor_copy(x, &meant);
    for (int64_t i = 0; !st && i < x->size; i++) assay_f64(meant)[i] = as_meant(assay_f64(x)[i]);
    if (!st) st = offer(s, &own, meant, FORMS[form].says);
    if (!st && !assay_missing_is_over(s)) st = offer(s, &own, x, FORMS[form].says);
    assay_tensor_release(meant);
  }
  assay_tensor_release(start);
  assay_tensor_release(x);
  return st;
}

// One number for each index of a dimension, the last first; where one sample tells as much, others
// have tried it.
static assay_status_t at_place(assay_missing_search_t* s, assay_by_samples_t* y,
                               assay_edit_kind_t kind, size_t index, const assay_tensor_t* x) {
  enum { MOST = 128, EQUATIONS = 2 };
  assay_by_samples_numbers_t k = {.kind = kind, .index = index, .type = x->type, .rank = x->rank};
  y->numbers = &k;
  for (int axis = x->rank; axis-- > 0;) {
    for (int i = 0; i < x->rank; i++) k.dims[i] = i == axis ? x->dims[i] : 1;
    for (size_t f = 0; f < sizeof FORMS / sizeof *FORMS && !assay_missing_is_over(s); f++) {
      const int64_t unknowns = x->dims[axis] * (1 + FORMS[f].both);
      const bool told = kind == ASSAY_EDIT_AFTER && unknowns * EQUATIONS <= x->size;
      if (x->dims[axis] <= MOST && x->dims[axis] > 1 && !told) ASSAY_TRY(try_form(s, y, f));
    }
  }
  return NULL;
}

assay_status_t assay_missing_numbers(assay_missing_search_t* s, assay_tensor_t* want) {
  enum { SAMPLES = 2 };
  assay_tensor_t* have = s->target->truth;
  if (assay_holdout_count(s->holdout) < SAMPLES || want->store != ASSAY_STORE_F64 || !have ||
      have->store != ASSAY_STORE_F64 || !want->size || !assay_tensor_alike(have, want) || !s->n_in)
    return NULL;
  const assay_solve_t solve = {.m = s->m,
                               .node = s->node,
                               .holdout = s->holdout,
                               .in = s->in,
                               .want = want,
                               .have = have,
                               .output = s->output};
  assay_by_samples_t y = assay_by_samples_of(&solve);
  ASSAY_TRY(at_place(s, &y, ASSAY_EDIT_AFTER, s->output, have));
  for (size_t i = 0; i < s->n_in && !assay_missing_is_over(s); i++)
    if (s->in[i] && s->in[i]->kind == ASSAY_KIND_TENSOR && s->in[i]->store == ASSAY_STORE_F64 &&
        s->in[i]->size > 1 && s->node->inputs[i] && !s->node->inputs[i]->constant)
      ASSAY_TRY(at_place(s, &y, ASSAY_EDIT_BEFORE, i, s->in[i]));
  return NULL;
}
