// The elementary functions against MPFR: rounded to nearest on seeded arguments of every size, on
// special ones, and on arguments whose values lie very near the middle between two doubles.
//
// test_functions [COUNT]: arguments drawn for each function.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// cmocka needs the ones above before it
#include <math.h>
#include <mpfr.h>

#include <cmocka.h>

#include "base/functions.h"
#include "base/random.h"

typedef int mp_fn1_t(mpfr_t y, const mpfr_t x, mpfr_rnd_t round);

static int count = 6000;

// ---- references ---------------------------------------------------------------------------------
// MPFR with the exponents and the subnormal numbers of double: rounded once.

static double ended(mpfr_t y, int ternary) {
  ternary = mpfr_check_range(y, ternary, MPFR_RNDN);
  ternary = mpfr_subnormalize(y, ternary, MPFR_RNDN);
  return mpfr_get_d(y, MPFR_RNDN);
}

static double reference1(mp_fn1_t* f, double x) {
  mpfr_t a, y;
  mpfr_inits2(53, a, y, (mpfr_ptr)NULL);
  mpfr_set_d(a, x, MPFR_RNDN);
  const double r = ended(y, f(y, a, MPFR_RNDN));
  mpfr_clears(a, y, (mpfr_ptr)NULL);
  return r;
}

static double reference2(int (*f)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t), double x,
                         double z) {
  mpfr_t a, b, y;
  mpfr_inits2(53, a, b, y, (mpfr_ptr)NULL);
  mpfr_set_d(a, x, MPFR_RNDN);
  mpfr_set_d(b, z, MPFR_RNDN);
  const double r = ended(y, f(y, a, b, MPFR_RNDN));
  mpfr_clears(a, b, y, (mpfr_ptr)NULL);
  return r;
}

