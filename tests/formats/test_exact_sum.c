// Exact sums: rounded as the real sum is, whatever order the terms come in, and packed without
// loss.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "base/packing.h"
#include "formats/exact_sum.h"

#define INF ((double)INFINITY)

enum { TERMS = 6 };

typedef struct row {
  const char* name;
  double terms[TERMS];  // the rest is 0
  double sum;
} row_t;

static const row_t rows[] = {
    {"nothing", {0}, 0},
    {"negative zeros", {-0.0, -0.0}, 0},
    {"one", {1.5}, 1.5},
    {"cancelling", {1e308, 1, -1e308}, 1},
    {"past the range and back", {1e308, 1e308, 1e308, -1e308, -1e308}, 1e308},
    {"past the range", {0x1.fffffffffffffp1023, 0x1p970}, INF},
    {"just not past it", {0x1.fffffffffffffp1023, 0x1p969}, 0x1.fffffffffffffp1023},
    {"half, to even below", {1, 0x1p-53}, 1},
    {"half, to even above", {1 + 0x1p-52, 0x1p-53}, 1 + 0x1p-51},
    {"half and the smallest more", {1, 0x1p-53, 0x1p-1074}, 1 + 0x1p-52},
    {"half and the smallest less", {1 + 0x1p-52, 0x1p-53, -0x1p-1074}, 1 + 0x1p-52},
    {"mantissa carries", {0x1.fffffffffffffp0, 0x1p-53}, 2},
    {"subnormal", {0x1p-1074, 0x1p-1074}, 0x1p-1073},
    {"becomes normal", {0x1.ffffffffffffep-1023, 0x1p-1074}, 0x1p-1022},
    {"negative", {-1, -0x1p-53, -0x1p-54}, -1 - 0x1p-52},
    {"borrows through all limbs", {0x1p1000, -0x1p-1074}, 0x1p1000},
    {"infinite", {INF, -1e308}, INF},
    {"of both signs", {INF, 1, -INF}, (double)NAN},
    {"not a number", {(double)NAN, INF}, (double)NAN},
};

static void same(const char* name, double got, double want) {
  if (memcmp(&got, &want, sizeof got) != 0 && !(isnan(got) && isnan(want)))
    fail_msg("%s: %a, not %a", name, got, want);
}

static void sums_are_rounded_once(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (int first = 0; first < TERMS; first++) {  // in several orders
      assay_exact_sum_t s = {{0}, 0}, halves[2] = {{{0}, 0}, {{0}, 0}};
      for (int k = 0; k < TERMS; k++) {
        assay_exact_add(&s, rows[i].terms[(first + k) % TERMS]);
        assay_exact_add(&halves[k % 2], rows[i].terms[(first + k) % TERMS]);
      }
      same(rows[i].name, assay_exact_get(&s), rows[i].sum);
      assay_exact_join(&halves[1], &halves[0]);
      same(rows[i].name, assay_exact_get(&halves[1]), rows[i].sum);
    }
  }
}

static double draw(uint64_t* state) {
  double x;
  do {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t bits = *state ^ *state >> 29;
    memcpy(&x, &bits, sizeof x);
  } while (!isfinite(x));
  return x;
}

// Terms of all sizes, and their negatives in another order: what is left is the term without one.
static void all_that_cancels_is_gone(void** state) {
  enum { N = 4000 };
  static double x[N];
  uint64_t seed = 1;
  assay_exact_sum_t s = {{0}, 0};
  (void)state;
  for (int i = 0; i < N; i++) assay_exact_add(&s, x[i] = draw(&seed));
  for (int i = 0; i < N; i++) {
    const int k = (int)((i * INT64_C(1237)) % N);
    if (k != 17) assay_exact_add(&s, -x[k]);
  }
  same("the rest", assay_exact_get(&s), x[17]);
}

static void packed_sums_are_the_same(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_exact_sum_t s = {{0}, 0}, again = {{7}, 7};
    assay_str_t bytes = {0};
    for (int k = 0; k < TERMS; k++) assay_exact_add(&s, rows[i].terms[k]);
    assay_packing_t to = {.to = &bytes};
    assay_exact_pack(&to, &s);
    assay_packing_t from = {.from = (const uint8_t*)bytes.text, .n = bytes.len};
    assay_exact_pack(&from, &again);
    assert_null(assay_packing_status(&from));
    assert_memory_equal(s.limbs, again.limbs, sizeof s.limbs);
    same(rows[i].name, assay_exact_get(&again), rows[i].sum);
    for (size_t n = 0; n < bytes.len; n++) {  // cut short
      assay_packing_t part = {.from = (const uint8_t*)bytes.text, .n = n};
      assay_exact_pack(&part, &again);
      assay_status_t st = assay_packing_status(&part);
      assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
      assay_status_free(st);
    }
    assay_str_deinit(&bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_rounded_once),
                                     cmocka_unit_test(all_that_cancels_is_gone),
                                     cmocka_unit_test(packed_sums_are_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
