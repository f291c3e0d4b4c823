// DynamicQuantizeLinear beside the emulated engine: the same bits. In 16-bit formats that runs it;
// that the tactic takes it in float32, test_cpu_every_tactic.c holds.
#include "backends/tactic_case.h"

#define ROW(name, x, specials) \
  { {name, 13, {x}, {0}, {"DynamicQuantizeLinear n x -> y s z"}, "y s z"}, NULL, 0, specials }

static const tactic_case_t rows[] = {
    ROW("a matrix", "x float[3,70]", false),
    ROW("for several threads", "x float[613,701]", false),
    ROW("one element", "x float[1]", false),
    ROW("a number", "x float[]", false),
    ROW("zeros", "x float[2,3] 0 0 0 0 0 0", false),
    ROW("nothing below 0", "x float[5] 0.5 1 2 3.25 7", false),
    ROW("nothing above 0", "x float[5] -0.5 -1 -2 -3.25 -7", false),
    ROW("ties", "x float[6] 255 0.5 1.5 2.5 254.5 0", false),
    ROW("tiny", "x float[3] 1e-42 -3e-42 0", false),
    ROW("infinities and NaN", "x float[4,33]", true),
    {{"before a product",
      13,
      {"x float[4,19]"},
      {"w int8[19,7]", "zw int8[] 0"},
      {"DynamicQuantizeLinear n x -> q s z", "MatMulInteger m q w z zw -> y"},
      "y s"},
     NULL,
     0,
     false},
};

static void rows_agree(void** state) {
  (void)state;
  tactic_case_all(rows, sizeof rows / sizeof *rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
