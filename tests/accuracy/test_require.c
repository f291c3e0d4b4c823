// Demands on outputs: what they say, whether they hold, and how much error they leave room for.
#include "accuracy/check.h"
#include "passes/graph_case.h"

#define INF_ ((double)INFINITY)

// ---- reading ------------------------------------------------------------------------------------

static const struct {
  const char* text;
  const char* output;
  assay_relation_t relation;
  double value;
} good[] = {
    {"cosine >= 0.999", NULL, ASSAY_AT_LEAST, 0.999},
    {"cosine>=0.999", NULL, ASSAY_AT_LEAST, 0.999},
    {"  logits :  top1 > 0.99 ", "logits", ASSAY_ABOVE, 0.99},
    {"max_abs <= 1e-3", NULL, ASSAY_AT_MOST, 1e-3},
    {"a:b:rms < 2", "a:b", ASSAY_BELOW, 2},
    {"nan == 0", NULL, ASSAY_EQUAL, 0},
    {"snr_db >= inf", NULL, ASSAY_AT_LEAST, INF_},
    {"drop_psnr_db <= -0.1", NULL, ASSAY_AT_MOST, -0.1},
};

static void demands_are_read(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assay_requirements_t r = {0};
    op_case_ok(assay_require_parse(&r, good[i].text));
    assert_int_equal(r.n, 1);
    assert_string_equal(r.at[0].text, good[i].text);
    assert_int_equal(r.at[0].relation, good[i].relation);
    assert_true(r.at[0].value == good[i].value && !r.at[0].command);
    if (good[i].output)
      assert_string_equal(r.at[0].output, good[i].output);
    else
      assert_null(r.at[0].output);
    assert_true(assay_require_has_statistics(&r) && !assay_require_has_commands(&r));
    assay_requirements_deinit(&r);
  }
}

static void nonsense_is_refused(void** state) {
  (void)state;
  static const char* const bad[] = {"",        "cosine",        "cosine 0.9",    "cosine >= ",
                                    ">= 1",    "cosine >= x",   "cosine >= 1 2", "kosine >= 1",
                                    "a: >= 1", "cosine >= nan", "cosine = 1",    "top7 >= 1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assay_requirements_t r = {0};
    assay_status_t st = assay_require_parse(&r, bad[i]);
    if (!st) fail_msg("'%s' is a demand", bad[i]);
    assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
    assert_non_null(strstr(assay_status_message(st), "golden_psnr_db"));
    assay_status_free(st);
    assay_requirements_deinit(&r);
  }
}

static void golden_and_commands_are_noticed(void** state) {
  (void)state;
  static const struct {
    const char* text;
    bool golden, command;
  } asks[] = {{"cosine >= 1", false, false},
              {"golden_psnr_db > 30", true, false},
              {"judge.py {outputs}", false, true},
              {"judge.py {outputs} {golden}", true, true},
              {"drop_psnr_db < 0.1", true, false}};
  for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
    assay_requirements_t r = {0};
    op_case_ok(assay_require_parse(&r, asks[i].text));
    assert_int_equal(assay_require_needs_golden(&r), asks[i].golden);
    assert_int_equal(assay_require_has_commands(&r), asks[i].command);
    assay_requirements_deinit(&r);
  }
}

// ---- holding ------------------------------------------------------------------------------------

// An output 'y' with these statistics: engine {1.1, 2, 3, 4}, truth {1, 2, 3, 4}, two rows of three
// with one top-1 agreement; golden is truth but for 0.01.
static assay_output_check_t output(const assay_value_t* value) {
  static const double engine[] = {1.1, 2, 3, 4}, truth[] = {1, 2, 3, 4};
  static const double golden[] = {1.01, 2, 3, 4};
  assay_output_check_t o = {
      .value = value, .is_float = true, .has_golden = true, .rows = 2, .top1 = 1, .top5 = 2};
  o.error = o.golden = o.engine_golden = ASSAY_ERROR_SUM_INIT;
  assay_error_sum_add(&o.error, engine, truth, 4);
  assay_error_sum_add(&o.golden, truth, golden, 4);
  assay_error_sum_add(&o.engine_golden, engine, golden, 4);
  return o;
}

