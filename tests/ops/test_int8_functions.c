// The functions of int8 epilogues against MPFR: within 2^-48 of the value, over what float32 holds.
#include <mpfr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ops/quant/int8_functions.h"

enum { PRECISION = 120 };

typedef void reference_t(mpfr_t y, const mpfr_t x);

static void ref_exp(mpfr_t y, const mpfr_t x) { mpfr_exp(y, x, MPFR_RNDN); }
static void ref_expm1(mpfr_t y, const mpfr_t x) { mpfr_expm1(y, x, MPFR_RNDN); }
static void ref_erf(mpfr_t y, const mpfr_t x) { mpfr_erf(y, x, MPFR_RNDN); }
static void ref_erfc(mpfr_t y, const mpfr_t x) { mpfr_erfc(y, x, MPFR_RNDN); }
static void ref_tanh(mpfr_t y, const mpfr_t x) { mpfr_tanh(y, x, MPFR_RNDN); }
static void ref_sigmoid(mpfr_t y, const mpfr_t x) {
  mpfr_neg(y, x, MPFR_RNDN);
  mpfr_exp(y, y, MPFR_RNDN);
  mpfr_add_ui(y, y, 1, MPFR_RNDN);
  mpfr_ui_div(y, 1, y, MPFR_RNDN);
}
static void ref_softplus(mpfr_t y, const mpfr_t x) {
  mpfr_exp(y, x, MPFR_RNDN);
  mpfr_log1p(y, y, MPFR_RNDN);
}
static void ref_silu(mpfr_t y, const mpfr_t x) {
  ref_sigmoid(y, x);
  mpfr_mul(y, y, x, MPFR_RNDN);
}
static void ref_mish(mpfr_t y, const mpfr_t x) {
  ref_softplus(y, x);
  mpfr_tanh(y, y, MPFR_RNDN);
  mpfr_mul(y, y, x, MPFR_RNDN);
}
static void ref_gelu(mpfr_t y, const mpfr_t x) {
  mpfr_t root;
  mpfr_init2(root, PRECISION);
  mpfr_sqrt_ui(root, 2, MPFR_RNDN);
  mpfr_div(y, x, root, MPFR_RNDN);
  mpfr_neg(y, y, MPFR_RNDN);
  mpfr_erfc(y, y, MPFR_RNDN);
  mpfr_mul(y, y, x, MPFR_RNDN);
  mpfr_div_ui(y, y, 2, MPFR_RNDN);
  mpfr_clear(root);
}

static void ref_gelu_tanh(mpfr_t y, const mpfr_t x) {
  mpfr_t t;
  mpfr_init2(t, PRECISION);
  mpfr_sqr(t, x, MPFR_RNDN);
  mpfr_set_str(y, "0.044715", 10, MPFR_RNDN);
  mpfr_mul(t, t, y, MPFR_RNDN);
  mpfr_add_ui(t, t, 1, MPFR_RNDN);
  mpfr_mul(t, t, x, MPFR_RNDN);
  mpfr_const_pi(y, MPFR_RNDN);
  mpfr_ui_div(y, 8, y, MPFR_RNDN);
  mpfr_sqrt(y, y, MPFR_RNDN);
  mpfr_mul(t, t, y, MPFR_RNDN);
  ref_sigmoid(y, t);
  mpfr_mul(y, y, x, MPFR_RNDN);
  mpfr_clear(t);
}

static double f_exp(double x) { return int8_exp(x); }
static double f_expm1(double x) { return int8_expm1(x); }
static double f_erf(double x) { return int8_erf(x); }
static double f_erfc(double x) { return int8_erfc(x); }
static double f_tanh(double x) { return int8_tanh(x); }
static double f_sigmoid(double x) { return int8_sigmoid(x); }
static double f_softplus(double x) { return int8_softplus(x); }
static double f_silu(double x) { return int8_silu(x); }
static double f_mish(double x) { return int8_mish(x); }
static double f_gelu(double x) { return int8_gelu(x); }
static double f_gelu_tanh(double x) { return int8_gelu_tanh(x); }

