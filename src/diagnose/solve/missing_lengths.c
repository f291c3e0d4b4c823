// What goes by the lengths of sequences: rows that are turned round without their padding, the last
// step of each, a number beyond them.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

typedef struct by_length {
  assay_missing_search_t* s;
  const assay_missing_place_t* p;
  const assay_tensor_t* x;
  const assay_missing_other_t* lengths;
  int time, batch;  // dimensions of x
} by_length_t;

static bool is_lengths(const assay_missing_other_t* o) {
  return o->varies && o->tensor->store == ASSAY_STORE_I64 && o->tensor->rank == 1 &&
         (o->tensor->type == ASSAY_TYPE_INT64 || o->tensor->type == ASSAY_TYPE_INT32);
}

static bool are_within(const by_length_t* k) {
  const assay_tensor_t* n = k->lengths->tensor;
  for (int64_t i = 0; i < n->size; i++)
    if (assay_i64(n)[i] < 1 || assay_i64(n)[i] > k->x->dims[k->time]) return false;
  return true;
}

static assay_status_t attempt(const by_length_t* k, const assay_formula_terms_t* terms,
                              const char* what) {
  char text[160];
  snprintf(text, sizeof text, "%s by '%.60s' %s", what, k->lengths->value->name,
           k->p->source ? "of" : "is missing");
  return assay_missing_try(k->s, k->p, terms, "missing operator", text);
}

// ReverseSequence, of what is there or of what the node reads; it takes lengths of 64 bits, and
// time and batch as the first two dimensions.
static assay_status_t reversed(const by_length_t* k) {
  char program[96];
  const bool wide = k->lengths->tensor->type == ASSAY_TYPE_INT64;
  if (!wide || k->time > 1 || k->batch > 1 || !assay_tensor_alike(k->x, k->p->want)) return NULL;
  const assay_formula_terms_t terms = {.program = program, .value = k->lengths->value};
  snprintf(program, sizeof program, "x v reversed:%d,%d", k->time, k->batch);
  return attempt(k, &terms, "ReverseSequence");
}

// The last step of each sequence: GatherND with the batch in front.
static assay_status_t last(const by_length_t* k) {
  const assay_tensor_t* want = k->p->want;
  if (k->lengths->tensor->type != ASSAY_TYPE_INT64 || k->batch > 1 || k->time > 1 ||
      want->rank + 1 != k->x->rank || want->size * k->x->dims[k->time] != k->x->size)
    return NULL;
  assay_formula_terms_t terms = {.value = k->lengths->value, .n_axes = 1, .axes = {1}};
  char program[ASSAY_FORMULA_TEXT];
  int64_t order[ASSAY_MAX_RANK], one = -1, batch = 1;
  for (int i = 0; i < k->x->rank; i++) order[i] = i;
  order[0] = k->batch;
  order[1] = k->time;
  size_t used = assay_formula_append(program, 0, "x", NULL, 0);
  if (k->batch) used = assay_formula_append(program, used, "transpose", order, k->x->rank);
  used = assay_formula_append(program, used, "v k:0 + unsqueeze", NULL, 0);
  used = assay_formula_append(program, used, "last", &batch, 1);
  if (used >= sizeof program) return NULL;
  terms.program = program;
  ASSAY_TRY(assay_tensor_vector_i64(k->lengths->tensor->type, 1, &one, &terms.constants[0]));
  assay_status_t st = attempt(k, &terms, "the last steps");
  assay_tensor_release(terms.constants[0]);
  return st;
}

// Whether what is wanted is x within the lengths, and one number beyond them.
static bool ends_with(const by_length_t* k, double* number) {
  const assay_tensor_t *x = k->x, *want = k->p->want;
  const int64_t t_inner = assay_dims_product(x->dims, k->time + 1, x->rank);
  const int64_t b_inner = assay_dims_product(x->dims, k->batch + 1, x->rank);
  bool any = false;
  for (int64_t i = 0; i < x->size; i++) {
    const int64_t t = i / t_inner % x->dims[k->time], b = i / b_inner % x->dims[k->batch];
    const double is = assay_f64(want)[i];
    const double should = t < assay_i64(k->lengths->tensor)[b] ? assay_f64(x)[i]
                          : any                                ? *number
                                                               : is;
    if (!(fabs(is - should) <= 1e-5 * fabs(should)) && is != should) return false;
    if (t >= assay_i64(k->lengths->tensor)[b]) *number = is, any = true;
  }
  return any;
}

static assay_status_t bounded(const by_length_t* k) {
  double number = 0;
  int64_t steps[ASSAY_MAX_RANK], rows[ASSAY_MAX_RANK];
  char program[ASSAY_FORMULA_TEXT], after[64];
  if (!assay_tensor_alike(k->x, k->p->want) || !ends_with(k, &number)) return NULL;
  for (int i = 0; i < k->x->rank; i++) steps[i] = rows[i] = 1;
  steps[k->time] = k->x->dims[k->time];
  rows[k->batch] = -1;
  assay_formula_terms_t terms = {.program = program, .value = k->lengths->value};
  size_t used = assay_formula_append(program, 0, "k:0 v", NULL, 0);
  used = assay_formula_append(program, used, "reshape", rows, k->x->rank);
  snprintf(after, sizeof after, "< x %.9g where", number);
  used = assay_formula_append(program, used, after, NULL, 0);
  if (used >= sizeof program) return NULL;
  ASSAY_TRY(assay_tensor_create(k->lengths->tensor->type, k->x->rank, steps, &terms.constants[0]));
  for (int64_t i = 0; i < terms.constants[0]->size; i++) assay_i64(terms.constants[0])[i] = i;
  assay_status_t st = attempt(k, &terms, "a mask");
  assay_tensor_release(terms.constants[0]);
  return st;
}

static assay_status_t of_source(by_length_t* k) {
  for (k->time = 0; k->time < k->x->rank; k->time++)
    for (k->batch = 0; k->batch < k->x->rank && !assay_missing_is_over(k->s); k->batch++) {
      if (k->time == k->batch || k->x->dims[k->batch] != k->lengths->tensor->size || !are_within(k))
        continue;
      ASSAY_TRY(reversed(k));
      ASSAY_TRY(last(k));
      ASSAY_TRY(bounded(k));
    }
  return NULL;
}

assay_status_t assay_missing_lengths(assay_missing_search_t* s, const assay_missing_place_t* p) {
  enum { SOURCES = 12 };
  if (!p->want || p->want->store != ASSAY_STORE_F64 || !p->want->size) return NULL;
  for (size_t i = 0; i < s->n_others && !assay_missing_is_over(s); i++) {
    if (!is_lengths(&s->others[i])) continue;
    by_length_t k = {.s = s, .p = p, .x = p->x, .lengths = &s->others[i]};
    if (p->x && p->x->store == ASSAY_STORE_F64) ASSAY_TRY(of_source(&k));
    // From what is near before it.
    for (size_t j = 0, n = 0; j < s->n_others && n < SOURCES && !assay_missing_is_over(s); j++) {
      const assay_missing_other_t* o = &s->others[j];
      if (p->source || !o->varies || o->tensor->store != ASSAY_STORE_F64) continue;
      assay_missing_place_t from = *p;
      from.x = o->tensor;
      from.source = o->value;
      k.p = &from;
      k.x = o->tensor;
      n++;
      ASSAY_TRY(of_source(&k));
    }
  }
  return NULL;
}
