// Requirements on outputs: what they say, whether they hold, and how much error they leave room
// for.
#include "check/check.h"
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
    assert_true(r.at[0].value == good[i].value && !r.at[0].command && !r.at[0].part);
    if (good[i].output)
      assert_string_equal(r.at[0].output, good[i].output);
    else
      assert_null(r.at[0].output);
    assert_true(assay_require_has_statistics(&r) && !assay_require_has_commands(&r));
    assay_requirements_deinit(&r);
  }
}

// A part of an output, with its colon or without; what is meant where an output has such a name.
static void parts_are_read(void** state) {
  (void)state;
  static const struct {
    const char *text, *output, *whole;
    int n;
  } parts[] = {{"scores[:, 4:] cosine >= 0.999", "scores", "scores[:, 4:]", 2},
               {"scores[:,4:]: cosine>=0.999", "scores", "scores[:,4:]", 2},
               {" a:b [ 0 , ... , ::-2 ]  : rms < 2", "a:b", "a:b [ 0 , ... , ::-2 ]", 2},
               {"x[-1] max_abs <= 1", "x", "x[-1]", 1},
               {"out[0][1:] top1 == 1", "out[0]", "out[0][1:]", 1}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    assay_requirements_t r = {0};
    op_case_ok(assay_require_parse(&r, parts[i].text));
    assert_non_null(r.at[0].part);
    assert_string_equal(r.at[0].output, parts[i].output);
    assert_string_equal(r.at[0].whole, parts[i].whole);
    assert_int_equal(r.at[0].part->n, parts[i].n);
    const assay_value_t part_of = {.name = parts[i].output}, whole = {.name = parts[i].whole};
    assert_true(assay_require_is_part(&r.at[0], &part_of));
    assert_false(assay_require_is_part(&r.at[0], &whole));
    assay_requirements_deinit(&r);
  }
  static const char* const bad[] = {"[:, 4:] cosine >= 1",
                                    "y[a] cosine >= 1",
                                    "y[] cosine >= 1",
                                    "y[1:2:0] cosine >= 1",
                                    "y[..., ...] cosine >= 1",
                                    "y[1:2:3:4] cosine >= 1",
                                    "y[1 2] cosine >= 1",
                                    "y[99999999999999999999] cosine >= 1",
                                    "y cosine >= 1"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assay_requirements_t r = {0};
    assay_status_t st = assay_require_parse(&r, bad[i]);
    if (!st) fail_msg("'%s' is a requirement", bad[i]);
    assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
    assay_status_free(st);
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
    if (!st) fail_msg("'%s' is a requirement", bad[i]);
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
  double capacity;  // 1 where it holds
} requirements[] = {
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
  for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++) {
    assay_requirements_t r = {0};
    assay_str_t why = {0};
    op_case_ok(assay_require_parse(&r, requirements[i].text));
    if (assay_require_holds(&r, &o, &why) != requirements[i].holds)
      fail_msg("'%s' %s: %s", requirements[i].text,
               requirements[i].holds ? "does not hold" : "holds", assay_str_get(&why));
    if (requirements[i].holds) assert_int_equal(why.len, 0);
    const double capacity = assay_require_margin(&r, &o);
    if (fabs(capacity - requirements[i].capacity) > 1e-3 * requirements[i].capacity + 1e-4)
      fail_msg("'%s' leaves room for %.4g, not %.4g", requirements[i].text, capacity,
               requirements[i].capacity);
    assay_str_deinit(&why);
    assay_requirements_deinit(&r);
  }
}

// Several requirements: all have to hold, what does not is said, and the tightest leaves the room.
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
  assert_true(fabs(assay_require_margin(&r, &o) - 0.01) < 1e-4);
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

// ---- what cannot be evaluated -------------------------------------------------------------------

enum {
  NO_GOLDEN = 1,
  LACKING = 2,
  ROWS_LEFT = 4,
  NAN_IN_TRUTH = 8,
  INF_IN_GOLDEN = 16,
  NO_ROWS = 32,
  EMPTY = 64,
  INTEGERS = 128
};

