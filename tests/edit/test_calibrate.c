// Ranges that calibrators choose: distributions of which the best one is known, and what holds for
// any.
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka after those that it needs
#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "edit/weights/calibrate.h"

static const char* const names[] = {"minmax", "entropy", "percentile"};
enum { N_NAMES = sizeof names / sizeof *names };

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

// ---- data ---------------------------------------------------------------------------------------

enum { GAUSS, GAUSS_OUTLIER, UNIFORM, LAPLACE, RELU, EQUAL, FEW, TINY, HUGE_ONES, N_KINDS };
static const char* const kinds[] = {
    "gauss",     "gauss with an outlier", "uniform",   "laplace", "relu",
    "all equal", "three elements",        "subnormal", "huge"};

static double draw(int kind, const assay_random_t* r, uint64_t i) {
  const double u = assay_random_uniform(r, i), g = assay_random_normal(r, i);
  switch (kind) {
    case GAUSS_OUTLIER:
      return i == 777 ? -1000 : g;
    case UNIFORM:
      return 2 * u - 1;
    case LAPLACE:
      return u < 0.5 ? log(2 * u + 1e-300) : -log(2 - 2 * u);
    case RELU:
      return g > 0.5 ? g : 0;
    case EQUAL:
      return -5;
    case TINY:
      return 0x1p-1074 * (double)(1 + i % 9);
    case HUGE_ONES:
      return 1e308 * u;
    default:
      return g;
  }
}

static double* make(int kind, size_t n) {
  double* x = malloc(n * sizeof *x);
  const assay_random_t r = assay_random_make(5, kinds[kind], 0);
  assert_non_null(x);
  for (size_t i = 0; i < n; i++) x[i] = draw(kind, &r, i);
  return x;
}

static int64_t add(assay_calibration_t* m, const double* x, size_t n) {
  assay_tensor_t* t = NULL;
  const int64_t dims = (int64_t)n;
  int64_t bad = -1;
  ok(assay_tensor_create(ASSAY_TYPE_DOUBLE, 1, &dims, &t));
  memcpy(assay_f64(t), x, n * sizeof *x);
  ok(assay_calibration_add(m, t, &bad));
  assay_tensor_release(t);
  return bad;
}

// The range of elements that are added in pieces: of this many, from the front or from the back.
static double range_of(const char* name, const double* x, size_t n, size_t piece, bool backwards,
                       double quantile) {
  assay_calibration_t* m = NULL;
  double range = -1;
  ok(assay_calibration_create(assay_calibrator_find(name), &m));
  for (size_t at = 0; at < n; at += piece) {
    const size_t size = n - at < piece ? n - at : piece;
    assert_int_equal(add(m, backwards ? x + n - at - size : x + at, size), 0);
  }
  ok(assay_calibration_range(m, quantile, &range));
  assay_calibration_destroy(m);
  return range;
}

static double max_of(const double* x, size_t n) {
  double max = 0;
  for (size_t i = 0; i < n; i++) max = fmax(max, fabs(x[i]));
  return max;
}

// ---- tests --------------------------------------------------------------------------------------

enum { N = 60000 };

// Never above the largest magnitude, never 0; the same whatever the pieces, their order and the
// number of threads.
static void any_data(void** state) {
  (void)state;
  for (int kind = 0; kind < N_KINDS; kind++) {
    const size_t n = kind == FEW ? 3 : N;
    double* x = make(kind, n);
    const double max = max_of(x, n);
    for (int c = 0; c < N_NAMES; c++) {
      const double range = range_of(names[c], x, n, n, false, 0.99);
      if (!(range > 0 && range <= max)) fail_msg("%s of %s: %g", names[c], kinds[kind], range);
      static const size_t pieces[] = {1000, 7, 59999};
      for (size_t p = 0; p < 3; p++)
        for (int backwards = 0; backwards < 2; backwards++) {
          omp_set_num_threads(backwards ? 4 : 1);
          const double other = range_of(names[c], x, n, pieces[p], backwards, 0.99);
          if (memcmp(&other, &range, sizeof range) != 0)
            fail_msg("%s of %s: %.17g, and in pieces of %zu %.17g", names[c], kinds[kind], range,
                     pieces[p], other);
        }
    }
    assert_true(range_of("minmax", x, n, n, false, 0) == max);
    free(x);
  }
  omp_set_num_threads(2);
}

static void known_best(void** state) {
  (void)state;
  double* x = make(GAUSS_OUTLIER, N);
  const double entropy = range_of("entropy", x, N, N, false, 0);
  assert_true(range_of("minmax", x, N, N, false, 0) == 1000);
  // The outlier is one in 60000: what clipping it costs is next to nothing, and with it the bell
  // would lie in one of 128 levels.
  if (!(entropy > 3 && entropy < 40)) fail_msg("entropy of a bell with an outlier: %g", entropy);
  x[777] = 50;  // nearer, with narrower bins
  const double nearer = range_of("entropy", x, N, N, false, 0);
  if (!(nearer > 3 && nearer < 6)) fail_msg("entropy of a bell with an outlier at 50: %g", nearer);
  free(x);
  // Nothing is gained by clipping what is spread evenly, nor what is in a bin each.
  x = make(UNIFORM, N);
  assert_true(range_of("entropy", x, N, N, false, 0) > 0.97);
  free(x);
  x = make(FEW, 3);
  assert_true(range_of("entropy", x, 3, 3, false, 0) == max_of(x, 3));
  free(x);
}

