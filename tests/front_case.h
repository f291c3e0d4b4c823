// What tests of the command lines of other tools share: an arena, and what a status says.
#ifndef TESTS_FRONT_CASE_H_
#define TESTS_FRONT_CASE_H_

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "base/alloc.h"
#include "base/status.h"

static assay_arena_t* arena;

static inline int make_arena(void** state) {
  (void)state;
  assert_null(assay_arena_create(&arena));
  return 0;
}

static inline int free_arena(void** state) {
  (void)state;
  assay_arena_destroy(arena);
  return 0;
}

// The status has this text in its message; it is freed. NULL: it is good.
static inline void expect(assay_status_t st, const char* text, const char* given) {
  const char* message = st ? assay_status_message(st) : "(good)";
  if (!st != !text || (text && !strstr(message, text)))
    fail_msg("'%s': %s; '%s' was expected", given, message, text ? text : "(good)");
  assay_status_free(st);
}

#endif  // TESTS_FRONT_CASE_H_
