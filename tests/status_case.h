// Statuses in tests that see nothing but the public API.
#ifndef TESTS_STATUS_CASE_H_
#define TESTS_STATUS_CASE_H_

#include <assay/status.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

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

#endif  // TESTS_STATUS_CASE_H_
