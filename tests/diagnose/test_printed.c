// Which arrays were printed with a few digits, and what unit their last digit has.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/golden/printed.h"
#include "ops/op_case.h"

enum { N = 200 };

typedef struct row {
  const char* name;
  const char* format;  // that each element goes through; NULL: none
  double size;         // of the numbers, which lie around it
  double step;         // they are multiples of it; 0: any
  bool printed;
  double unit, of;  // the unit of the last digit of a number
} row_t;

static const row_t rows[] = {
    {"six digits", "%.6g", 10, 0, true, 1e-4, 14.2},
    {"six digits of small numbers", "%.6g", 1e-5, 0, true, 1e-10, 1.5e-5},
    {"five digits", "%.5g", 100, 0, true, 1e-2, 123.0},
    {"six places", "%.6f", 0.1, 0, true, 1e-6, 0.001},
    {"nothing printed", NULL, 10, 0, false, 0, 14.2},
    {"nine digits", "%.9g", 10, 0, false, 0, 14.2},
    {"whole numbers", NULL, 100, 1, false, 0, 14},
    {"halves", NULL, 100, 0.5, false, 0, 14.5},
    {"steps of a quantizer", NULL, 10, 0.05, false, 0, 3.15},
};

static void printed_arrays_are_known(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    const int64_t dims[] = {N};
    uint64_t seed = 7;
    assay_tensor_t* t = NULL;
    op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, dims, &t));
    for (int k = 0; k < N; k++) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      double x = r->size * (0.02 + 2 * (double)(seed >> 11) * 0x1p-53);
      if (r->step > 0) x = r->step * floor(x / r->step);
      char text[64];
      if (r->format) {
        // Formats are those of the rows above.
        snprintf(text, sizeof text,
                 r->format[2] == '5'   ? "%.5g"
                 : r->format[2] == '9' ? "%.9g"
                 : r->format[3] == 'f' ? "%.6f"
                                       : "%.6g",
                 (double)(float)x);
        x = strtod(text, NULL);
      }
      assay_f64(t)[k] = (double)(float)x;
    }
    const assay_printed_t p = assay_golden_printed(t);
    const double unit = assay_printed_unit(&p, r->of);
    if (r->printed && !(fabs(unit - r->unit) <= 1e-9 * r->unit))
      fail_msg("%s: the unit of %g is %g, not %g", r->name, r->of, unit, r->unit);
    // By chance more digits than a float has to spare may be taken for printed ones.
    if (!r->printed && unit > 2e-7 * r->of) fail_msg("%s: a unit of %g", r->name, unit);
    assay_tensor_release(t);
  }
}

// Zero, what is not finite, and arrays of nothing have no digits.
static void odd_numbers_have_no_unit(void** state) {
  (void)state;
  const assay_printed_t six = {6, 0};
  const int64_t none[] = {0};
  assay_tensor_t* t = NULL;
  assert_true(assay_printed_unit(&six, 0) == 0);
  assert_true(assay_printed_unit(&six, (double)INFINITY) == 0);
  assert_true(assay_printed_unit(&six, (double)NAN) == 0);
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, none, &t));
  const assay_printed_t p = assay_golden_printed(t);
  assert_true(!p.digits && !p.places);
  assay_tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(printed_arrays_are_known),
                                     cmocka_unit_test(odd_numbers_have_no_unit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
