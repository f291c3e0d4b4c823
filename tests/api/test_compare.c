// Comparisons by the public API: statistics against numbers worked out by hand, verdicts, texts.
#include "api_case.h"

static const float want4[] = {1, 2, 4, -8};
static const assay_compare_report_options_t all = {sizeof all, true};

static assay_comparison_t* compare_vectors(int64_t n, const float* got, const float* want,
                                           const assay_compare_options_t* options) {
  static const char* const names[] = {"y"};
  assay_comparison_t* c = NULL;
  assay_tensor_t *a = vector(n, got), *b = vector(n, want);
  ok(assay_compare_tensors(1, names, &a, 1, names, &b, options, &c));
  assay_tensor_release(a);
  assay_tensor_release(b);
  return c;
}

// ---- statistics ---------------------------------------------------------------------------------

static void statistics_are_those_of_the_errors(void** state) {
  (void)state;
  static const float got[] = {1, 2.5f, 4, -7};
  static const struct {
    assay_statistic_t statistic;
    double want, tolerance;
  } rows[] = {
      {ASSAY_STATISTIC_ELEMENTS, 4, 0},
      {ASSAY_STATISTIC_MAX_ABS, 1, 0},
      {ASSAY_STATISTIC_MAX_REL, 0.25, 0},
      {ASSAY_STATISTIC_MEAN, 0.375, 1e-12},
      {ASSAY_STATISTIC_RMS, 0.5590169943749475, 1e-12},  // sqrt((0.25 + 1) / 4)
      {ASSAY_STATISTIC_P50, 0, 0},
      {ASSAY_STATISTIC_P99, 1, 1.0 / 64},
      {ASSAY_STATISTIC_COSINE, 0.9979397, 1e-6},  // 78 / sqrt(85 * 72.25)... checked below
      {ASSAY_STATISTIC_SNR_DB, 18.32509, 1e-4},   // 10 log10(85 / 1.25)
      {ASSAY_STATISTIC_PSNR_DB, 23.11330, 1e-4},  // 20 log10(8 / 0.559017)
      {ASSAY_STATISTIC_MAX_ULP, 2097152, 0},      // 1 at -8: towards 0, steps of 2^-21
      {ASSAY_STATISTIC_NAN, 0, 0},
      {ASSAY_STATISTIC_OUTSIDE, 2, 0},
      {ASSAY_STATISTIC_TOP1, 1, 0},
      {ASSAY_STATISTIC_TOP_K, 1, 0},
  };
  assay_comparison_t* c = compare_vectors(4, got, want4, NULL);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double want = rows[i].want;
    if (rows[i].statistic == ASSAY_STATISTIC_COSINE) want = 78 / sqrt(85 * 72.25);
    const double x = assay_comparison_statistic(c, 0, rows[i].statistic);
    if (!(fabs(x - want) <= rows[i].tolerance))
      fail_msg("%s is %.9g, expected %.9g", assay_statistic_name(rows[i].statistic), x, want);
  }
  assert_false(assay_comparison_passed(c));
  assert_int_equal(assay_comparison_worst_at(c, 0), 3);
  assert_int_equal(assay_comparison_ulps(c, 0, 0), 2);  // two are the same
  int64_t n = 0;
  for (int k = 0; k < 65; k++) n += assay_comparison_ulps(c, 0, k);
  assert_int_equal(n, 4);
  assert_true(assay_comparison_percentile(c, 0, 1) >= 1 - 1.0 / 64);
  assert_string_equal(assay_comparison_why(c, 0), "2 of 4 elements are outside the tolerance");
  // Past the end, and what there is not.
  assert_null(assay_comparison_name(c, 1));
  assert_null(assay_comparison_why(c, 1));
  assert_false(assay_comparison_pair_passed(c, 1));
  assert_true(isnan(assay_comparison_statistic(c, 1, ASSAY_STATISTIC_RMS)));
  assert_true(isnan(assay_comparison_statistic(c, 0, ASSAY_STATISTIC_COUNT)));
  assert_true(isnan(assay_comparison_percentile(c, 0, 2)));
  assert_int_equal(assay_comparison_worst_at(c, 1), -1);
  assert_int_equal(assay_comparison_ulps(c, 0, 65), 0);
  assert_null(assay_statistic_name(ASSAY_STATISTIC_COUNT));
  for (int s = 0; s < ASSAY_STATISTIC_COUNT; s++)
    assert_non_null(assay_statistic_name((assay_statistic_t)s));
  assay_comparison_destroy(c);
}

