// What completion knows of options' values is of options that are there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/verbs.h"

static bool has(const verb_t* verb, const char* option) {
  for (const opt_t* o = verb->options; o->name; o++)
    if (strcmp(o->name, option) == 0 || (o->value && strcmp(o->value, option) == 0)) return true;
  return false;
}

static void test_rows(void** state) {
  (void)state;
  for (const value_row_t* row = assay_cli_value_rows; row->option; row++) {
    bool found = false;
    for (const verb_t* const* v = assay_cli_verbs; *v; v++)
      if (!row->verb || strcmp(row->verb, (*v)->name) == 0) found |= has(*v, row->option);
    if (!found) fail_msg("no verb '%s' with '%s'", row->verb ? row->verb : "(any)", row->option);
  }
}

// Completion and manual of all verbs, and of none that is not there.
static void test_all(void** state) {
  (void)state;
  static const char* const shells[] = {"bash", "zsh", "fish"};
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
    assay_str_t text = {0};
    assert_null(assay_cli_completion(shells[i], &text));
    assert_true(text.len > 1000);
    assay_str_deinit(&text);
  }
  assay_str_t text = {0};
  assay_status_t st = assay_cli_completion("csh", &text);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  assert_int_equal(text.len, 0);
  assert_ptr_equal(assay_cli_find_verb("debug precision"), &assay_verb_debug_precision);
  assert_null(assay_cli_find_verb("debug"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
