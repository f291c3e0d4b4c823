// Numbers that are missing: a bias, a scale, both, by the dimensions that they go along.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { MIN_EQUATIONS = 2 };  // for each unknown number

// Which dimensions of the output the numbers keep.
typedef struct along {
  const assay_tensor_t* want;
  bool keeps[ASSAY_MAX_RANK];
  int64_t size;  // how many numbers
} along_t;

static int64_t number_of(const along_t* a, int64_t at) {
  int64_t index = 0, step = 1;
  for (int i = a->want->rank; i-- > 0;) {
    if (a->keeps[i]) {
      index += at % a->want->dims[i] * step;
      step *= a->want->dims[i];
    }
    at /= a->want->dims[i];
  }
  return index;
}

static assay_status_t numbers_create(const along_t* a, assay_type_t type, assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  for (int i = 0; i < a->want->rank; i++) dims[i] = a->keeps[i] ? a->want->dims[i] : 1;
  return assay_tensor_create_zero(type, a->want->rank, dims, out);
}

// Sums over the places of each number.
typedef struct sums {
  double n, x, g, xx, xg;
} sums_t;

static assay_status_t sum_up(const along_t* a, const assay_tensor_t* x, sums_t** out) {
  ASSAY_TRY(assay_new_array((size_t)a->size, sizeof **out, out));
  for (int64_t i = 0; i < x->size; i++) {
    sums_t* s = &(*out)[number_of(a, i)];
    const double u = assay_f64(x)[i], g = assay_f64(a->want)[i];
    s->n++;
    s->x += u;
    s->g += g;
    s->xx += u * u;
    s->xg += u * g;
  }
  return NULL;
}

static void solve_bias(const sums_t* s, double* c, double* d) {
  *c = (s->g - s->x) / s->n;
  *d = 0;
}

static void solve_scale(const sums_t* s, double* c, double* d) {
  *c = s->xx > 0 ? s->xg / s->xx : 1;
  *d = 0;
}

static void solve_both(const sums_t* s, double* c, double* d) {
  const double var = s->xx - s->x * s->x / s->n;
  *c = var > 1e-12 * s->xx ? (s->xg - s->x * s->g / s->n) / var : 1;
  *d = (s->g - *c * s->x) / s->n;
}

typedef struct form {
  const char *program, *says;  // after what is there
  int unknowns;
  void (*solve)(const sums_t* s, double* c, double* d);
} form_t;

static const form_t FORMS[] = {
    {"c +", "a bias", 1, solve_bias},
    {"c *", "a factor", 1, solve_scale},
    {"c * d +", "a factor and a bias", 2, solve_both},
};

// What is there before the numbers.
typedef struct before {
  const assay_formula_terms_t* terms;
  const assay_tensor_t* made;
  const char* name;  // "": the place itself
} before_t;

static assay_status_t try_form(assay_missing_search_t* s, const assay_missing_place_t* p,
                               const before_t* before, const along_t* a, const form_t* form) {
  sums_t* sums = NULL;
  assay_formula_terms_t terms = *before->terms;
  char program[ASSAY_FORMULA_TEXT], text[160], numbers[48];
  if (a->size * form->unknowns * MIN_EQUATIONS > p->want->size) return NULL;
  ASSAY_TRY(sum_up(a, before->made, &sums));
  assay_status_t st = numbers_create(a, p->x->type, &terms.c);
  if (!st) st = numbers_create(a, p->x->type, &terms.d);
  for (int64_t i = 0; !st && i < a->size; i++)
    form->solve(&sums[i], &assay_f64(terms.c)[i], &assay_f64(terms.d)[i]);
  if (!st && a->size == 1)
    snprintf(numbers, sizeof numbers, "%.7g", assay_f64(terms.c)[0]);
  else
    snprintf(numbers, sizeof numbers, "%lld numbers", (long long)a->size);
  snprintf(text, sizeof text, "%s%s%s (%s) %s missing", before->name, *before->name ? " with " : "",
           form->says, numbers, form->unknowns > 1 && !*before->name ? "are" : "is");
  snprintf(program, sizeof program, "%s %s", before->terms->program, form->program);
  terms.program = program;
  if (!st) st = assay_missing_try(s, p, &terms, "missing node", text);
  assay_tensor_release(terms.c);
  assay_tensor_release(terms.d);
  assay_free(sums);
  return st;
}

static assay_status_t try_forms(assay_missing_search_t* s, const assay_missing_place_t* p,
                                const before_t* before, along_t* a) {
  a->size = 1;
  for (int i = 0; i < a->want->rank; i++)
    if (a->keeps[i]) a->size *= a->want->dims[i];
  for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS && !assay_missing_is_over(s); i++)
    ASSAY_TRY(try_form(s, p, before, a, &FORMS[i]));
  return NULL;
}

static bool is_fit_for(const assay_missing_place_t* p, const assay_tensor_t* made) {
  return p->want && p->want->size && p->want->store == ASSAY_STORE_F64 &&
         assay_tensor_alike(made, p->want);
}

// One number for each index of a dimension, the last first.
static assay_status_t along_each(assay_missing_search_t* s, const assay_missing_place_t* p,
                                 const before_t* before, along_t* a) {
  for (int i = p->want->rank; i-- > 0 && !assay_missing_is_over(s);) {
    memset(a->keeps, 0, sizeof a->keeps);
    a->keeps[i] = true;
    ASSAY_TRY(try_forms(s, p, before, a));
  }
  return NULL;
}

assay_status_t assay_missing_fits_after(assay_missing_search_t* s, const assay_missing_place_t* p,
                                        const assay_formula_terms_t* terms, assay_tensor_t* made,
                                        const char* name) {
  const before_t before = {terms, made, name};
  along_t a = {.want = p->want};
  if (!is_fit_for(p, made)) return NULL;
  if (terms->n_axes < 2) return along_each(s, p, &before, &a);
  for (int i = 0; i < terms->n_axes; i++) a.keeps[terms->axes[i]] = true;
  ASSAY_TRY(try_forms(s, p, &before, &a));
  return assay_missing_is_over(s) ? NULL : along_each(s, p, &before, &a);
}

// One number, then one for each index of a dimension, then for each of all but the batch's.
assay_status_t assay_missing_fits(assay_missing_search_t* s, const assay_missing_place_t* p) {
  const assay_formula_terms_t nothing = {.program = "x"};
  const before_t before = {&nothing, p->x, ""};
  along_t a = {.want = p->want};
  if (!p->x || !is_fit_for(p, p->x)) return NULL;
  ASSAY_TRY(try_forms(s, p, &before, &a));
  ASSAY_TRY(along_each(s, p, &before, &a));
  for (int i = 0; i < p->want->rank; i++) a.keeps[i] = i > 0;
  if (p->want->rank < 3 || assay_missing_is_over(s)) return NULL;
  return try_forms(s, p, &before, &a);
}
