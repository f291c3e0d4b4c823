// CumSum against its definition, in every arithmetic: many lines at once and one by one.
#include "formats/format.h"
#include "ops/op_case.h"

typedef struct shape {
  int64_t outer, n, inner;
} shape_t;

static double stored(assay_arith_t arith, double y) {
  if (arith == ASSAY_ARITH_F32) return (double)(float)y;
  return arith == ASSAY_ARITH_NARROW ? assay_format_round(ASSAY_FORMAT_BF16, y, ASSAY_OVERFLOW_IEEE)
                                     : y;
}

static void expect(const shape_t* s, assay_arith_t arith, bool exclusive, bool reverse,
                   const double* x, double* y) {
  for (int64_t line = 0; line < s->outer * s->inner; line++) {
    const int64_t at = line / s->inner * s->n * s->inner + line % s->inner;
    double sum = 0;
    for (int64_t i = 0; i < s->n; i++) {
      const int64_t k = at + (reverse ? s->n - 1 - i : i) * s->inner;
      if (exclusive) y[k] = sum;
      sum = stored(arith, sum + x[k]);
      if (!exclusive) y[k] = sum;
    }
  }
}

static void run(const shape_t* s, assay_arith_t arith, bool exclusive, bool reverse) {
  char attrs[64], text[64];
  snprintf(attrs, sizeof attrs, "exclusive=%d reverse=%d", exclusive, reverse);
  snprintf(text, sizeof text, "float[%d,%d,%d] iota", (int)s->outer, (int)s->n, (int)s->inner);
  const op_case_t row = {"CumSum", 14, attrs, {text, "int64[] 1"}, {text}, NULL};
  assay_tensor_t* in[] = {op_case_tensor(text), op_case_tensor("int64[] 1")};
  for (int64_t i = 0; i < in[0]->size; i++)
    assay_f64(in[0])[i] = (double)(float)sin((double)(i + 1) * 0.7);
  assay_value_t* values[2] = {NULL};
  assay_model_t* m = op_case_model(&row, OP_CASE_STATIC, in, values);
  op_case_ok(assay_infer_model(m));
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .arith = arith, .accumulator = ASSAY_FORMAT_BF16, .keep_all = true};
  assay_evaluator_t* evaluator = NULL;
  op_case_ok(op_case_evaluate(m, &config, 2, values, in, &evaluator));
  const assay_tensor_t* found = assay_evaluator_get(evaluator, m->graph->outputs[0]);
  double* y = test_calloc((size_t)found->size, sizeof *y);
  expect(s, arith, exclusive, reverse, assay_f64(in[0]), y);
  for (int64_t i = 0; i < found->size; i++)
    if (assay_f64(found)[i] != y[i])
      fail_msg("%s %s, arithmetic %d: element %d is %.17g, expected %.17g", text, attrs, (int)arith,
               (int)i, assay_f64(found)[i], y[i]);
  test_free(y);
  assay_evaluator_destroy(evaluator);
  assay_model_release(m);
  for (size_t i = 0; i < 2; i++) assay_tensor_release(in[i]);
}

static void test_lines(void** state) {
  static const shape_t shapes[] = {{1, 5, 1}, {7, 4, 1}, {8, 3, 1}, {19, 6, 1}, {1, 1, 1},
                                   {1, 7, 3}, {9, 5, 2}, {3, 1, 4}, {2, 6, 90}};
  static const assay_arith_t ariths[] = {ASSAY_ARITH_F64, ASSAY_ARITH_F32, ASSAY_ARITH_NARROW};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t k = 0; k < sizeof ariths / sizeof *ariths; k++)
      for (int way = 0; way < 4; way++) run(&shapes[i], ariths[k], way & 1, way >> 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
