// Vector functions of the CPU backend: float32 within their ulps of float64 truth, 16-bit results
// correctly rounded, special values exact, one set of bits for every instruction set and place.
//
//   backends_test_cpu_vmath             seeded inputs, boundaries of binades, special values
//   backends_test_cpu_vmath all [NAME]  all 2^32 inputs of functions of one, 10^9 pairs of those of
//                                       two, as rows of a table
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "backends/cpu/pointwise/convert.h"
#include "backends/vmath/vmath.h"
#include "base/random.h"
#include "ops/math/activation.h"

enum { BLOCK = 4096 };

// ---- truth --------------------------------------------------------------------------------------

static double t_elu(double x, const double* p) { return assay_elu(x, p[0]); }
static double t_celu(double x, const double* p) { return assay_celu(x, p[0]); }
static double t_selu(double x, const double* p) { return assay_selu(x, p[0], p[1]); }
static double t_swish(double x, const double* p) { return assay_swish(x, p[0]); }

static double t_hard_sigmoid(double x, const double* p) {
  return assay_hard_sigmoid(x, p[0], p[1]);
}
static double t_cube(double x) { return x * x * x; }

typedef struct row {
  const char* name;
  cpu_vmath_id_t id;
  double (*truth)(double x);
  double (*with)(double x, const double* p);  // one of the three
  double (*of_two)(double x, double z);
  float p[2];
  double ulps;  // at most
  int bend;     // where f(x) is c x in float64, a part of x^2 remains: its sign
} row_t;