static const struct {
  const char* text;
  int what;
  const char* why;  // NULL: it can be evaluated
} open[] = {
    {"golden_snr_db >= -500", 0, NULL},
    {"golden_snr_db >= -500", NO_GOLDEN, "golden has no such output"},
    {"y: golden_max_abs <= 500", NO_GOLDEN, "golden has no such output"},
    {"drop_psnr_db <= 500", LACKING, "golden lacks it for 1 of 3 samples"},
    {"golden_max_abs <= 500", ROWS_LEFT, "golden has 8 rows, the samples give 4"},
    {"golden_max_abs <= 500", INF_IN_GOLDEN, "golden holds 1 infinity"},
    {"cosine >= -1", INF_IN_GOLDEN, NULL},
    {"cosine >= -1", NAN_IN_TRUTH, "truth holds 1 NaN"},
    {"y: nan == 0", NAN_IN_TRUTH, "truth holds 1 NaN"},
    {"top1 >= 0", NO_ROWS, "no output has rows of scores"},
    {"y: top5 >= 0", NO_ROWS, "it has no rows of scores"},
    {"max_abs <= 1", EMPTY, "it has no elements"},
    {"y: differing == 0", 0, "it is of floats"},
    {"differing == 0", 0, "no output is of anything but floats"},
    {"cosine >= -1", INTEGERS, "no output is of floats"},
    {"y: cosine >= -1", INTEGERS, "it is not of floats"},
    {"differing == 0", INTEGERS, NULL},
    {"y[:2] cosine >= -1", 0, "the part was not recorded"},
};

static void change(assay_output_check_t* o, int what) {
  static const double one[] = {1}, nan_[] = {(double)NAN}, inf[] = {(double)INFINITY};
  o->samples = 3;
  o->golden_samples = what & LACKING ? 2 : 3;
  o->elements = what & EMPTY ? 0 : 4;
  if (what & EMPTY) o->error = ASSAY_ERROR_SUM_INIT;
  if (what & NO_GOLDEN) o->has_golden = false;
  if (what & ROWS_LEFT) o->golden_rows = 8, o->golden_used = 4;
  if (what & NAN_IN_TRUTH) assay_error_sum_add(&o->error, nan_, nan_, 1);
  if (what & INF_IN_GOLDEN) assay_error_sum_add(&o->golden, one, inf, 1);
  if (what & NO_ROWS) o->rows = 0;
  if (what & INTEGERS) o->is_float = false;
}

static void what_cannot_be_judged_is_not_met(void** state) {
  (void)state;
  const assay_value_t value = {.name = "y"};
  for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
    assay_output_check_t o = output(&value);
    assay_requirements_t r = {0};
    assay_requirement_result_t* results = NULL;
    size_t n = 0;
    assay_str_t why = {0};
    change(&o, open[i].what);
    op_case_ok(assay_require_parse(&r, open[i].text));
    const bool is_open = assay_require_is_open(&r, &o, 1, &why);
    op_case_ok(assay_require_results(&r, &o, 1, NULL, &results, &n));
    assert_int_equal(n, 1);
    if (is_open != (open[i].why != NULL) || results[0].known == is_open ||
        results[0].met == is_open || assay_outputs_hold(&o, 1, &r) == is_open ||
        (is_open &&
         (!strstr(assay_str_get(&why), open[i].why) || !strstr(results[0].why, open[i].why))))
      fail_msg("'%s' of %d: '%s', '%s'", open[i].text, open[i].what, assay_str_get(&why),
               results[0].why);
    assay_free(results);
    assay_str_deinit(&why);
    assay_requirements_deinit(&r);
  }
}

// ---- parts, and golden of several samples -------------------------------------------------------