static const struct {
  const char* name;
  double (*f)(double);
  reference_t* reference;
  double limit;  // relative
} rows[] = {
    {"exp", f_exp, ref_exp, 0x1p-48},
    {"expm1", f_expm1, ref_expm1, 0x1p-48},
    {"erf", f_erf, ref_erf, 0x1p-48},
    {"erfc", f_erfc, ref_erfc, 0x1p-48},
    {"tanh", f_tanh, ref_tanh, 0x1p-48},
    {"sigmoid", f_sigmoid, ref_sigmoid, 0x1p-48},
    {"softplus", f_softplus, ref_softplus, 0x1p-48},
    {"silu", f_silu, ref_silu, 0x1p-48},
    {"mish", f_mish, ref_mish, 0x1p-48},
    {"gelu", f_gelu, ref_gelu, 0x1p-48},
    {"gelu_tanh", f_gelu_tanh, ref_gelu_tanh, 0x1p-44},
};

static float next_float(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  const uint32_t bits = (uint32_t)(*state >> 32);
  float x;
  memcpy(&x, &bits, sizeof x);
  // Half of them where most functions do something.
  return *state >> 20 & 1 ? (float)((double)(bits >> 8) / (1 << 24) * 40 - 20) : x;
}

// Results that float32 rounds to 0 or to infinity may be anything as small or as large.
static void functions_are_near(void** state) {
  (void)state;
  mpfr_t x, y, d;
  mpfr_inits2(PRECISION, x, y, d, (mpfr_ptr)0);
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    uint64_t seed = 11;
    double worst = 0, worst_x = 0;
    for (int i = 0; i < 40000; i++) {
      const double a = (double)next_float(&seed), b = rows[r].f(a);
      if (!(fabs(a) < 1e30)) continue;
      mpfr_set_d(x, a, MPFR_RNDN);
      rows[r].reference(y, x);
      const double want = mpfr_get_d(y, MPFR_RNDN);
      if (fabs(want) < 0x1p-151 && fabs(b) < 0x1p-150) continue;
      if (fabs(want) > 0x1p129 && fabs(b) > 0x1p128) continue;
      mpfr_sub_d(d, y, b, MPFR_RNDN);
      mpfr_div(d, d, y, MPFR_RNDN);
      const double error = fabs(mpfr_get_d(d, MPFR_RNDN));
      if (!(error <= worst)) {
        worst = error;
        worst_x = a;
      }
    }
    print_message("%-10s 2^%.1f at %g\n", rows[r].name, log2(worst), worst_x);
    if (!(worst < rows[r].limit)) fail_msg("%s(%g) is off by %g", rows[r].name, worst_x, worst);
  }
  mpfr_clears(x, y, d, (mpfr_ptr)0);
  mpfr_free_cache();
}

static void special_values_are_kept(void** state) {
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
    assert_true(isnan(rows[r].f((double)NAN)));
  assert_true(int8_tanh(INFINITY) == 1 && int8_tanh(-INFINITY) == -1);
  assert_true(int8_erf(INFINITY) == 1 && int8_erf(-INFINITY) == -1);
  assert_true(int8_sigmoid(INFINITY) == 1 && (float)int8_sigmoid(-INFINITY) == 0);
  assert_true(int8_softplus(INFINITY) == INFINITY && (float)int8_softplus(-INFINITY) == 0);
  assert_true(int8_mish(INFINITY) == INFINITY && (float)int8_mish(-INFINITY) == 0);
  assert_true(int8_silu(INFINITY) == INFINITY && (float)int8_silu(-INFINITY) == 0);
  assert_true(int8_gelu(INFINITY) == INFINITY && (float)int8_gelu(-INFINITY) == 0);
  assert_true((float)int8_exp(INFINITY) == INFINITY && (float)int8_exp(-INFINITY) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions_are_near),
                                     cmocka_unit_test(special_values_are_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
