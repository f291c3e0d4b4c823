// The timing cache: as text and back, and refused where it is none or another machine's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "exec/choice/timings.h"

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

static void text_comes_back(void** state) {
  (void)state;
  assay_timings_t *t = NULL, *again = NULL;
  assay_str_t text = {0}, second = {0}, used = {0};
  bool fits = false;
  double us = 0;
  ok(assay_timings_create("here", &t));
  ok(assay_timings_add(t, "slow", "Conv() i0 | x", 12.25));
  ok(assay_timings_add(t, "fast", "Conv() i0 | x", 0.5));
  ok(assay_timings_add(t, "fast", "Conv() i0 | x", 0.75));
  assert_true(assay_timings_find(t, "fast", "Conv() i0 | x", &us) && us == 0.75);
  assert_false(assay_timings_find(t, "fast", "Conv() i0 | y", &us));
  ok(assay_timings_print(t, false, &text));
  ok(assay_timings_create("here", &again));
  ok(assay_timings_parse(again, assay_str_get(&text), strlen(assay_str_get(&text)), &fits));
  assert_true(fits);
  ok(assay_timings_print(again, false, &second));
  assert_string_equal(assay_str_get(&text), assay_str_get(&second));
  // Of what was read, only what is looked up belongs to a plan.
  assert_true(assay_timings_find(again, "slow", "Conv() i0 | x", &us) && us == 12.25);
  ok(assay_timings_print(again, true, &used));
  assert_non_null(strstr(assay_str_get(&used), "slow"));
  assert_null(strstr(assay_str_get(&used), "fast"));
  assay_str_deinit(&text);
  assay_str_deinit(&second);
  assay_str_deinit(&used);
  assay_timings_destroy(t);
  assay_timings_destroy(again);
}

static void other_machines_are_not_read(void** state) {
  (void)state;
  static const char text[] = "assay timing cache 1\nabacus, 7 beads\n1.5 fast Conv\n";
  assay_timings_t* t = NULL;
  bool fits = true;
  double us;
  ok(assay_timings_create("here", &t));
  ok(assay_timings_parse(t, text, sizeof text - 1, &fits));
  assert_false(fits);
  assert_false(assay_timings_find(t, "fast", "Conv", &us));
  ok(assay_timings_parse(t, text, sizeof text - 1, NULL));
  assert_true(assay_timings_find(t, "fast", "Conv", &us) && us == 1.5);
  assay_timings_destroy(t);
}

static void what_is_no_cache_is_refused(void** state) {
  (void)state;
  static const char* const texts[] = {
      "",
      "assay timing cache",
      "assay timing cache 2\nx\n",
      "assay timing cache 1\nx\n1.5\n",
      "assay timing cache 1\nx\n1.5 fast\n",
      "assay timing cache 1\nx\nnan fast Conv\n",
      "assay timing cache 1\nx\n-1 fast Conv\n",
      "assay timing cache 1\nx\n1e999 fast Conv\n",
      "assay timing cache 1\nx\n 1 fast Conv\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assay_timings_t* t = NULL;
    ok(assay_timings_create("here", &t));
    assay_status_t st = assay_timings_parse(t, texts[i], strlen(texts[i]), NULL);
    if (!st) fail_msg("'%s' was taken", texts[i]);
    assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
    assay_status_free(st);
    assay_timings_destroy(t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(text_comes_back),
                                     cmocka_unit_test(other_machines_are_not_read),
                                     cmocka_unit_test(what_is_no_cache_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
