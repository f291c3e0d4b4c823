// The environment through the public API: this machine's, and files of two compared.
#include <assay/assay.h>
#include <stdio.h>
#include <string.h>

#include "status_case.h"

static const char* path = "environment_test.json";

static void this_machine(void** state) {
  (void)state;
  char* text = NULL;
  ok(assay_environment_report(ASSAY_REPORT_TEXT, assay_report_collect, &text));
  assert_non_null(strstr(text, "rounding mode"));
  assay_text_free(text);
  fails(assay_environment_report(ASSAY_REPORT_PAGE, assay_report_collect, &text), ASSAY_UNSUPPORTED,
        "environments");
}

// The same file twice; then one whose rounding mode is another.
static void compared(void** state) {
  (void)state;
  static const char other[] =
      "{\"schema\": \"assay.debug.environment/1\", \"entries\": [{\"key\": \"rounding mode\", "
      "\"value\": \"upward\", \"numbers\": true}]}";
  assay_environment_comparison_t* c = NULL;
  char* text = NULL;
  ok(assay_environment_report(ASSAY_REPORT_JSON, assay_report_to_file, &path));
  ok(assay_environment_compare(path, path, &c));
  assert_false(assay_environment_comparison_changes_numbers(c));
  assay_environment_comparison_destroy(c);
  FILE* f = fopen("environment_other.json", "w");
  assert_non_null(f);
  fputs(other, f);
  fclose(f);
  ok(assay_environment_compare(path, "environment_other.json", &c));
  assert_true(assay_environment_comparison_changes_numbers(c));
  ok(assay_environment_comparison_report(c, ASSAY_REPORT_JSON, assay_report_collect, &text));
  assert_non_null(strstr(text, "assay.debug.environment.compare/1"));
  assay_text_free(text);
  assay_environment_comparison_destroy(c);
  assay_environment_comparison_destroy(NULL);
  remove("environment_other.json");
  remove(path);
}

static void what_is_no_environment(void** state) {
  (void)state;
  assay_environment_comparison_t* c = NULL;
  fails(assay_environment_compare("nothing.json", "nothing.json", &c), ASSAY_NOT_FOUND,
        "nothing.json");
  assert_null(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(this_machine), cmocka_unit_test(compared),
                                     cmocka_unit_test(what_is_no_environment)};
  return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
