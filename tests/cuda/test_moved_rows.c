// Rows that layers of a GPU read and write where they lie, on a platform without one (fake/).
#include "backends/moved_row_case.h"
#include "layer_case.h"

static void rows_are_found_and_written(void** state) {
  (void)state;
  for (size_t i = 0; i < MOVED_ROW_CASES; i++) moved_row_check(&moved_row_cases[i], "cuda", 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_found_and_written)};
  layer_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
