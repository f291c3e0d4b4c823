// Arrays and numbers in NumPy's words; what is expected was printed by NumPy 2.4.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// cmocka needs those above before it
#include <math.h>

#include <cmocka.h>

#include "io/numpy_text.h"

#define NAN_ ((double)NAN)
#define INF_ ((double)INFINITY)

typedef struct row {
  assay_type_t type;
  int rank;
  int64_t dims[3];
  double values[12];
  const char* text;
} row_t;

static const row_t rows[] = {
    {ASSAY_TYPE_FLOAT, 1, {3}, {1, 2.5, -3}, "[ 1.   2.5 -3. ]"},
    {ASSAY_TYPE_FLOAT, 2, {2, 2}, {0.1, 0.25, 1, 10}, "[[ 0.1   0.25]\n [ 1.   10.  ]]"},
    // more than 1000 between the smallest and the largest: exponents
    {ASSAY_TYPE_FLOAT, 1, {3}, {1e-3, 0, 0.5}, "[0.001 0.    0.5  ]"},
    {ASSAY_TYPE_FLOAT, 1, {2}, {1e-3, 1.5}, "[1.0e-03 1.5e+00]"},
    {ASSAY_TYPE_FLOAT, 1, {2}, {1e-5, 0.5}, "[1.e-05 5.e-01]"},
    {ASSAY_TYPE_FLOAT, 1, {1}, {1e20}, "[1.e+20]"},
    {ASSAY_TYPE_DOUBLE, 1, {2}, {1e-300, 1}, "[1.e-300 1.e+000]"},
    {ASSAY_TYPE_DOUBLE, 1, {1}, {12345678}, "[12345678.]"},
    {ASSAY_TYPE_FLOAT, 1, {1}, {12345678}, "[1.2345678e+07]"},
    {ASSAY_TYPE_FLOAT16, 1, {2}, {0.0999755859375, 999}, "[1.00e-01 9.99e+02]"},
    {ASSAY_TYPE_DOUBLE, 1, {2}, {1.0 / 3, 2}, "[0.33333333 2.        ]"},
    {ASSAY_TYPE_FLOAT, 1, {3}, {NAN_, INF_, 1}, "[nan inf  1.]"},
    {ASSAY_TYPE_FLOAT, 1, {2}, {-INF_, 0.5}, "[-inf  0.5]"},
    {ASSAY_TYPE_FLOAT, 2, {1, 3}, {NAN_, NAN_, NAN_}, "[[nan nan nan]]"},
    {ASSAY_TYPE_FLOAT, 1, {1}, {-0.0}, "[-0.]"},
    {ASSAY_TYPE_FLOAT, 0, {0}, {1.6788881}, "1.6788881"},
    {ASSAY_TYPE_FLOAT, 0, {0}, {1e-5}, "1e-05"},
    {ASSAY_TYPE_INT64, 2, {2, 2}, {1, -20, 3, 400}, "[[  1 -20]\n [  3 400]]"},
    {ASSAY_TYPE_INT64, 0, {0}, {7}, "7"},
    {ASSAY_TYPE_BOOL, 1, {2}, {1, 0}, "[ True False]"},
    {ASSAY_TYPE_FLOAT, 2, {0, 3}, {0}, "[]"},
    {ASSAY_TYPE_INT32, 3, {2, 1, 2}, {1, 2, 3, 4}, "[[[1 2]]\n\n [[3 4]]]"},
};

static void print(const row_t* row, const assay_numpy_style_t* style, assay_str_t* out) {
  double f[12] = {0};
  int64_t i[12] = {0}, n = 1;
  const bool is_float = row->type == ASSAY_TYPE_FLOAT || row->type == ASSAY_TYPE_DOUBLE ||
                        row->type == ASSAY_TYPE_FLOAT16;
  for (int k = 0; k < row->rank; k++) n *= row->dims[k];
  for (int64_t k = 0; k < n; k++) {
    f[k] = row->type == ASSAY_TYPE_FLOAT ? (double)(float)row->values[k] : row->values[k];
    if (!is_float) i[k] = (int64_t)row->values[k];
  }
  const assay_numpy_array_t a = {.type = row->type,
                                 .rank = row->rank,
                                 .dims = row->dims,
                                 .n = n,
                                 .f = is_float ? f : NULL,
                                 .i = is_float ? NULL : i};
  assay_numpy_print(&a, style, out);
}

