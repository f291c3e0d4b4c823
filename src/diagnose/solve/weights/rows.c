// Weights of products: the least squares solution of rows times weights.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/products.h"

// a = X^T X (lower part), b = X^T R of a group: R is what the product lacks.
static assay_status_t gather(const assay_solve_t* s, const assay_product_t* p, int64_t group,
                             bool* held, double* a, double* b) {
  enum { SPARE = 64 };
  const int64_t k = p->terms, n = p->columns;
  // More rows than this say little more.
  const int64_t step = p->rows > 8 * (k + SPARE) ? p->rows / (8 * (k + SPARE)) : 1;
  double* x = NULL;
  ASSAY_TRY(assay_new_array((size_t)k, sizeof *x, &x));
  memset(a, 0, (size_t)(k * k) * sizeof *a);
  memset(b, 0, (size_t)(k * n) * sizeof *b);
  for (int64_t row = 0; row < p->rows; row += step) {
    if (held && assay_solve_tests(row)) {
      for (int64_t c = 0; c < n; c++) held[assay_product_place(p, row, group, c)] = true;
      continue;
    }
    assay_product_row(s, p, row, group, x);
    for (int64_t i = 0; i < k; i++) {
      if (x[i] == 0) continue;
      for (int64_t j = 0; j <= i; j++) a[i * k + j] += x[i] * x[j];
      for (int64_t c = 0; c < n; c++) {
        const int64_t at = assay_product_place(p, row, group, c);
        b[i * n + c] += x[i] * (assay_f64(s->want)[at] - assay_f64(s->have)[at]) / p->alpha;
      }
    }
  }
  assay_free(x);
  return NULL;
}

// The ridge keeps directions that no row has where they are.
static bool solve(int64_t k, int64_t n, double* a, double* b) {
  static const double RIDGE = 1e-11;
  double trace = 0;
  for (int64_t i = 0; i < k; i++) trace += a[i * k + i];
  return trace > 0 && isfinite(trace) &&
         assay_solve_cholesky(k, n, RIDGE * trace / (double)k, a, b);
}

assay_status_t assay_solve_rows(const assay_solve_t* s, bool* held, assay_tensor_t** out) {
  assay_product_t p;
  double *a = NULL, *b = NULL;
  *out = NULL;
  if (!assay_product_read(s, &p)) return NULL;
  assay_tensor_t* made = NULL;
  assay_status_t st = assay_tensor_copy(s->in[s->input], &made);
  if (!st) st = assay_new_array((size_t)(p.terms * p.terms), sizeof *a, &a);
  if (!st) st = assay_new_array((size_t)(p.terms * p.columns), sizeof *b, &b);
  bool solved = true;
  for (int64_t g = 0; !st && solved && g < p.groups; g++) {
    st = gather(s, &p, g, held, a, b);
    solved = !st && solve(p.terms, p.columns, a, b);
    for (int64_t t = 0; solved && t < p.terms; t++)
      for (int64_t c = 0; c < p.columns; c++)
        assay_f64(made)[assay_product_weight(&p, g, t, c)] += b[t * p.columns + c];
  }
  assay_free(a);
  assay_free(b);
  if (!st && solved) {
    *out = made;
    made = NULL;
  }
  assay_tensor_release(made);
  return st;
}
