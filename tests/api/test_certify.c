// Certificates by the public API: made, written, read, held against runs that are the same and such
// that are not.
#include "node_model.h"

static const char model_path[] = "models/small/cnn.onnx";
static char square[] = "/tmp/assay_api_square_XXXXXX";  // of an open size

static assay_model_t* load(const char* path) {
  assay_model_t* m = NULL;
  ok(assay_model_load(path, &m));
  return m;
}

static assay_certificate_t* certify(assay_model_t* m, assay_format_t precision,
                                    const assay_samples_t* samples) {
  assay_certify_options_t o = ASSAY_CERTIFY_OPTIONS_INIT;
  assay_certificate_t* c = NULL;
  o.precision = precision;
  o.samples = samples;
  o.max_bytes = 4096;
  ok(assay_certificate_make(m, &o, &c));
  return c;
}

// ---- making -------------------------------------------------------------------------------------

static void a_certificate_says_what_was_run(void** state) {
  (void)state;
  char path[] = "/tmp/assay_api_cert_XXXXXX";
  close(mkstemp(path));
  static const int64_t dims[] = {3, -1};
  const assay_input_shape_t shape = {"x", 2, dims};
  assay_model_options_t sizes = ASSAY_MODEL_OPTIONS_INIT;
  assay_certify_options_t o = ASSAY_CERTIFY_OPTIONS_INIT;
  assay_certificate_t *c = NULL, *again = NULL;
  assay_model_t *m = NULL, *same = NULL;
  char type[64], other[64], *text = NULL;
  sizes.shapes = &shape;
  sizes.n_shapes = 1;
  ok(assay_model_load_with(square, &sizes, &m));
  o.precision = ASSAY_FORMAT_BF16;
  o.layer_precision = "n:fp32";
  o.seed = 7;
  o.max_bytes = 4096;
  ok(assay_certificate_make(m, &o, &c));
  ok(assay_certificate_report(c, ASSAY_REPORT_TEXT, assay_report_collect, &text));
  has(text, "NOT SAVED  /tmp/");
  fails(assay_certificate_save(c, "/nowhere/a.cert"), ASSAY_NOT_FOUND, "/nowhere/a.cert");
  ok(assay_certificate_save(c, path));
  ok(assay_certificate_report(c, ASSAY_REPORT_TEXT, assay_report_collect, &text));
  has(text, "CERTIFIED  ");
  ok(assay_certificate_report(c, ASSAY_REPORT_JSON, assay_report_collect, &text));
  has(text, "\"schema\": \"assay.certify/1\"");
  ok(assay_certificate_load(path, &again));
  const assay_certificate_t* both[] = {c, again};
  for (int i = 0; i < 2; i++) {
    assert_string_equal(assay_certificate_precision(both[i]), "bf16");
    assert_string_equal(assay_certificate_layer_precision(both[i]), "n:fp32");
    assert_string_equal(assay_certificate_target(both[i]), "emu");
    assert_non_null(strstr(assay_certificate_shapes(both[i]), "x=3x"));
    assert_true(*assay_certificate_version(both[i]));
    assert_int_equal(assay_certificate_seed(both[i]), 7);
    assert_false(assay_certificate_needs_samples(both[i]));
    assert_int_equal(assay_certificate_value_count(both[i]), 1);
    assert_int_equal(assay_certificate_kept_count(both[i]), 1);
    assert_in_range(assay_certificate_bytes(both[i]), 20, 4096);
  }
  ok(assay_certificate_report(again, ASSAY_REPORT_TEXT, assay_report_collect, &text));
  has(text, path);
  // The model in the shapes that were certified.
  ok(assay_certificate_load_model(again, square, &same));
  ok(assay_model_input_type(m, 0, type, sizeof type));
  ok(assay_model_input_type(same, 0, other, sizeof other));
  assert_string_equal(type, other);
  assay_model_release(same);
  assay_certificate_destroy(again);
  assay_certificate_destroy(c);
  assay_certificate_destroy(NULL);
  assay_model_release(m);
  unlink(path);
}

// ---- verifying ----------------------------------------------------------------------------------

