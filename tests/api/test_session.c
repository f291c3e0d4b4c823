// Sessions by the public API: every mode and target, what a run keeps, engines as sessions.
#include "api_case.h"

static const char model_path[] = "models/small/cnn.onnx";

typedef struct progress {
  int n;
  double last;
} progress_t;

static void report(void* user, const char* what, double fraction) {
  progress_t* t = user;
  assert_true(*what && fraction > t->last);
  t->n++;
  t->last = fraction;
}

static assay_status_t evaluate(assay_session_t* s, const assay_samples_t* samples) {
  assay_tensor_t* in[8] = {0};
  const size_t n = assay_samples_value_count(samples);
  assert_true(n <= sizeof in / sizeof *in);
  for (size_t i = 0; i < n; i++) in[i] = assay_samples_tensor(samples, 0, i);
  return assay_session_evaluate(s, n, in);
}

// The largest difference of the last value of two sessions.
static double difference(assay_session_t* a, assay_session_t* b) {
  assay_tensor_t *x = NULL, *y = NULL;
  double maximum = 0;
  ok(assay_session_value(a, assay_session_value_count(a) - 1, &x));
  ok(assay_session_value(b, assay_session_value_count(b) - 1, &y));
  const size_t n = (size_t)assay_tensor_size(x);
  assert_int_equal(assay_tensor_size(y), n);
  double *u = calloc(n, sizeof *u), *v = calloc(n, sizeof *v);
  ok(assay_tensor_read_f64(x, u, n));
  ok(assay_tensor_read_f64(y, v, n));
  for (size_t i = 0; i < n; i++) maximum = fmax(maximum, fabs(u[i] - v[i]));
  free(u);
  free(v);
  assay_tensor_release(x);
  assay_tensor_release(y);
  return maximum;
}

// Each way of running is another one than truth by so much, and no more.
static void ways_to_run_differ_as_they_should(void** state) {
  (void)state;
  static const char* const pass = "constant_folding";
  const struct {
    assay_session_options_t o;
    double min, max;
  } rows[] = {
      {{.mode = ASSAY_RUN_TRUTH}, 0, 0},
      {{.mode = ASSAY_RUN_NATIVE}, 1e-12, 1e-5},
      {{.mode = ASSAY_RUN_PLAN}, 1e-12, 1e-5},
      {{.mode = ASSAY_RUN_PLAN, .precision = ASSAY_FORMAT_BF16}, 1e-5, 1},
      {{.mode = ASSAY_RUN_PLAN, .target = "cpu", .fp32 = ASSAY_FP32_PLAIN}, 1e-12, 1e-5},
      {{.mode = ASSAY_RUN_PLAN, .target = "cpu", .fusion = ASSAY_FUSION_ON}, 1e-12, 1e-5},
      {{.mode = ASSAY_RUN_PLAN, .passes_off = &pass, .n_passes_off = 1}, 1e-12, 1e-5},
      {{.mode = ASSAY_RUN_PLAN, .inject = "conv:terms=1"}, 1e-3, INFINITY},
  };
  assay_model_t* m = NULL;
  assay_samples_t* samples = NULL;
  assay_session_t* truth = NULL;
  assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
  o.mode = ASSAY_RUN_TRUTH;
  ok(assay_model_load(model_path, &m));
  ok(assay_samples_random(m, 3, 0, NULL, &samples));
  ok(assay_session_create(m, &o, &truth));
  ok(evaluate(truth, samples));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_session_t* s = NULL;
    progress_t reported = {0};
    o = rows[i].o;
    o.struct_size = sizeof o;
    o.progress = report;
    o.user = &reported;
    ok(assay_session_create(m, &o, &s));
    ok(evaluate(s, samples));
    const double d = difference(truth, s);
    if (!(d >= rows[i].min && d <= rows[i].max)) fail_msg("row %zu: differs by %g", i, d);
    assert_true(reported.n > 1 && reported.last == 1);
    assay_session_destroy(s);
  }
  assay_session_destroy(truth);
  assay_samples_destroy(samples);
  assay_model_release(m);
}

static void a_run_keeps_outputs_or_all_values(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_samples_t* samples = NULL;
  assay_tensor_t* t = NULL;
  ok(assay_model_load(model_path, &m));
  ok(assay_samples_random(m, 3, 0, NULL, &samples));
  for (int all = 0; all < 2; all++) {
    assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
    assay_session_t* s = NULL;
    o.all_values = all;
    ok(assay_session_create(m, &o, &s));
    const size_t n = assay_session_value_count(s);
    assert_int_equal(n, all ? 13 : assay_model_output_count(m));
    ok(assay_session_value(s, 0, &t));
    assert_null(t);  // before a run
    ok(evaluate(s, samples));
    for (size_t i = 0; i < n; i++) {
      assert_true(*assay_session_value_name(s, i));
      ok(assay_session_value(s, i, &t));
      assert_non_null(t);
      assay_tensor_release(t);
    }
    assert_null(assay_session_value_name(s, n));
    fails(assay_session_value(s, n, &t), ASSAY_INVALID_ARGUMENT, "there is no value");
    fails(assay_session_evaluate(s, 0, NULL), ASSAY_INVALID_ARGUMENT, "0 inputs were given");
    assay_session_destroy(s);
  }
  assay_samples_destroy(samples);
  assay_model_release(m);
}

