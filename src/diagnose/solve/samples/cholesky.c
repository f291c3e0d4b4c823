// Symmetric linear systems and steps of Gauss and Newton, by Cholesky (N. J. Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd ed., 10.1).
#include <math.h>
#include <string.h>

#include "diagnose/solve/solve.h"

bool assay_solve_cholesky(int64_t k, int64_t n, double ridge, double* a, double* b) {
  for (int64_t i = 0; i < k; i++) {
    double* row = a + i * k;
    row[i] += ridge;
    for (int64_t j = 0; j <= i; j++) {
      const double* other = a + j * k;
      double sum = row[j];
      for (int64_t t = 0; t < j; t++) sum -= row[t] * other[t];
      if (j < i) {
        row[j] = sum / other[j];
      } else if (!(sum > 0)) {
        return false;
      } else {
        row[i] = sqrt(sum);
      }
    }
  }
  for (int64_t i = 0; i < k; i++)
    for (int64_t c = 0; c < n; c++) {
      for (int64_t t = 0; t < i; t++) b[i * n + c] -= a[i * k + t] * b[t * n + c];
      b[i * n + c] /= a[i * k + i];
    }
  for (int64_t i = k; i-- > 0;)
    for (int64_t c = 0; c < n; c++) {
      for (int64_t t = i + 1; t < k; t++) b[i * n + c] -= a[t * k + i] * b[t * n + c];
      b[i * n + c] /= a[i * k + i];
    }
  return true;
}

void assay_solve_set_normal(int64_t n, int64_t m, const double* jacobian, const double* now,
                            assay_solve_normal_t* z) {
  for (int64_t i = 0; i < n; i++) {
    const double* p = jacobian + i * m;
    z->b[i] = 0;
    for (int64_t t = 0; t < m; t++) z->b[i] -= p[t] * now[t];
    for (int64_t j = 0; j <= i; j++) {
      const double* q = jacobian + j * m;
      double sum = 0;
      for (int64_t t = 0; t < m; t++) sum += p[t] * q[t];
      z->a[i * n + j] = sum;
    }
  }
}

bool assay_solve_step(int64_t n, double ridge, assay_solve_normal_t* z) {
  double trace = 0;
  for (int64_t i = 0; i < n; i++) trace += z->a[i * n + i];
  if (!(trace > 0) || !isfinite(trace)) return false;
  memcpy(z->factor, z->a, (size_t)(n * n) * sizeof *z->a);
  memcpy(z->d, z->b, (size_t)n * sizeof *z->d);
  return assay_solve_cholesky(n, 1, ridge * trace / (double)n, z->factor, z->d);
}
