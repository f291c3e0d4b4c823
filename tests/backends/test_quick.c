// Functions in two steps as kernels of GPUs have them, in float32 and then what that leaves open:
// they round to the same bits as the whole function, and little is open.
//
//   backends_test_quick        seeded inputs, those around powers of 2, and special values
//   backends_test_quick all    each 7th of all 2^32 inputs
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

// What kernels/vmath.h takes of a prelude, for one thread of the host.
#define ASSAY_BACKENDS_CUDA_KERNELS_PRELUDE_H_
#define DEVICE static inline __attribute__((unused))
#define TABLE static const __attribute__((unused))
#define WIDE_TABLE TABLE
#define UNROLL
#define POSITIVE_INFINITY HUGE_VALF
DEVICE uint32_t bits_of(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
DEVICE float float_of(uint32_t b) {
  float x;
  memcpy(&x, &b, sizeof x);
  return x;
}
DEVICE uint64_t bits_of64(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
DEVICE double double_of(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}
#define FMA(x, y, z) fmaf(x, y, z)
#define FMA64(x, y, z) fma(x, y, z)
#define SQRT(x) sqrtf(x)
#define SQRT64(x) sqrt(x)
#define ROUND_EVEN64(x) rint(x)
#define TRUNC64(x) trunc(x)
#define REMAINDER(x, y) fmodf(x, y)
#include "backends/cuda/kernels/vmath.h"
#include "base/random.h"
#include "cuda/fake/kernel/formats.h"

typedef float whole_t(float x, float z, const float* p);
typedef float quick_t(float x, float z, const float* p, bool* open);
typedef struct row {
  const char* name;
  whole_t *half, *bf16, *single;
  quick_t *quick_half, *quick_bf16, *quick_single;
  whole_t *exact_half, *exact_bf16, *exact_single;
} row_t;

#define VFAST(name, in_float32, in_float64) \
  {#name,                                   \
   half_##name,                             \
   bf16_##name,                             \
   float_##name,                            \
   half_quick_##name,                       \
   bf16_quick_##name,                       \
   float_quick_##name,                      \
   half_exactly_##name,                     \
   bf16_exactly_##name,                     \
   float_exactly_##name},
#define VFUNCTION(name, n_in, in_float64)
static const row_t rows[] = {
#include "backends/vmath/functions.inc"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static uint16_t to_half(float x) { return f32_to_f16(x); }
static uint16_t to_bf16(float x) { return f32_to_bf16(x); }

typedef struct counts {
  long n, open_half, open_bf16;
} counts_t;

static bool is_nan16(uint16_t x, uint16_t infinity) { return (x & 0x7fff) > infinity; }

static void check(const row_t* r, float x, const float* p, counts_t* c) {
  bool open = false;
  const float h = r->quick_half(x, 0, p, &open);
  c->n++;
  c->open_half += open;
  {
    const uint16_t want = to_half(r->half(x, 0, p));
    const uint16_t got = to_half(open ? r->exact_half(x, 0, p) : h);
    if (want != got && !(is_nan16(want, 0x7c00) && is_nan16(got, 0x7c00)))
      fail_msg("%s(%a) in fp16: %04x, and in two steps %04x", r->name, (double)x, want, got);
  }
  const float b = r->quick_bf16(x, 0, p, &open);
  c->open_bf16 += open;
  {
    const uint16_t want = to_bf16(r->bf16(x, 0, p));
    const uint16_t got = to_bf16(open ? r->exact_bf16(x, 0, p) : b);
    if (want != got && !(is_nan16(want, 0x7f80) && is_nan16(got, 0x7f80)))
      fail_msg("%s(%a) in bf16: %04x, and in two steps %04x", r->name, (double)x, want, got);
  }
  const float quick = r->quick_single(x, 0, p, &open), want = r->single(x, 0, p);
  const float s = open ? r->exact_single(x, 0, p) : quick;
  if (bits_of(s) != bits_of(want) && !(s != s && want != want))
    fail_msg("%s(%a) in float32: %a, and in two steps %a", r->name, (double)x, (double)want,
             (double)s);
}

static const float parameters[][2] = {
    {1, 0.5F}, {1.702F, 0.2F}, {-2, 0.5F}, {0x1.555556p-3F, 0.5F}};
enum { N_PARAMETERS = sizeof parameters / sizeof *parameters, DRAWS = 300000 };

static uint32_t step_of_all;  // 0: draws

static void what_is_not_open_is_right(void** state) {
  (void)state;
  for (int f = 0; f < N_ROWS; f++)
    for (int i = 0; i < N_PARAMETERS; i++) {
      counts_t c = {0};
      const assay_random_t g = assay_random_make(31, rows[f].name, (uint64_t)i);
      for (uint64_t b = 0; step_of_all && b <= UINT32_MAX; b += step_of_all)
        check(&rows[f], float_of((uint32_t)b), parameters[i], &c);
      // Any bits, and what activations are: normal numbers, some of them large.
      for (int n = 0; n < DRAWS; n++) {
        const uint64_t at = (uint64_t)n;
        check(&rows[f], float_of((uint32_t)(assay_random_uniform(&g, at) * 0x1p32)), parameters[i],
              &c);
        check(&rows[f], (float)(assay_random_normal(&g, at) * (n % 3 ? 1.5 : 8)), parameters[i],
              &c);
      }
      // Where forms in float32 have fewer bits: all of them once.
      for (uint32_t b = 0xc0700000; i == 0 && strstr(rows[f].name, "GELU") && b < 0xc1000000; b++)
        check(&rows[f], float_of(b), parameters[i], &c);
      static const uint32_t special[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1};
      for (size_t n = 0; n < sizeof special / sizeof *special; n++)
        check(&rows[f], float_of(special[n]), parameters[i], &c);
      for (int e = 1; e < 255; e++)
        for (int d = -40; d <= 40; d++)
          for (uint32_t sign = 0; sign < 2; sign++)
            check(&rows[f], float_of((((uint32_t)e << 23) + (uint32_t)d) | sign << 31),
                  parameters[i], &c);
      if (step_of_all)
        print_message("%-18s %7g %7g: open in fp16 %.4f %%, in bf16 %.4f %%\n", rows[f].name,
                      (double)parameters[i][0], (double)parameters[i][1],
                      100.0 * (double)c.open_half / (double)c.n,
                      100.0 * (double)c.open_bf16 / (double)c.n);
    }
}

// Of what activations are, in parts of a thousand: with a warp's 32 lanes 1 is 3 warps of 100.
static void little_is_open(void** state) {
  (void)state;
  for (int f = 0; f < N_ROWS; f++) {
    counts_t c = {0};
    const assay_random_t g = assay_random_make(5, rows[f].name, 0);
    for (int n = 0; n < DRAWS; n++) {
      check(&rows[f], (float)assay_random_normal(&g, (uint64_t)n) * 2, parameters[0], &c);
      check(&rows[f], 0, parameters[0], &c);
    }
    if (c.open_half > c.n / 300)
      fail_msg("%s: %ld of %ld are open in fp16", rows[f].name, c.open_half, c.n);
    if (c.open_bf16 > c.n / 50)
      fail_msg("%s: %ld of %ld are open in bf16", rows[f].name, c.open_bf16, c.n);
  }
}

// Also what it does to numbers that are none.
static void powers_of_attention_are_near(void** state) {
  (void)state;
  double worst = 0;
  const assay_random_t g = assay_random_make(3, "exp", 0);
  for (int n = 0; n < 20 * DRAWS; n++) {
    const float x = (float)(-assay_random_uniform(&g, (uint64_t)n) * (n % 3 ? 1 : 87.3));
    const double want = exp((double)x), e = fabs(exp_of_negative(x) - want) / want * 0x1p24;
    if (e > worst) worst = e;
  }
  if (worst > 3) fail_msg("%g times 2^-24 off", worst);
  assert_true(exp_of_negative(0) == 1 && exp_of_negative(-0.0F) == 1);
  assert_true(exp_of_negative(-87.34F) == 0 && exp_of_negative(-HUGE_VALF) == 0);
  assert_true(exp_of_negative(-87.33F) > 0x1p-126F);
  // Of a GPU, and of the host.
  assert_true(isnan(exp_of_negative(float_of(0x7fffffff))));
  assert_true(isnan(exp_of_negative(float_of(0xffc00000))));
}

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) step_of_all = 7;
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_not_open_is_right),
                                     cmocka_unit_test(little_is_open),
                                     cmocka_unit_test(powers_of_attention_are_near)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