static void an_engine_is_a_session(void** state) {
  (void)state;
  assay_model_t *m = NULL, *own = NULL;
  assay_samples_t* samples = NULL;
  assay_engine_t* e = NULL;
  assay_session_t *s = NULL, *plan = NULL;
  progress_t reported = {0};
  assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
  assay_engine_options_t built = ASSAY_ENGINE_OPTIONS_INIT;
  built.precision = o.precision = ASSAY_FORMAT_BF16;
  o.mode = ASSAY_RUN_PLAN;
  o.target = "cpu";
  o.fusion = ASSAY_FUSION_ON;
  ok(assay_model_load(model_path, &m));
  ok(assay_engine_build(m, &built, &e));
  ok(assay_session_create(m, &o, &plan));
  own = assay_engine_model(e);
  ok(assay_session_of_engine(e, report, &reported, &s));
  assay_engine_release(e);
  ok(assay_samples_random(own, 3, 0, NULL, &samples));
  ok(evaluate(s, samples));
  ok(evaluate(plan, samples));
  assert_true(reported.last == 1);
  assert_string_equal(assay_session_value_name(s, 0), assay_model_output_name(m, 0));
  assert_true(difference(s, plan) == 0);
  assay_session_destroy(s);
  assay_session_destroy(plan);
  assay_samples_destroy(samples);
  assay_model_release(own);
  assay_model_release(m);
}

static void what_makes_no_sense_is_refused(void** state) {
  (void)state;
  const struct {
    assay_session_options_t o;
    const char* word;
  } rows[] = {
      {{.mode = (assay_run_mode_t)3}, "mode 3"},
      {{.mode = ASSAY_RUN_PLAN, .all_values = true}, "all_values"},
      {{.mode = ASSAY_RUN_PLAN, .inject = "conv"}, "conv"},
  };
  assay_model_t* m = NULL;
  ok(assay_model_load(model_path, &m));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_session_options_t o = rows[i].o;
    assay_session_t* s = NULL;
    o.struct_size = sizeof o;
    fails(assay_session_create(m, &o, &s), ASSAY_INVALID_ARGUMENT, rows[i].word);
    assert_null(s);
  }
  // A caller that does not know of the target: it is emu.
  assay_session_options_t o = {.struct_size = offsetof(assay_session_options_t, target),
                               .mode = ASSAY_RUN_PLAN,
                               .target = "abacus"};
  assay_session_t* s = NULL;
  ok(assay_session_create(m, &o, &s));
  assay_session_destroy(s);
  assay_session_destroy(NULL);
  assay_model_release(m);
}

