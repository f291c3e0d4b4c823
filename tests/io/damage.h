// What a reader of small files must stand: every truncation, and bytes that were changed at random.
#ifndef ASSAY_TESTS_IO_DAMAGE_H_
#define ASSAY_TESTS_IO_DAMAGE_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "seed_case.h"

// Nothing left allocated, no mistake of ours; damage is not a lack of memory (that would be a size
// taken from the file unchecked: the limit is a hundred times the file and 1 MiB).
static void damage_try(const uint8_t* data, size_t size,
                       assay_status_t (*read)(const uint8_t*, size_t), bool must_fail,
                       const char* what, uint64_t k) {
  // A copy of its own size: reading past it shows in sanitizer builds.
  uint8_t* copy = malloc(size ? size : 1);
  assert_non_null(copy);
  if (size) memcpy(copy, data, size);
  const int64_t live = assay_alloc_live();
  assay_status_t st = read(copy, size);
  const assay_code_t code = st ? assay_status_code(st) : ASSAY_OK;
  if ((must_fail && !st) || code == ASSAY_NO_MEMORY || code == ASSAY_INTERNAL)
    fail_msg("%s %llu: %s", what, (unsigned long long)k,
             st ? assay_status_message(st) : "was read");
  assay_status_free(st);
  assert_int_equal(assay_alloc_live(), live);
  free(copy);
}

// The undamaged file must be read. strict: no part of it may be.
static void damage_all(const uint8_t* data, size_t size, bool strict,
                       assay_status_t (*read)(const uint8_t*, size_t)) {
  enum { FLIPS = 3000 };
  const uint64_t seed = test_seed();
  const assay_random_t r = assay_random_make(seed, "damage", 0);
  assay_status_t whole = read(data, size);
  if (whole) fail_msg("undamaged: %s", assay_status_message(whole));
  assay_memory_set_limit((int64_t)size * 100 + (1 << 20));
  for (size_t n = 0; n < size; n++) damage_try(data, n, read, strict, "cut at", n);
  uint8_t* copy = malloc(size);
  assert_non_null(copy);
  for (uint64_t k = 0; k < FLIPS; k++) {
    memcpy(copy, data, size);
    const int n = 1 + (int)(assay_random_uniform(&r, 9 * k) * 4);
    for (int i = 0; i < n; i++) {
      const size_t at =
          (size_t)(assay_random_uniform(&r, 9 * k + 1 + 2 * (uint64_t)i) * (double)size);
      copy[at] = (uint8_t)(assay_random_uniform(&r, 9 * k + 2 + 2 * (uint64_t)i) * 256);
    }
    damage_try(copy, size, read, false, "flips", k);
  }
  free(copy);
  assay_memory_set_limit(0);
}

#endif  // ASSAY_TESTS_IO_DAMAGE_H_
