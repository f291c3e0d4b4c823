// Elements against their limits: one row an element, and the class that it falls into.
#include "accuracy/judge.h"
#include "ops/op_case.h"

static const char* const classes[] = {"exact",    "explained",  "between",
                                      "beyond",   "overflowed", "underflowed",
                                      "born_nan", "unbounded",  "not_judged"};

static const char* class_of(const assay_judgement_t* j) {
  const int64_t counts[] = {j->exact,       j->explained, j->between,   j->beyond,    j->overflowed,
                            j->underflowed, j->born_nan,  j->unbounded, j->not_judged};
  const char* name = "none";
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (!counts[i]) continue;
    assert_string_equal(name, "none");
    name = classes[i];
  }
  return name;
}

enum { NO_LIMITS = -1 };
#define NAN_ ((double)NAN)
#define INF_ ((double)INFINITY)

typedef struct row {
  double engine, truth, guaranteed, probable;  // guaranteed NO_LIMITS: none were made
  assay_format_t storage;
  bool unfinite_in;
  const char* class;
  bool moves;
} row_t;

static const row_t rows[] = {
    // Storing: truth rounded once; half an ulp more than that is rounding.
    {1, 1, 0, 0, ASSAY_FORMAT_FP32, false, "exact", false},
    {1, 1 + 0x1p-12, 0, 0, ASSAY_FORMAT_FP16, false, "exact", false},
    {1, 1 + 0x1p-11 + 0x1p-20, 0x1p-19, 0x1p-19, ASSAY_FORMAT_FP16, false, "explained", false},
    {1, 1 + 0x1p-11 + 0x1p-20, 0x1p-19, 0x1p-22, ASSAY_FORMAT_FP16, false, "between", false},
    {1, 1 + 0x1p-9, 0x1p-19, 0x1p-22, ASSAY_FORMAT_FP16, false, "beyond", false},
    {1, 1 + 0x1p-20, 0, 0, ASSAY_FORMAT_FP32, false, "beyond", false},
    {1, 1.5, NO_LIMITS, 0, ASSAY_FORMAT_FP32, false, "unbounded", false},
    // The far end of the range.
    {INF_, 70000, 1, 1, ASSAY_FORMAT_FP16, false, "overflowed", false},
    {INF_, 65519, 1, 1, ASSAY_FORMAT_FP16, false, "overflowed", false},
    {INF_, 60000, 1, 1, ASSAY_FORMAT_FP16, false, "beyond", false},
    {-INF_, 70000, 1, 1, ASSAY_FORMAT_FP16, false, "beyond", false},
    {INF_, 60000, 1, 1, ASSAY_FORMAT_FP16, true, "not_judged", false},
    {INF_, 70000, NO_LIMITS, 0, ASSAY_FORMAT_FP16, false, "overflowed", false},
    {INF_, INF_, 0, 0, ASSAY_FORMAT_FP16, false, "exact", false},
    {65504, INF_, 0, 0, ASSAY_FORMAT_FP16, false, "not_judged", false},
    // NaN.
    {NAN_, 1, 1, 1, ASSAY_FORMAT_FP16, false, "born_nan", false},
    {NAN_, 1, 1, 1, ASSAY_FORMAT_FP16, true, "not_judged", false},
    {NAN_, NAN_, 1, 1, ASSAY_FORMAT_FP16, false, "exact", false},
    // Where nothing is computed, what is not finite comes through as everything else.
    {1, NAN_, 0, 0, ASSAY_FORMAT_FP16, true, "beyond", true},
    {1, INF_, 0, 0, ASSAY_FORMAT_FP16, true, "beyond", true},
    {448, INF_, 0, 0, ASSAY_FORMAT_FP8E4M3, true, "not_judged", true},
    {INF_, 1, 0, 0, ASSAY_FORMAT_FP16, true, "beyond", true},
    {NAN_, NAN_, 0, 0, ASSAY_FORMAT_FP16, true, "exact", true},
    {1, NAN_, 0, 0, ASSAY_FORMAT_FP16, true, "not_judged", false},
    // The near end: what the format cannot hold, and what a unit that flushes makes of it.
    {0, 1e-9, 1e-16, 1e-16, ASSAY_FORMAT_FP16, false, "underflowed", false},
    {0, -1e-9, 1e-16, 1e-16, ASSAY_FORMAT_FP16, false, "underflowed", false},
    {0, 3e-5, 1e-12, 1e-12, ASSAY_FORMAT_FP16, false, "underflowed", false},
    {0, 3e-5, NO_LIMITS, 0, ASSAY_FORMAT_FP16, false, "underflowed", false},
    {0, 1e-4, 1e-12, 1e-12, ASSAY_FORMAT_FP16, false, "beyond", false},
    {0, 1e-46, 0x1p-149, 0x1p-149, ASSAY_FORMAT_FP32, false, "underflowed", false},
    {0, 1e-39, 0x1p-126, 0x1p-126, ASSAY_FORMAT_FP32, false, "underflowed", false},
    {0x1p-24, 1e-9, 0x1p-24, 0x1p-24, ASSAY_FORMAT_FP16, false, "explained", false},
    // A sum that cancels is none of that, though truth is nearly 0.
    {0, 0, 1e-7, 1e-7, ASSAY_FORMAT_FP32, false, "exact", false},
    {0, 1e-17, 1e-7, 1e-7, ASSAY_FORMAT_FP32, false, "explained", false},
    {0, 1e-17, 1e-7, 1e-18, ASSAY_FORMAT_FP32, false, "between", false},
    {0, 1e-9, 1e-7, 1e-7, ASSAY_FORMAT_FP16, false, "exact", false},
    {0, 3e-5, 1e-4, 1e-4, ASSAY_FORMAT_FP16, false, "explained", false},
    {0, 1e-6, 1e-7, 1e-7, ASSAY_FORMAT_FP32, false, "beyond", false},
};

