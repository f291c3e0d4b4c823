// Vector functions of the CPU backend against the C library's in float64: errors in ulps over every
// 61st float32, and special values.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "backends/cpu/vmath.h"

static float vector_exp(float x) { return cpu_exp(x); }
static float vector_erf(float x) { return cpu_erf(x); }
static float vector_tanh(float x) { return cpu_tanh(x); }
static float vector_log(float x) { return cpu_log(x < 0 ? -x : x); }
static double log_abs(double x) { return log(fabs(x)); }
static float vector_expm1(float x) { return cpu_expm1(x > 0 ? -x : x); }
static double expm1_below(double x) { return expm1(-fabs(x)); }
static float vector_log1p(float x) { return cpu_log1p(x < 0 ? -x : x); }
static double log1p_abs(double x) { return log1p(fabs(x)); }
static float vector_gelu(float x) { return cpu_gelu(x); }
static double gelu(double x) { return 0.5 * x * erfc(-x / sqrt(2)); }

typedef struct row {
  const char* name;
  float (*function)(float x);
  double (*truth)(double x);
  double ulps;
  float at_infinity, at_minus_infinity;
} row_t;

static const row_t rows[] = {
    {"exp", vector_exp, exp, 2, INFINITY, 0},
    {"erf", vector_erf, erf, 2, 1, -1},
    {"tanh", vector_tanh, tanh, 3, 1, -1},
    {"log of |x|", vector_log, log_abs, 1, INFINITY, INFINITY},
    {"exp - 1 of -|x|", vector_expm1, expm1_below, 3, -1, -1},
    {"log(1 + |x|)", vector_log1p, log1p_abs, 3, INFINITY, INFINITY},
    {"gelu", vector_gelu, gelu, 8, INFINITY, 0},
};

// Error of y in ulps of float32 at the truth t.
static double ulps(float y, double t) {
  if (isinf(t)) return y == (float)t ? 0 : INFINITY;
  if (isinf(y)) return t > 0x1.ffffffp127 ? 0 : INFINITY;
  int e;
  frexp(t, &e);
  const int exponent = e - 24 < -149 ? -149 : e - 24;
  return fabs((double)y - t) / ldexp(1, exponent);
}

static void functions_keep_their_ulps(void** state) {
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    double worst = 0;
    float where = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 61) {
      const float x = cpu_from_bits((uint32_t)bits);
      if (!isfinite(x)) continue;
      const double e = ulps(rows[r].function(x), rows[r].truth((double)x));
      if (!(e <= worst)) worst = e, where = x;
    }
    if (!(worst <= rows[r].ulps))
      fail_msg("%s(%a) is off by %.2f ulp; %g is the most", rows[r].name, (double)where, worst,
               rows[r].ulps);
    assert_true(rows[r].function(INFINITY) == rows[r].at_infinity);
    assert_true(rows[r].function(-INFINITY) == rows[r].at_minus_infinity);
    assert_true(isnan(rows[r].function(NAN)));
  }
  assert_true(signbit(cpu_erf(-0.0F)) && signbit(cpu_tanh(-0.0F)));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions_keep_their_ulps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