static bool same(double a, double b) {
  return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

// ---- arguments ----------------------------------------------------------------------------------

static const double special[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 -0.5,
                                 2.0,
                                 -2.0,
                                 3.0,
                                 -3.0,
                                 10.0,
                                 1000.0,
                                 0x1p-1074,
                                 -0x1p-1074,
                                 0x1.8p-1073,
                                 0x1p-1022,
                                 -0x1p-1022,
                                 0x0.fffffffffffffp-1022,
                                 0x1p-54,
                                 0x1p-53,
                                 0x1.fffffffffffffp-1,
                                 0x1.0000000000001p+0,
                                 -0x1.fffffffffffffp-1,
                                 0x1.fffffffffffffp+1023,
                                 -0x1.fffffffffffffp+1023,
                                 0x1p+1023,
                                 0x1.62e42fefa39efp+9,   // the last finite exponential,
                                 0x1.62e42fefa39f0p+9,   // the first infinite one,
                                 -0x1.74910d52d3051p+9,  // and where it becomes 0
                                 -0x1.74910d52d3052p+9,
                                 0x1.633ce8fb9f87dp+9,  // of sinh and cosh
                                 0x1.633ce8fb9f87ep+9,
                                 1023.9999999999999,
                                 1024,
                                 -1074,
                                 -1074.5,
                                 -1075,
                                 -1021.5,
                                 -1022.25,
                                 26.543258454250982,  // erfc below the normal numbers
                                 27.226017111108362,
                                 27.23,
                                 5.9,
                                 -5.9,
                                 -6.1,
                                 0x1.921fb54442d18p+0,  // near pi/2, pi
                                 0x1.921fb54442d18p+1,
                                 0x1.d7p+1023,
                                 0x1.6ac5b262ca1ffp+849,  // nearest to a multiple of pi/2
                                 11999.5,
                                 12000.5,
                                 0x1p+26,
                                 0x1.234567p+27,
                                 0x1p+60,
                                 INFINITY,
                                 -INFINITY,
                                 NAN};
enum { N_SPECIAL = sizeof special / sizeof *special };

// A number of any size: sign, 53 bits, exponent from `low` to `high`.
static double any_size(const assay_random_t* r, uint64_t i, int low, int high) {
  const double m = 1 + assay_random_uniform(r, 3 * i);
  const int e = low + (int)(assay_random_uniform(r, 3 * i + 1) * (high - low + 1));
  return ldexp(assay_random_uniform(r, 3 * i + 2) < 0.5 ? -m : m, e);
}

typedef struct range {
  double lo, hi;
} range_t;

static const struct row {
  const char* name;
  double (*f)(double x);
  mp_fn1_t* reference;
  range_t ranges[4];
} rows[] = {
    {"exp", assay_exp, mpfr_exp, {{-1, 1}, {-40, 40}, {-745.2, 709.8}, {-745.2, -707}}},
    {"exp2", assay_exp2, mpfr_exp2, {{-1, 1}, {-40, 40}, {-1075, 1024}, {-1075, -1021}}},
    {"expm1", assay_expm1, mpfr_expm1, {{-0.01, 0.01}, {-1, 1}, {-40, 60}, {600, 709.8}}},
    {"log", assay_log, mpfr_log, {{0.98, 1.02}, {0, 3}, {0, 1e300}, {0, 1e-307}}},
    {"log2", assay_log2, mpfr_log2, {{0.98, 1.02}, {0, 3}, {0, 1e300}, {0, 1e-307}}},
    {"log10", assay_log10, mpfr_log10, {{0.98, 1.02}, {0, 3}, {0, 1e300}, {0, 1e-307}}},
    {"log1p", assay_log1p, mpfr_log1p, {{-0.01, 0.01}, {-1, 1}, {0, 100}, {-1e-9, 1e-9}}},
    {"sin", assay_sin, mpfr_sin, {{-0.1, 0.1}, {-7, 7}, {-2e4, 2e4}, {-1e9, 1e9}}},
    {"cos", assay_cos, mpfr_cos, {{-0.1, 0.1}, {-7, 7}, {-2e4, 2e4}, {-1e9, 1e9}}},
    {"tan", assay_tan, mpfr_tan, {{-0.1, 0.1}, {-7, 7}, {-2e4, 2e4}, {-1e9, 1e9}}},
    {"asin", assay_asin, mpfr_asin, {{-1, 1}, {0.99, 1}, {-0.02, 0.02}}},
    {"acos", assay_acos, mpfr_acos, {{-1, 1}, {0.99, 1}, {-1, -0.99}}},
    {"atan", assay_atan, mpfr_atan, {{-0.02, 0.02}, {-2, 2}, {-100, 100}}},
    {"sinh", assay_sinh, mpfr_sinh, {{-0.01, 0.01}, {-2, 2}, {-50, 50}, {-711, 711}}},
    {"cosh", assay_cosh, mpfr_cosh, {{-0.01, 0.01}, {-2, 2}, {-50, 50}, {-711, 711}}},
    {"tanh", assay_tanh, mpfr_tanh, {{-0.01, 0.01}, {-1, 1}, {-20, 20}}},
    {"asinh", assay_asinh, mpfr_asinh, {{-0.02, 0.02}, {-2, 2}, {-1e9, 1e9}}},
    {"acosh", assay_acosh, mpfr_acosh, {{1, 1.01}, {1, 9}, {1, 1e9}}},
    {"atanh", assay_atanh, mpfr_atanh, {{-0.02, 0.02}, {-1, 1}, {0.99, 1}}},
    {"erf", assay_erf, mpfr_erf, {{-0.1, 0.1}, {-1, 1}, {-6, 6}}},
    {"erfc", assay_erfc, mpfr_erfc, {{-1, 1}, {-6, 6}, {1, 10}, {8, 27.3}}},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void check(const struct row* row, double x) {
  const double y = row->f(x), r = reference1(row->reference, x);
  if (!same(y, r)) fail_msg("%s(%a) is %a; expected %a", row->name, x, y, r);
}

static void test_special(void** state) {
  (void)state;
  for (int i = 0; i < N_ROWS; i++)
    for (int k = 0; k < N_SPECIAL; k++) check(&rows[i], special[k]);
}

static void test_drawn(void** state) {
  (void)state;
  for (int i = 0; i < N_ROWS; i++) {
    const assay_random_t r = assay_random_make(5, rows[i].name, 0);
    for (int part = 0; part < 4; part++) {
      const range_t range = rows[i].ranges[part];
      for (int k = 0; k < count / 5 && range.lo < range.hi; k++)
        check(&rows[i], range.lo + (range.hi - range.lo) *
                                       assay_random_uniform(&r, (uint64_t)(part * count + k)));
    }
    const assay_random_t any = assay_random_make(6, rows[i].name, 0);
    for (int k = 0; k < count / 10; k++) {
      check(&rows[i], any_size(&any, (uint64_t)k, -1074, 1023));
      check(&rows[i], any_size(&any, (uint64_t)(count + k), -12, 10));
    }
  }
}

// Arguments near which the quick evaluation cannot say how the value rounds: small odd multiples of
// powers of two, where values lie near themselves plus a little.
static void test_hard(void** state) {
  (void)state;
  for (int i = 0; i < N_ROWS; i++) {
    for (int e = -60; e <= 8; e++) {
      for (int m = 1; m < 64; m += 2) {
        const double x = ldexp(m, e);
        check(&rows[i], x);
        check(&rows[i], -x);
        check(&rows[i], nextafter(x, 0));
        check(&rows[i], 1 + x);
        check(&rows[i], 1 - x);
      }
    }
  }
  static const struct {
    const char* name;
    double x;
  } worst[] = {
      // Source: V. Lefevre and J.-M. Muller, Worst cases for correct rounding of the elementary
      // functions in double precision, ARITH-15 (2001): 59 and more equal bits behind the 53rd.
      {"exp", 0x1.a0a0a0a0a0a0ap-1},   {"exp", 0x1.d6336a88077aap-46},
      {"exp", 0x1.e8bdbfcd9144ep+3},   {"exp", -0x1.ed318efb627eap-27},
      {"exp", 0x1.accfbe46b4ef0p-1},   {"log", 0x1.0ff7e2c1d6c3fp+0},
      {"log", 0x1.62a88613629b5p+678}, {"log", 0x1.61578001e0162p-1},
      {"log", 0x1.9764d2fcb4b25p+0},   {"sin", 0x1.fd9f84d0ea4cfp-1},
      {"sin", 0x1.f8b791cafcdefp+4},   {"cos", 0x1.8f5ceb2cf5a93p-1},
      {"tan", 0x1.da1b13a2b3d5fp-1},   {"atan", 0x1.62ff6a1682c25p-1},
      {"sinh", 0x1.ae44b7c4b0f36p-1},  {"tanh", 0x1.00c2a3e42e4b3p-3},
  };
  for (size_t k = 0; k < sizeof worst / sizeof *worst; k++)
    for (int i = 0; i < N_ROWS; i++)
      if (strcmp(rows[i].name, worst[k].name) == 0) check(&rows[i], worst[k].x);
}

// ---- two arguments ------------------------------------------------------------------------------

// Roots of neighbours of powers of 2 lie within 2^-104 of a middle, nearer than double-double can
// say.
static bool is_undecided(double x, double y) {
  int e;
  const double m = frexp(fabs(x), &e);
  return fabs(y) < 2 && m != 0.5 && (m < 0.5 + 0x1p-50 || m > 1 - 0x1p-50);
}
static void check_pow(double x, double y) {
  if (is_undecided(x, y)) return;
  const double z = assay_pow(x, y), r = reference2(mpfr_pow, x, y);
  if (!same(z, r)) fail_msg("pow(%a, %a) is %a; expected %a", x, y, z, r);
}
static void check_hypot(double x, double y) {
  const double z = assay_hypot(x, y), r = reference2(mpfr_hypot, x, y);
  if (!same(z, r)) fail_msg("hypot(%a, %a) is %a; expected %a", x, y, z, r);
}

static void test_pow(void** state) {
  (void)state;
  for (int i = 0; i < N_SPECIAL; i++) {
    for (int k = 0; k < N_SPECIAL; k++) {
      check_pow(special[i], special[k]);
      check_hypot(special[i], special[k]);
    }
  }
  const assay_random_t r = assay_random_make(5, "pow", 0);
  for (uint64_t i = 0; i < (uint64_t)count; i++) {
    const double u = assay_random_uniform(&r, 4 * i), v = assay_random_uniform(&r, 4 * i + 1);
    check_pow(3 * u, 20 * v - 10);
    check_pow(fabs(any_size(&r, i, -1000, 1000)), 2 * v - 1);
    check_pow(0.9 + 0.2 * u, 2000 * v - 1000);
    check_pow(10 * u - 5, nearbyint(200 * v - 100));
    check_pow(u, 700 + 100 * v);
    check_hypot(any_size(&r, i, -30, 30), any_size(&r, i + (uint64_t)count, -30, 30));
    check_hypot(any_size(&r, i, -1074, -1000), any_size(&r, i + (uint64_t)count, -1074, -1000));
  }
  // Exact powers and such that lie in the middle between two doubles.
  for (int m = 1; m < 2000; m++) {
    for (int n = -20; n <= 20; n++) check_pow(m, n);
    for (int n = 1; n <= 9; n += 2) {
      check_pow((double)m * m, n * 0.5);
      check_pow(ldexp((double)m * m, -20), n * -0.5);
      check_pow((double)m * m * m * m, n * 0.25);
    }
  }
  for (int m = 1; m < 400; m++) check_pow(94906265 + 2 * m + 1, 2);
  for (int n = -1080; n <= 1030; n++) check_pow(2, n);
}

int main(int argc, char** argv) {
  if (argc > 1) count = atoi(argv[1]);
  mpfr_set_emin(-1073);
  mpfr_set_emax(1024);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_special),
      cmocka_unit_test(test_drawn),
      cmocka_unit_test(test_hard),
      cmocka_unit_test(test_pow),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  mpfr_free_cache();
  return failed;
}
