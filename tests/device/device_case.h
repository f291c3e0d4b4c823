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

#include "exec/device/code.h"
#include "mock/mock.h"
#include "status_case.h"

// As before any test.
static inline int calm(void** state) {
  (void)state;
  mock_fail(MOCK_NO_FAULT, 0);
  mock_delay(1, 0);
  mock_captures(true);
  mock_memory(0);
  mock_prefer_cpu_kernels(false);
  mock_decline(0, false);
  mock_offer_tiles(false);
  assay_code_forget();
  return mock_live() ? -1 : 0;
}

#endif  // TESTS_DEVICE_DEVICE_CASE_H_
