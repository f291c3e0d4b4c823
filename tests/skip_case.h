// Skips that say why: scripts/test lists each with its reason. Include it after <cmocka.h>.
#ifndef TESTS_SKIP_CASE_H_
#define TESTS_SKIP_CASE_H_

#include <stdio.h>

// A part of the case that runs, which this machine cannot.
#define skipped_part(part, reason)                 \
  do {                                             \
    printf("skipped: %s: %s\n", (part), (reason)); \
    fflush(stdout);                                \
  } while (0)

// The whole case of that name; the function that cmocka calls is left here.
#define skip_because(reason)        \
  do {                              \
    skipped_part(__func__, reason); \
    skip();                         \
  } while (0)

#endif  // TESTS_SKIP_CASE_H_
