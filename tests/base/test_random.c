// The counter-based generator against its authors' vectors, and the normal quantile against values
// computed with 50 digits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs the four above before it
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

// Source: Random123, kat_vectors, philox4x32 10.
static void test_philox(void** state) {
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], out[4];
  } rows[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t out[4];
    assay_philox4x32(rows[i].counter, rows[i].key, out);
    assert_memory_equal(out, rows[i].out, sizeof out);
  }
}

static void test_quantile(void** state) {
  (void)state;
  static const double rows[][2] = {
      {1e-300, -37.0470962993612},
      {1e-20, -9.262340089798405},
      {1e-5, -4.2648907939228256},
      {0.01, -2.3263478740408408},
      {0.07, -1.4757910281791702},
      {0.3, -0.5244005127080407},
      {0.5, 0},
      {0.9, 1.2815515655446008},
      {0.999, 3.090232306167813},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double x = assay_normal_quantile(rows[i][0]);
    assert_true(fabs(x - rows[i][1]) <= 1e-15 * (1 + fabs(rows[i][1])) * 4);
  }
}

// Any number can be drawn alone; seeds and names make other streams; moments are right.
static void test_streams(void** state) {
  (void)state;
  enum { N = 200000 };
  assay_random_t a = assay_random_make(1, "node", 0), b = assay_random_make(2, "node", 0);
  assay_random_t c = assay_random_make(1, "other", 0);
  assert_true(assay_random_uniform(&a, 12345) == assay_random_uniform(&a, 12345));
  assert_true(assay_random_uniform(&a, 7) != assay_random_uniform(&b, 7));
  assert_true(assay_random_uniform(&a, 7) != assay_random_uniform(&c, 7));
  assert_true(assay_random_uniform(&a, 6) != assay_random_uniform(&a, 7));
  double sum = 0, normal = 0, square = 0;
  for (uint64_t i = 0; i < N; i++) {
    double u = assay_random_uniform(&a, i), z = assay_random_normal(&a, i);
    assert_true(u >= 0 && u < 1 && isfinite(z));
    assert_true((u < 0.5) == (z < 0));
    sum += u;
    normal += z;
    square += z * z;
  }
  // Six standard deviations of each mean.
  assert_true(fabs(sum / N - 0.5) < 6 * 0.2887 / sqrt(N));
  assert_true(fabs(normal / N) < 6 / sqrt(N));
  assert_true(fabs(square / N - 1) < 6 * 1.4142 / sqrt(N));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_philox), cmocka_unit_test(test_quantile),
                                     cmocka_unit_test(test_streams)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
