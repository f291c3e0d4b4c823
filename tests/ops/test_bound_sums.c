// Limits of sums: what cancels, what adds up exactly, and numbers that are rounded to steps.
#include "ops/bound_case.h"
#include "ops/quant/dynamic_quantize.h"

static const assay_rounding_t fp32 = {.compute = ASSAY_FORMAT_FP32,
                                      .accumulator = ASSAY_FORMAT_FP32,
                                      .documented = true,
                                      .function_ulps = 1};

// ---- one sum ------------------------------------------------------------------------------------

static void sums_that_cancel_have_less(void** state) {
  static const struct {
    double n, value;  // of magnitudes that add up to 1
    bool less;        // than the factor says
  } rows[] = {{1, 1, false},    {2, 1, false},    {100, 1, false}, {100, -1, false},
              {100, 0.5, true}, {100, 0, true},   {4000, 0, true}, {4000, -0.3, true},
              {0, 0, false},    {1e7, 0.1, true}, {1e9, 0, true}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const assay_factor_t f = assay_bound_sum(&fp32, rows[i].n);
    const assay_factor_t e = assay_bound_sum_of(&fp32, rows[i].n, 1, rows[i].value);
    if (e.guaranteed <= f.guaranteed && e.probable <= f.probable && e.probable <= e.guaranteed &&
        (e.probable < 0.9 * f.probable) == rows[i].less)
      continue;
    fail_msg("%g terms whose sum is %g: limits %g and %g, the factor says %g and %g", rows[i].n,
             rows[i].value, e.guaranteed, e.probable, f.guaranteed, f.probable);
  }
}

// Truncation has errors of one sign, for which there is no better limit.
static void truncated_sums_keep_the_factor(void** state) {
  (void)state;
  assay_rounding_t r = fp32;
  r.truncates = true;
  const assay_factor_t f = assay_bound_sum(&r, 100), e = assay_bound_sum_of(&r, 100, 3, 0);
  assert_true(e.guaranteed == 3 * f.guaranteed && e.probable == 3 * f.probable);
}

// ---- running sums -------------------------------------------------------------------------------

// At least `min` by element; where that is 0, nothing but what subnormal numbers lose.
typedef struct running {
  op_case_t row;
  const char* min;
} running_t;

static const running_t running[] = {
    // Terms of few bits add up exactly, in any order.
    {{"CumSum", 14, NULL, {"float[6] 1 2.5 -3 4096 -0.25 7", "int64[] 0"}, {"?"}, NULL},
     "float[6] 0 0 0 0 0 0"},
    // 1 is lost beside 2^25, and stays lost.
    {{"CumSum", 14, NULL, {"float[5] 1 1 33554432 -33554432 1", "int64[] 0"}, {"?"}, NULL},
     "float[5] 0 0 2 2 2"},
    {{"CumSum", 14, "exclusive=1", {"float[3] 1 33554432 1", "int64[] 0"}, {"?"}, NULL},
     "float[3] 0 0 1"},
    {{"CumSum", 14, "reverse=1", {"float[3] 1 33554432 1", "int64[] 0"}, {"?"}, NULL},
     "float[3] 1 1 0"},
    {{"CumSum", 14, NULL, {"float[2,2] 1 33554432 1 1", "int64[] 1"}, {"?"}, NULL},
     "float[2,2] 0 1 0 0"},
    {{"CumSum", 14, NULL, {"float[2,2] 1 33554432 1 1", "int64[] -2"}, {"?"}, NULL},
     "float[2,2] 0 0 0 1"},
};

static void running_sums_follow_their_terms(void** state) {
  (void)state;
  for (size_t r = 0; r < sizeof running / sizeof *running; r++) {
    assay_limits_t l = {0};
    bound_case_limits(&running[r].row, &fp32, NULL, false, &l);
    assay_tensor_t* min = op_case_tensor(running[r].min);
    assert_non_null(l.guaranteed);
    assert_int_equal(l.guaranteed->size, min->size);
    for (int64_t i = 0; i < min->size; i++) {
      const double from = assay_f64(min)[i], g = assay_f64(l.guaranteed)[i];
      const double p = assay_f64(l.probable)[i];
      if (p <= g && p >= from && (from > 0 || g < 1e-40)) continue;
      fail_msg("row %zu, element %lld: limits %g and %g, expected %g", r, (long long)i, g, p, from);
    }
    assay_tensor_release(min);
    assay_limits_deinit(&l);
  }
}

