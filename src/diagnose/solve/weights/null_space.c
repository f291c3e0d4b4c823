// What one sample leaves open of a weight: the null space of the rows that it is multiplied with.
//
// Where a sample has fewer rows than a weight has terms, least squares set what the rows tell; only
// the rest has to be found by other samples, and is often few numbers where the weight is many.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/products.h"

enum { MAX_TERMS = 256 };

static double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// Takes the basis' part out of x, twice, as rounding asks for (B. N. Parlett, The Symmetric
// Eigenvalue Problem, 6.9); the square of what is left.
static double project(double* x, const double* basis, int64_t rank, int64_t n) {
  for (int k = 0; k < 2; k++)
    for (int64_t i = 0; i < rank; i++) {
      const double f = dot(x, basis + i * n, n);
      for (int64_t t = 0; t < n; t++) x[t] -= f * basis[i * n + t];
    }
  return dot(x, x, n);
}

static void add_to(double* basis, int64_t at, const double* x, double square, int64_t n) {
  const double by = 1 / sqrt(square);
  for (int64_t t = 0; t < n; t++) basis[at * n + t] = x[t] * by;
}

// An orthonormal basis of the rows, then of what they leave. basis [terms][terms]; returns how many
// of the latter, which become the first.
static int64_t find_space(const assay_solve_t* s, const assay_product_t* p, int64_t group,
                          double* x, double* basis) {
  static const double NOTHING = 1e-10;  // of a square: what float32 leaves of a row
  const int64_t n = p->terms;
  int64_t rank = 0, full = 0;
  for (int64_t row = 0; row < p->rows && rank < n; row++) {
    assay_product_row(s, p, row, group, x);
    const double before = dot(x, x, n), left = project(x, basis, rank, n);
    if (left > NOTHING * before) add_to(basis, rank++, x, left, n);
  }
  // Each time the unit vector of which most is left.
  for (full = rank; full < n; full++) {
    int64_t which = 0;
    double most = -1;
    for (int64_t t = 0; t < n; t++) {
      double left = 1;
      for (int64_t i = 0; i < full; i++) left -= basis[i * n + t] * basis[i * n + t];
      if (left > most) most = left, which = t;
    }
    memset(x, 0, (size_t)n * sizeof *x);
    x[which] = 1;
    const double left = project(x, basis, full, n);
    if (!(left > 0)) break;
    add_to(basis, full, x, left, n);
  }
  memmove(basis, basis + rank * n, (size_t)((full - rank) * n) * sizeof *basis);
  return full - rank;
}

assay_status_t assay_null_space_create(const assay_solve_t* s, assay_null_space_t* out) {
  assay_null_space_t k = {0};
  double* x = NULL;
  *out = k;
  if (!assay_product_read(s, &k.p) || k.p.terms > MAX_TERMS) return NULL;
  const size_t terms = (size_t)k.p.terms, groups = (size_t)k.p.groups;
  assay_status_t st = assay_new_array(groups, sizeof *k.count, &k.count);
  if (!st) st = assay_new_array(groups * terms * terms, sizeof *k.direction, &k.direction);
  if (!st) st = assay_new_array(terms, sizeof *x, &x);
  for (size_t g = 0; !st && g < groups; g++) {
    k.count[g] = find_space(s, &k.p, (int64_t)g, x, k.direction + g * terms * terms);
    k.n += k.count[g] * k.p.columns;
  }
  assay_free(x);
  if (st) return assay_null_space_deinit(&k), st;
  *out = k;
  return NULL;
}

void assay_null_space_deinit(assay_null_space_t* k) {
  assay_free(k->count);
  assay_free(k->direction);
  *k = (assay_null_space_t){0};
}

void assay_null_space_move(const assay_null_space_t* k, assay_tensor_t* x, const assay_tensor_t* at,
                           int64_t j, double step) {
  const int64_t n = k->p.terms;
  int64_t group = 0;
  for (; j >= k->count[group] * k->p.columns; group++) j -= k->count[group] * k->p.columns;
  const double* d = k->direction + (group * n + j / k->p.columns) * n;
  for (int64_t t = 0; t < n; t++) {
    const int64_t w = assay_product_weight(&k->p, group, t, j % k->p.columns);
    assay_f64(x)[w] = assay_f64(at)[w] + step * d[t];
  }
}
