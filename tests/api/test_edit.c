// Edits by the public API: what there is, what a new model is, proofs, requests that make no sense.
#include "node_model.h"

static const assay_edit_report_options_t all = {sizeof all, NULL, true};

static assay_model_t* load(const char* name) {
  char path[128];
  assay_model_t* m = NULL;
  snprintf(path, sizeof path, "models/small/%s.onnx", name);
  ok(assay_model_load(path, &m));
  return m;
}

// ---- the list -----------------------------------------------------------------------------------

static void edits_and_their_options_are_listed(void** state) {
  (void)state;
  static const struct {
    const char *edit, *option, *value;
    bool repeats;
  } rows[] = {{"extract", "to", "VALUE", true},      {"cast", "to", "FORMAT", false},
              {"quantize", "per-tensor", "", false}, {"quantize", "nodes", "PATTERN", true},
              {"quantize", "residuals", "", false},  {"decompose", "op", "NAME", true},
              {"assemble", "op", "NAME", true},      {"broadcasts", "numbers", "", false},
              {"sanitize", "no-fold", "", false},    {"rename", "value", "OLD=NEW", true},
              {"set", "opset", "N", false},          {"quantize", "percentile", "P", false},
              {"quantize", "calib", "FILE", false}};
  size_t n_edits = 0;
  for (; assay_edit_name(n_edits); n_edits++) {
    assert_true(*assay_edit_summary(n_edits));
    const char* name;
    for (size_t k = 0; (name = assay_edit_option_name(n_edits, k)); k++) {
      assert_true(*assay_edit_option_help(n_edits, k));
      // A flag cannot be given again, and no name is there twice.
      assert_false(!*assay_edit_option_value(n_edits, k) && assay_edit_option_repeats(n_edits, k));
      for (size_t j = 0; j < k; j++)
        assert_string_not_equal(name, assay_edit_option_name(n_edits, j));
    }
  }
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    bool found = false;
    for (size_t i = 0; i < n_edits; i++)
      for (size_t k = 0; assay_edit_option_name(i, k); k++)
        if (!strcmp(assay_edit_name(i), rows[r].edit) &&
            !strcmp(assay_edit_option_name(i, k), rows[r].option))
          found = !strcmp(assay_edit_option_value(i, k), rows[r].value) &&
                  assay_edit_option_repeats(i, k) == rows[r].repeats;
    if (!found) fail_msg("%s: no option '%s' like that", rows[r].edit, rows[r].option);
  }
  assert_null(assay_edit_summary(n_edits));
  assert_null(assay_edit_option_name(n_edits, 0));
  assert_null(assay_edit_option_value(0, 99));
  assert_null(assay_edit_option_help(0, 99));
  assert_false(assay_edit_option_repeats(0, 99));
}

// ---- verdicts -----------------------------------------------------------------------------------

