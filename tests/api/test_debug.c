// Experiments by the public API: layers that need more precision, batches, passes, tactics.
#include "api_case.h"
#include "node_model.h"

static char folder[] = "/tmp/assay_api_debug_XXXXXX";

static const char* in_folder(const char* name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

// y = x + x: past 65504 if x is 40000, where fp16 ends.
static assay_model_t* sum_model(void) {
  assay_model_t* m = NULL;
  write_node_model(in_folder("sum.onnx"), "", "Add");
  ok(assay_model_load(in_folder("sum.onnx"), &m));
  return m;
}

static assay_status_t make_samples(assay_model_t* m, float x, assay_samples_t** out) {
  static const char* const name = "x";
  static const int64_t dims[] = {1, 2};
  const float both[] = {x, 1};
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_tensor_make(ASSAY_TYPE_FLOAT, 2, dims, both, sizeof both, &t);
  if (!st) st = assay_samples_create(m, 1, 1, &name, &t, NULL, out);
  assay_tensor_release(t);
  return st;
}

static assay_samples_t* samples_of(assay_model_t* m, float x) {
  assay_samples_t* s = NULL;
  ok(make_samples(m, x, &s));
  return s;
}

static assay_debug_t* in_fp16(assay_model_t* m) {
  assay_debug_options_t o = ASSAY_DEBUG_OPTIONS_INIT;
  assay_debug_t* d = NULL;
  o.precision = ASSAY_FORMAT_FP16;
  ok(assay_debug_create(m, &o, &d));
  return d;
}

// ---- precision ----------------------------------------------------------------------------------

static void layers_that_need_more_are_found(void** state) {
  (void)state;
  static const assay_precision_mode_t modes[] = {ASSAY_PRECISION_ACCOUNT, ASSAY_PRECISION_BISECT,
                                                 ASSAY_PRECISION_LINEAR};
  assay_model_t* m = sum_model();
  assay_samples_t* inputs = samples_of(m, 40000);
  assay_debug_t* d = in_fp16(m);
  assay_debug_report_options_t names = ASSAY_DEBUG_REPORT_OPTIONS_INIT;
  names.model = "of-mine.onnx";
  assert_true(assay_debug_has_precision(d));
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    assay_precision_search_options_t o = ASSAY_PRECISION_SEARCH_OPTIONS_INIT;
    assay_precision_search_t* s = NULL;
    char* text = NULL;
    o.mode = modes[i];
    ok(assay_debug_precision(d, &o, inputs, NULL, &s));
    assert_false(assay_precision_search_enough(s));
    assert_true(assay_precision_search_found(s));
    assert_int_equal(assay_precision_search_node_count(s), 1);
    assert_string_equal(assay_precision_search_node(s, 0), "n");
    assert_null(assay_precision_search_node(s, 1));
    assert_int_equal(assay_precision_search_format(s), ASSAY_FORMAT_FP32);
    assert_true(assay_precision_search_runs(s) >= 1);
    ok(assay_precision_search_report(s, ASSAY_REPORT_TEXT, &names, assay_report_collect, &text));
    has(text, "FIXED  of-mine.onnx in fp16 on emu: 1 of 1 layers in fp32");
    ok(assay_precision_search_report(s, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
    has(text, "assay.debug.precision/1");
    fails(assay_precision_search_report(s, ASSAY_REPORT_PAGE, NULL, assay_report_collect, &text),
          ASSAY_UNSUPPORTED, "page");
    assay_precision_search_destroy(s);
  }
  assay_debug_release(d);
  assay_samples_destroy(inputs);
  assay_model_release(m);
}

// The result stays when all that it came from is gone, and writes what was found.
static void files_are_written(void** state) {
  (void)state;
  char path[128], line[512], all[2048] = "";
  assay_model_t *m = sum_model(), *mixed = NULL;
  assay_samples_t* inputs = samples_of(m, 40000);
  assay_debug_t* d = in_fp16(m);
  assay_precision_search_t* s = NULL;
  assay_session_t* session = NULL;
  assay_tensor_t *in = NULL, *y = NULL;
  double x[2];
  ok(assay_debug_precision(d, NULL, inputs, NULL, &s));
  assay_debug_release(d);
  assay_samples_destroy(inputs);
  assay_model_release(m);
  snprintf(path, sizeof path, "%s", in_folder("mixed.onnx"));
  ok(assay_precision_search_write_model(s, path));
  ok(assay_model_load(path, &mixed));
  inputs = samples_of(mixed, 40000);
  ok(assay_session_create(mixed, NULL, &session));
  in = assay_samples_tensor(inputs, 0, 0);
  ok(assay_session_run(session, 1, &in, 1, &y));
  ok(assay_tensor_read_f64(y, x, 2));
  assert_true(x[0] == 80000 && x[1] == 2);
  snprintf(path, sizeof path, "%s", in_folder("fix.txt"));
  ok(assay_precision_search_write_options(s, path));
  FILE* f = fopen(path, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) strncat(all, line, sizeof all - strlen(all) - 1);
  fclose(f);
  assert_non_null(strstr(all, "n:fp32"));
  assay_tensor_release(y);
  assay_session_destroy(session);
  assay_samples_destroy(inputs);
  assay_model_release(mixed);
  assay_precision_search_destroy(s);
}

static void a_model_may_be_enough(void** state) {
  (void)state;
  assay_model_t* m = sum_model();
  assay_samples_t* inputs = samples_of(m, 3);
  assay_debug_t* d = in_fp16(m);
  assay_precision_search_t* s = NULL;
  ok(assay_debug_precision(d, NULL, inputs, NULL, &s));
  assert_true(assay_precision_search_enough(s));
  assert_false(assay_precision_search_found(s));
  assert_int_equal(assay_precision_search_node_count(s), 0);
  assert_null(assay_precision_search_node(s, 0));
  fails(assay_precision_search_write_model(s, in_folder("none.onnx")), ASSAY_NOT_FOUND,
        "no layers");
  fails(assay_precision_search_write_options(s, in_folder("none.txt")), ASSAY_NOT_FOUND,
        "no layers");
  assay_precision_search_destroy(s);
  assay_precision_search_destroy(NULL);
  assay_debug_release(d);
  assay_debug_release(NULL);
  assay_samples_destroy(inputs);
  assay_model_release(m);
}

static void precision_options_that_make_no_sense_are_refused(void** state) {
  (void)state;
  static const struct {
    assay_precision_search_options_t o;
    const char* word;
  } rows[] = {
      {{.mode = (assay_precision_mode_t)3}, "mode 3"},
      {{.from_end = true}, "BISECT"},
      {{.rebuild = "m.onnx"}, "BISECT"},
      {{.mode = ASSAY_PRECISION_LINEAR, .as_asked = true}, "as_asked"},
  };
  assay_model_t* m = sum_model();
  assay_samples_t* inputs = samples_of(m, 3);
  assay_debug_t* d = in_fp16(m);
  assay_precision_search_t* s = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_precision_search_options_t o = rows[i].o;
    o.struct_size = sizeof o;
    fails(assay_debug_precision(d, &o, inputs, NULL, &s), ASSAY_INVALID_ARGUMENT, rows[i].word);
  }
  assert_null(s);
  assay_debug_release(d);
  assay_samples_destroy(inputs);
  assay_model_release(m);
}

// ---- batch, passes, tactics ---------------------------------------------------------------------

static void a_sum_does_not_depend_on_its_batch(void** state) {
  (void)state;
  assay_model_t* m = sum_model();
  assay_samples_t* inputs = samples_of(m, 3);
  assay_debug_t* d = in_fp16(m);
  assay_batch_search_options_t o = ASSAY_BATCH_SEARCH_OPTIONS_INIT;
  assay_batch_node_t node = ASSAY_BATCH_NODE_INIT;
  assay_batch_search_t* s = NULL;
  char* text = NULL;
  o.axis = "7";
  fails(assay_debug_batch(d, &o, inputs, &s), ASSAY_INVALID_ARGUMENT, "7");
  o.axis = "N";
  o.command = "engine {inputs}";
  fails(assay_debug_batch(d, &o, inputs, &s), ASSAY_INVALID_ARGUMENT, "{outputs}");
  o.command = "engine {inputs} {outputs}";
  fails(assay_debug_batch(d, &o, inputs, &s), ASSAY_INVALID_ARGUMENT, "path of the model");
  o.command = NULL;
  assert_null(s);
  ok(assay_debug_batch(d, &o, inputs, &s));
  assay_debug_release(d);
  assert_int_equal(assay_batch_search_verdict(s), ASSAY_BATCH_SOUND);
  assert_string_equal(assay_batch_verdict_name(assay_batch_search_verdict(s)), "sound");
  assert_true(assay_batch_search_runs(s) > 3);
  assert_int_equal(assay_batch_search_node_count(s), 0);
  fails(assay_batch_search_node(s, 0, &node), ASSAY_INVALID_ARGUMENT, "node 0");
  ok(assay_batch_search_report(s, ASSAY_REPORT_TEXT, NULL, assay_report_collect, &text));
  has(text, "SOUND  model in fp16 on emu");
  ok(assay_batch_search_report(s, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
  has(text, "assay.debug.batch/1");
  assay_batch_search_destroy(s);
  assay_batch_search_destroy(NULL);
  assay_samples_destroy(inputs);
  assay_model_release(m);
}

// A sum over all rows is of the batch.
static void a_node_that_mixes_samples_is_named(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_samples_t* inputs = NULL;
  assay_debug_t* d = NULL;
  assay_batch_search_t* s = NULL;
  size_t guilty = 0;
  ok(assay_model_load("models/small/if_sequence.onnx", &m));
  ok(assay_samples_random(m, 1, 0, NULL, &inputs));
  ok(assay_debug_create(m, NULL, &d));
  ok(assay_debug_batch(d, NULL, inputs, &s));
  assert_int_equal(assay_batch_search_verdict(s), ASSAY_BATCH_MODEL);
  for (size_t i = 0; i < assay_batch_search_node_count(s); i++) {
    assay_batch_node_t node = ASSAY_BATCH_NODE_INIT;
    ok(assay_batch_search_node(s, i, &node));
    if (!node.guilty) continue;
    guilty++;
    assert_true(node.in_truth && !node.rounding && *node.name && *node.op && *node.why);
  }
  assert_int_equal(guilty, 1);
  assay_batch_search_destroy(s);
  assay_debug_release(d);
  assay_samples_destroy(inputs);
  assay_model_release(m);
}

static assay_debug_t* on_cpu(assay_model_t* m, assay_fusion_t fusion) {
  assay_debug_options_t o = ASSAY_DEBUG_OPTIONS_INIT;
  assay_debug_t* d = NULL;
  o.target = "cpu";
  o.fusion = fusion;
  ok(assay_debug_create(m, &o, &d));
  return d;
}

static void passes_of_a_cnn_are_innocent(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_samples_t* inputs = NULL;
  assay_pass_search_t* s = NULL;
  assay_pass_step_t step = ASSAY_PASS_STEP_INIT;
  char* text = NULL;
  ok(assay_model_load("models/small/cnn.onnx", &m));
  ok(assay_samples_random(m, 1, 0, NULL, &inputs));
  assay_debug_t* d = on_cpu(m, ASSAY_FUSION_OFF);
  fails(assay_debug_passes(d, inputs, NULL, &s), ASSAY_INVALID_ARGUMENT, "fused");
  assert_null(s);
  assay_debug_release(d);
  d = on_cpu(m, ASSAY_FUSION_TARGET);
  ok(assay_debug_passes(d, inputs, NULL, &s));
  assay_debug_release(d);
  const size_t n = assay_pass_search_count(s);
  assert_true(n > 1);
  assert_int_equal(assay_pass_search_guilty(s), n);
  for (size_t i = 0; i < n; i++) {
    ok(assay_pass_search_step(s, i, &step));
    assert_true(!step.pass == !i);
    assert_true(step.effect < ASSAY_EFFECT_ENGINE && step.faithful && step.layers > 0);
    assert_true(*assay_pass_effect_name(step.effect));
  }
  // A caller whose struct ends before `effect` gets no more.
  step = (assay_pass_step_t){.struct_size = offsetof(assay_pass_step_t, effect),
                             .effect = ASSAY_EFFECT_TRUTH};
  ok(assay_pass_search_step(s, 1, &step));
  assert_true(step.pass && step.effect == ASSAY_EFFECT_TRUTH);
  fails(assay_pass_search_step(s, n, &step), ASSAY_INVALID_ARGUMENT, "step");
  assert_int_equal(assay_pass_search_node_count(s), 0);
  assert_null(assay_pass_search_node(s, 0));
  ok(assay_pass_search_report(s, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
  has(text, "assay.debug.passes/1");
  assay_pass_search_destroy(s);
  assay_pass_search_destroy(NULL);
  assay_samples_destroy(inputs);
  assay_model_release(m);
}

static void tactics_of_a_cnn_are_sound(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_samples_t* inputs = NULL;
  assay_tactic_search_t* s = NULL;
  assay_tactic_search_options_t o = ASSAY_TACTIC_SEARCH_OPTIONS_INIT;
  size_t chosen = 0;
  char* text = NULL;
  ok(assay_model_load("models/small/cnn.onnx", &m));
  ok(assay_samples_random(m, 1, 0, NULL, &inputs));
  assay_debug_t* d = in_fp16(m);
  fails(assay_debug_tactics(d, &o, inputs, &s), ASSAY_UNSUPPORTED, "");
  assay_debug_release(d);
  d = on_cpu(m, ASSAY_FUSION_TARGET);
  o.layer = "nosuch";
  fails(assay_debug_tactics(d, &o, inputs, &s), ASSAY_NOT_FOUND, "nosuch");
  assert_null(s);
  o.layer = NULL;
  o.untimed = true;
  ok(assay_debug_tactics(d, &o, inputs, &s));
  assay_debug_release(d);
  assert_int_equal(assay_tactic_search_fault_count(s), 0);
  const size_t n = assay_tactic_search_count(s);
  assert_true(n > 1);
  assay_tactic_trial_t t = ASSAY_TACTIC_TRIAL_INIT;
  for (size_t i = 0; i < n; i++) {
    ok(assay_tactic_search_trial(s, i, &t));
    assert_true(*t.layer && *t.tactic && *t.source && t.fault == ASSAY_TACTIC_SOUND);
    assert_true(isnan(t.seconds) && t.rms >= 0 && t.max >= t.rms);
    chosen += t.chosen;
  }
  assert_true(chosen > 0);
  assert_true(*assay_tactic_fault_name(ASSAY_TACTIC_BEYOND));
  fails(assay_tactic_search_trial(s, n, &t), ASSAY_INVALID_ARGUMENT, "trial");
  ok(assay_tactic_search_report(s, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
  has(text, "assay.debug.tactics/1");
  assay_tactic_search_destroy(s);
  assay_tactic_search_destroy(NULL);
  assay_samples_destroy(inputs);
  assay_model_release(m);
}

// ---- reduction ----------------------------------------------------------------------------------

static void a_failing_model_is_reduced(void** state) {
  (void)state;
  assay_model_t *m = sum_model(), *part = NULL;
  assay_samples_t *inputs = samples_of(m, 40000), *sound = samples_of(m, 3);
  assay_debug_t* d = in_fp16(m);
  assay_reduction_options_t o = ASSAY_REDUCTION_OPTIONS_INIT;
  assay_reduction_t* r = NULL;
  char path[128], *text = NULL;
  size_t n = 0;
  o.command = "engine {outputs}";
  fails(assay_debug_reduce(d, &o, inputs, NULL, &r), ASSAY_INVALID_ARGUMENT, "{inputs}");
  assert_null(r);
  ok(assay_debug_reduce(d, NULL, inputs, NULL, &r));
  assert_int_equal(assay_reduction_nodes_before(r), 1);
  assert_int_equal(assay_reduction_node_count(r), 1);
  assert_true(assay_reduction_verdict(r) != ASSAY_REDUCE_SOUND && assay_reduction_tries(r) >= 1);
  assert_non_null(strstr(assay_reduction_why(r), "overflow"));
  ok(assay_reduction_report(r, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text));
  has(text, "assay.debug.reduce/1");
  if (assay_reduction_verdict(r) == ASSAY_REDUCE_REDUCED) {
    ok(assay_reduction_write(r, in_folder("part"), &n));
    assert_int_equal(n, 1);
    snprintf(path, sizeof path, "%s", in_folder("part/model.onnx"));
    ok(assay_model_load(path, &part));
    assay_model_release(part);
  }
  assay_reduction_destroy(r);
  r = NULL;
  ok(assay_debug_reduce(d, NULL, sound, NULL, &r));
  assert_int_equal(assay_reduction_verdict(r), ASSAY_REDUCE_SOUND);
  assert_string_equal(assay_reduce_verdict_name(ASSAY_REDUCE_SOUND), "sound");
  fails(assay_reduction_write(r, in_folder("none"), NULL), ASSAY_NOT_FOUND, "no part");
  assay_reduction_destroy(r);
  assay_reduction_destroy(NULL);
  assay_debug_release(d);
  assay_samples_destroy(sound);
  assay_samples_destroy(inputs);
  assay_model_release(m);
}

// ---- how the model is run -----------------------------------------------------------------------

static void options_are_those_of_checks(void** state) {
  (void)state;
  static const char *const bad = "median < 1", *const of_golden = "golden_max_abs <= 1";
  assay_model_t *m = sum_model(), *other = NULL;
  assay_samples_t *inputs = samples_of(m, 3), *others = NULL;
  assay_debug_options_t o = ASSAY_DEBUG_OPTIONS_INIT;
  assay_debug_t* d = NULL;
  assay_precision_search_t* s = NULL;
  o.target = "abacus";
  fails(assay_debug_create(m, &o, &d), ASSAY_INVALID_ARGUMENT, "abacus");
  o.target = NULL;
  o.layer_precision = "nothing:fp16";
  fails(assay_debug_create(m, &o, &d), ASSAY_NOT_FOUND, "nothing");
  o.layer_precision = NULL;
  o.precision = ASSAY_FORMAT_INT8;
  fails(assay_debug_create(m, &o, &d), ASSAY_UNSUPPORTED, "");
  o.precision = ASSAY_FORMAT_NONE;
  o.n_requirements = 1;
  o.requirements = &bad;
  fails(assay_debug_create(m, &o, &d), ASSAY_INVALID_ARGUMENT, "median");
  assert_null(d);
  o.requirements = &of_golden;
  ok(assay_debug_create(m, &o, &d));
  assert_true(assay_debug_needs_golden(d));
  assert_false(assay_debug_has_precision(d));
  fails(assay_debug_precision(d, NULL, inputs, NULL, &s), ASSAY_INVALID_ARGUMENT, "golden");
  assay_debug_release(d);
  ok(assay_debug_create(m, NULL, &d));
  assert_false(assay_debug_needs_golden(d));
  ok(assay_model_load("models/small/cnn.onnx", &other));
  ok(assay_samples_random(other, 1, 0, NULL, &others));
  fails(assay_debug_precision(d, NULL, others, NULL, &s), ASSAY_INVALID_ARGUMENT, "the samples");
  assert_null(s);
  assay_debug_release(d);
  assay_samples_destroy(others);
  assay_samples_destroy(inputs);
  assay_model_release(other);
  assay_model_release(m);
}

static assay_status_t find_all(void) {
  assay_debug_options_t o = ASSAY_DEBUG_OPTIONS_INIT;
  assay_model_t* m = NULL;
  assay_samples_t* inputs = NULL;
  assay_debug_t* d = NULL;
  assay_precision_search_t* s = NULL;
  char* text = NULL;
  o.precision = ASSAY_FORMAT_FP16;
  assay_status_t st = assay_model_load(in_folder("sum.onnx"), &m);
  if (!st) st = make_samples(m, 40000, &inputs);
  if (!st) st = assay_debug_create(m, &o, &d);
  if (!st) st = assay_debug_precision(d, NULL, inputs, NULL, &s);
  if (!st)
    st = assay_precision_search_report(s, ASSAY_REPORT_JSON, NULL, assay_report_collect, &text);
  if (!st) st = assay_precision_search_write_model(s, in_folder("all.onnx"));
  assay_text_free(text);
  assay_precision_search_destroy(s);
  assay_debug_release(d);
  assay_samples_destroy(inputs);
  assay_model_release(m);
  return st;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  allocations_fail(find_all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_that_need_more_are_found),
      cmocka_unit_test(files_are_written),
      cmocka_unit_test(a_model_may_be_enough),
      cmocka_unit_test(precision_options_that_make_no_sense_are_refused),
      cmocka_unit_test(a_sum_does_not_depend_on_its_batch),
      cmocka_unit_test(a_node_that_mixes_samples_is_named),
      cmocka_unit_test(passes_of_a_cnn_are_innocent),
      cmocka_unit_test(tactics_of_a_cnn_are_sound),
      cmocka_unit_test(a_failing_model_is_reduced),
      cmocka_unit_test(options_are_those_of_checks),
      cmocka_unit_test(every_allocation_may_fail),
  };
  char command[128];
  if (!mkdtemp(folder)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) ? 1 : failed;
}
