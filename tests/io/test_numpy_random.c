// NumPy's RandomState: the numbers that NumPy itself gives.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// cmocka needs these before it
#include <math.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "io/numpy_random.h"

static void ok(assay_status_t st) {
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  assert_null(st);
}

// What Polygraphy 0.53.6 generates: seed, range, values (as float64).
static void floats(void** state) {
  (void)state;
  static const struct {
    uint32_t seed;
    assay_type_t type;
    double min, max, values[6];
  } rows[] = {
      {1,
       ASSAY_TYPE_FLOAT,
       0,
       1,
       {0.4170219898223877, 0.7203245162963867, 0.00011437481589382514, 0.3023325800895691,
        0.1467558890581131, 0.09233859181404114}},
      {2,
       ASSAY_TYPE_FLOAT,
       0,
       1,
       {0.4359948933124542, 0.02592623233795166, 0.5496624708175659, 0.4353224039077759,
        0.4203678071498871, 0.3303348124027252}},
      {1,
       ASSAY_TYPE_FLOAT,
       -2,
       3,
       {0.08511002361774445, 1.601622462272644, -1.999428153038025, -0.48833712935447693,
        -1.2662205696105957, -1.5383070707321167}},
      {1,
       ASSAY_TYPE_FLOAT16,
       0,
       1,
       {0.4169921875, 0.72021484375, 0.00011438131332397461, 0.30224609375, 0.146728515625,
        0.09234619140625}},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    assay_numpy_random_t r;
    assay_tensor_t* t = NULL;
    assay_numpy_random_seed(&r, rows[k].seed);
    const assay_numpy_range_t range = {rows[k].min, rows[k].max, 0, 1};
    ok(assay_numpy_random_tensor(&r, rows[k].type, 2, (int64_t[]){2, 3}, &range, &t));
    for (int i = 0; i < 6; i++) assert_true(assay_f64(t)[i] == rows[k].values[i]);
    assay_tensor_release(t);
  }
}

// RandomState(seed).randint(min, max + 1, n, dtype), and the random_sample() that follows. Made by
// NumPy 2.4.6 (samples of Polygraphy's: the first six).
static void integers(void** state) {
  (void)state;
  static const struct {
    uint32_t seed;
    assay_type_t type;
    int64_t min, max;
    int n;
    int64_t values[40];
    double after;  // 0: not known
  } rows[] = {
      {1, ASSAY_TYPE_INT64, 0, 1, 12, {1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1}, 0},
      {1, ASSAY_TYPE_INT64, 2, 50, 12, {39, 45, 14, 10, 11, 13, 7, 17, 2, 18, 3, 14}, 0},
      {1, ASSAY_TYPE_INT32, 2, 50, 12, {39, 45, 14, 10, 11, 13, 7, 17, 2, 18, 3, 14}, 0},
      {1, ASSAY_TYPE_INT8, -5, 5, 12, {0, -1, -4, 5, -5, 2, 2, 3, 3, -1, 2, -5}, 0},
      {1,
       ASSAY_TYPE_UINT8,
       0,
       255,
       12,
       {37, 244, 193, 106, 235, 128, 71, 255, 140, 47, 103, 184},
       0},
      {1, ASSAY_TYPE_BOOL, 0, 1, 12, {1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0}, 0},
      {0,
       ASSAY_TYPE_INT16,
       -32768,
       32767,
       5,
       {-30036, 3199, 10799, 6084, 9845},
       0x1.b04399a693acdp-1},
      {7, ASSAY_TYPE_UINT16, 3, 1000, 7, {178, 907, 199, 565, 540, 939, 505}, 0x1.c0ee597d36686p-2},
      {3,
       ASSAY_TYPE_UINT32,
       0,
       4294967295,
       4,
       {2365658986, 303761048, 3041471737, 3607553667},
       0x1.29e2ee8f87b1ep-2},
      {9,
       ASSAY_TYPE_INT64,
       -5,
       1099511627776,
       5,
       {543309627888, 1079394964369, 536928129596, 98256916911, 253993743651},
       0x1.fc1c77237c28cp-3},
      {9,
       ASSAY_TYPE_INT64,
       INT64_MIN,
       INT64_MAX,
       4,
       {-9032002594820763300, 34580184003183093, -77968886344034248, -6754652892777147498},
       0x1.230b230369124p-3},
      {5, ASSAY_TYPE_UINT8, 7, 7, 3, {7, 7, 7}, 0x1.c6a45b0e2048cp-3},
      {4294967295,
       ASSAY_TYPE_INT32,
       0,
       100000,
       6,
       {27043, 16674, 44103, 14260, 65088, 20694},
       0x1.8a8e03c125ec7p-1},
      {11,
       ASSAY_TYPE_BOOL,
       0,
       1,
       40,
       {1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0,
        0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1},
       0x1.3f15155158e20p-6},
      {11, ASSAY_TYPE_BOOL, 1, 1, 4, {1, 1, 1, 1}, 0x1.71313c117c8e8p-3},
      {4, ASSAY_TYPE_INT8, -128, 127, 5, {-6, -60, 15, 119, 46}, 0x1.182ed34b0d70bp-1},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    assay_numpy_random_t r;
    assay_tensor_t* t = NULL;
    const int64_t n = rows[k].n;
    assay_numpy_random_seed(&r, rows[k].seed);
    const assay_numpy_range_t range = {0, 1, rows[k].min, rows[k].max};
    ok(assay_numpy_random_tensor(&r, rows[k].type, 1, &n, &range, &t));
    for (int i = 0; i < n; i++)
      if (assay_i64(t)[i] != rows[k].values[i])
        fail_msg("row %zu, element %d: %lld", k, i, (long long)assay_i64(t)[i]);
    if (rows[k].after != 0) assert_true(assay_numpy_random_sample(&r) == rows[k].after);
    assay_tensor_release(t);
  }
}

static void refused(void** state) {
  (void)state;
  static const struct {
    assay_type_t type;
    assay_numpy_range_t range;
  } rows[] = {{ASSAY_TYPE_INT8, {0, 1, 0, 128}},  {ASSAY_TYPE_BOOL, {0, 1, 0, 2}},
              {ASSAY_TYPE_UINT64, {0, 1, -1, 2}}, {ASSAY_TYPE_INT32, {0, 1, 3, 2}},
              {ASSAY_TYPE_STRING, {0, 1, 0, 1}},  {ASSAY_TYPE_FLOAT, {0, (double)INFINITY, 0, 1}}};
  assay_numpy_random_t r;
  assay_numpy_random_seed(&r, 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_tensor_t* t = NULL;
    assay_status_t st = assay_numpy_random_tensor(&r, rows[i].type, 0, NULL, &rows[i].range, &t);
    assert_non_null(st);
    assay_status_free(st);
    assert_null(t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(floats), cmocka_unit_test(integers),
                                     cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