static int by_value(const void* a, const void* b) {
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static void quantiles(void** state) {
  static const double wanted[] = {0.01, 0.25, 0.5, 0.9, 0.999, 0.9999, 1};
  (void)state;
  for (int kind = GAUSS; kind <= LAPLACE; kind++) {
    double *x = make(kind, N), *sorted = make(kind, N);
    for (size_t i = 0; i < N; i++) sorted[i] = fabs(sorted[i]);
    qsort(sorted, N, sizeof *sorted, by_value);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
      const double exact = sorted[(size_t)ceil(wanted[i] * N) - 1];
      const double range = range_of("percentile", x, N, 999, false, wanted[i]);
      if (fabs(range - exact) > exact / 127)
        fail_msg("%s: quantile %g is %g, not %g", kinds[kind], wanted[i], range, exact);
    }
    free(x);
    free(sorted);
  }
  // Half of it is zero: a range of 0 would clip all the others away.
  double* x = make(RELU, N);
  assert_true(range_of("percentile", x, N, N, false, 0.5) == max_of(x, N));
  free(x);
}

// The divergence as it is defined, bin by bin.
static double plain_divergence(const double* bins, size_t n, size_t k) {
  double all = 0, kept = 0, sum = 0;
  double *p = calloc(k, sizeof *p), *q = calloc(k, sizeof *q);
  assert_non_null(p);
  assert_non_null(q);
  for (size_t i = 0; i < n; i++) all += bins[i], p[i < k ? i : k - 1] += bins[i];
  for (size_t i = 0; i < k; i++) kept += bins[i];
  if (kept < all && bins[k - 1] == 0) kept += q[k - 1] = 0.5;
  for (size_t level = 0; level < 128; level++) {
    const size_t from = level * k / 128, to = (level + 1) * k / 128;
    double total = 0, filled = 0;
    for (size_t i = from; i < to; i++) total += bins[i], filled += bins[i] > 0;
    for (size_t i = from; i < to; i++)
      if (bins[i] > 0) q[i] = total / filled;
  }
  for (size_t i = 0; i < k; i++)
    if (p[i] > 0) sum += q[i] > 0 ? p[i] / all * log(p[i] / all / (q[i] / kept)) : (double)INFINITY;
  free(p);
  free(q);
  return sum;
}

static void entropy_is_the_least(void** state) {
  (void)state;
  for (int kind = GAUSS; kind <= RELU; kind++) {
    double* x = make(kind, 5000);
    double bins[4096] = {0}, max = max_of(x, 5000), min = (double)INFINITY;
    int above;
    frexp(max, &above);
    const double width = ldexp(1, above - 12);
    const size_t n = (size_t)(max / width) + 1;
    for (size_t i = 0; i < 5000; i++)
      if (x[i] != 0) bins[(size_t)(fabs(x[i]) / width)]++;
    for (size_t k = 128; k <= n; k++) min = fmin(min, plain_divergence(bins, n, k));
    const double range = range_of("entropy", x, 5000, 5000, false, 0);
    // The range is the middle of the bin behind those that are kept, or the largest magnitude.
    const size_t chosen = range < max ? (size_t)(range / width) : n;
    const double got = plain_divergence(bins, n, chosen);
    if (!(got <= min + 1e-12)) fail_msg("%s: %.17g is not least: %.17g", kinds[kind], got, min);
    free(x);
  }
}

static void not_finite(void** state) {
  const double x[] = {1, (double)NAN, -3, (double)INFINITY, -(double)INFINITY, 0};
  (void)state;
  for (int c = 0; c < N_NAMES; c++) {
    assay_calibration_t* m = NULL;
    double range;
    ok(assay_calibration_create(assay_calibrator_find(names[c]), &m));
    ok(assay_calibration_range(m, 1, &range));
    assert_true(range == 0);
    assert_int_equal(add(m, x + 5, 1), 0);
    ok(assay_calibration_range(m, 1, &range));
    assert_true(range == 0);  // of zeros
    assert_int_equal(add(m, x, 6), 3);
    ok(assay_calibration_range(m, 1, &range));
    assert_true(range == 3);
    assay_calibration_destroy(m);
  }
  assert_null(assay_calibrator_find("frob"));
}

// Allocation N fails, for all N.
static void failing_allocations(void** state) {
  const double x[] = {1, 2, 3, 1e9};
  const int64_t dims = 4, live = assay_alloc_live();
  (void)state;
  for (int c = 0; c < N_NAMES; c++) {
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
      assay_tensor_t* t = NULL;
      assay_calibration_t* m = NULL;
      int64_t bad;
      double range;
      ok(assay_tensor_create(ASSAY_TYPE_DOUBLE, 1, &dims, &t));
      memcpy(assay_f64(t), x, sizeof x);
      assay_alloc_fail_after(n, false);
      assay_status_t st = assay_calibration_create(assay_calibrator_find(names[c]), &m);
      if (!st) st = assay_calibration_add(m, t, &bad);
      if (!st) st = assay_calibration_range(m, 0.5, &range);
      failed = assay_alloc_fail_after(0, false) >= n;
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_calibration_destroy(m);
      assay_tensor_release(t);
      assert_int_equal(assay_alloc_live(), live);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_data),   cmocka_unit_test(known_best),
      cmocka_unit_test(quantiles),  cmocka_unit_test(entropy_is_the_least),
      cmocka_unit_test(not_finite), cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
