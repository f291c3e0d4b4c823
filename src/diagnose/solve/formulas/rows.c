// An operator that is missing along an axis: running sums and products, differences, shares, with a
// factor and a summand after it.
//
// A few rows tell whether it is that: least squares of what has to be there over what the operator
// makes. Then all of it is evaluated.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/formulas/along.h"
#include "diagnose/solve/missing.h"

enum { ROWS = 6, LONGEST = 4096, LEAST = 6 };

// Rows along an axis, one after the other.
typedef struct rows {
  int axis;
  int64_t n;  // elements of each
  int rows;
  double *x, *want, *made;  // [rows][n]
} rows_t;

static void take_rows(const assay_missing_place_t* p, rows_t* r) {
  const int64_t inner = assay_dims_product(p->x->dims, r->axis + 1, p->x->rank);
  const int64_t all = p->x->size / r->n;
  for (int k = 0; k < r->rows; k++) {
    const int64_t row = (int64_t)((double)k * (double)all / r->rows);
    const int64_t at = row / inner * inner * r->n + row % inner;
    for (int64_t i = 0; i < r->n; i++) {
      r->x[k * r->n + i] = assay_f64(p->x)[at + i * inner];
      r->want[k * r->n + i] = assay_f64(p->want)[at + i * inner];
    }
  }
}

// want = offset + factor made, by least squares. False: it is not.
static bool fits(const rows_t* r, double* factor, double* offset) {
  const int64_t n = r->rows * r->n;
  double mm = 0, mw = 0, vv = 0, vw = 0, ww = 0, left = 0;
  for (int64_t i = 0; i < n; i++) {
    mm += r->made[i] / (double)n;
    mw += r->want[i] / (double)n;
  }
  for (int64_t i = 0; i < n; i++) {
    vv += (r->made[i] - mm) * (r->made[i] - mm);
    vw += (r->made[i] - mm) * (r->want[i] - mw);
    ww += (r->want[i] - mw) * (r->want[i] - mw);
  }
  if (!(vv > 0) || !(ww > 0) || !isfinite(vw)) return false;
  *factor = vw / vv;
  *offset = mw - *factor * mm;
  for (int64_t i = 0; i < n; i++) {
    const double d = r->want[i] - *offset - *factor * r->made[i];
    left += d * d;
  }
  return left <= 1e-8 * ww;
}

// A program with the numbers of its axis filled in.
static void expand(const char* program, int axis, int rank, char* out, size_t size) {
  size_t at = 0;
  for (const char* c = program; *c && at + 4 * ASSAY_MAX_RANK < size; c++) {
    if (*c == '@')
      at += (size_t)snprintf(out + at, size - at, "%d", axis);
    else if (*c == '&')
      for (int i = 0; i < 2 * rank; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%d", i ? "," : "", i == axis);
    else
      out[at++] = *c;
  }
  out[at] = 0;
}

// A number as it was meant, in four digits: 1 for 0.9999998.
static double as_meant(double x) {
  char text[32];
  snprintf(text, sizeof text, "%.3e", x);
  const double y = strtod(text, NULL);
  return fabs(x - y) <= 1e-5 * fabs(y) ? y : x;
}

static assay_status_t try_kind(assay_missing_search_t* s, const assay_missing_place_t* p,
                               const assay_along_kind_t* k, const rows_t* r) {
  char program[ASSAY_FORMULA_TEXT], text[160];
  double factor = 1, offset = 0, size = 0;
  if (!fits(r, &factor, &offset)) return NULL;
  for (int64_t i = 0; i < r->rows * r->n; i++) size = fmax(size, fabs(r->want[i]));
  factor = as_meant(factor);
  offset = fabs(offset) <= 1e-6 * size ? 0 : as_meant(offset);
  expand(k->program, r->axis, p->x->rank, program, sizeof program);
  size_t at = strlen(program);
  if (factor != 1) at += (size_t)snprintf(program + at, sizeof program - at, " %.9g *", factor);
  if (offset != 0) snprintf(program + at, sizeof program - at, " %.9g +", offset);
  const char* numbers = factor != 1 || offset != 0 ? " (with a factor or a summand)" : "";
  snprintf(text, sizeof text, p->source ? "%s along axis %d%s of" : "%s along axis %d%s missing",
           k->says, r->axis, numbers);
  const assay_formula_terms_t terms = {.program = program, .axes = {r->axis}, .n_axes = 1};
  return assay_missing_try(s, p, &terms, "missing node", text);
}

static assay_status_t along(assay_missing_search_t* s, const assay_missing_place_t* p, rows_t* r) {
  const size_t n = (size_t)(r->rows * r->n);
  assay_status_t st = assay_new_array(n, sizeof *r->x, &r->x);
  if (!st) st = assay_new_array(n, sizeof *r->want, &r->want);
  if (!st) st = assay_new_array(n, sizeof *r->made, &r->made);
  if (!st) take_rows(p, r);
  for (size_t i = 0; !st && i < assay_along_count() && !assay_missing_is_over(s); i++) {
    const assay_along_kind_t* k = assay_along_get(i);
    if (!k->program) continue;
    for (int row = 0; row < r->rows; row++) k->of(r->x + row * r->n, r->n, r->made + row * r->n);
    st = try_kind(s, p, k, r);
  }
  assay_free(r->x);
  assay_free(r->want);
  assay_free(r->made);
  return st;
}

assay_status_t assay_missing_along(assay_missing_search_t* s, const assay_missing_place_t* p) {
  if (!p->want || !p->x || p->x->store != ASSAY_STORE_F64 || p->want->store != ASSAY_STORE_F64 ||
      !p->want->size || !assay_tensor_alike(p->x, p->want))
    return NULL;
  for (int axis = p->x->rank; axis-- > 0 && !assay_missing_is_over(s);) {
    rows_t r = {.axis = axis, .n = p->x->dims[axis]};
    const int64_t all = p->x->size / r.n;
    r.rows = all < ROWS ? (int)all : ROWS;
    // As many numbers as are fitted, and some more.
    if (r.n < 2 || r.n > LONGEST || r.rows * r.n < LEAST) continue;
    ASSAY_TRY(along(s, p, &r));
  }
  return NULL;
}