// Two samples of two rows; golden holds four.
static void parts_and_rows_are_recorded(void** state) {
  (void)state;
  static const graph_case_t graph = {"relu", 0, {"x float[2,3]"}, {0}, {"Relu r x -> y"}, "y"};
  static const struct {
    const char* text;
    bool met;
    double value;
  } asks[] = {{"y[:, 1:] max_abs <= 0.2", false, 0.5},     {"y[:, 0] max_abs <= 0.2", true, 0.125},
              {"y[0, -1]: max_abs <= 0.2", false, 0.5},    {"y[1, ::2] max_abs <= 0.2", true, 0},
              {"y[0, 0] golden_max_abs <= 1", true, 0.25}, {"y max_abs <= 1", true, 0.5},
              {"y[..., 2] golden_max_abs <= 1", true, 0.5}};
  static const char* const engine[] = {"double[2,3] 1.125 2 3.5 4 5 6",
                                       "double[2,3] 7 8 9 10 11 12"};
  static const char* const truth[] = {"double[2,3] 1 2 3 4 5 6", "double[2,3] 7 8 9 10 11 12"};
  assay_tensor_t* golden = op_case_tensor("double[4,3] 1.375 2 3 4 5 6 7 8 9 10 11 12");
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, in);
  assay_requirements_t r = {0};
  assay_output_check_t* o = NULL;
  assay_requirement_result_t* results = NULL;
  size_t n = 0;
  enum { ASKS = sizeof asks / sizeof *asks };
  for (size_t i = 0; i < ASKS; i++) {
    const bool whole = !strchr(asks[i].text, '[');
    op_case_ok(assay_require_parse(&r, whole ? "y: max_abs <= 1" : asks[i].text));
  }
  op_case_ok(assay_require_resolve(&r, m->graph));
  op_case_ok(assay_output_checks_create(m->graph, &r, &o));
  assert_int_equal(o->n_parts, ASKS - 1);
  for (size_t k = 0; k < 2; k++) {
    assay_tensor_t *e = op_case_tensor(engine[k]), *t = op_case_tensor(truth[k]);
    op_case_ok(assay_output_add(o, e, t));
    op_case_ok(assay_output_add_golden(o, e, t, golden));
    assay_tensor_release(e);
    assay_tensor_release(t);
  }
  op_case_ok(assay_require_results(&r, o, 1, NULL, &results, &n));
  assert_int_equal(n, ASKS);
  for (size_t i = 0; i < ASKS; i++)
    if (!results[i].known || results[i].met != asks[i].met || results[i].value != asks[i].value)
      fail_msg("'%s' is %g: %s", asks[i].text, results[i].value, results[i].why);
  assert_false(assay_outputs_hold(o, 1, &r));
  assay_free(results);
  assay_free(o);
  assay_tensor_release(golden);
  assay_requirements_deinit(&r);
  assay_model_release(m);
  graph_case_release(in);
}

// What is known of the shape is held against the part before anything runs.
static void parts_have_to_fit(void** state) {
  (void)state;
  static const graph_case_t graph = {"relu", 0, {"x float[2,3]"}, {0}, {"Relu r x -> y"}, "y"};
  static const char* const bad[] = {"y[0,0,0] cosine >= 1", "y[2] cosine >= 1",
                                    "y[..., -4] cosine >= 1"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, in);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assay_requirements_t r = {0};
    op_case_ok(assay_require_parse(&r, bad[i]));
    assay_status_t st = assay_require_resolve(&r, m->graph);
    if (!st) fail_msg("'%s' fits", bad[i]);
    assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
    assay_status_free(st);
    assay_requirements_deinit(&r);
  }
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(demands_are_read),
                                     cmocka_unit_test(parts_are_read),
                                     cmocka_unit_test(what_cannot_be_judged_is_not_met),
                                     cmocka_unit_test(parts_and_rows_are_recorded),
                                     cmocka_unit_test(parts_have_to_fit),
                                     cmocka_unit_test(nonsense_is_refused),
                                     cmocka_unit_test(golden_and_commands_are_noticed),
                                     cmocka_unit_test(demands_hold_or_not),
                                     cmocka_unit_test(all_demands_count),
                                     cmocka_unit_test(outputs_have_to_be_there)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
