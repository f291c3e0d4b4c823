// A constant that is one number everywhere, which is another one: what a scatter or a maximum
// begins with, what fills a mask or a border. What golden's output holds most often is what shows
// of it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { NUMBERS = 16, LOOK = 4096 };

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// The numbers that occur most often, those first; finite ones.
static assay_status_t find_frequent(const assay_tensor_t* want, double* out, int* out_n) {
  enum { FEW = 4 };
  const int64_t n = want->size < LOOK ? want->size : LOOK;
  int64_t count[FEW] = {0};
  double* sorted = NULL;
  *out_n = 0;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *sorted, &sorted));
  for (int64_t i = 0; i < n; i++) {
    const double x = assay_f64(want)[(int64_t)((double)i * (double)want->size / (double)n)];
    sorted[i] = isfinite(x) ? x : 0;
  }
  qsort(sorted, (size_t)n, sizeof *sorted, by_value);
  for (int64_t i = 0, next; i < n; i = next) {
    for (next = i + 1; next < n && sorted[next] == sorted[i]; next++)
      ;
    int at = *out_n < FEW ? (*out_n)++ : FEW;
    for (; at > 0 && count[at - 1] < next - i; at--)
      if (at < FEW) count[at] = count[at - 1], out[at] = out[at - 1];
    if (at < FEW) count[at] = next - i, out[at] = sorted[i];
  }
  assay_free(sorted);
  return NULL;
}

static bool is_uniform(const assay_tensor_t* t) {
  for (int64_t i = 1; i < t->size; i++)
    if (assay_f64(t)[i] != assay_f64(t)[0]) return false;
  return t->size > 0;
}

// Numbers that say how large the output is: others would make it of any size.
static bool is_size(const assay_missing_search_t* s, size_t input) {
  const assay_param_t* p = s->node->schema ? assay_schema_input(s->node->schema, input) : NULL;
  return p && (strcmp(p->name, "depth") == 0 || strcmp(p->name, "limit") == 0 ||
               strcmp(p->name, "delta") == 0 || strcmp(p->name, "start") == 0);
}

static assay_status_t offer_number(assay_missing_search_t* s, size_t input, double number) {
  const assay_tensor_t* was = s->in[input];
  assay_repair_t r = {.node = s->node, .cause = "constant numbers", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = input};
  ASSAY_TRY(assay_tensor_create(was->type, was->rank, was->dims, &r.edits[0].tensor));
  for (int64_t i = 0; i < was->size; i++) assay_f64(r.edits[0].tensor)[i] = number;
  snprintf(r.text, sizeof r.text, "'%.100s' is %.7g everywhere instead of %.7g",
           s->node->inputs[input]->name, number, assay_f64(was)[0]);
  assay_status_t st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

assay_status_t assay_missing_uniform(assay_missing_search_t* s, const assay_tensor_t* want) {
  static const double USUAL[] = {0, 1, -1, -1e9, -1e4, -3.40282347e38, 3.40282347e38, 1e9};
  double numbers[NUMBERS];
  int n = 0;
  if (want->store != ASSAY_STORE_F64 || !want->size) return NULL;
  ASSAY_TRY(find_frequent(want, numbers, &n));
  for (size_t i = 0; i < sizeof USUAL / sizeof *USUAL; i++) numbers[n++] = USUAL[i];
  for (size_t i = 0; i < s->n_in; i++) {
    const assay_value_t* v = s->node->inputs[i];
    if (!v || !v->constant || !s->in[i] || s->in[i]->store != ASSAY_STORE_F64 ||
        !is_uniform(s->in[i]) || is_size(s, i))
      continue;
    for (int k = 0; k < n && !assay_missing_is_over(s); k++)
      if (numbers[k] != assay_f64(s->in[i])[0]) ASSAY_TRY(offer_number(s, i, numbers[k]));
  }
  return NULL;
}
