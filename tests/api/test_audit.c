// Audits by the public API: a square in fp16, which is safe up to 255.9 and no further.
#include "node_model.h"

static char square[] = "/tmp/assay_api_square_XXXXXX", strange[] = "/tmp/assay_api_strange_XXXXXX";

static const assay_audit_report_options_t in_full = {sizeof in_full, ~0u};

static assay_model_t* load(const char* path) {
  assay_model_options_t o = ASSAY_MODEL_OPTIONS_INIT;
  assay_model_t* m = NULL;
  o.allow_unknown = true;
  ok(assay_model_load_with(path, &o, &m));
  return m;
}

static assay_audit_t* audit_in(const char* path, assay_format_t precision, const char* box) {
  assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
  assay_audit_t* a = NULL;
  assay_model_t* m = load(path);
  o.precision = precision;
  o.boxes = &box;
  o.n_boxes = box != NULL;
  o.seconds = 5;
  ok(assay_audit_run(m, &o, &a));
  assay_model_release(m);
  return a;
}

// ---- verdicts -----------------------------------------------------------------------------------

static void verdicts_follow_the_box(void** state) {
  (void)state;
  const struct {
    const char* path;
    assay_format_t precision;
    const char* box;
    assay_audit_verdict_t verdict;
    double low, high;  // between which the safe scale is; low < 0: nobody looked
    const char* text;
  } rows[] = {
      {square, ASSAY_FORMAT_FP16, "-100:100", ASSAY_AUDIT_SAFE, 2.4, 2.56, "SAFE  "},
      {square, ASSAY_FORMAT_FP16, "x=1000", ASSAY_AUDIT_UNSAFE, 0.24, 0.256, "UNSAFE  "},
      {square, ASSAY_FORMAT_NONE, "x=1000", ASSAY_AUDIT_SAFE, 1e13, 1e17, "as declared"},
      {square, ASSAY_FORMAT_FP16, NULL, ASSAY_AUDIT_SAFE, 240, 256, "(assumed"},
      {strange, ASSAY_FORMAT_FP16, NULL, ASSAY_AUDIT_NOT_KNOWN, 0, 0, "NOT KNOWN  "},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_audit_t* a = audit_in(rows[i].path, rows[i].precision, rows[i].box);
    const double scale = assay_audit_safe_scale(a);
    char* text = NULL;
    if (assay_audit_verdict(a) != rows[i].verdict || !(scale >= rows[i].low) ||
        !(scale <= rows[i].high))
      fail_msg("row %zu: %s, safe for the box times %g", i,
               assay_audit_verdict_name(assay_audit_verdict(a)), scale);
    ok(assay_audit_report(a, ASSAY_REPORT_TEXT, NULL, assay_report_collect, &text));
    has(text, rows[i].text);
    ok(assay_audit_report(a, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
    has(text, "\"schema\": \"assay.audit/1\"");
    assert_string_equal(assay_audit_open_sizes(a), "'N'");
    assay_audit_destroy(a);
  }
  assert_null(assay_audit_verdict_name((assay_audit_verdict_t)4));
}

// ---- findings -----------------------------------------------------------------------------------

static void findings_name_node_and_kind(void** state) {
  (void)state;
  char text[256];
  double low = 0, high = 0;
  assay_audit_t* a = audit_in(square, ASSAY_FORMAT_FP16, "x=0:1000");
  assert_int_equal(assay_audit_count(a, ASSAY_AUDIT_HAZARDS), 1);
  assert_string_equal(assay_audit_node(a, ASSAY_AUDIT_HAZARDS, 0), "n");
  assert_string_equal(assay_audit_operator(a, ASSAY_AUDIT_HAZARDS, 0), "Mul");
  assert_string_equal(assay_audit_kind(a, ASSAY_AUDIT_HAZARDS, 0), "overflow");
  assay_audit_describe(a, ASSAY_AUDIT_HAZARDS, 0, text, sizeof text);
  assert_non_null(strstr(text, "fp16 ends at 65504"));
  assert_string_equal(assay_audit_describe(a, ASSAY_AUDIT_HAZARDS, 0, text, 9), "overflow");
  assert_int_equal(assay_audit_count(a, ASSAY_AUDIT_OPERATORS), 1);
  assert_non_null(assay_audit_kind(a, ASSAY_AUDIT_OPERATORS, 0));
  assert_int_equal(assay_audit_count(a, ASSAY_AUDIT_BROADCASTS), 0);
  assert_int_equal(assay_audit_count(a, ASSAY_AUDIT_BAKED), 0);
  assert_int_equal(assay_audit_count(a, ASSAY_AUDIT_CONSTANTS), 0);
  // The box, and the range of what the node makes, which cannot be negative.
  assert_int_equal(assay_audit_input_count(a), 1);
  assert_string_equal(assay_audit_input_name(a, 0), "x");
  ok(assay_audit_input_range(a, 0, &low, &high));
  assert_true(low == 0 && high == 1000);
  ok(assay_audit_value_range(a, "y", &low, &high));
  assert_true(low >= -1 && high >= 65504);
  // Past the end.
  assert_null(assay_audit_node(a, ASSAY_AUDIT_HAZARDS, 1));
  assert_null(assay_audit_operator(a, ASSAY_AUDIT_HAZARDS, 1));
  assert_null(assay_audit_kind(a, ASSAY_AUDIT_TOPIC_COUNT, 0));
  assert_int_equal(assay_audit_count(a, (assay_audit_topic_t)-1), 0);
  assert_string_equal(assay_audit_describe(a, ASSAY_AUDIT_HAZARDS, 1, text, sizeof text), "");
  assert_null(assay_audit_input_name(a, 1));
  fails(assay_audit_input_range(a, 1, &low, &high), ASSAY_INVALID_ARGUMENT, "no input 1");
  fails(assay_audit_value_range(a, "z", &low, &high), ASSAY_NOT_FOUND, "'z'");
  fails(assay_audit_value_range(a, "x", &low, &high), ASSAY_NOT_FOUND, "'x'");
  assay_audit_destroy(a);
}

// ---- the witness --------------------------------------------------------------------------------

static void a_witness_breaks_the_model(void** state) {
  (void)state;
  char path[] = "/tmp/assay_api_witness_XXXXXX";
  float x[2] = {0};
  close(mkstemp(path));
  assay_audit_t* a = audit_in(square, ASSAY_FORMAT_FP16, "1000");
  assert_true(assay_audit_has_witness(a));
  ok(assay_tensor_read(assay_audit_witness(a, 0), x, sizeof x));
  assert_true(fabsf(x[0]) > 255 || fabsf(x[1]) > 255);
  assert_null(assay_audit_witness(a, 1));
  fails(assay_audit_save_witness(a, "/nowhere/bad.npz"), ASSAY_NOT_FOUND, "/nowhere/bad.npz");
  ok(assay_audit_save_witness(a, path));
  char* text = NULL;
  ok(assay_audit_report(a, ASSAY_REPORT_TEXT, &in_full, assay_report_collect, &text));
  has(text, path);
  // It can be read again, as samples of the model.
  assay_model_t* m = load(square);
  assay_samples_t* samples = NULL;
  const char* files[] = {path};
  ok(assay_samples_load(m, 1, files, NULL, &samples));
  assert_int_equal(assay_samples_count(samples), 1);
  // Whose range is the box then, and whose shape is the input's.
  assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
  assay_audit_t* b = NULL;
  double low, high;
  o.samples = samples;
  o.no_witness = o.no_radius = true;
  ok(assay_audit_run(m, &o, &b));
  ok(assay_audit_input_range(b, 0, &low, &high));
  assert_true(low == fminf(x[0], x[1]) && high == fmaxf(x[0], x[1]));
  assert_string_equal(assay_audit_open_sizes(b), "");
  assert_true(isnan(assay_audit_safe_scale(b)));
  assert_false(assay_audit_has_witness(b));
  fails(assay_audit_save_witness(b, path), ASSAY_NOT_FOUND, "no witness");
  assay_audit_destroy(b);
  assay_samples_destroy(samples);
  assay_model_release(m);
  assay_audit_destroy(a);
  unlink(path);
}

// ---- what makes no sense ------------------------------------------------------------------------

static void what_makes_no_sense_is_refused(void** state) {
  (void)state;
  static const int64_t dims[] = {3, 2}, three[] = {3, 2, 1};
  const struct {
    assay_format_t precision, accumulator;
    const char *rules, *box;
    assay_input_shape_t shape;  // rank 0 and no name: none
    double seconds;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {ASSAY_FORMAT_INT4, 0, NULL, NULL, {0}, 1, ASSAY_INVALID_ARGUMENT, "the precision"},
      {(assay_format_t)99, 0, NULL, NULL, {0}, 1, ASSAY_INVALID_ARGUMENT, "the precision"},
      {ASSAY_FORMAT_INT8, 0, NULL, NULL, {0}, 1, ASSAY_UNSUPPORTED, "QuantizeLinear"},
      {0, ASSAY_FORMAT_INT8, NULL, NULL, {0}, 1, ASSAY_INVALID_ARGUMENT, "the accumulator"},
      {0, 0, "n", NULL, {0}, 1, ASSAY_INVALID_ARGUMENT, "PATTERN:FORMAT"},
      {0, 0, "m:fp16", NULL, {0}, 1, ASSAY_NOT_FOUND, "m"},
      {0, 0, NULL, "x=a", {0}, 1, ASSAY_INVALID_ARGUMENT, "box 'x=a'"},
      {0, 0, NULL, "y=1", {0}, 1, ASSAY_INVALID_ARGUMENT, "no such input"},
      {0, 0, NULL, "3:2", {0}, 1, ASSAY_INVALID_ARGUMENT, "box '3:2'"},
      {0, 0, NULL, NULL, {"z", 2, dims}, 1, ASSAY_INVALID_ARGUMENT, "no input 'z'"},
      {0, 0, NULL, NULL, {"x", 3, three}, 1, ASSAY_INVALID_ARGUMENT, "3 dimensions"},
      {0, 0, NULL, NULL, {"x", 2, NULL}, 1, ASSAY_INVALID_ARGUMENT, "no dimensions"},
      {0, 0, NULL, NULL, {NULL, 2, dims}, 1, ASSAY_INVALID_ARGUMENT, "no name"},
      {0, 0, NULL, NULL, {0}, -1, ASSAY_INVALID_ARGUMENT, "-1 seconds"},
      {0, 0, NULL, NULL, {0}, (double)NAN, ASSAY_INVALID_ARGUMENT, "nan seconds"},
  };
  assay_model_t* m = load(square);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
    assay_audit_t* a = NULL;
    o.precision = rows[i].precision;
    o.accumulator = rows[i].accumulator;
    o.layer_precision = rows[i].rules;
    o.boxes = &rows[i].box;
    o.n_boxes = rows[i].box != NULL;
    o.shapes = &rows[i].shape;
    o.n_shapes = rows[i].shape.rank > 0;
    o.seconds = rows[i].seconds;
    fails(assay_audit_run(m, &o, &a), rows[i].code, rows[i].word);
    assert_null(a);
  }
  // Samples of another model; a caller that knows of the precision only.
  assay_model_t* other = NULL;
  assay_samples_t* samples = NULL;
  assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
  assay_audit_t* a = NULL;
  ok(assay_model_load("models/small/cnn.onnx", &other));
  ok(assay_samples_random(other, 1, 0, NULL, &samples));
  o.samples = samples;
  fails(assay_audit_run(m, &o, &a), ASSAY_INVALID_ARGUMENT, "samples");
  o.precision = ASSAY_FORMAT_FP16;
  o.struct_size = offsetof(assay_audit_options_t, accumulator);
  o.accumulator = ASSAY_FORMAT_INT8;
  ok(assay_audit_run(m, &o, &a));
  assay_audit_destroy(a);
  assay_audit_destroy(NULL);
  assay_samples_destroy(samples);
  assay_model_release(other);
  assay_model_release(m);
}

// A model with an operator that nobody knows can be looked at, and not be run.
static void unknown_operators_are_not_run(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_session_t* s = NULL;
  assay_engine_t* e = NULL;
  fails(assay_model_load(strange, &m), ASSAY_UNSUPPORTED, "Frobnicate");
  m = load(strange);
  static const assay_run_mode_t modes[] = {ASSAY_RUN_NATIVE, ASSAY_RUN_TRUTH, ASSAY_RUN_PLAN};
  for (size_t i = 0; i < 3; i++) {
    assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
    static const float x[2] = {1, 2};
    static const int64_t dims[] = {1, 2};
    assay_tensor_t *in = floats(2, dims, x), *out = NULL;
    o.mode = modes[i];
    assay_status_t st = assay_session_create(m, &o, &s);
    if (!st) st = assay_session_run(s, 1, &in, 1, &out);
    fails(st, ASSAY_UNSUPPORTED, "Frobnicate");
    assay_session_destroy(s);
    assay_tensor_release(in);
    s = NULL;
  }
  fails(assay_engine_build(m, NULL, &e), ASSAY_UNSUPPORTED, "Frobnicate");
  assay_model_release(m);
}

// ---- sizes --------------------------------------------------------------------------------------

static void input_is(const assay_model_t* m, const char* wanted) {
  char type[64];
  ok(assay_model_input_type(m, 0, type, sizeof type));
  assert_string_equal(type, wanted);
}

// A model in other sizes: 0 as it is read, or of one that was read 1 without and 2 with others.
static assay_status_t sized_by(const assay_model_options_t* o, size_t way, assay_model_t** out) {
  assay_model_options_t first = ASSAY_MODEL_OPTIONS_INIT;
  assay_model_t* m = NULL;
  if (way == 0) return assay_model_load_with(square, o, out);
  first.batch = way == 2 ? 4 : 0;
  ok(assay_model_load_with(square, &first, &m));
  assay_status_t st = assay_model_resize(m, o, out);
  input_is(m, way == 2 ? "float[4, 2]" : "float[N, 2]");
  assay_model_release(m);
  return st;
}

static void models_take_sizes(void** state) {
  (void)state;
  static const int64_t dims[] = {5, 2}, wrong[] = {5, 3}, three[] = {5, -1, 2};
  const assay_input_shape_t right = {"x", 2, dims}, bad = {"x", 2, wrong}, longer = {"x", 3, three},
                            unnamed = {NULL, 2, dims};
  const assay_dim_size_t seven = {"N", 7}, zero = {"N", 0}, none = {"M", 7};
  const struct {
    const assay_input_shape_t* shape;
    const assay_dim_size_t* dim;
    int64_t batch;
    assay_code_t code;
    const char* word;  // the type of the input, or of the message
  } rows[] = {
      {NULL, NULL, 0, ASSAY_OK, "float[N, 2]"},
      {&right, NULL, 0, ASSAY_OK, "float[5, 2]"},
      {NULL, &seven, 0, ASSAY_OK, "float[7, 2]"},
      {NULL, NULL, 9, ASSAY_OK, "float[9, 2]"},
      {&right, NULL, 9, ASSAY_OK, "float[5, 2]"},
      {&bad, NULL, 0, ASSAY_INVALID_ARGUMENT, "cannot be 3"},
      {&longer, NULL, 0, ASSAY_INVALID_ARGUMENT, "3 dimensions"},
      {&unnamed, NULL, 0, ASSAY_INVALID_ARGUMENT, "no name"},
      {NULL, &zero, 0, ASSAY_INVALID_ARGUMENT, "below 1"},
      {NULL, &none, 0, ASSAY_INVALID_ARGUMENT, "M"},
      {&right, &seven, 0, ASSAY_INVALID_ARGUMENT, "N"},
      {NULL, NULL, -1, ASSAY_INVALID_ARGUMENT, "a batch of -1"},
  };
  for (size_t i = 0; i < 3 * (sizeof rows / sizeof *rows); i++) {
    const size_t row = i / 3;
    assay_model_options_t o = ASSAY_MODEL_OPTIONS_INIT;
    o.shapes = rows[row].shape;
    o.n_shapes = rows[row].shape != NULL;
    o.dims = rows[row].dim;
    o.n_dims = rows[row].dim != NULL;
    o.batch = rows[row].batch;
    assay_model_t* m = NULL;
    assay_status_t st = sized_by(&o, i % 3, &m);
    if (rows[row].code) {
      fails(st, rows[row].code, rows[row].word);
      continue;
    }
    ok(st);
    input_is(m, rows[row].word);
    assert_string_equal(assay_model_path(m), square);
    assert_true(assay_model_batch_used(m) == (rows[row].batch == 9 && !rows[row].shape));
    assay_model_release(m);
  }
}

// An engine's model was not read: it has the sizes that the engine was built for.
static void models_of_engines_keep_their_sizes(void** state) {
  (void)state;
  assay_engine_options_t built = ASSAY_ENGINE_OPTIONS_INIT;
  assay_model_options_t o = ASSAY_MODEL_OPTIONS_INIT;
  const assay_dim_size_t seven = {"N", 7};
  assay_model_t *m = NULL, *of_engine, *resized = NULL;
  assay_engine_t* e = NULL;
  ok(assay_model_load(square, &m));
  built.batch = 4;
  ok(assay_engine_build(m, &built, &e));
  of_engine = assay_engine_model(e);
  o.batch = 9;
  ok(assay_model_resize(of_engine, &o, &resized));
  input_is(resized, "float[4, 2]");
  assert_false(assay_model_batch_used(resized));
  assay_model_release(resized);
  ok(assay_model_resize(of_engine, NULL, &resized));
  input_is(resized, "float[4, 2]");
  assay_model_release(resized);
  o.dims = &seven;
  o.n_dims = 1;
  fails(assay_model_resize(of_engine, &o, &resized), ASSAY_INVALID_ARGUMENT, "'N'");
  assay_model_release(of_engine);
  assay_engine_release(e);
  assay_model_release(m);
}

// The sizes that are given are asked back: whether a batch was used, what is open.
static void models_tell_their_open_sizes(void** state) {
  (void)state;
  static const int64_t dims[] = {5, 2};
  const assay_input_shape_t shape = {"x", 2, dims};
  const struct {
    const assay_input_shape_t* shape;
    int64_t batch;
    bool used;
    const char* open;
  } rows[] = {
      {NULL, 0, false, "'N'"}, {NULL, 3, true, ""}, {&shape, 0, false, ""}, {&shape, 3, false, ""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_model_options_t o = ASSAY_MODEL_OPTIONS_INIT;
    assay_model_t* m = NULL;
    char* open = NULL;
    o.shapes = rows[i].shape;
    o.n_shapes = rows[i].shape != NULL;
    o.batch = rows[i].batch;
    ok(assay_model_load_with(square, &o, &m));
    ok(assay_model_open_sizes(m, &open));
    if (assay_model_batch_used(m) != rows[i].used || strcmp(open, rows[i].open) != 0)
      fail_msg("row %zu: used %d, open '%s'", i, assay_model_batch_used(m), open);
    assay_text_free(open);
    assay_model_release(m);
  }
}

// An audit takes sizes as a model does, for its ranges only.
static void audits_take_sizes(void** state) {
  (void)state;
  static const int64_t dims[] = {5, 2};
  static const assay_input_shape_t shape = {"x", 2, dims};
  static const assay_dim_size_t seven = {"N", 7}, zero = {"N", 0}, none = {"M", 7};
  const struct {
    const assay_input_shape_t* shape;
    const assay_dim_size_t* dim;
    int64_t batch;
    assay_code_t code;
    const char* word;  // the open sizes, or of the message
    int64_t rows;      // of the witness
    bool used;
  } rows[] = {
      {NULL, NULL, 0, ASSAY_OK, "'N'", 1, false},
      {&shape, NULL, 0, ASSAY_OK, "", 5, false},
      {NULL, &seven, 0, ASSAY_OK, "", 7, false},
      {NULL, NULL, 9, ASSAY_OK, "", 9, true},
      {NULL, &zero, 0, ASSAY_INVALID_ARGUMENT, "below 1", 0, false},
      {NULL, &none, 0, ASSAY_INVALID_ARGUMENT, "M", 0, false},
      {NULL, NULL, -1, ASSAY_INVALID_ARGUMENT, "a batch of -1", 0, false},
  };
  assay_model_t* m = load(square);
  const char* box = "x=1000";
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
    assay_audit_t* a = NULL;
    o.precision = ASSAY_FORMAT_FP16;
    o.boxes = &box;
    o.n_boxes = 1;
    o.shapes = rows[i].shape;
    o.n_shapes = rows[i].shape != NULL;
    o.dims = rows[i].dim;
    o.n_dims = rows[i].dim != NULL;
    o.batch = rows[i].batch;
    assay_status_t st = assay_audit_run(m, &o, &a);
    if (rows[i].code) {
      fails(st, rows[i].code, rows[i].word);
      continue;
    }
    ok(st);
    assert_string_equal(assay_audit_open_sizes(a), rows[i].word);
    assert_int_equal(assay_audit_batch_used(a), rows[i].used);
    assert_int_equal(assay_tensor_dims(assay_audit_witness(a, 0))[0], rows[i].rows);
    assay_audit_destroy(a);
  }
  assay_model_release(m);
}

// ---- allocations --------------------------------------------------------------------------------

static assay_status_t audit_and_report(void) {
  assay_model_t* m = NULL;
  assay_audit_t* a = NULL;
  char* text = NULL;
  const char* box = "x=1000";
  assay_audit_options_t o = ASSAY_AUDIT_OPTIONS_INIT;
  o.precision = ASSAY_FORMAT_FP16;
  o.boxes = &box;
  o.n_boxes = 1;
  o.seconds = 1000;
  assay_status_t st = assay_model_load(square, &m);
  if (!st) st = assay_audit_run(m, &o, &a);
  if (!st) st = assay_audit_report(a, ASSAY_REPORT_TEXT, &in_full, assay_report_collect, &text);
  assay_text_free(text);
  text = NULL;
  if (!st) st = assay_audit_report(a, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text);
  assay_text_free(text);
  assay_audit_destroy(a);
  assay_model_release(m);
  return st;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  allocations_fail(audit_and_report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(verdicts_follow_the_box),
      cmocka_unit_test(findings_name_node_and_kind),
      cmocka_unit_test(a_witness_breaks_the_model),
      cmocka_unit_test(what_makes_no_sense_is_refused),
      cmocka_unit_test(unknown_operators_are_not_run),
      cmocka_unit_test(models_take_sizes),
      cmocka_unit_test(models_of_engines_keep_their_sizes),
      cmocka_unit_test(models_tell_their_open_sizes),
      cmocka_unit_test(audits_take_sizes),
      cmocka_unit_test(every_allocation_may_fail),
  };
  close(mkstemp(square));
  close(mkstemp(strange));
  write_node_model(square, "", "Mul");
  write_node_model(strange, "com.example", "Frobnicate");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(square);
  unlink(strange);
  return failed;
}
