// What the program relies on of its compiler beyond the language: rounding to float32 and back is
// no operation that may be left out. gcc 12 left it out for neighbours in memory
// (cmake/AssayFolder.cmake).
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs these before it
#include <cmocka.h>

__attribute__((noinline)) static void round_two(double* x) {
  x[0] = (double)(float)x[0];
  x[1] = (double)(float)x[1];
}

__attribute__((noinline)) static void round_four(const double* x, double* to) {
  to[0] = (double)(float)x[0];
  to[1] = (double)(float)x[1];
  to[2] = (double)(float)x[2];
  to[3] = (double)(float)x[3];
}

__attribute__((noinline)) static void round_all(double* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = (double)(float)x[i];
}

static void float32_is_rounded_to(void** state) {
  (void)state;
  enum { N = 8 };
  volatile double fine = 1 + 0x1p-30;  // 1 in float32
  double x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = fine;
  round_four(x, y);
  round_two(x);
  for (int i = 0; i < 2; i++) assert_true(x[i] == 1);
  for (int i = 0; i < 4; i++) assert_true(y[i] == 1);
  for (int i = 2; i < N; i++) assert_true(x[i] == fine);
  round_all(x, N);
  for (int i = 0; i < N; i++) assert_true(x[i] == 1);
}

// Sums are not taken together with products, nor reordered.
static void products_are_rounded(void** state) {
  (void)state;
  volatile double a = 1 + 0x1p-30, b = 1 - 0x1p-30, c = -1;
  assert_true(a * b + c == 0);
  assert_true(fma(a, b, c) == -0x1p-60);
  volatile double large = 0x1p60, one = 1;
  assert_true((large + one) - large == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(float32_is_rounded_to),
                                     cmocka_unit_test(products_are_rounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