static void arrays_look_as_in_numpy(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const assay_numpy_style_t style = ASSAY_NUMPY_STYLE;
    assay_str_t out = {0};
    print(&rows[i], &style, &out);
    if (strcmp(assay_str_get(&out), rows[i].text) != 0)
      fail_msg("row %zu:\n%s\nexpected\n%s", i, assay_str_get(&out), rows[i].text);
    assay_str_deinit(&out);
  }
}

static void long_arrays_are_wrapped_and_shortened(void** state) {
  (void)state;
  static const struct {
    row_t row;
    assay_numpy_style_t style;
    const char* text;
  } styled[] = {
      {{ASSAY_TYPE_INT64, 1, {8}, {1, 2, 3, 4, 5, 6, 7, 8}, NULL},
       {3, 10, 1000},
       "[1 2 3 4\n 5 6 7 8]"},
      {{ASSAY_TYPE_INT64, 1, {8}, {1, 2, 3, 4, 5, 6, 7, 8}, NULL}, {2, 75, 5}, "[1 2 ... 7 8]"},
      {{ASSAY_TYPE_INT64, 2, {4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, NULL},
       {1, 75, 5},
       "[[ 1 ...  3]\n ...\n [10 ... 12]]"},
      // what is left out has no part in the width
      {{ASSAY_TYPE_INT64, 1, {5}, {1, 2, 30000, 4, 5}, NULL}, {1, 75, 4}, "[1 ... 5]"},
      // a word that is longer than the line stands alone
      {{ASSAY_TYPE_DOUBLE, 1, {2}, {0.123456, 0.654321}, NULL},
       {3, 5, 1000},
       "[0.123456\n 0.654321]"},
  };
  for (size_t i = 0; i < sizeof styled / sizeof *styled; i++) {
    assay_str_t out = {0};
    print(&styled[i].row, &styled[i].style, &out);
    if (strcmp(assay_str_get(&out), styled[i].text) != 0)
      fail_msg("row %zu:\n%s\nexpected\n%s", i, assay_str_get(&out), styled[i].text);
    assay_str_deinit(&out);
  }
}

static void numbers_have_the_digits_they_need(void** state) {
  (void)state;
  static const struct {
    assay_type_t type;
    double x;
    const char* text;
  } numbers[] = {
      {ASSAY_TYPE_DOUBLE, 1e-5, "1e-05"},
      {ASSAY_TYPE_DOUBLE, 0.0001, "0.0001"},
      {ASSAY_TYPE_DOUBLE, 1, "1.0"},
      {ASSAY_TYPE_DOUBLE, 0.1, "0.1"},
      {ASSAY_TYPE_DOUBLE, 1e15, "1000000000000000.0"},
      {ASSAY_TYPE_DOUBLE, 1e16, "1e+16"},
      {ASSAY_TYPE_DOUBLE, 1.0 / 3, "0.3333333333333333"},
      {ASSAY_TYPE_DOUBLE, 5e-324, "5e-324"},
      {ASSAY_TYPE_DOUBLE, -1.25e-7, "-1.25e-07"},
      {ASSAY_TYPE_DOUBLE, NAN_, "nan"},
      {ASSAY_TYPE_DOUBLE, -INF_, "-inf"},
      {ASSAY_TYPE_FLOAT, (double)0.1f, "0.1"},
      {ASSAY_TYPE_FLOAT, 16777216, "1.6777216e+07"},
      {ASSAY_TYPE_FLOAT16, 0.0999755859375, "0.1"},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    assay_str_t out = {0};
    assay_numpy_print_float(numbers[i].type, numbers[i].x, &out);
    assert_string_equal(assay_str_get(&out), numbers[i].text);
    assay_str_deinit(&out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arrays_look_as_in_numpy),
                                     cmocka_unit_test(long_arrays_are_wrapped_and_shortened),
                                     cmocka_unit_test(numbers_have_the_digits_they_need)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