static void runs_are_held_against_it(void** state) {
  (void)state;
  static const struct {
    const char *target, *inject;
    bool bits, other_model, holds;
    const char* kind;  // of the cause
    const char* node;
    const char* text;
  } rows[] = {
      {NULL, NULL, true, false, true, NULL, NULL, "HOLDS  "},
      {"cpu", NULL, false, false, true, NULL, NULL, "on cpu"},
      {NULL, "norm/mean:terms=2", false, false, false, "fault", "norm/mean",
       "the engine is at fault"},
      {NULL, "conv:round=zero", true, false, false, "bits", "conv", "CHANGED  "},
      {NULL, "conv:round=zero", false, false, true, NULL, NULL, "note "},
      {NULL, NULL, false, true, false, "model", "", "another model"},
  };
  assay_model_t *m = load(model_path), *other = load("models/small/loop.onnx");
  assay_certificate_t* c = certify(m, ASSAY_FORMAT_NONE, NULL);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_verify_options_t o = ASSAY_VERIFY_OPTIONS_INIT;
    assay_verification_t* v = NULL;
    char* text = NULL;
    o.target = rows[i].target;
    o.inject = rows[i].inject;
    o.bits = rows[i].bits;
    ok(assay_verification_run(c, rows[i].other_model ? other : m, &o, &v));
    ok(assay_verification_report(v, ASSAY_REPORT_TEXT, assay_report_collect, &text));
    if (assay_verification_holds(v) != rows[i].holds) fail_msg("row %zu: %s", i, text);
    has(text, rows[i].text);
    ok(assay_verification_report(v, ASSAY_REPORT_JSON, assay_report_collect, &text));
    has(text, "\"schema\": \"assay.certify.verify/1\"");
    const size_t n = assay_verification_change_count(v);
    size_t causes = 0;
    for (size_t k = 0; k < n; k++) {
      assert_true(*assay_verification_change_why(v, k));
      if (!assay_verification_change_is_cause(v, k)) continue;
      causes++;
      assert_false(assay_verification_change_is_note(v, k));
      assert_string_equal(assay_verification_change_kind(v, k), rows[i].kind);
      assert_string_equal(assay_verification_change_node(v, k), rows[i].node);
    }
    assert_int_equal(causes, !rows[i].holds);
    if (!rows[i].other_model) {
      assert_true(assay_verification_layer_count(v) > 0);
      assert_int_equal(assay_verification_value_count(v), 13);
    }
    assert_null(assay_verification_change_kind(v, n));
    assert_null(assay_verification_change_node(v, n));
    assert_null(assay_verification_change_why(v, n));
    assert_false(assay_verification_change_is_cause(v, n));
    assay_verification_destroy(v);
  }
  assay_certificate_destroy(c);
  assay_model_release(other);
  assay_model_release(m);
}

// An engine that was built, in the place of a target; and inputs that have to be the same.
static void engines_and_samples_are_given(void** state) {
  (void)state;
  assay_model_t* m = load(model_path);
  assay_samples_t *samples = NULL, *others = NULL;
  assay_engine_options_t half = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t *same = NULL, *narrow = NULL;
  assay_verification_t* v = NULL;
  ok(assay_samples_random(m, 5, 0, NULL, &samples));
  ok(assay_samples_random(m, 6, 0, NULL, &others));
  ok(assay_engine_build(m, NULL, &same));
  half.precision = ASSAY_FORMAT_BF16;
  ok(assay_engine_build(m, &half, &narrow));
  assay_certificate_t* c = certify(m, ASSAY_FORMAT_NONE, samples);
  assert_true(assay_certificate_needs_samples(c));
  assay_verify_options_t o = ASSAY_VERIFY_OPTIONS_INIT;
  fails(assay_verification_run(c, m, &o, &v), ASSAY_INVALID_ARGUMENT, "give the same");
  o.samples = samples;
  o.engine = same;
  o.engine_name = "my.plan";
  ok(assay_verification_run(c, m, &o, &v));
  assert_true(assay_verification_holds(v));
  char* text = NULL;
  ok(assay_verification_report(v, ASSAY_REPORT_TEXT, assay_report_collect, &text));
  has(text, "on my.plan");
  assay_verification_destroy(v);
  o.engine = narrow;
  fails(assay_verification_run(c, m, &o, &v), ASSAY_INVALID_ARGUMENT,
        "'my.plan' was built in bf16, the certificate is of fp32");
  o.engine = same;
  o.target = "cpu";
  fails(assay_verification_run(c, m, &o, &v), ASSAY_INVALID_ARGUMENT, "nothing about building");
  o.engine = NULL;
  o.samples = others;
  ok(assay_verification_run(c, m, &o, &v));
  assert_false(assay_verification_holds(v));
  assert_string_equal(assay_verification_change_kind(v, 0), "inputs");
  assay_verification_destroy(v);
  assay_certificate_destroy(c);
  assay_engine_release(same);
  assay_engine_release(narrow);
  assay_samples_destroy(samples);
  assay_samples_destroy(others);
  assay_model_release(m);
}

// ---- what makes no sense ------------------------------------------------------------------------