// ---- verdicts -----------------------------------------------------------------------------------

#define NONE (double)INFINITY
static const assay_limit_t cosine_limit[] = {{NULL, ASSAY_STATISTIC_COSINE, 0.999, NONE}};
static const assay_limit_t rms_limit[] = {{"y", ASSAY_STATISTIC_RMS, -NONE, 0.1}};

static void pairs_pass_by_tolerance_and_limits(void** state) {
  (void)state;
  const float nan = (float)NAN, inf = (float)INFINITY;
  const struct {
    const char* label;
    float got[4], want[4];
    double atol, rtol;
    bool no_tolerance;
    const assay_limit_t* limit;
    const char* why;  // NULL: it passes
  } rows[] = {
      {"equal", {1, 2, 4, -8}, {1, 2, 4, -8}, 0, 0, false, NULL, NULL},
      {"absolute", {1.1f, 2, 4, -8}, {1, 2, 4, -8}, 0.2, 0, false, NULL, NULL},
      {"relative", {1, 2, 4, -8.5f}, {1, 2, 4, -8}, 0, 0.1, false, NULL, NULL},
      {"too far", {1, 2, 4, -9}, {1, 2, 4, -8}, 0, 0.1, false, NULL, "1 of 4 elements"},
      {"same NaN", {nan, inf, 4, -8}, {nan, inf, 4, -8}, 0, 0, false, NULL, NULL},
      {"NaN", {nan, 2, 4, -8}, {1, 2, 4, -8}, 1, 1, false, NULL, "1 of them NaN or infinite"},
      {"other infinity", {inf, 2, 4, 8}, {-inf, 2, 4, 8}, 1, 1, false, NULL, "NaN or infinite"},
      {"no tolerance", {1, 2, 4, -9}, {1, 2, 4, -8}, 0, 0, true, NULL, NULL},
      {"cosine", {1, 2, 4, 8}, {1, 2, 4, -8}, 0, 0, true, cosine_limit, "cosine is"},
      {"cosine holds", {1, 2, 4, -8}, {1, 2, 4, -8}, 0, 0, true, cosine_limit, NULL},
      {"rms", {1, 2, 4, -9}, {1, 2, 4, -8}, 0, 0, true, rms_limit, "rms is 0.5, above 0.1"},
      {"both", {1, 2, 4, -9}, {1, 2, 4, -8}, 0, 0, false, rms_limit, "tolerance; rms is 0.5"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_compare_options_t o = ASSAY_COMPARE_OPTIONS_INIT;
    o.atol = rows[i].atol;
    o.rtol = rows[i].rtol;
    o.no_tolerance = rows[i].no_tolerance;
    o.limits = rows[i].limit;
    o.n_limits = rows[i].limit != NULL;
    assay_comparison_t* c = compare_vectors(4, rows[i].got, rows[i].want, &o);
    const char* why = assay_comparison_why(c, 0);
    if (assay_comparison_passed(c) != !rows[i].why || (rows[i].why && !strstr(why, rows[i].why)))
      fail_msg("%s: '%s'", rows[i].label, why);
    assay_comparison_destroy(c);
  }
}

static void names_are_matched(void** state) {
  (void)state;
  static const char* const here[] = {"b", "only", "a"};
  static const char* const there[] = {"a", "b", "lost"};
  assay_tensor_t *x = vector(4, want4), *three[] = {x, x, x};
  assay_comparison_t* c = NULL;
  assay_compare_options_t o = ASSAY_COMPARE_OPTIONS_INIT;
  ok(assay_compare_tensors(3, here, three, 3, there, three, NULL, &c));
  static const struct {
    const char *name, *why;
  } rows[] = {{"a", ""},
              {"b", ""},
              {"lost", "only the reference has it"},
              {"only", "the reference does not have it"}};
  assert_int_equal(assay_comparison_count(c), 4);
  for (size_t i = 0; i < 4; i++) {
    assert_string_equal(assay_comparison_name(c, i), rows[i].name);
    assert_string_equal(assay_comparison_why(c, i), rows[i].why);
    assert_int_equal(assay_comparison_pair_passed(c, i), !*rows[i].why);
  }
  assert_true(isnan(assay_comparison_statistic(c, 2, ASSAY_STATISTIC_ELEMENTS)));
  assay_comparison_destroy(c);
  o.allow_missing = true;
  ok(assay_compare_tensors(3, here, three, 3, there, three, &o, &c));
  assert_int_equal(assay_comparison_count(c), 2);
  assert_true(assay_comparison_passed(c));
  assay_comparison_destroy(c);
  // Nothing to compare is not a success.
  ok(assay_compare_tensors(0, NULL, NULL, 0, NULL, NULL, NULL, &c));
  assert_false(assay_comparison_passed(c));
  assay_comparison_destroy(c);
  assay_tensor_release(x);
}

// ---- other elements -----------------------------------------------------------------------------

static void other_elements_are_compared(void** state) {
  (void)state;
  static const int64_t two = 2, one = 1;
  static const int64_t large[] = {9007199254740993, 1}, beside[] = {9007199254740992, 1};
  static const double doubles[] = {1, 2};
  static const float same[] = {1, 2};
  static const char* const texts[] = {"cat", "dog"};
  static const char* const others[] = {"cat", "dot"};
  static const size_t lengths[] = {3, 3};
  assay_tensor_t* t[9] = {0};
  ok(assay_tensor_make(ASSAY_TYPE_INT64, 1, &two, large, sizeof large, &t[0]));
  ok(assay_tensor_make(ASSAY_TYPE_INT64, 1, &two, beside, sizeof beside, &t[1]));
  ok(assay_tensor_make(ASSAY_TYPE_DOUBLE, 1, &two, doubles, sizeof doubles, &t[2]));
  t[3] = vector(2, same);
  ok(assay_tensor_make_strings(1, &two, texts, lengths, &t[4]));
  ok(assay_tensor_make_strings(1, &two, others, lengths, &t[5]));
  t[6] = floats(1, &one, same);
  ok(assay_tensor_make_container(ASSAY_KIND_SEQUENCE, ASSAY_TYPE_FLOAT, 2,
                                 (assay_tensor_t*[]){t[3], t[6]}, &t[7]));
  ok(assay_tensor_make_container(ASSAY_KIND_SEQUENCE, ASSAY_TYPE_FLOAT, 1, &t[3], &t[8]));
  static const struct {
    int got, want;
    double elements;
    const char* why;  // NULL: it passes
  } rows[] = {
      {0, 0, 2, NULL},
      {0, 1, 2, "1 of 2 elements"},  // which float64 does not tell apart
      {2, 3, 2, NULL},               // types may differ
      {4, 4, 2, NULL},
      {4, 5, 2, "1 of 2 elements are another text"},
      {4, 3, -1, "type string, the reference is float"},
      {6, 3, -1, "shape [1], the reference has [2]"},
      {7, 7, 3, NULL},
      {7, 8, -1, "2 items, the reference has 1"},
      {7, 3, -1, "a sequence, the reference is a tensor"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    static const char* const names[] = {"y"};
    assay_compare_options_t o = ASSAY_COMPARE_OPTIONS_INIT;
    assay_comparison_t* c = NULL;
    o.atol = o.rtol = 0;
    ok(assay_compare_tensors(1, names, &t[rows[i].got], 1, names, &t[rows[i].want], &o, &c));
    const double n = assay_comparison_statistic(c, 0, ASSAY_STATISTIC_ELEMENTS);
    const char* why = assay_comparison_why(c, 0);
    if (rows[i].why ? !strstr(why, rows[i].why) : *why) fail_msg("row %zu: '%s'", i, why);
    if (rows[i].elements < 0 ? !isnan(n) : n != rows[i].elements) fail_msg("row %zu: %g", i, n);
    assay_comparison_destroy(c);
  }
  for (size_t i = 0; i < 9; i++) assay_tensor_release(t[i]);
}

// ---- files and reports --------------------------------------------------------------------------

static void write_json(const char* path, const char* text) {
  FILE* f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void files_are_compared(void** state) {
  (void)state;
  char a[] = "/tmp/assay_api_a_XXXXXX", b[] = "/tmp/assay_api_b_XXXXXX";
  assay_comparison_t* c = NULL;
  close(mkstemp(a));
  close(mkstemp(b));
  write_json(a, "{\"x\": [1.0, 2.0], \"y\": [3.0]}");
  write_json(b, "{\"x\": [1.0, 2.5], \"y\": [3.0]}");
  ok(assay_compare_files(a, b, NULL, &c));
  assert_int_equal(assay_comparison_count(c), 2);
  assert_false(assay_comparison_passed(c));
  assert_true(assay_comparison_statistic(c, 0, ASSAY_STATISTIC_MAX_ABS) == 0.5);
  char* text = NULL;
  ok(assay_comparison_report(c, ASSAY_REPORT_TEXT, NULL, assay_report_collect, &text));
  has(text, "FAILED  1 of 2 tensors\n  failed  'x'   max abs 0.5");
  ok(assay_comparison_report(c, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
  has(text, "\"schema\": \"assay.compare/1\"");
  ok(assay_comparison_report(c, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
  has(text, "\"max_abs\": 0.5");
  assay_comparison_destroy(c);
  ok(assay_compare_files(a, a, NULL, &c));
  assert_true(assay_comparison_passed(c));
  ok(assay_comparison_report(c, ASSAY_REPORT_TEXT, &all, assay_report_collect, &text));
  has(text, "PASSED  2 tensors\n  passed  'x'   no error\n");
  assay_comparison_destroy(c);
  fails(assay_compare_files("/nowhere/x.npz", a, NULL, &c), ASSAY_NOT_FOUND, "/nowhere/x.npz");
  write_json(b, "{\"x\": [1.0");
  fails(assay_compare_files(a, b, NULL, &c), ASSAY_CORRUPT, "JSON");
  unlink(a);
  unlink(b);
}

// Runs of a file against those of another; a name that is lost in one of them is not a pass.
static void runs_are_compared_one_by_one(void** state) {
  (void)state;
  static const struct {
    const char *second, *other_second;  // what the runs behind the first one hold
    bool passed;
    double outside;   // of 'x'
    const char* why;  // of 'y'
  } rows[] = {
      {"{\"x\": [2], \"y\": [3]}", "{\"x\": [2], \"y\": [3]}", true, 0, ""},
      {"{\"x\": [9], \"y\": [3]}", "{\"x\": [2], \"y\": [3]}", false, 1, ""},
      {"{\"x\": [2]}", "{\"x\": [2], \"y\": [3]}", false, 0, "only the reference has it"},
      {"{\"x\": [2], \"y\": [3]}", "{\"x\": [2]}", false, 0, "the reference does not have it"},
  };
  static const char first[] = "{\"x\": [1], \"y\": [2]}";
  char a[] = "/tmp/assay_api_a_XXXXXX", b[] = "/tmp/assay_api_b_XXXXXX", path[4][64];
  assert_true(mkdtemp(a) && mkdtemp(b));
  for (int i = 0; i < 4; i++) snprintf(path[i], sizeof path[i], "%s/%d.json", i < 2 ? a : b, i % 2);
  write_json(path[0], first);
  write_json(path[2], first);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_comparison_t* c = NULL;
    write_json(path[1], rows[i].second);
    write_json(path[3], rows[i].other_second);
    ok(assay_compare_files(a, b, NULL, &c));
    assert_int_equal(assay_comparison_passed(c), rows[i].passed);
    assert_string_equal(assay_comparison_name(c, 0), "x");
    assert_true(assay_comparison_statistic(c, 0, ASSAY_STATISTIC_ELEMENTS) == 2);
    assert_true(assay_comparison_statistic(c, 0, ASSAY_STATISTIC_OUTSIDE) == rows[i].outside);
    assert_string_equal(assay_comparison_name(c, 1), "y");
    assert_string_equal(assay_comparison_why(c, 1), rows[i].why);
    assert_int_equal(isnan(assay_comparison_percentile(c, 1, 1)), *rows[i].why != 0);
    assay_comparison_destroy(c);
  }
  assay_comparison_t* c = NULL;
  fails(assay_compare_files(a, path[0], NULL, &c), ASSAY_INVALID_ARGUMENT, "holds 2 runs");
  for (int i = 0; i < 4; i++) unlink(path[i]);
  rmdir(a);
  rmdir(b);
}

static void samples_are_compared(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_samples_t *a = NULL, *b = NULL;
  assay_comparison_t* c = NULL;
  ok(assay_model_load("models/small/cnn.onnx", &m));
  ok(assay_samples_random(m, 1, 0, NULL, &a));
  ok(assay_samples_random(m, 2, 0, NULL, &b));
  ok(assay_compare_samples(a, a, NULL, &c));
  assert_true(assay_comparison_passed(c));
  assert_string_equal(assay_comparison_name(c, 0), "image");
  assay_comparison_destroy(c);
  ok(assay_compare_samples(a, b, NULL, &c));
  assert_false(assay_comparison_passed(c));
  assay_comparison_destroy(c);
  assay_samples_destroy(a);
  assay_samples_destroy(b);
  assay_model_release(m);
}

// ---- what makes no sense ------------------------------------------------------------------------

static void what_makes_no_sense_is_refused(void** state) {
  (void)state;
  static const char* const twice[] = {"y", "y"};
  static const char* const unnamed[] = {NULL};
  static const assay_limit_t limits[] = {{NULL, (assay_statistic_t)99, 0, 1},
                                         {NULL, ASSAY_STATISTIC_RMS, 1, 0},
                                         {NULL, ASSAY_STATISTIC_RMS, 0, (double)NAN},
                                         {"z", ASSAY_STATISTIC_RMS, 0, 1}};
  assay_tensor_t *x = vector(4, want4), *two[] = {x, x}, *none[] = {NULL};
  const struct {
    size_t n;
    const char* const* names;
    assay_tensor_t* const* tensors;
    double atol, rtol;
    int top_k;
    assay_format_t ulp_format;
    const assay_limit_t* limit;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {2, twice, two, 0, 0, 5, 0, NULL, ASSAY_INVALID_ARGUMENT, "'y' is there twice"},
      {1, unnamed, two, 0, 0, 5, 0, NULL, ASSAY_INVALID_ARGUMENT, "has no name"},
      {1, twice, none, 0, 0, 5, 0, NULL, ASSAY_INVALID_ARGUMENT, "is NULL"},
      {1, twice, two, -1, 0, 5, 0, NULL, ASSAY_INVALID_ARGUMENT, "0 or more"},
      {1, twice, two, 0, (double)NAN, 5, 0, NULL, ASSAY_INVALID_ARGUMENT, "0 or more"},
      {1, twice, two, 0, 0, 0, 0, NULL, ASSAY_INVALID_ARGUMENT, "top_k is 0"},
      {1, twice, two, 0, 0, 65, 0, NULL, ASSAY_INVALID_ARGUMENT, "top_k is 65"},
      {1, twice, two, 0, 0, 5, ASSAY_FORMAT_INT8, NULL, ASSAY_INVALID_ARGUMENT, "it is int8"},
      {1, twice, two, 0, 0, 5, (assay_format_t)77, NULL, ASSAY_INVALID_ARGUMENT, "ulp_format"},
      {1, twice, two, 0, 0, 5, 0, &limits[0], ASSAY_INVALID_ARGUMENT, "no statistic 99"},
      {1, twice, two, 0, 0, 5, 0, &limits[1], ASSAY_INVALID_ARGUMENT, "between 1 and 0"},
      {1, twice, two, 0, 0, 5, 0, &limits[2], ASSAY_INVALID_ARGUMENT, "infinity"},
      {1, twice, two, 0, 0, 5, 0, &limits[3], ASSAY_NOT_FOUND, "'z', which is not compared"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_compare_options_t o = ASSAY_COMPARE_OPTIONS_INIT;
    assay_comparison_t* c = NULL;
    o.atol = rows[i].atol;
    o.rtol = rows[i].rtol;
    o.top_k = rows[i].top_k;
    o.ulp_format = rows[i].ulp_format;
    o.limits = rows[i].limit;
    o.n_limits = rows[i].limit != NULL;
    fails(assay_compare_tensors(rows[i].n, rows[i].names, rows[i].tensors, 1, twice, two, &o, &c),
          rows[i].code, rows[i].word);
    assert_null(c);
  }
  // A caller that knows of the tolerance only.
  assay_compare_options_t o = ASSAY_COMPARE_OPTIONS_INIT;
  assay_comparison_t* c = NULL;
  o.struct_size = offsetof(assay_compare_options_t, no_tolerance);
  o.top_k = -1;
  ok(assay_compare_tensors(1, twice, two, 1, twice, two, &o, &c));
  assert_true(assay_comparison_passed(c));
  assay_comparison_destroy(c);
  assay_comparison_destroy(NULL);
  assay_tensor_release(x);
}

// ---- allocations --------------------------------------------------------------------------------

static assay_status_t compare_and_report(void) {
  static const char* const names[] = {"a", "b"};
  static const char* const others[] = {"a", "c"};
  static const float got[] = {1, 2, 4, -7};
  static const int64_t four = 4;
  assay_tensor_t *x = NULL, *y = NULL;
  assay_comparison_t* c = NULL;
  char* text = NULL;
  assay_status_t st = assay_tensor_make(ASSAY_TYPE_FLOAT, 1, &four, got, sizeof got, &x);
  if (!st) st = assay_tensor_make(ASSAY_TYPE_FLOAT, 1, &four, want4, sizeof want4, &y);
  assay_tensor_t *a[] = {x, x}, *b[] = {y, y};
  if (!st) st = assay_compare_tensors(2, names, a, 2, others, b, NULL, &c);
  if (!st) st = assay_comparison_report(c, ASSAY_REPORT_TEXT, &all, assay_report_collect, &text);
  assay_text_free(text);
  text = NULL;
  if (!st) st = assay_comparison_report(c, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text);
  assay_text_free(text);
  assay_comparison_destroy(c);
  assay_tensor_release(x);
  assay_tensor_release(y);
  return st;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  allocations_fail(compare_and_report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statistics_are_those_of_the_errors),
      cmocka_unit_test(pairs_pass_by_tolerance_and_limits),
      cmocka_unit_test(names_are_matched),
      cmocka_unit_test(other_elements_are_compared),
      cmocka_unit_test(files_are_compared),
      cmocka_unit_test(runs_are_compared_one_by_one),
      cmocka_unit_test(samples_are_compared),
      cmocka_unit_test(what_makes_no_sense_is_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