static void elements_fall_into_classes(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    assay_tensor_t *engine = NULL, *truth = NULL;
    assay_limits_t limits = {0};
    assay_judgement_t j = {0};
    op_case_ok(assay_tensor_scalar_f64(ASSAY_TYPE_DOUBLE, r->engine, &engine));
    op_case_ok(assay_tensor_scalar_f64(ASSAY_TYPE_DOUBLE, r->truth, &truth));
    op_case_ok(assay_tensor_scalar_f64(ASSAY_TYPE_DOUBLE, r->guaranteed, &limits.guaranteed));
    op_case_ok(assay_tensor_scalar_f64(ASSAY_TYPE_DOUBLE, r->probable, &limits.probable));
    const assay_judge_input_t in = {.engine = engine,
                                    .truth = truth,
                                    .limits = r->guaranteed >= 0 ? &limits : NULL,
                                    .storage = r->storage,
                                    .compute = ASSAY_FORMAT_FP32,
                                    .unfinite_in = r->unfinite_in,
                                    .moves = r->moves};
    op_case_ok(assay_judge(&in, &j));
    assert_int_equal(j.elements, 1);
    if (strcmp(class_of(&j), r->class) != 0)
      fail_msg("row %zu: %g where truth is %.9g with limits %g and %g is %s, not %s", i, r->engine,
               r->truth, r->guaranteed, r->probable, class_of(&j), r->class);
    assay_limits_deinit(&limits);
    assay_tensor_release(engine);
    assay_tensor_release(truth);
  }
}

// What vanishes says nothing about rounding: it must not look like a systematic error.
static void vanished_elements_do_not_count_as_errors(void** state) {
  (void)state;
  assay_tensor_t* engine = op_case_tensor("double[4] 0 0 1 1");
  assay_tensor_t* truth = op_case_tensor("double[4] 1e-9 1e-10 1 1");
  assay_limits_t limits = {op_case_tensor("double[4] 1e-16 1e-16 1e-7 1e-7"),
                           op_case_tensor("double[4] 1e-16 1e-16 1e-7 1e-7")};
  assay_judgement_t j = {0};
  const assay_judge_input_t in = {.engine = engine,
                                  .truth = truth,
                                  .limits = &limits,
                                  .storage = ASSAY_FORMAT_FP16,
                                  .compute = ASSAY_FORMAT_FP32};
  op_case_ok(assay_judge(&in, &j));
  assert_int_equal(j.underflowed, 2);
  assert_int_equal(j.exact, 2);
  assert_true(assay_judgement_ratio(&j) == 0 && assay_judgement_slope(&j) == 0);
  assay_limits_deinit(&limits);
  assay_tensor_release(engine);
  assay_tensor_release(truth);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(elements_fall_into_classes),
                                     cmocka_unit_test(vanished_elements_do_not_count_as_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
