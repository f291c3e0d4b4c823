// Elements against their limits: one row an element, and the class that it falls into.
#include "account/judge.h"
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
  int special;  // ASSAY_REACHED, ASSAY_SHOWN, RERUN
  const char* class;
  bool moves;
} row_t;

// What is known of the element: NaN or an infinity that came in reaches it; the emulated layer was
// run, and has what the engine has (or never has).
enum { NONE = 0, REACHED = ASSAY_REACHED, SHOWN = ASSAY_SHOWN, RERUN = 1 << 4 };

static const row_t rows[] = {
    // Storing: truth rounded once; half an ulp more than that is rounding.
    {1, 1, 0, 0, ASSAY_FORMAT_FP32, NONE, "exact", false},
    {1, 1 + 0x1p-12, 0, 0, ASSAY_FORMAT_FP16, NONE, "exact", false},
    {1, 1 + 0x1p-11 + 0x1p-20, 0x1p-19, 0x1p-19, ASSAY_FORMAT_FP16, NONE, "explained", false},
    {1, 1 + 0x1p-11 + 0x1p-20, 0x1p-19, 0x1p-22, ASSAY_FORMAT_FP16, NONE, "between", false},
    {1, 1 + 0x1p-9, 0x1p-19, 0x1p-22, ASSAY_FORMAT_FP16, NONE, "beyond", false},
    {1, 1 + 0x1p-20, 0, 0, ASSAY_FORMAT_FP32, NONE, "beyond", false},
    {1, 1.5, NO_LIMITS, 0, ASSAY_FORMAT_FP32, NONE, "unbounded", false},
    // The far end of the range.
    {INF_, 70000, 1, 1, ASSAY_FORMAT_FP16, NONE, "overflowed", false},
    {INF_, 65519, 1, 1, ASSAY_FORMAT_FP16, NONE, "overflowed", false},
    {INF_, 60000, 1, 1, ASSAY_FORMAT_FP16, NONE, "beyond", false},
    {-INF_, 70000, 1, 1, ASSAY_FORMAT_FP16, NONE, "beyond", false},
    {INF_, 60000, 1, 1, ASSAY_FORMAT_FP16, REACHED, "not_judged", false},
    {INF_, 70000, NO_LIMITS, 0, ASSAY_FORMAT_FP16, NONE, "overflowed", false},
    {INF_, INF_, 0, 0, ASSAY_FORMAT_FP16, NONE, "exact", false},
    {65504, INF_, 0, 0, ASSAY_FORMAT_FP16, NONE, "not_judged", false},
    // NaN.
    {NAN_, 1, 1, 1, ASSAY_FORMAT_FP16, NONE, "born_nan", false},
    {NAN_, NAN_, 1, 1, ASSAY_FORMAT_FP16, NONE, "exact", false},
    {NAN_, 1, NO_LIMITS, 0, ASSAY_FORMAT_FP16, NONE, "born_nan", false},
    // What reaches the element may explain it; where nothing does, the format, if the emulated
    // layer
    // has it, too, or if limits say that anything is possible; else it is in the wrong place.
    {NAN_, 1, 1, 1, ASSAY_FORMAT_FP16, REACHED, "not_judged", false},
    {NAN_, 1, 1, 1, ASSAY_FORMAT_FP16, REACHED | RERUN | SHOWN, "not_judged", false},
    {NAN_, 1, 1, 1, ASSAY_FORMAT_FP16, REACHED | RERUN, "beyond", false},
    {NAN_, 1, INF_, INF_, ASSAY_FORMAT_FP16, REACHED | RERUN, "not_judged", false},
    {NAN_, 1, 1, 1, ASSAY_FORMAT_FP16, RERUN | SHOWN, "born_nan", false},
    {NAN_, 1, 1, 1, ASSAY_FORMAT_FP16, RERUN, "beyond", false},
    {NAN_, 1, INF_, INF_, ASSAY_FORMAT_FP16, RERUN, "born_nan", false},
    {INF_, 60000, 1, 1, ASSAY_FORMAT_FP16, REACHED | RERUN, "beyond", false},
    {INF_, 60000, 1, 1, ASSAY_FORMAT_FP16, REACHED | RERUN | SHOWN, "not_judged", false},
    {INF_, 60000, 1, 1, ASSAY_FORMAT_FP16, RERUN | SHOWN, "overflowed", false},
    // Of another class than truth.
    {NAN_, INF_, NAN_, NAN_, ASSAY_FORMAT_FP16, REACHED | RERUN, "beyond", false},
    {NAN_, INF_, NAN_, NAN_, ASSAY_FORMAT_FP16, REACHED | RERUN | SHOWN, "not_judged", false},
    {NAN_, INF_, NAN_, NAN_, ASSAY_FORMAT_FP16, REACHED, "not_judged", false},
    {-INF_, INF_, INF_, INF_, ASSAY_FORMAT_BF16, REACHED | RERUN, "beyond", false},
    {1, NAN_, NAN_, NAN_, ASSAY_FORMAT_FP16, REACHED | RERUN, "beyond", false},
    {448, INF_, INF_, INF_, ASSAY_FORMAT_FP8E4M3, REACHED | RERUN, "not_judged", false},
    // Born in truth of finite numbers (the root of a difference): says nothing.
    {0, NAN_, NAN_, NAN_, ASSAY_FORMAT_FP16, RERUN, "not_judged", false},
    // Where nothing is computed, what is not finite comes through as everything else.
    {1, NAN_, 0, 0, ASSAY_FORMAT_FP16, REACHED, "beyond", true},
    {1, INF_, 0, 0, ASSAY_FORMAT_FP16, REACHED, "beyond", true},
    {448, INF_, 0, 0, ASSAY_FORMAT_FP8E4M3, REACHED, "not_judged", true},
    {INF_, 1, 0, 0, ASSAY_FORMAT_FP16, REACHED, "beyond", true},
    {NAN_, NAN_, 0, 0, ASSAY_FORMAT_FP16, REACHED, "exact", true},
    {1, NAN_, 0, 0, ASSAY_FORMAT_FP16, REACHED, "not_judged", false},
    // The near end: what the format cannot hold, and what a unit that flushes makes of it.
    {0, 1e-9, 1e-16, 1e-16, ASSAY_FORMAT_FP16, NONE, "underflowed", false},
    {0, -1e-9, 1e-16, 1e-16, ASSAY_FORMAT_FP16, NONE, "underflowed", false},
    {0, 3e-5, 1e-12, 1e-12, ASSAY_FORMAT_FP16, NONE, "underflowed", false},
    {0, 3e-5, NO_LIMITS, 0, ASSAY_FORMAT_FP16, NONE, "underflowed", false},
    {0, 1e-4, 1e-12, 1e-12, ASSAY_FORMAT_FP16, NONE, "beyond", false},
    {0, 1e-46, 0x1p-149, 0x1p-149, ASSAY_FORMAT_FP32, NONE, "underflowed", false},
    {0, 1e-39, 0x1p-126, 0x1p-126, ASSAY_FORMAT_FP32, NONE, "underflowed", false},
    {0x1p-24, 1e-9, 0x1p-24, 0x1p-24, ASSAY_FORMAT_FP16, NONE, "explained", false},
    // A sum that cancels is none of that, though truth is nearly 0.
    {0, 0, 1e-7, 1e-7, ASSAY_FORMAT_FP32, NONE, "exact", false},
    {0, 1e-17, 1e-7, 1e-7, ASSAY_FORMAT_FP32, NONE, "explained", false},
    {0, 1e-17, 1e-7, 1e-18, ASSAY_FORMAT_FP32, NONE, "between", false},
    {0, 1e-9, 1e-7, 1e-7, ASSAY_FORMAT_FP16, NONE, "exact", false},
    {0, 3e-5, 1e-4, 1e-4, ASSAY_FORMAT_FP16, NONE, "explained", false},
    {0, 1e-6, 1e-7, 1e-7, ASSAY_FORMAT_FP32, NONE, "beyond", false},
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
    const uint8_t special = (uint8_t)(r->special & (REACHED | SHOWN));
    const assay_judge_input_t in = {.engine = engine,
                                    .truth = truth,
                                    .limits = r->guaranteed == NO_LIMITS ? NULL : &limits,
                                    .storage = r->storage,
                                    .compute = ASSAY_FORMAT_FP32,
                                    .special = r->special ? &special : NULL,
                                    .rerun = (r->special & RERUN) != 0,
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
