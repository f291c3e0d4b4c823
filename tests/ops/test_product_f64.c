// Products in float64 of every size about the kernel's blocks: against sums in long double, within
// the rounding of a sum of k terms (Higham 2002, (3.5)); nothing beside the result is written.
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// cmocka needs these before it
#include <cmocka.h>

#include "ops/matmul/product_f64.h"
#include "seed_case.h"

enum { GUARD = -77 };

static double number(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 20) / 0x1p43 - 1;
}

static double* numbers(int64_t n, uint64_t* state) {
  double* x = malloc((size_t)n * sizeof *x);
  assert_non_null(x);
  for (int64_t i = 0; i < n; i++) x[i] = number(state);
  return x;
}

static int64_t below(uint64_t* state, int64_t n) {
  return (int64_t)((number(state) + 1) / 2 * (double)n);
}

static void check(int64_t m, int64_t n, int64_t k, bool add, uint64_t* state) {
  const int64_t lda = k + below(state, 3), ldb = n + below(state, 3), ldy = n + below(state, 9);
  double *a = numbers(m * lda, state), *b = numbers(k * ldb, state);
  double *y = malloc((size_t)(m * ldy) * sizeof *y), *before = numbers(m * n, state);
  for (int64_t i = 0; i < m * ldy; i++) y[i] = GUARD;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) y[i * ldy + j] = add ? before[i * n + j] : NAN;
  assay_product_f64(m, n, k, a, lda, b, ldb, add, y, ldy);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      long double sum = add ? before[i * n + j] : 0, size = fabsl(sum);
      for (int64_t l = 0; l < k; l++) {
        const long double term = (long double)a[i * lda + l] * b[l * ldb + j];
        sum += term;
        size += fabsl(term);
      }
      const double limit = (double)(k + 2) * DBL_EPSILON * (double)size;
      if (!(fabs(y[i * ldy + j] - (double)sum) <= limit))
        fail_msg("[%d, %d] of %d x %d x %d: %.17g is not %.17Lg", (int)i, (int)j, (int)m, (int)n,
                 (int)k, y[i * ldy + j], sum);
    }
    for (int64_t j = n; j < ldy; j++) assert_true(y[i * ldy + j] == GUARD);
  }
  free(a), free(b), free(y), free(before);
}

static void all_sizes(void** s) {
  (void)s;
  static const int64_t rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 63, 65, 72};
  static const int64_t columns[] = {1, 7, 8, 9, 16, 17, 24, 25, 32, 33, 48, 95, 96, 97, 104, 200};
  static const int64_t depths[] = {1, 2, 17, 191, 192, 193, 385};
  uint64_t state = 7;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
      for (size_t l = 0; l < sizeof depths / sizeof *depths; l++)
        check(rows[i], columns[j], depths[l], (i + j + l) % 2, &state);
}

static void random_sizes(void** s) {
  (void)s;
  uint64_t state = test_seed();
  for (int i = 0; i < 60; i++)
    check(1 + below(&state, 90), 1 + below(&state, 220), 1 + below(&state, 400), i % 2, &state);
}

// 0 times an infinity is a NaN, in every lane, and stays in its row and column.
static void infinities(void** s) {
  (void)s;
  enum { M = 11, N = 29, K = 5 };
  double a[M * K], b[K * N], y[M * N];
  for (int at = 0; at < N; at++) {
    for (int i = 0; i < M * K; i++) a[i] = i % K == 2 ? 0 : 1;
    for (int i = 0; i < K * N; i++) b[i] = 1;
    b[2 * N + at] = INFINITY;
    assay_product_f64(M, N, K, a, K, b, N, false, y, N);
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) assert_true(j == at ? isnan(y[i * N + j]) : y[i * N + j] == 4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_sizes), cmocka_unit_test(random_sizes),
                                     cmocka_unit_test(infinities)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
