// For tests of devices.
#ifndef TESTS_DEVICE_DEVICE_CASE_H_
#define TESTS_DEVICE_DEVICE_CASE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "mock/mock.h"

static inline void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

// It must fail with this code, and its message must have this word.
static inline void fails(assay_status_t st, assay_code_t code, const char* word) {
  if (!st) fail_msg("no failure, where '%s' was expected", word);
  if (assay_status_code(st) != code || !strstr(assay_status_message(st), word))
    fail_msg("code %d, '%s'; expected %d with '%s'", (int)assay_status_code(st),
             assay_status_message(st), (int)code, word);
  assay_status_free(st);
}

// As before any test.
static inline int calm(void** state) {
  (void)state;
  mock_fail(MOCK_NO_FAULT, 0);
  mock_delay(1, 0);
  mock_captures(true);
  mock_memory(0);
  mock_prefer_cpu_kernels(false);
  mock_decline(0, false);
  return mock_live() ? -1 : 0;
}

#endif  // TESTS_DEVICE_DEVICE_CASE_H_
