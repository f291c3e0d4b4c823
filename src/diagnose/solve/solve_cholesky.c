// Symmetric linear systems, by Cholesky (N. J. Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd ed., 10.1).
#include <math.h>

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