// Truth's values are finer than the type that the model declares.
static void values_are_converted(void** state) {
  (void)state;
  static const float thirds[] = {1.0F / 3, 1e30F};
  static const int64_t n = 2;
  static const int32_t whole[] = {7, 8};
  static const char* const text = "a";
  static const size_t length = 1;
  double x[2];
  uint16_t half[2];
  float single[2];
  assay_model_t* m = NULL;
  assay_samples_t* samples = NULL;
  assay_session_t* s = NULL;
  assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
  assay_tensor_t *t = NULL, *wide = NULL, *own = NULL, *integers = NULL, *texts = NULL, *out = NULL;
  o.mode = ASSAY_RUN_TRUTH;
  ok(assay_model_load(model_path, &m));
  ok(assay_samples_random(m, 3, 0, NULL, &samples));
  ok(assay_session_create(m, &o, &s));
  ok(evaluate(s, samples));
  ok(assay_session_value(s, 0, &t));
  ok(assay_tensor_convert(t, ASSAY_TYPE_DOUBLE, &wide));
  ok(assay_tensor_convert(t, ASSAY_TYPE_FLOAT, &own));
  assert_int_equal(assay_tensor_type(wide), ASSAY_TYPE_DOUBLE);
  assert_int_equal(assay_tensor_type(own), ASSAY_TYPE_FLOAT);
  const size_t size = (size_t)assay_tensor_size(t);
  double *truth = calloc(size, sizeof *truth), *kept = calloc(size, sizeof *kept);
  size_t finer = 0;
  ok(assay_tensor_read_f64(t, truth, size));
  ok(assay_tensor_read(wide, kept, size * sizeof *kept));
  assert_memory_equal(truth, kept, size * sizeof *kept);
  ok(assay_tensor_read_f64(own, kept, size));
  for (size_t i = 0; i < size; i++) {
    assert_true(kept[i] == (double)(float)truth[i]);
    finer += kept[i] != truth[i];
  }
  assert_true(finer > 0);
  free(truth);
  free(kept);
  // Rounded once; past the range to infinity.
  assay_tensor_t* f = vector(n, thirds);
  ok(assay_tensor_convert(f, ASSAY_TYPE_FLOAT16, &out));
  ok(assay_tensor_read(out, half, sizeof half));
  assert_true(half[0] == 0x3555 && half[1] == 0x7c00);
  assay_tensor_release(out);
  ok(assay_tensor_convert(f, ASSAY_TYPE_FLOAT, &out));
  ok(assay_tensor_read(out, single, sizeof single));
  assert_memory_equal(single, thirds, sizeof thirds);
  assay_tensor_release(out);
  out = NULL;
  ok(assay_tensor_make(ASSAY_TYPE_INT32, 1, &n, whole, sizeof whole, &integers));
  ok(assay_tensor_make_strings(0, NULL, &text, &length, &texts));
  fails(assay_tensor_convert(integers, ASSAY_TYPE_FLOAT, &out), ASSAY_INVALID_ARGUMENT, "int32");
  fails(assay_tensor_convert(f, ASSAY_TYPE_INT32, &out), ASSAY_INVALID_ARGUMENT, "int32");
  fails(assay_tensor_convert(texts, ASSAY_TYPE_STRING, &out), ASSAY_INVALID_ARGUMENT, "numbers");
  assert_null(out);
  ok(assay_tensor_convert(integers, ASSAY_TYPE_INT32, &out));
  fails(assay_tensor_read_f64(out, x, 2), ASSAY_INVALID_ARGUMENT, "floats");
  assay_tensor_release(out);
  assay_tensor_release(integers);
  assay_tensor_release(texts);
  assay_tensor_release(f);
  assay_tensor_release(own);
  assay_tensor_release(wide);
  assay_tensor_release(t);
  assay_session_destroy(s);
  assay_samples_destroy(samples);
  assay_model_release(m);
}

static void types_and_files_tell_what_they_are(void** state) {
  (void)state;
  assert_true(assay_type_is_float(ASSAY_TYPE_BFLOAT16) && assay_type_is_float(ASSAY_TYPE_DOUBLE));
  assert_false(assay_type_is_float(ASSAY_TYPE_COMPLEX64) || assay_type_is_float(ASSAY_TYPE_INT8) ||
               assay_type_is_float(ASSAY_TYPE_STRING));
  assert_true(assay_format_is_float(ASSAY_FORMAT_TF32) &&
              assay_format_is_float(ASSAY_FORMAT_FP4E2M1));
  assert_false(assay_format_is_float(ASSAY_FORMAT_NONE) ||
               assay_format_is_float(ASSAY_FORMAT_INT8) ||
               assay_format_is_float(ASSAY_FORMAT_COUNT));
  char path[] = "/tmp/assay_api_plan_XXXXXX";
  const int file = mkstemp(path);
  assay_model_t* m = NULL;
  assay_engine_t* e = NULL;
  assert_true(file >= 0);
  close(file);
  ok(assay_model_load(model_path, &m));
  ok(assay_engine_build(m, NULL, &e));
  assert_false(assay_engine_is_plan_file(path));
  ok(assay_engine_save(e, path));
  assert_true(assay_engine_is_plan_file(path));
  assert_false(assay_engine_is_plan_file(model_path) || assay_engine_is_plan_file("/nowhere"));
  unlink(path);
  assay_engine_release(e);
  assay_model_release(m);
}

static assay_status_t run_all(void) {
  assay_model_t* m = NULL;
  assay_samples_t* samples = NULL;
  assay_session_t* s = NULL;
  assay_tensor_t *in[8] = {0}, *t = NULL;
  assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
  o.all_values = true;
  assay_status_t st = assay_model_load(model_path, &m);
  if (!st) st = assay_samples_random(m, 3, 0, NULL, &samples);
  if (!st) st = assay_session_create(m, &o, &s);
  if (!st) {
    const size_t n = assay_samples_value_count(samples);
    for (size_t i = 0; i < n && i < 8; i++) in[i] = assay_samples_tensor(samples, 0, i);
    st = assay_session_evaluate(s, n, in);
  }
  if (!st) st = assay_session_value(s, 0, &t);
  assay_tensor_release(t);
  assay_session_destroy(s);
  assay_samples_destroy(samples);
  assay_model_release(m);
  return st;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  allocations_fail(run_all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ways_to_run_differ_as_they_should),
      cmocka_unit_test(a_run_keeps_outputs_or_all_values),
      cmocka_unit_test(an_engine_is_a_session),
      cmocka_unit_test(values_are_converted),
      cmocka_unit_test(types_and_files_tell_what_they_are),
      cmocka_unit_test(what_makes_no_sense_is_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
