// Rows that layers of the CPU read and write where they lie.
#include "moved_row_case.h"

static void rows_are_found_and_written(void** state) {
  (void)state;
  for (size_t i = 0; i < MOVED_ROW_CASES; i++)
    moved_row_check(&moved_row_cases[i], "cpu", MOVED_ROW_FORMATS);
}

// What emulates a GPU to the bit reads them as its programs do.
static void emulated_gpus_read_them(void** state) {
  (void)state;
  for (size_t i = 0; i < MOVED_ROW_CASES; i++) moved_row_check(&moved_row_cases[i], "emu:sm_90", 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_found_and_written),
                                     cmocka_unit_test(emulated_gpus_read_them)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