static void what_makes_no_sense_is_refused(void** state) {
  (void)state;
  static const char *const bad_threshold[] = {"scores"}, *const no_output[] = {"score:0.5"},
                           *const no_pass[] = {"frobnication"};
  const struct {
    assay_certify_options_t o;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {{.target = "abacus"}, ASSAY_INVALID_ARGUMENT, "abacus"},
      {{.layer_precision = "head"}, ASSAY_INVALID_ARGUMENT, "PATTERN"},
      {{.layer_precision = "tail:fp16"}, ASSAY_NOT_FOUND, "tail"},
      {{.fp32 = (assay_fp32_t)3}, ASSAY_INVALID_ARGUMENT, "plain, tight or bound, not 3"},
      {{.fusion = (assay_fusion_t)3}, ASSAY_INVALID_ARGUMENT, "fusion 3"},
      {{.precision = ASSAY_FORMAT_INT4}, ASSAY_INVALID_ARGUMENT, "int4"},
      {{.precision = ASSAY_FORMAT_INT8}, ASSAY_UNSUPPORTED, "QuantizeLinear"},
      {{.passes_off = no_pass, .n_passes_off = 1, .fusion = ASSAY_FUSION_OFF},
       ASSAY_INVALID_ARGUMENT,
       "fusion is off"},
      {{.passes_off = no_pass, .n_passes_off = 1}, ASSAY_NOT_FOUND, "frobnication"},
      {{.thresholds = bad_threshold, .n_thresholds = 1}, ASSAY_INVALID_ARGUMENT, "OUTPUT:VALUE"},
      {{.thresholds = no_output, .n_thresholds = 1}, ASSAY_INVALID_ARGUMENT, "no such output"},
      {{.inject = "conv"}, ASSAY_INVALID_ARGUMENT, "conv"},
  };
  assay_model_t *m = load(model_path), *other = load("models/small/if_sequence.onnx");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_certify_options_t o = rows[i].o;
    assay_certificate_t* c = NULL;
    o.struct_size = sizeof o;
    fails(assay_certificate_make(m, &o, &c), rows[i].code, rows[i].word);
    assert_null(c);
  }
  // Samples of another model, files that are not certificates, other shapes.
  assay_certify_options_t o = ASSAY_CERTIFY_OPTIONS_INIT;
  assay_certificate_t* c = NULL;
  assay_samples_t* samples = NULL;
  ok(assay_samples_random(other, 1, 0, NULL, &samples));
  o.samples = samples;
  fails(assay_certificate_make(m, &o, &c), ASSAY_INVALID_ARGUMENT, "samples");
  o.struct_size = offsetof(assay_certify_options_t, samples);  // a caller that does not know of it
  ok(assay_certificate_make(m, &o, &c));
  assay_certificate_t* none = NULL;
  fails(assay_certificate_load("/nowhere/a.cert", &none), ASSAY_NOT_FOUND, "/nowhere/a.cert");
  fails(assay_certificate_load(model_path, &none), ASSAY_CORRUPT, "not a certificate");
  assay_model_options_t two = ASSAY_MODEL_OPTIONS_INIT;
  assay_model_t* shaped = NULL;
  assay_verification_t* v = NULL;
  two.batch = 2;
  fails(assay_certificate_load_model(c, "/nowhere/a.onnx", &shaped), ASSAY_NOT_FOUND, "/nowhere/");
  ok(assay_model_load_with(square, &two, &shaped));
  fails(assay_verification_run(c, shaped, NULL, &v), ASSAY_INVALID_ARGUMENT, "certified in ''");
  assay_model_release(shaped);
  assay_certificate_destroy(c);
  assay_samples_destroy(samples);
  assay_model_release(other);
  assay_model_release(m);
}

// ---- allocations --------------------------------------------------------------------------------

static assay_status_t certify_and_verify(void) {
  assay_model_t* m = NULL;
  assay_certificate_t* c = NULL;
  assay_verification_t* v = NULL;
  char* text = NULL;
  assay_status_t st = assay_model_load(model_path, &m);
  if (!st) st = assay_certificate_make(m, NULL, &c);
  if (!st) st = assay_certificate_report(c, ASSAY_REPORT_TEXT, assay_report_collect, &text);
  assay_text_free(text);
  text = NULL;
  if (!st) st = assay_verification_run(c, m, NULL, &v);
  if (!st) st = assay_verification_report(v, ASSAY_REPORT_JSON, assay_report_collect, &text);
  assay_text_free(text);
  assay_verification_destroy(v);
  assay_certificate_destroy(c);
  assay_model_release(m);
  return st;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  allocations_fail(certify_and_verify);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_certificate_says_what_was_run),
      cmocka_unit_test(runs_are_held_against_it),
      cmocka_unit_test(engines_and_samples_are_given),
      cmocka_unit_test(what_makes_no_sense_is_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  close(mkstemp(square));
  write_node_model(square, "", "Mul");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(square);
  return failed;
}