static void edits_are_proven(void** state) {
  (void)state;
  static const struct {
    const char *model, *edit, *option, *value;
    bool no_proof, force;
    assay_edit_verdict_t verdict;
    bool kept, may_write;
    const char* text;
  } rows[] = {
      {"cnn", "sanitize", NULL, NULL, false, false, ASSAY_EDIT_UNCHANGED, true, true, "UNCHANGED"},
      {"cnn", "cast", "to", "bf16", false, false, ASSAY_EDIT_ROUNDED, true, true, "ROUNDED"},
      // An epsilon becomes 0 there.
      {"cnn", "cast", "to", "fp16", false, false, ASSAY_EDIT_CHANGED, false, false, "CHANGED"},
      {"cnn", "cast", "to", "fp16", false, true, ASSAY_EDIT_CHANGED, false, true, "CHANGED"},
      {"cnn", "cast", "to", "fp16", true, false, ASSAY_EDIT_NOT_PROVEN, false, true, "NOT PROVEN"},
      {"cnn", "rename", "value", "image=picture", false, false, ASSAY_EDIT_UNCHANGED, true, true,
       "rename"},
      {"cnn", "quantize", NULL, NULL, false, false, ASSAY_EDIT_CHANGED, true, true, "CHANGED"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_model_t *m = load(rows[i].model), *made = NULL;
    const assay_edit_request_t request = {rows[i].option, rows[i].value};
    assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
    assay_edited_t* e = NULL;
    char* text = NULL;
    o.requests = &request;
    o.n_requests = rows[i].option != NULL;
    o.no_proof = rows[i].no_proof;
    o.force = rows[i].force;
    ok(assay_edit_run(m, rows[i].edit, &o, &e));
    assay_model_release(m);
    if (assay_edited_verdict(e) != rows[i].verdict ||
        assay_edited_kept_promise(e) != rows[i].kept ||
        assay_edited_may_write(e) != rows[i].may_write)
      fail_msg("row %zu: %s", i, assay_edit_verdict_name(assay_edited_verdict(e)));
    ok(assay_edited_report(e, ASSAY_REPORT_TEXT, &all, assay_report_collect, &text));
    has(text, rows[i].text);
    ok(assay_edited_report(e, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
    has(text, "\"schema\": \"assay.edit/1\"");
    assert_int_equal(!*assay_edited_why_not_proven(e), !rows[i].no_proof);
    assert_int_equal(assay_edited_output_count(e) == 0, rows[i].no_proof);
    if (rows[i].may_write) {
      ok(assay_edited_model(e, &made));
      assert_int_equal(assay_model_output_count(made), 1);
    } else {
      fails(assay_edited_model(e, &made), ASSAY_UNSUPPORTED, "set force");
    }
    assay_model_release(made);
    assay_edited_destroy(e);
  }
  assert_null(assay_edit_verdict_name((assay_edit_verdict_t)4));
}

static void outputs_say_how_far_they_moved(void** state) {
  (void)state;
  assay_model_t* m = load("cnn");
  const assay_edit_request_t to = {"to", "bf16"};
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  assay_edited_t* e = NULL;
  o.requests = &to;
  o.n_requests = 1;
  ok(assay_edit_run(m, "cast", &o, &e));
  assert_int_equal(assay_edited_output_count(e), 1);
  assert_string_equal(assay_edited_output_name(e, 0), assay_model_output_name(m, 0));
  const double moved = assay_edited_output_moved(e, 0), scale = assay_edited_output_scale(e, 0);
  assert_true(moved > 0 && moved < 0.1 * scale);
  assert_true(assay_edited_changes(e) > 0 && *assay_edited_done(e));
  assert_non_null(assay_edited_notes(e));
  assert_null(assay_edited_output_name(e, 1));
  assert_true(isnan(assay_edited_output_moved(e, 1)) && isnan(assay_edited_output_scale(e, 1)));
  assay_edited_destroy(e);
  assay_model_release(m);
}

// ---- models -------------------------------------------------------------------------------------

// An edit of an edited model, which is run, written and read again.
static void edits_follow_each_other(void** state) {
  (void)state;
  char path[] = "/tmp/assay_api_edit_XXXXXX";
  close(mkstemp(path));
  static const assay_edit_request_t rename[] = {{"value", "image=picture"}, {"node", "conv=first"}};
  assay_model_t *m = load("cnn"), *renamed = NULL, *cast = NULL, *again = NULL;
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  assay_edited_t* e = NULL;
  o.requests = rename;
  o.n_requests = 2;
  ok(assay_edit_run(m, "rename", &o, &e));
  ok(assay_edited_model(e, &renamed));
  assay_edited_destroy(e);
  assert_string_equal(assay_model_input_name(m, 0), "image");
  assert_string_equal(assay_model_input_name(renamed, 0), "picture");
  const assay_edit_request_t half[] = {{"to", "fp16"}, {"not-nodes", "norm/*"}};
  o.requests = half;
  ok(assay_edit_run(renamed, "cast", &o, &e));
  fails(assay_edited_write(e, "/nowhere/x.onnx"), ASSAY_NOT_FOUND, "/nowhere/");
  ok(assay_edited_write(e, path));
  char* text = NULL;
  ok(assay_edited_report(e, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
  has(text, path);
  ok(assay_edited_model(e, &cast));
  ok(assay_model_load(path, &again));
  assert_string_equal(assay_model_input_name(again, 0), "picture");
  ok(assay_model_save(cast, path));
  assay_model_release(again);
  ok(assay_model_load(path, &again));
  assert_string_equal(assay_model_input_name(again, 0), "picture");
  assay_session_t* s = NULL;
  assay_samples_t* samples = NULL;
  ok(assay_samples_random(again, 1, 0, NULL, &samples));
  assay_tensor_t *in = assay_samples_tensor(samples, 0, 0), *out = NULL;
  ok(assay_session_create(again, NULL, &s));
  ok(assay_session_run(s, 1, &in, 1, &out));
  assay_tensor_release(out);
  assay_session_destroy(s);
  assay_samples_destroy(samples);
  assay_edited_destroy(e);
  assay_model_release(again);
  assay_model_release(cast);
  assay_model_release(renamed);
  assay_model_release(m);
  unlink(path);
}

// ---- what makes no sense ------------------------------------------------------------------------

static void what_makes_no_sense_is_refused(void** state) {
  (void)state;
  static const struct {
    const char* edit;
    assay_edit_request_t requests[2];
    size_t n;
    int n_samples;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {"cats", {{0}}, 0, 1, ASSAY_NOT_FOUND, "no edit 'cats'; did you mean 'cast'?"},
      {"cast", {{"too", "fp16"}}, 1, 1, ASSAY_NOT_FOUND, "no option 'too'; did you mean 'to'?"},
      {"cast", {{"per-tensor", NULL}}, 1, 1, ASSAY_NOT_FOUND, "no option 'per-tensor'"},
      {"cast", {{NULL, "fp16"}}, 1, 1, ASSAY_INVALID_ARGUMENT, "no option"},
      {"cast", {{"to", NULL}}, 1, 1, ASSAY_INVALID_ARGUMENT, "needs a value: FORMAT"},
      {"cast", {{"to", "fp16"}, {"to", "bf16"}}, 2, 1, ASSAY_INVALID_ARGUMENT, "given twice"},
      {"cast", {{"to", "fp17"}}, 1, 1, ASSAY_INVALID_ARGUMENT, "fp17"},
      {"cast", {{"to", "fp16"}, {"nodes", "nothing*"}}, 2, 1, ASSAY_NOT_FOUND, "nothing*"},
      {"set", {{"opset", "a"}}, 1, 1, ASSAY_INVALID_ARGUMENT, "'a' is not a number"},
      {"set", {{"opset", "99999999999999999999"}}, 1, 1, ASSAY_INVALID_ARGUMENT, "not a number"},
      {"quantize", {{"percentile", "x"}}, 1, 1, ASSAY_INVALID_ARGUMENT, "'x' is not a number"},
      {"quantize", {{"calib", "/nowhere"}}, 1, 1, ASSAY_NOT_FOUND, "/nowhere"},
      {"quantize", {{"calib", "models/small/cnn.onnx"}}, 1, 1, ASSAY_CORRUPT, "cnn.onnx"},
      {"sanitize", {{0}}, 0, -1, ASSAY_INVALID_ARGUMENT, "-1 samples"},
  };
  assay_model_t* m = load("cnn");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
    assay_edited_t* e = NULL;
    o.requests = rows[i].requests;
    o.n_requests = rows[i].n;
    o.n_samples = rows[i].n_samples;
    fails(assay_edit_run(m, rows[i].edit, &o, &e), rows[i].code, rows[i].word);
    assert_null(e);
  }
  // A shape that is of no input.
  static const int64_t dims[] = {1};
  const assay_input_shape_t shapes[] = {{"picture", 1, dims}, {NULL, 1, dims}, {"image", 1, NULL}};
  static const char* const words[] = {"no input 'picture'", "no name", "no dimensions"};
  for (size_t i = 0; i < 3; i++) {
    assay_edit_options_t shaped = ASSAY_EDIT_OPTIONS_INIT;
    assay_edited_t* none = NULL;
    shaped.shapes = &shapes[i];
    shaped.n_shapes = 1;
    fails(assay_edit_run(m, "sanitize", &shaped, &none), ASSAY_INVALID_ARGUMENT, words[i]);
  }
  // Samples of another model; a caller that knows of the requests only.
  assay_model_t* other = load("if_sequence");
  assay_samples_t* samples = NULL;
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  assay_edited_t* e = NULL;
  ok(assay_samples_random(m, 1, 0, NULL, &samples));
  o.samples = samples;
  fails(assay_edit_run(other, "sanitize", &o, &e), ASSAY_INVALID_ARGUMENT, "samples");
  o.struct_size = offsetof(assay_edit_options_t, samples);
  ok(assay_edit_run(other, "sanitize", &o, &e));
  assay_edited_destroy(e);
  assay_edited_destroy(NULL);
  assay_samples_destroy(samples);
  assay_model_release(other);
  assay_model_release(m);
}

// A square of 1000 is past fp16's range: the edit breaks its promise, and its model is kept back
// unless it is to be forced.
static void what_moved_too_far_is_kept_back(void** state) {
  (void)state;
  char path[] = "/tmp/assay_api_square_XXXXXX";
  static const char* const names[] = {"x"};
  static const float x[] = {1, 1000};
  static const int64_t dims[] = {1, 2};
  const assay_edit_request_t to = {"to", "fp16"};
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  assay_model_t *m = NULL, *made = NULL;
  assay_samples_t* samples = NULL;
  assay_tensor_t* t = floats(2, dims, x);
  close(mkstemp(path));
  write_node_model(path, "", "Mul");
  ok(assay_model_load(path, &m));
  ok(assay_samples_create(m, 1, 1, names, &t, NULL, &samples));
  o.requests = &to;
  o.n_requests = 1;
  o.samples = samples;
  for (int force = 0; force < 2; force++) {
    assay_edited_t* e = NULL;
    o.force = force;
    ok(assay_edit_run(m, "cast", &o, &e));
    assert_int_equal(assay_edited_verdict(e), ASSAY_EDIT_CHANGED);
    assert_false(assay_edited_kept_promise(e));
    assert_int_equal(assay_edited_may_write(e), force);
    if (force) {
      ok(assay_edited_model(e, &made));
    } else {
      fails(assay_edited_model(e, &made), ASSAY_UNSUPPORTED, "set force");
      fails(assay_edited_write(e, path), ASSAY_UNSUPPORTED, "set force");
    }
    assay_edited_destroy(e);
  }
  assay_model_release(made);
  assay_samples_destroy(samples);
  assay_tensor_release(t);
  assay_model_release(m);
  unlink(path);
}

// ---- allocations --------------------------------------------------------------------------------

static assay_status_t edit_and_report(void) {
  static const assay_edit_request_t requests[] = {{"to", "fp16"}, {"not-nodes", "norm/*"}};
  assay_model_t *m = NULL, *made = NULL;
  assay_edited_t* e = NULL;
  char* text = NULL;
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  o.requests = requests;
  o.n_requests = 2;
  assay_status_t st = assay_model_load("models/small/cnn.onnx", &m);
  if (!st) st = assay_edit_run(m, "cast", &o, &e);
  // A proof that cannot be had for want of memory is not a failure: the model is kept back.
  if (!st && !assay_edited_may_write(e)) {
    assert_int_equal(assay_edited_verdict(e), ASSAY_EDIT_NOT_PROVEN);
    assay_edited_destroy(e);
    assay_model_release(m);
    return NULL;
  }
  if (!st) st = assay_edited_model(e, &made);
  if (!st) st = assay_edited_report(e, ASSAY_REPORT_TEXT, &all, assay_report_collect, &text);
  assay_text_free(text);
  text = NULL;
  if (!st) st = assay_edited_report(e, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text);
  assay_text_free(text);
  assay_model_release(made);
  assay_edited_destroy(e);
  assay_model_release(m);
  return st;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  allocations_fail(edit_and_report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(edits_and_their_options_are_listed),
      cmocka_unit_test(edits_are_proven),
      cmocka_unit_test(outputs_say_how_far_they_moved),
      cmocka_unit_test(edits_follow_each_other),
      cmocka_unit_test(what_makes_no_sense_is_refused),
      cmocka_unit_test(what_moved_too_far_is_kept_back),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
