// Looks at repairs: what they forecast by derivatives, and behind nodes that are far from linear.
#include "diagnose/search_case.h"
#include "diagnose/search_screening.h"

static assay_repair_t constant_repair(const search_case_t* c, size_t position, size_t input,
                                      assay_tensor_t* take) {
  assay_repair_t r = {.node = c->search.nodes[position], .cause = "test", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = input, .tensor = take};
  return r;
}

// Where the node and all behind it are linear, both ways forecast the same.
static void derivatives_agree_with_evaluation(void** state) {
  (void)state;
  const graph_case_t right = {
      "linear",
      17,
      {"x float[1,3,5]"},
      {"w float[4,3,3]", "b float[4]", "k float[4,1] 2 1 3 2", "u float[3,6]"},
      {"Conv conv x w b -> a", "Mul mul a k -> c", "MatMul fc c u -> y"},
      "y"};
  static const struct { size_t position, input; } places[] = {{0, 1}, {0, 2}, {1, 1}, {2, 1}};
  graph_case_t wrong = right;
  search_case_t c;
  assay_screening_t screening;
  assay_predict_t* p = NULL;
  wrong.constants[2] = "k float[4,1] -7 2 1 4";
  search_case_init(&wrong, &right, &c);
  op_case_ok(assay_predict_create(&c.search, &p));
  op_case_ok(assay_screening_init(&c.search, &screening));
  screening.predict = p;
  size_t passed = c.search.n_nodes;
  for (size_t i = sizeof places / sizeof *places; i-- > 0;) {
    const size_t position = places[i].position, input = places[i].input;
    while (passed > position + 1) op_case_ok(assay_predict_pass(p, --passed));
    assay_tensor_t *wide = NULL, *now = NULL;
    uint64_t random = 5 + i;
    op_case_ok(assay_tensor_widen(c.search.nodes[position]->inputs[input]->constant, &wide));
    op_case_ok(assay_tensor_copy(wide, &now));
    for (int64_t e = 0; e < now->size; e++) assay_f64(now)[e] += graph_case_random(&random);
    assay_repair_t r = constant_repair(&c, position, input, now);
    assay_effect_t by_value, by_derivative;
    double* derivatives = NULL;
    size_t found = 0;
    op_case_ok(assay_screen(&screening, position, &r, &by_value));
    assert_true(assay_screen_is_linear(&r, &found) && found == input);
    op_case_ok(assay_predict_constant(p, position, input, &derivatives));
    assert_non_null(derivatives);
    assay_screen_linear(&screening, &r, input, derivatives, &by_derivative);
    assert_true(by_value.forecast.known && by_derivative.forecast.known);
    assert_true(fabs(by_value.forecast.along - by_derivative.forecast.along) <
                1e-9 * (1 + fabs(by_value.forecast.along)));
    assert_true(fabs(assay_forecast_remains(&by_value.forecast) -
                     assay_forecast_remains(&by_derivative.forecast)) < 1e-6);
    assay_free(derivatives);
    assay_tensor_release(wide);
    assay_repair_deinit(&r);
  }
  assay_screening_deinit(&screening);
  assay_predict_destroy(p);
  search_case_deinit(&c);
}

// A mean square over the wrong axis is divided by, which is far from linear; the product of
// matrices behind it is linear. A look goes as far as there.
static void looks_go_on_to_the_next_product(void** state) {
  (void)state;
  const graph_case_t right = {
      "norm",
      17,
      {"x float[1,4,6]"},
      {"two float[] 2", "e float[] 0.001", "u float[6,5]"},
      {"Pow square x two -> a", "ReduceMean mean a -> b | axes=1", "Add eps b e -> c",
       "Sqrt root c -> d", "Div norm x d -> f", "MatMul fc f u -> y"},
      "y"};
  graph_case_t wrong = right;
  search_case_t c;
  assay_screening_t screening;
  assay_predict_t* p = NULL;
  wrong.nodes[1] = "ReduceMean mean a -> b | axes=0";
  search_case_init(&wrong, &right, &c);
  op_case_ok(assay_predict_create(&c.search, &p));
  op_case_ok(assay_screening_init(&c.search, &screening));
  screening.predict = p;
  for (size_t i = c.search.n_nodes; i-- > 2;) op_case_ok(assay_predict_pass(p, i));
  assay_repair_t r = {.node = c.search.nodes[1], .cause = "test", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_ATTR, .numbers = {1}};
  r.edits[0].attr =
      (assay_attr_t){.name = "axes", .type = ASSAY_ATTR_INTS, .n = 1, .doc = "", .ref = ""};
  assay_effect_t e;
  op_case_ok(assay_screen(&screening, 1, &r, &e));
  assert_true(e.fits && e.reshapes && e.forecast.known);
  assert_true(assay_forecast_remains(&e.forecast) < 1e-5);
  assay_screening_deinit(&screening);
  assay_predict_destroy(p);
  search_case_deinit(&c);
}

// A constant laid along the batch would make everything behind it so many times larger.
static void blown_up_repairs_are_refused(void** state) {
  (void)state;
  const int64_t small[] = {1, 64, 8, 8}, large[] = {64, 64, 8, 8};
  assay_tensor_t *was = NULL, *now = NULL;
  op_case_ok(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, 4, small, &was));
  op_case_ok(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, 4, large, &now));
  assert_true(assay_search_blown_up(now, was));
  assert_false(assay_search_blown_up(was, now) || assay_search_blown_up(was, was));
  assay_tensor_release(was);
  assay_tensor_release(now);
  const graph_case_t network = {
      "sum", 17, {"x float[1,64]"}, {"b float[64,1]"}, {"Add add x b -> y"}, "y"};
  search_case_t c;
  search_case_init(&network, &network, &c);
  const assay_node_t* n = c.search.nodes[0];
  assay_tensor_t *in[] = {c.in[0], n->inputs[1]->constant}, *out = NULL;
  assay_evaluator_limit(c.evaluator, 4095);
  assay_status_t st = assay_evaluator_node(c.evaluator, n, 2, in, 1, &out);
  assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
  assay_status_free(st);
  assay_evaluator_limit(c.evaluator, 4096);
  op_case_ok(assay_evaluator_node(c.evaluator, n, 2, in, 1, &out));
  assay_tensor_release(out);
  search_case_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(derivatives_agree_with_evaluation),
      cmocka_unit_test(looks_go_on_to_the_next_product),
      cmocka_unit_test(blown_up_repairs_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
