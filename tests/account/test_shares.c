// An output's error, split over layers: the parts add up, and each is what the layer's error does.
#include "account/ablation.h"
#include "passes/graph_case.h"

static const struct {
  const char* model;  // "small/NAME": of the tree, with inputs drawn
  assay_format_t format;
  bool fused;
} rows[] = {
    {"classifier", ASSAY_FORMAT_FP16, false},  {"classifier", ASSAY_FORMAT_BF16, true},
    {"classifier", ASSAY_FORMAT_FP32, false},  {"transformer", ASSAY_FORMAT_FP16, false},
    {"transformer", ASSAY_FORMAT_BF16, false}, {"transformer", ASSAY_FORMAT_TF32, true},
    {"external", ASSAY_FORMAT_FP16, false},    {"external", ASSAY_FORMAT_BF16, true},
    {"small/cnn", ASSAY_FORMAT_BF16, false},   {"small/cnn", ASSAY_FORMAT_TF32, true},
};

static assay_plan_t* plan_of(assay_model_t* m, assay_format_t format, bool fused) {
  const assay_precision_t p = {.format = format};
  assay_plan_t* plan = NULL;
  op_case_ok(assay_plan_create(m, &p, &(assay_plan_options_t){.fused = fused}, 0, &plan));
  return plan;
}

static void shares_agree_with_ablation(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_samples_t inputs = {0};
    assay_model_t* m = NULL;
    op_case_ok(account_case_model(rows[i].model, &m, &inputs));
    assay_plan_t* plan = plan_of(m, rows[i].format, rows[i].fused);
    ablation_t a;
    assay_shares_t s = {0};
    op_case_ok(ablation_run(plan, assay_samples_get(&inputs, 0), 40, 100000, &a, &s));
    if (!(a.sum_off <= 1e-9) || !(a.engine_off <= 1e-6) || a.alone_excess > 0 || a.exact_excess > 0)
      fail_msg(
          "%s in %s: shares add up to 1 but for %.2g, own errors to the engine's but for "
          "%.2g; alone a layer differs from its share by %.3g, left out by %.3g",
          rows[i].model, assay_format_name(rows[i].format), a.sum_off, a.engine_off, a.alone_off,
          a.exact_off);
    assert_true(a.tried > 0);
    ablation_deinit(&a);
    assay_shares_deinit(&s);
    assay_plan_destroy(plan);
    assay_samples_deinit(&inputs);
    assay_model_release(m);
  }
}

// With few runs layers stay together in ranges, which cover all layers and add up as well.
static void ranges_cover_all_layers(void** state) {
  (void)state;
  assay_samples_t inputs = {0};
  assay_model_t* m = NULL;
  op_case_ok(account_case_model("transformer", &m, &inputs));
  assay_plan_t* plan = plan_of(m, ASSAY_FORMAT_FP16, false);
  for (int runs = 2; runs < 12; runs += 3) {
    assay_shares_t s = {0};
    const assay_shares_options_t how = {.runs = runs};
    op_case_ok(assay_shares_run(plan, &assay_backend_emu, assay_samples_get(&inputs, 0), &how, &s));
    double sum = 0;
    size_t next = 0;
    for (size_t i = 0; i < s.n; i++) {
      assert_int_equal(s.at[i].first, next);
      next = s.at[i].end;
      sum += s.at[i].share[0];
    }
    assert_int_equal(next, assay_plan_layers(plan)->n_layers);
    assert_true(s.runs <= runs && fabs(sum - 1) < 1e-9);
    assay_shares_deinit(&s);
  }
  assay_plan_destroy(plan);
  assay_samples_deinit(&inputs);
  assay_model_release(m);
}

// In fp16 this model's squares pass the range: shares count where the outputs are not finite.
static void shares_of_nan(void** state) {
  (void)state;
  assay_samples_t inputs = {0};
  assay_model_t* m = NULL;
  op_case_ok(account_case_model("small/cnn", &m, &inputs));
  assay_plan_t* plan = plan_of(m, ASSAY_FORMAT_FP16, false);
  assay_shares_t s = {0};
  const assay_shares_options_t how = {.runs = 100};
  op_case_ok(assay_shares_run(plan, &assay_backend_emu, assay_samples_get(&inputs, 0), &how, &s));
  double sum = 0;
  for (size_t i = 0; i < s.n; i++) sum += s.at[i].share[0];
  assert_true(fabs(sum - 1) < 1e-9);
  assay_shares_deinit(&s);
  assay_plan_destroy(plan);
  assay_samples_deinit(&inputs);
  assay_model_release(m);
}

// An engine without error has nothing to split.
static void no_error_no_shares(void** state) {
  (void)state;
  static const graph_case_t graph = {
      "exact", 0, {"x float[4,6]"}, {0}, {"Relu relu x -> a", "Transpose turn a -> y"}, "y"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, in);
  assay_plan_t* plan = plan_of(m, ASSAY_FORMAT_FP32, false);
  assay_shares_t s = {0};
  const assay_shares_options_t how = {0};
  op_case_ok(assay_shares_run(plan, &assay_backend_emu, in, &how, &s));
  assert_true(s.n > 0);
  for (size_t i = 0; i < s.n; i++) assert_true(s.at[i].share[0] == 0);
  assert_true(assay_shares_of_layer(&s, 0) == 0 && assay_shares_of_layer(&s, 99) == 0);
  assay_shares_deinit(&s);
  assay_plan_destroy(plan);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_agree_with_ablation), cmocka_unit_test(ranges_cover_all_layers),
      cmocka_unit_test(shares_of_nan), cmocka_unit_test(no_error_no_shares)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
