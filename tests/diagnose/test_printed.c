// Which arrays were stored with a few digits, and what unit their last digit has.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/golden/printed.h"
#include "ops/op_case.h"

enum { N = 200 };

typedef struct row {
  const char* name;
  assay_printed_t as;  // that each element goes through; nothing set: none
  double size;         // of the numbers, which lie around it
  double step;         // they are multiples of it; 0: any
  bool printed;
  double unit, of;  // the unit of the last digit of a number
} row_t;

static const row_t rows[] = {
    {"four digits", {4, 0, 0}, 1, 0, true, 1e-3, 1.5},
    {"five digits", {5, 0, 0}, 100, 0, true, 1e-2, 123.0},
    {"six digits", {6, 0, 0}, 10, 0, true, 1e-4, 14.2},
    {"six digits of small numbers", {6, 0, 0}, 1e-5, 0, true, 1e-10, 1.5e-5},
    {"seven digits", {7, 0, 0}, 1, 0, true, 1e-6, 1.5},
    {"four places", {0, 4, 0}, 1, 0, true, 1e-4, 1.5},
    {"four places of small numbers", {0, 4, 0}, 1e-2, 0, true, 1e-4, 0},
    {"six places", {0, 6, 0}, 0.1, 0, true, 1e-6, 0.001},
    {"half precision", {0, 0, ASSAY_FORMAT_FP16}, 1, 0, true, 0x1p-10, 1.5},
    {"half precision of tiny numbers", {0, 0, ASSAY_FORMAT_FP16}, 1e-4, 0, true, 0x1p-24, 1e-6},
    {"brain floats", {0, 0, ASSAY_FORMAT_BF16}, 100, 0, true, 0x1p-1, 100},
    {"nothing printed", {0, 0, 0}, 10, 0, false, 0, 14.2},
    {"nine digits", {9, 0, 0}, 10, 0, false, 0, 14.2},
};

static assay_printed_t all_of(const assay_tensor_t* t) { return assay_golden_printed(&t, 1, 20); }

static double print(const assay_printed_t* as, double x) {
  char text[64];
  if (as->format != ASSAY_FORMAT_NONE)
    return assay_format_round(as->format, x, ASSAY_OVERFLOW_IEEE);
  if (!as->digits && !as->places) return x;
  snprintf(text, sizeof text, as->digits ? "%.*g" : "%.*f", as->digits ? as->digits : as->places,
           x);
  return strtod(text, NULL);
}

static assay_tensor_t* numbers(const row_t* r, int64_t n, uint64_t seed) {
  assay_tensor_t* t = NULL;
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, &n, &t));
  for (int64_t k = 0; k < n; k++) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    double x = r->size * (0.02 + 2 * (double)(seed >> 11) * 0x1p-53);
    if (r->step > 0) x = r->step * floor(x / r->step);
    assay_f64(t)[k] = (double)(float)print(&r->as, (double)(float)x);
  }
  return t;
}

static void printed_arrays_are_known(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    assay_tensor_t* t = numbers(r, N, 7);
    const assay_printed_t p = all_of(t);
    const double unit = assay_printed_unit(&p, r->of);
    if (assay_is_printed(&p) != r->printed) fail_msg("%s: taken for the other", r->name);
    if (r->printed && !(fabs(unit - r->unit) <= 1e-9 * r->unit))
      fail_msg("%s: the unit of %g is %g, not %g", r->name, r->of, unit, r->unit);
    assay_tensor_release(t);
  }
}

// What ends in few digits without being printed is told by the numbers that the network makes.
static void numbers_of_few_digits_lost_none(void** state) {
  (void)state;
  static const row_t natural[] = {
      {.name = "whole numbers", .size = 1000, .step = 1},
      {.name = "halves", .size = 100, .step = 0.5},
      {.name = "steps of a quantizer", .size = 10, .step = 0.05},
      {.name = "steps of a power of two", .size = 1, .step = 0x1p-8},
  };
  for (size_t i = 0; i < sizeof natural / sizeof *natural; i++) {
    assay_tensor_t* t = numbers(&natural[i], N, 7);
    const assay_printed_t p = all_of(t);
    if (assay_is_printed(&p) && !assay_printed_is_natural(&p, t))
      fail_msg("%s: taken for printed", natural[i].name);
    assay_tensor_release(t);
  }
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    row_t r = rows[i];
    if (!r.printed) continue;
    assay_tensor_t* printed = numbers(&r, N, 7);
    const assay_printed_t p = all_of(printed);
    r.as = (assay_printed_t){0, 0, ASSAY_FORMAT_NONE};
    assay_tensor_t* whole = numbers(&r, N, 7);
    if (assay_printed_is_natural(&p, whole)) fail_msg("%s: taken for natural", r.name);
    assay_tensor_release(printed);
    assay_tensor_release(whole);
  }
}

// One number alone tells little, and several arrays tell more; one that has all digits tells that
// they were not printed together.
static void arrays_tell_together(void** state) {
  (void)state;
  const row_t six = {.as = {6, 0, 0}, .size = 10}, whole = {.size = 10};
  const assay_tensor_t* all[4] = {NULL};
  assay_tensor_t* own[4] = {NULL};
  for (int i = 0; i < 4; i++) all[i] = own[i] = numbers(&six, 2, 11 + (uint64_t)i);
  assay_printed_t p = assay_golden_printed(all, 1, 20);
  assert_false(assay_is_printed(&p));
  p = assay_golden_printed(all, 4, 20);
  assert_int_equal(p.digits, 6);
  const assay_printed_t as = p;
  p = assay_golden_printed_as(all[0], &as);
  assert_int_equal(p.digits, 6);
  assay_tensor_release(own[3]);
  all[3] = own[3] = numbers(&whole, 1, 5);
  p = assay_golden_printed(all, 4, 2);
  assert_false(assay_is_printed(&p));
  p = assay_golden_printed_as(all[3], &as);
  assert_false(assay_is_printed(&p));
  for (int i = 0; i < 4; i++) assay_tensor_release(own[i]);
}

// Zero, what is not finite, and arrays of nothing have no digits.
static void odd_numbers_have_no_unit(void** state) {
  (void)state;
  const assay_printed_t six = {6, 0, ASSAY_FORMAT_NONE};
  const int64_t none[] = {0};
  assay_tensor_t* t = NULL;
  assert_true(assay_printed_unit(&six, 0) == 0);
  assert_true(assay_printed_unit(&six, (double)INFINITY) == 0);
  assert_true(assay_printed_unit(&six, (double)NAN) == 0);
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, none, &t));
  const assay_printed_t p = all_of(t);
  assert_false(assay_is_printed(&p));
  assay_tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(printed_arrays_are_known), cmocka_unit_test(numbers_of_few_digits_lost_none),
      cmocka_unit_test(arrays_tell_together), cmocka_unit_test(odd_numbers_have_no_unit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
