// Blocks in an arena: none overlap while both are needed, and the arena is no larger than it must.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "base/random.h"
#include "exec/segment/memory_plan.h"

static void plan(assay_block_t* blocks, size_t n, size_t* bytes) {
  assay_status_t st = assay_memory_plan(blocks, n, ASSAY_BLOCK_ALIGNMENT, bytes);
  if (st) fail_msg("%s", assay_status_message(st));
}

static void chains_take_turns(void** state) {
  (void)state;
  // Each is read by the next layer: two of them are needed at a time.
  assay_block_t chain[] = {{1000, 0, 1, 0}, {1000, 1, 2, 0}, {1000, 2, 3, 0}, {1000, 3, 4, 0}};
  size_t bytes;
  plan(chain, 4, &bytes);
  assert_int_equal(bytes, 2 * 1024);
  plan(chain, 0, &bytes);
  assert_int_equal(bytes, 0);
}

static void sizes_that_overflow_are_refused(void** state) {
  (void)state;
  assay_block_t large[] = {{SIZE_MAX / 2, 0, 1, 0}, {SIZE_MAX / 2, 0, 1, 0}};
  size_t bytes;
  assay_status_t st = assay_memory_plan(large, 2, ASSAY_BLOCK_ALIGNMENT, &bytes);
  assert_non_null(st);
  assay_status_free(st);
}

static int64_t below(const assay_random_t* r, uint64_t* at, int64_t n) {
  return (int64_t)(assay_random_uniform(r, (*at)++) * (double)n);
}

static void none_overlap(void** state) {
  (void)state;
  enum { N = 60, ROUNDS = 300, STEPS = 20 };
  const uint64_t seed = 7;
  const assay_random_t r = assay_random_make(seed, "blocks", 0);
  uint64_t at = 0;
  for (int round = 0; round < ROUNDS; round++) {
    assay_block_t b[N];
    size_t bytes, needed[STEPS] = {0}, max = 0;
    for (int i = 0; i < N; i++) {
      const int first = (int)below(&r, &at, STEPS);
      const int last = first + (int)below(&r, &at, STEPS - first);
      b[i] = (assay_block_t){(size_t)below(&r, &at, 5000), first, last, 0};
      for (int s = first; s <= last; s++) needed[s] += (b[i].bytes + 63) / 64 * 64;
    }
    for (int s = 0; s < STEPS; s++)
      if (needed[s] > max) max = needed[s];
    plan(b, N, &bytes);
    for (int i = 0; i < N; i++) {
      assert_int_equal(b[i].offset % ASSAY_BLOCK_ALIGNMENT, 0);
      assert_true(b[i].offset + b[i].bytes <= bytes);
      for (int k = 0; k < i; k++)
        if (b[i].first <= b[k].last && b[k].first <= b[i].last &&
            b[i].offset < b[k].offset + b[k].bytes && b[k].offset < b[i].offset + b[i].bytes)
          fail_msg("seed %llu, round %d: blocks %d and %d overlap", (unsigned long long)seed, round,
                   i, k);
    }
    assert_true(bytes >= max && bytes <= 2 * max);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chains_take_turns),
                                     cmocka_unit_test(sizes_that_overflow_are_refused),
                                     cmocka_unit_test(none_overlap)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