#define SELU 1.67326319217681884765625F, 1.05070102214813232421875F
#define NEARLY_HALF 0.51
static const row_t rows[] = {
    {"Exp", CPU_V_EXP, exp, NULL, NULL, {0}, 0.8, 0},
    {"Sigmoid", CPU_V_SIGMOID, assay_sigmoid, NULL, NULL, {0}, 1, 0},
    {"Tanh", CPU_V_TANH, tanh, NULL, NULL, {0}, 1, 0},
    {"Erf", CPU_V_ERF, erf, NULL, NULL, {0}, 1, 0},
    {"Softsign", CPU_V_SOFTSIGN, assay_softsign, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Swish", CPU_V_SWISH, NULL, t_swish, NULL, {1}, 1, 1},
    {"Swish 1.702", CPU_V_SWISH, NULL, t_swish, NULL, {1.702F}, 1, 1},
    {"Swish -2", CPU_V_SWISH, NULL, t_swish, NULL, {-2}, NEARLY_HALF, -1},
    {"Swish 0", CPU_V_SWISH, NULL, t_swish, NULL, {0}, NEARLY_HALF, 0},
    {"Gelu", CPU_V_GELU, assay_gelu, NULL, NULL, {0}, 0.6, 1},
    {"Gelu tanh", CPU_V_GELU_TANH, assay_gelu_tanh, NULL, NULL, {0}, NEARLY_HALF, 1},
    {"short Gelu", CPU_V_SHORT_GELU, assay_gelu, NULL, NULL, {0}, 2, 1},
    {"short Gelu tanh", CPU_V_SHORT_GELU_TANH, assay_gelu_tanh, NULL, NULL, {0}, 2, 1},
    {"Mish", CPU_V_MISH, assay_mish, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Elu", CPU_V_ELU, NULL, t_elu, NULL, {1}, NEARLY_HALF, 1},
    {"Elu 0.3", CPU_V_ELU, NULL, t_elu, NULL, {0.3F}, NEARLY_HALF, 1},
    {"Elu 0.5", CPU_V_ELU, NULL, t_elu, NULL, {0.5F}, NEARLY_HALF, 1},
    {"Celu", CPU_V_CELU, NULL, t_celu, NULL, {1}, NEARLY_HALF, 1},
    {"Celu 2.5", CPU_V_CELU, NULL, t_celu, NULL, {2.5F}, NEARLY_HALF, 1},
    {"Selu", CPU_V_SELU, NULL, t_selu, NULL, {SELU}, NEARLY_HALF, 1},
    {"Softplus", CPU_V_SOFTPLUS, assay_softplus, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"HardSwish", CPU_V_HARD_SWISH, assay_hard_swish, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"short Swish", CPU_V_SHORT_SWISH, NULL, t_swish, NULL, {1}, 2.5, 1},
    {"short Swish 1.702", CPU_V_SHORT_SWISH, NULL, t_swish, NULL, {1.702F}, 2.5, 1},
    {"short HardSwish", CPU_V_SHORT_HARD_SWISH, assay_hard_swish, NULL, NULL, {0}, 1.5, 0},
    {"HardSigmoid", CPU_V_HARD_SIGMOID, NULL, t_hard_sigmoid, NULL, {0.2F, 0.5F}, NEARLY_HALF, 0},
    {"x^3", CPU_V_CUBE, t_cube, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Log", CPU_V_LOG, log, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Sin", CPU_V_SIN, sin, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Cos", CPU_V_COS, cos, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Tan", CPU_V_TAN, tan, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Asin", CPU_V_ASIN, asin, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Acos", CPU_V_ACOS, acos, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Atan", CPU_V_ATAN, atan, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Sinh", CPU_V_SINH, sinh, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Cosh", CPU_V_COSH, cosh, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Asinh", CPU_V_ASINH, asinh, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Acosh", CPU_V_ACOSH, acosh, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Atanh", CPU_V_ATANH, atanh, NULL, NULL, {0}, NEARLY_HALF, 0},
    {"Pow", CPU_V_POW, NULL, NULL, pow, {0}, NEARLY_HALF, 0},
    {"Mod", CPU_V_MOD, NULL, NULL, fmod, {0}, 0, 0},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static double truth(const row_t* r, float x, float z) {
  const double p[] = {(double)r->p[0], (double)r->p[1]};
  if (r->of_two) return r->of_two((double)x, (double)z);
  return r->with ? r->with((double)x, p) : r->truth((double)x);
}

// ---- errors -------------------------------------------------------------------------------------

// |y - t| in ulps of float32 at t. Infinity stands for 2^128, and for all truths above it.
static double ulps(float y, double t) {
  if (isnan(t) || isnan(y)) return isnan(t) && isnan(y) ? 0 : INFINITY;
  if (t == 0) return y == 0 && !signbit(y) == !signbit(t) ? 0 : INFINITY;
  if (!signbit(y) != !signbit(t)) return INFINITY;  // 0 for a tiny one, too
  const double largest = 0x1p128, a = fmin(fabs(t), largest), b = fmin(fabs((double)y), largest);
  int e;
  frexp(fmin(a, 0x1.fffffep127), &e);
  return fabs(a - b) * ldexp(1, 24 - (e < -125 ? -125 : e));
}

typedef struct worst {
  double ulps;
  float x, z;
} worst_t;

static void take_block(const row_t* r, const float* x, const float* z, int64_t n, worst_t* w) {
  float y[BLOCK];
  cpu_vmath()->function[CPU_V_FLOAT32][r->id](x, z, r->p, n, y);
  for (int64_t i = 0; i < n; i++) {
    const double e = ulps(y[i], truth(r, x[i], z[i]));
    if (!(e <= w->ulps)) *w = (worst_t){e, x[i], z[i]};
  }
}

// ---- inputs -------------------------------------------------------------------------------------

static const float special[] = {0.0F,
                                1.0F,
                                1.5F,
                                2.0F,
                                3.0F,
                                0.5F,
                                0x1p-149F,
                                0x1.fffffcp-127F,
                                0x1p-126F,
                                0x1p24F,
                                0x1p25F,
                                0x1.fffffep23F,
                                0x1p28F,
                                0x1p-30F,
                                88.72F,
                                88.73F,
                                103.97F,
                                104.0F,
                                20.0F,
                                1e30F,
                                -0.9999999F,
                                1.0000001F,
                                0x1.fffffep127F,
                                INFINITY,
                                0.9999999F,
                                1e-30F,
                                2.9999998F,
                                3.0000002F,
                                0x1.921fb6p+0F,
                                0.6F,
                                4.0F,
                                14.3F};
enum { N_SPECIAL = 2 * sizeof special / sizeof *special + 1 };

static float special_number(int i) {
  const int n = N_SPECIAL / 2;
  return i == 2 * n ? NAN : i < n ? special[i] : -special[i - n];
}

// Seeded: any bits; magnitudes from 2^-24 to 2^7, where functions are lively; the ends of binades.
static float drawn(const assay_random_t* r, uint64_t i) {
  const double u = assay_random_uniform(r, 2 * i), v = assay_random_uniform(r, 2 * i + 1);
  const float sign = i & 4 ? -1.0F : 1.0F;
  switch (i % 4) {
    case 0:
      return cpu_from_bits((uint32_t)(u * 0x1p32));
    case 1:
      return sign * (float)exp2(31 * u - 24);
    case 2:
      return sign * (float)(16 * u);
    default:
      return cpu_from_bits(((uint32_t)(u * 512) << 23) + (uint32_t)(v * 33) - 16);
  }
}

// ---- tests --------------------------------------------------------------------------------------

static void keep_their_ulps(void** state) {
  (void)state;
  enum { BLOCKS = 512 };
  const assay_random_t seed = assay_random_make(3, "vmath", 0),
                       other = assay_random_make(3, "z", 0);
  for (int k = 0; k < N_ROWS; k++) {
    worst_t worst = {-1, 0, 0};
#pragma omp parallel for schedule(dynamic)
    for (int b = 0; b < BLOCKS; b++) {
      worst_t w = {-1, 0, 0};
      float x[BLOCK], z[BLOCK];
      for (int i = 0; i < BLOCK; i++) {
        const uint64_t at = (uint64_t)b * BLOCK + (uint64_t)i;
        x[i] = drawn(&seed, at);
        z[i] = drawn(&other, at / 3);
      }
      take_block(&rows[k], x, z, BLOCK, &w);
#pragma omp critical
      if (!(w.ulps <= worst.ulps)) worst = w;
    }
    if (!(worst.ulps <= rows[k].ulps))
      fail_msg("%s(%a, %a) is off by %.3f ulp; %g is the most", rows[k].name, (double)worst.x,
               (double)worst.z, worst.ulps, rows[k].ulps);
  }
}

static void special_values(void** state) {
  (void)state;
  for (int k = 0; k < N_ROWS; k++)
    for (int i = 0; i < N_SPECIAL; i++)
      for (int j = 0; j < (rows[k].of_two ? N_SPECIAL : 1); j++) {
        worst_t w = {-1, 0, 0};
        const float x = special_number(i), z = special_number(j);
        take_block(&rows[k], &x, &z, 1, &w);
        if (!(w.ulps <= rows[k].ulps))
          fail_msg("%s(%a, %a) is off by %.3f ulp", rows[k].name, (double)x, (double)z, w.ulps);
      }
}

// Every 16-bit number: the result rounded from float64.
static void sixteen_bits(void** state) {
  (void)state;
  static const struct {
    cpu_vmath_use_t use;
    assay_type_t type;
    assay_format_t format;
  } kinds[] = {{CPU_V_FLOAT16, ASSAY_TYPE_FLOAT16, ASSAY_FORMAT_FP16},
               {CPU_V_BFLOAT16, ASSAY_TYPE_BFLOAT16, ASSAY_FORMAT_BF16}};
  enum { ALL = 65536 };
  static uint16_t bits[ALL], narrow[ALL];
  static float x[ALL], y[ALL], back[ALL];
  for (int i = 0; i < ALL; i++) bits[i] = (uint16_t)i;
  for (int k = 0; k < N_ROWS; k++)
    for (int t = 0; t < 2; t++) {
      if (rows[k].of_two) continue;
      cpu_widen(bits, kinds[t].type, 0, ALL, x);
      cpu_vmath()->function[kinds[t].use][rows[k].id](x, NULL, rows[k].p, ALL, y);
      cpu_narrow(y, ALL, kinds[t].type, 0, narrow);
      cpu_widen(narrow, kinds[t].type, 0, ALL, back);
      for (int i = 0; i < ALL; i++) {
        double e = truth(&rows[k], x[i], 0);
        if (rows[k].bend && fabs(e) < 0x1p-100 && e != 0)
          e = nextafter(e, (double)rows[k].bend * (double)INFINITY);
        const double wanted = assay_format_round(kinds[t].format, e, ASSAY_OVERFLOW_IEEE);
        const bool same = isnan(wanted)
                              ? isnan(back[i])
                              : wanted == (double)back[i] && !signbit(wanted) == !signbit(back[i]);
        if (!same)
          fail_msg("%s(%a) in %s is %a; %a is %a rounded", rows[k].name, (double)x[i],
                   t ? "bf16" : "fp16", (double)back[i], wanted, e);
      }
    }
}

// Every instruction set, number of elements and place has the same bits.
static void one_set_of_bits(void** state) {
  (void)state;
  enum { N = 4 * BLOCK };
  static float x[N], z[N], y[N], other[N + 1];
  const assay_random_t seed = assay_random_make(4, "vmath", 0),
                       second = assay_random_make(4, "z", 0);
  for (int i = 0; i < N; i++) x[i] = drawn(&seed, (uint64_t)i), z[i] = drawn(&second, (uint64_t)i);
  for (int k = 0; k < N_ROWS; k++)
    for (int use = 0; use < CPU_V_USES; use++) {
      cpu_vmath()->function[use][rows[k].id](x, z, rows[k].p, N, y);
      const cpu_vmath_t* level;
      for (int l = 0; (level = cpu_vmath_level(l)); l++) {
        const int64_t step = 37;
        for (int64_t i = 0; i < N; i += step) {
          const int64_t n = N - i < step ? N - i : step - i % 5;
          other[i + n] = 7;
          level->function[use][rows[k].id](x + i, z + i, rows[k].p, n, other + i);
          if (other[i + n] != 7) fail_msg("%s of %s wrote too much", rows[k].name, level->name);
          for (int64_t j = i; j < i + n; j++)
            if (cpu_bits(y[j]) != cpu_bits(other[j]) && !(isnan(y[j]) && isnan(other[j])))
              fail_msg("%s(%a, %a) is %a, by %s %a", rows[k].name, (double)x[j], (double)z[j],
                       (double)y[j], level->name, (double)other[j]);
        }
      }
    }
}

// The exponential less a number, and in place.
static void exponentials(void** state) {
  (void)state;
  float x[77], m[77], y[77], one[77], wanted[77];
  for (int i = 0; i < 77; i++) x[i] = (float)(i - 40) * 1.37F, m[i] = (float)(i % 7);
  for (int i = 0; i < 77; i++) y[i] = x[i] - m[i], one[i] = x[i] - 3;
  const cpu_vmath_t* level;
  for (int l = 0; (level = cpu_vmath_level(l)); l++) {
    float given[77];
    level->function[CPU_V_FLOAT32][CPU_V_EXP](y, NULL, NULL, 77, wanted);
    memcpy(given, x, sizeof x);
    level->exp_minus_each(given, m, 77, given);
    assert_memory_equal(given, wanted, sizeof wanted);
    level->function[CPU_V_FLOAT32][CPU_V_EXP](one, NULL, NULL, 77, wanted);
    level->exp_minus(x, 3, 77, given);
    assert_memory_equal(given, wanted, sizeof wanted);
  }
}

// ---- all inputs ---------------------------------------------------------------------------------

static int print_all(const char* name) {
  const assay_random_t seed = assay_random_make(5, "vmath", 0),
                       other = assay_random_make(5, "z", 0);
  int failures = 0;
  for (int k = 0; k < N_ROWS; k++) {
    if (name && strcmp(name, rows[k].name) != 0) continue;
    const int64_t blocks = rows[k].of_two ? 1000000000 / BLOCK : ((int64_t)1 << 32) / BLOCK;
    worst_t worst = {-1, 0, 0};
#pragma omp parallel
    {
      worst_t w = {-1, 0, 0};
#pragma omp for schedule(dynamic, 64)
      for (int64_t b = 0; b < blocks; b++) {
        float x[BLOCK], z[BLOCK];
        for (int64_t i = 0; i < BLOCK; i++) {
          const uint64_t at = (uint64_t)(b * BLOCK + i);
          x[i] = rows[k].of_two ? drawn(&seed, at) : cpu_from_bits((uint32_t)at);
          z[i] = rows[k].of_two ? drawn(&other, at) : 0;
        }
        take_block(&rows[k], x, z, BLOCK, &w);
      }
#pragma omp critical
      if (!(w.ulps <= worst.ulps)) worst = w;
    }
    printf("| %s | %.4f | %a", rows[k].name, worst.ulps, (double)worst.x);
    if (rows[k].of_two) printf(", %a", (double)worst.z);
    printf(" |%s\n", worst.ulps <= rows[k].ulps ? "" : " too much");
    fflush(stdout);
    failures += !(worst.ulps <= rows[k].ulps);
  }
  return failures != 0;
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keep_their_ulps), cmocka_unit_test(special_values),
      cmocka_unit_test(sixteen_bits), cmocka_unit_test(one_set_of_bits),
      cmocka_unit_test(exponentials)};
  if (argc > 1 && strcmp(argv[1], "all") == 0) return print_all(argc > 2 ? argv[2] : NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