static const struct {
  const char* text;
  bool holds;
  double room;  // 1 where it holds
} demands[] = {
    {"max_abs <= 0.11", true, 1},
    {"max_abs <= 0.05", false, 0.25},
    {"max_abs < 0.01", false, 0.01},
    {"max_abs >= 0.2", false, 0.25},  // no error makes that hold: a guess
    {"max_rel <= 0.1001", true, 1},
    {"rms <= 0.05001", true, 1},
    {"rms <= 0.005", false, 0.01},
    {"mean <= 0.02501", true, 1},
    {"mean <= 0.001", false, 0.1},
    {"snr_db >= 34", true, 1},  // 10 log10(30 / 0.01) = 34.8
    {"snr_db >= 44.771", false, 0.1},
    {"psnr_db >= 38", true, 1},  // 10 log10(16 / 0.0025) = 38.06
    {"psnr_db >= 48.062", false, 0.1},
    {"cosine >= 0.999", true, 1},
    {"cosine >= 0.99999999", false, 0},
    {"nan == 0", true, 1},
    {"inf < 1", true, 1},
    {"top1 >= 0.5", true, 1},
    {"top1 > 0.5", false, 0.1},
    {"top5 == 1", true, 1},
    {"golden_max_abs <= 0.0901", true, 1},
    {"golden_psnr_db >= 60", false, 0.1},
    {"drop_psnr_db <= 19.2", true, 1},  // of golden against truth 20 log10(0.09 / 0.01)
    {"drop_psnr_db <= 19", false, 0.1},
    {"y: max_abs <= 0.05", false, 0.25},
    {"z: max_abs <= 0.05", true, 1},  // about another output
    {"differing == 0", true, 1},      // about others than floats
    {"y: differing == 0", false, 1},  // asked of this one, which has no such statistic
    {"judge {outputs}", true, 1},     // decided elsewhere
};

static void demands_hold_or_not(void** state) {
  (void)state;
  const assay_value_t value = {.name = "y"};
  const assay_output_check_t o = output(&value);
  for (size_t i = 0; i < sizeof demands / sizeof *demands; i++) {
    assay_requirements_t r = {0};
    assay_str_t why = {0};
    op_case_ok(assay_require_parse(&r, demands[i].text));
    if (assay_require_holds(&r, &o, &why) != demands[i].holds)
      fail_msg("'%s' %s: %s", demands[i].text, demands[i].holds ? "does not hold" : "holds",
               assay_str_get(&why));
    if (demands[i].holds) assert_int_equal(why.len, 0);
    const double room = assay_require_room(&r, &o);
    if (fabs(room - demands[i].room) > 1e-3 * demands[i].room + 1e-4)
      fail_msg("'%s' leaves room for %.4g, not %.4g", demands[i].text, room, demands[i].room);
    assay_str_deinit(&why);
    assay_requirements_deinit(&r);
  }
}

// Several demands: all have to hold, what does not is said, and the tightest leaves the room.
static void all_demands_count(void** state) {
  (void)state;
  const assay_value_t value = {.name = "y"};
  const assay_output_check_t o = output(&value);
  assay_requirements_t r = {0};
  assay_str_t why = {0};
  op_case_ok(assay_require_parse(&r, "cosine >= 0.9"));
  op_case_ok(assay_require_parse(&r, "max_abs <= 0.05"));
  op_case_ok(assay_require_parse(&r, "rms <= 0.005"));
  assert_false(assay_require_holds(&r, &o, &why));
  assert_string_equal(assay_str_get(&why),
                      "'y' has max_abs 0.1, required: max_abs <= 0.05; "
                      "'y' has rms 0.05, required: rms <= 0.005");
  assert_true(fabs(assay_require_room(&r, &o) - 0.01) < 1e-4);
  assay_str_deinit(&why);
  assay_requirements_deinit(&r);
}

static void outputs_have_to_be_there(void** state) {
  (void)state;
  static const graph_case_t graph = {"relu", 0, {"x float[4]"}, {0}, {"Relu r x -> y"}, "y"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, in);
  assay_requirements_t r = {0};
  op_case_ok(assay_require_parse(&r, "y: cosine >= 0.9"));
  op_case_ok(assay_require_resolve(&r, m->graph));
  op_case_ok(assay_require_parse(&r, "logits: cosine >= 0.9"));
  assay_status_t st = assay_require_resolve(&r, m->graph);
  assert_non_null(st);
  assert_int_equal(assay_status_code(st), ASSAY_NOT_FOUND);
  assert_non_null(strstr(assay_status_message(st), "no output 'logits'"));
  assay_status_free(st);
  assay_requirements_deinit(&r);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(demands_are_read),
                                     cmocka_unit_test(nonsense_is_refused),
                                     cmocka_unit_test(golden_and_commands_are_noticed),
                                     cmocka_unit_test(demands_hold_or_not),
                                     cmocka_unit_test(all_demands_count),
                                     cmocka_unit_test(outputs_have_to_be_there)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