// What comes in is added up, and may have any bits.
static void limits_of_terms_are_added(void** state) {
  (void)state;
  const op_case_t row = {"CumSum", 14, NULL, {"float[3] 1 2 3", "int64[] 0"}, {"?"}, NULL};
  assay_tensor_t* error = op_case_tensor("double[3] 0.5 0.25 0.125");
  const assay_limits_t in[2] = {{error, error}};
  const double sums[] = {0.5, 0.75, 0.875};
  assay_limits_t l = {0};
  bound_case_limits(&row, &fp32, in, false, &l);
  for (int i = 0; i < 3; i++) {
    assert_true(assay_f64(l.guaranteed)[i] > sums[i]);
    assert_true(assay_f64(l.probable)[i] < sums[i] + 1e-5);
  }
  assay_tensor_release(error);
  assay_limits_deinit(&l);
}

// ---- operands -----------------------------------------------------------------------------------

// A weight of e^-11 has 2^-25 as half a step of float16, 4 times what 2^-11 of it is; the other
// key's value is 0.
static void small_weights_lose_more_as_operands(void** state) {
  static const struct {
    op_case_t row;
    int at;
    double min;
  } rows[] = {
      {{"Softmax", 13, NULL, {"float[2] 0 -11"}, {"?"}, NULL}, 1, 0x1p-25},
      {{"Attention",
        23,
        "scale=1.0",
        {"float[1,1,1,1] 1", "float[1,1,2,1] 0 -11", "float[1,1,2,1] 0 16"},
        {"?"},
        NULL},
       0,
       0x1p-21},
  };
  assay_rounding_t wide = fp32, narrow = fp32;
  (void)state;
  narrow.operands = ASSAY_FORMAT_FP16;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_limits_t l = {0}, less = {0};
    bound_case_limits(&rows[i].row, &narrow, NULL, false, &l);
    bound_case_limits(&rows[i].row, &wide, NULL, false, &less);
    assert_true(assay_f64(l.probable)[rows[i].at] >= rows[i].min);
    assert_true(assay_f64(l.guaranteed)[rows[i].at] < 3 * rows[i].min);
    assert_true(assay_f64(less.guaranteed)[rows[i].at] < rows[i].min / 2);
    assay_limits_deinit(&l);
    assay_limits_deinit(&less);
  }
}

// ---- dynamic quantization -----------------------------------------------------------------------

// The scale of numbers from 0 to 255 is 1.
static void steps_are_as_far_as_a_tie(void** state) {
  static const double x[] = {0, 255, 10.3, 20.5, 0}, in[] = {0, 0, 0.25, 0.1, 0};
  static const double exact[] = {0, 0, 0, 1, 0}, uncertain[] = {0, 0, 1, 1, 0};
  (void)state;
  for (int k = 0; k < 2; k++) {
    double error[5];
    assay_dynamic_quantize_bound(&fp32, 5, x, k ? in : NULL, error);
    for (int i = 0; i < 5; i++) {
      const double steps = k ? uncertain[i] : exact[i];
      assert_true(error[i] >= steps && error[i] < steps + 1e-3);
    }
  }
}

// From -1 to 1 the zero point lies between two steps: both ends may move by one.
static void a_zero_point_beside_a_tie_moves_the_ends(void** state) {
  const double x[] = {-1, 1, 0.25};
  double error[3];
  (void)state;
  assay_dynamic_quantize_bound(&fp32, 3, x, NULL, error);
  assert_true(error[0] > 0.9 * 2 / 255 || error[1] > 0.9 * 2 / 255);
  assert_true(error[2] < 1e-3);
}

// Whatever is known of the numbers, they and what they become are no more than a step apart.
static void uncertain_ranges_have_limits(void** state) {
  const double x[] = {0, 0, 1}, in[] = {0.5, 2, 3};
  double error[3];
  (void)state;
  assay_dynamic_quantize_bound(&fp32, 3, x, in, error);
  for (int i = 0; i < 3; i++) assert_true(error[i] > in[i] && error[i] < in[i] + 0.1);
  const double zeros[] = {0, 0, 0};
  assay_dynamic_quantize_bound(&fp32, 3, zeros, NULL, error);
  for (int i = 0; i < 3; i++) assert_true(error[i] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_that_cancel_have_less),
      cmocka_unit_test(truncated_sums_keep_the_factor),
      cmocka_unit_test(running_sums_follow_their_terms),
      cmocka_unit_test(limits_of_terms_are_added),
      cmocka_unit_test(small_weights_lose_more_as_operands),
      cmocka_unit_test(steps_are_as_far_as_a_tie),
      cmocka_unit_test(a_zero_point_beside_a_tie_moves_the_ends),
      cmocka_unit_test(uncertain_ranges_have_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
