// Checks as callers of the library make them: what they find, write and report.
#include <assay/assay.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fail_case.h"
#include "onnx/load.h"
#include "passes/graph_case.h"

static char folder[] = "/tmp/assay_check_XXXXXX";

// up passes fp16's range, and down brings it back: y needs both in fp32.
static const graph_case_t minded = {"minded",
                                    0,
                                    {"x float[4] 1 2 3 -3"},
                                    {"k float[] 4e4", "l float[] 1e-5"},
                                    {"Mul up x k -> p", "Mul down p l -> y"},
                                    "y"};
static const graph_case_t harmless = {
    "harmless", 0, {"x float[4] 1 2 3 -3"}, {"k float[] 2"}, {"Mul up x k -> y"}, "y"};

typedef struct fixture {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_samples_t* inputs;
} fixture_t;

static void open_case(fixture_t* f, const graph_case_t* row) {
  *f = (fixture_t){0};
  f->model = graph_case_model(row, f->in);
  const size_t n = assay_model_input_count(f->model);
  op_case_ok(
      assay_samples_create(f->model, 1, n, (const char*[]){"x", "k"}, f->in, NULL, &f->inputs));
}

static void close_case(fixture_t* f) {
  assay_samples_destroy(f->inputs);
  assay_model_release(f->model);
  graph_case_release(f->in);
}

static void fails(assay_status_t st, assay_code_t code, const char* word) {
  if (!st) fail_msg("no failure, where '%s' was expected", word);
  if (assay_status_code(st) != code || !strstr(assay_status_message(st), word))
    fail_msg("code %d, '%s'; expected %d with '%s'", (int)assay_status_code(st),
             assay_status_message(st), (int)code, word);
  assay_status_free(st);
}

static assay_check_t* check_of(const fixture_t* f, assay_format_t precision,
                               assay_golden_t* golden) {
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_t* c = NULL;
  o.precision = precision;
  o.pictures = true;
  op_case_ok(assay_check_create(f->model, &o, &c));
  op_case_ok(assay_check_run(c, f->inputs, golden));
  return c;
}

static const char* in_folder(const char* name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

// ---- findings -----------------------------------------------------------------------------------

static void overflow_is_found_and_fixed(void** state) {
  (void)state;
  fixture_t f;
  open_case(&f, &minded);
  assay_check_t* c = check_of(&f, ASSAY_FORMAT_FP16, NULL);
  assay_check_output_t o = ASSAY_CHECK_OUTPUT_INIT;
  assay_check_layer_t l = ASSAY_CHECK_LAYER_INIT;
  assay_check_culprit_t u = ASSAY_CHECK_CULPRIT_INIT;
  assert_false(assay_check_faithful(c));
  assert_int_equal(assay_check_blame(c), ASSAY_BLAME_PRECISION);
  assert_string_equal(assay_blame_name(assay_check_blame(c)), "precision");
  assert_int_equal(assay_check_output_count(c), 1);
  op_case_ok(assay_check_output(c, 0, &o));
  assert_string_equal(o.name, "y");
  assert_true(o.is_float && !o.faithful && o.elements == 4 && o.differing == 3 && o.inf == 3);
  assert_true(o.max_abs != o.max_abs && !o.has_golden);
  assert_int_equal(assay_check_layer_count(c), 2);
  op_case_ok(assay_check_layer(c, 0, &l));
  assert_string_equal(l.name, "up");
  assert_string_equal(l.op, "Mul");
  assert_int_equal(l.verdict, ASSAY_VERDICT_OVERFLOW);
  assert_int_equal(l.format, ASSAY_FORMAT_FP16);
  assert_true(l.n_nodes == 1 && l.elements == 4 && l.overflowed == 3 && l.truth_max == 12e4);
  assert_string_equal(assay_check_layer_node(c, 0, 0), "up");
  assert_null(assay_check_layer_node(c, 0, 1));
  assert_null(assay_check_layer_node(c, 2, 0));
  assert_true(assay_check_culprit_count(c) >= 1);
  op_case_ok(assay_check_culprit(c, 0, &u));
  assert_true(u.layer == 0 && u.seen && u.verdict == ASSAY_VERDICT_OVERFLOW);
  assert_string_equal(u.why, "overflow: 1.2e+05, fp16 ends at 65504");
  assert_int_equal(assay_check_fix_count(c), 2);
  assert_string_equal(assay_check_fix_node(c, 0), "up");
  assert_string_equal(assay_check_fix_node(c, 1), "down");
  assert_null(assay_check_fix_node(c, 2));
  assert_int_equal(assay_check_fix_format(c), ASSAY_FORMAT_FP32);
  assert_true(assay_check_fix_verified(c) && assay_check_fix_runs(c) >= 1 &&
              assay_check_fix_runs(c) < 10);
  op_case_ok(assay_check_fix_output(c, 0, &o));
  assert_true(o.faithful && o.differing == 0 && o.cosine > 0.999);
  fails(assay_check_output(c, 1, &o), ASSAY_INVALID_ARGUMENT, "output 1");
  fails(assay_check_layer(c, 2, &l), ASSAY_INVALID_ARGUMENT, "layer 2");
  assay_check_destroy(c);
  close_case(&f);
}

// 4e4 of some 2 passes fp16 between `up` and `down`; `one` rounds, which the requirement allows.
static const graph_case_t rounded = {
    "rounded",
    0,
    {"x float[2,4] 1.1 2.3 3.7 -3.1 0.7 1.9 2.2 1.3"},
    {"w float[4,4]", "k float[] 4e5", "l float[] 1e-6"},
    {"MatMul one x w -> a", "Mul up a k -> p", "Mul down p l -> y"},
    "y"};

static void both_fixes_are_found(void** state) {
  (void)state;
  for (int choice = ASSAY_FIX_ANY; choice <= ASSAY_FIX_BEST; choice++) {
    fixture_t f;
    open_case(&f, &rounded);
    assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
    assay_check_t* c = NULL;
    assay_check_fix_t few = ASSAY_CHECK_FIX_INIT, best = ASSAY_CHECK_FIX_INIT;
    assay_check_output_t few_out = ASSAY_CHECK_OUTPUT_INIT, best_out = ASSAY_CHECK_OUTPUT_INIT;
    o.precision = ASSAY_FORMAT_FP16;
    o.fix = (assay_fix_choice_t)choice;
    op_case_ok(assay_check_create(f.model, &o, &c));
    op_case_ok(assay_check_run(c, f.inputs, NULL));
    op_case_ok(assay_check_fix(c, ASSAY_FIX_FEWEST, &few));
    op_case_ok(assay_check_fix_output_of(c, ASSAY_FIX_FEWEST, 0, &few_out));
    assert_true(few.verified && few.n_nodes == 2 && few.chosen == (choice != ASSAY_FIX_BEST));
    assert_string_equal(assay_check_fix_node_of(c, ASSAY_FIX_FEWEST, 0), "up");
    assert_null(assay_check_fix_node_of(c, ASSAY_FIX_FEWEST, 2));
    assert_int_equal(assay_check_fix_count(c), choice == ASSAY_FIX_BEST ? 3 : 2);
    fails(assay_check_fix(c, ASSAY_FIX_ANY, &best), ASSAY_NOT_FOUND, "no such fix");
    if (choice == ASSAY_FIX_ANY) {
      fails(assay_check_fix(c, ASSAY_FIX_BEST, &best), ASSAY_NOT_FOUND, "options.fix");
      assert_null(assay_check_fix_node_of(c, ASSAY_FIX_BEST, 0));
    } else {
      op_case_ok(assay_check_fix(c, ASSAY_FIX_BEST, &best));
      op_case_ok(assay_check_fix_output_of(c, ASSAY_FIX_BEST, 0, &best_out));
      assert_true(best.verified && best.n_nodes == 3 && best.chosen == !few.chosen);
      assert_true(best_out.snr_db > few_out.snr_db + 20 && few_out.faithful);
      assert_true(few.time > 0.3 && few.time < best.time && best.time == 1);
      fails(assay_check_fix_output_of(c, ASSAY_FIX_BEST, 1, &best_out), ASSAY_INVALID_ARGUMENT,
            "output of a verifying run 1");
    }
    assay_check_destroy(c);
    close_case(&f);
  }
}

// Where the fewest are all, the best is no other.
static void fixes_may_be_the_same(void** state) {
  (void)state;
  fixture_t f;
  open_case(&f, &minded);
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_t* c = NULL;
  assay_check_fix_t few = ASSAY_CHECK_FIX_INIT, best = ASSAY_CHECK_FIX_INIT;
  o.precision = ASSAY_FORMAT_FP16;
  o.fix = ASSAY_FIX_BEST;
  op_case_ok(assay_check_create(f.model, &o, &c));
  op_case_ok(assay_check_run(c, f.inputs, NULL));
  op_case_ok(assay_check_fix(c, ASSAY_FIX_FEWEST, &few));
  op_case_ok(assay_check_fix(c, ASSAY_FIX_BEST, &best));
  assert_true(few.chosen && best.chosen && few.n_nodes == 2 && best.n_nodes == 2);
  assay_check_destroy(c);
  close_case(&f);
}

// A caller that was compiled with a shorter struct gets no more than that.
static void shorter_structs_stay_within_their_size(void** state) {
  (void)state;
  fixture_t f;
  open_case(&f, &harmless);
  assay_check_t* c = check_of(&f, ASSAY_FORMAT_FP16, NULL);
  assay_check_output_t o = {.struct_size = offsetof(assay_check_output_t, elements),
                            .elements = -5};
  op_case_ok(assay_check_output(c, 0, &o));
  assert_true(o.faithful && o.elements == -5);
  assert_int_equal(o.struct_size, offsetof(assay_check_output_t, elements));
  assert_true(assay_check_faithful(c) && assay_check_blame(c) == ASSAY_BLAME_NONE);
  assert_int_equal(assay_check_fix_count(c), 0);
  fails(assay_check_write_model(c, in_folder("none.onnx")), ASSAY_NOT_FOUND, "no fix");
  assay_check_destroy(c);
  close_case(&f);
}

// Golden of another factor is the export's fault, at the node that has it.
static void golden_tells_of_the_export(void** state) {
  (void)state;
  static const float factors[] = {2, 3};
  for (size_t i = 0; i < 2; i++) {
    fixture_t f;
    open_case(&f, &harmless);
    assay_golden_t* golden = NULL;
    assay_tensor_t* t = NULL;
    const float x[] = {1 * factors[i], 2 * factors[i], 3 * factors[i], -3 * factors[i]};
    op_case_ok(assay_tensor_make(ASSAY_TYPE_FLOAT, 1, (const int64_t[]){4}, x, sizeof x, &t));
    op_case_ok(assay_golden_create(f.model, 1, 1, (const char*[]){"y"}, &t, 1, NULL, &golden));
    assert_int_equal(assay_golden_count(golden), 1);
    assay_check_t* c = check_of(&f, ASSAY_FORMAT_FP32, golden);
    assay_check_output_t o = ASSAY_CHECK_OUTPUT_INIT;
    op_case_ok(assay_check_output(c, 0, &o));
    assert_true(o.has_golden && o.golden_max_abs == (i ? 3 : 0));
    assert_int_equal(assay_check_blame(c), i ? ASSAY_BLAME_EXPORT : ASSAY_BLAME_NONE);
    assert_int_equal(assay_check_fault_count(c), i);
    assay_check_fault_t e = ASSAY_CHECK_FAULT_INIT;
    if (i) op_case_ok(assay_check_fault(c, 0, &e));
    if (i) assert_string_equal(e.node, "up");
    assay_check_destroy(c);
    assay_golden_destroy(golden);
    assay_tensor_release(t);
    close_case(&f);
  }
}

// A Reshape that fits one row only: the batch does not run, its rows do.
static void a_batch_is_checked_row_by_row(void** state) {
  (void)state;
  static const graph_case_t one_row = {
      "one row", 0, {"x float[1,4]"}, {"s int64[2] 2 2"}, {"Reshape r x s -> y"}, "y"};
  static const float rows[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *batch = NULL;
  assay_model_t *fixed = graph_case_model(&one_row, in), *model = NULL;
  assay_samples_t* inputs = NULL;
  assay_check_t* c = NULL;
  int64_t was = 0;
  op_case_ok(assay_onnx_open_batch(fixed, 0, &was, &model));
  op_case_ok(
      assay_tensor_make(ASSAY_TYPE_FLOAT, 2, (const int64_t[]){3, 4}, rows, sizeof rows, &batch));
  op_case_ok(assay_samples_create(model, 1, 1, (const char*[]){"x"}, &batch, NULL, &inputs));
  assert_int_equal(assay_samples_count(inputs), 1);
  op_case_ok(assay_check_create(model, NULL, &c));
  op_case_ok(assay_check_run(c, inputs, NULL));
  assert_non_null(strstr(assay_check_notes(c), "a batch of 3 does not run"));
  assert_non_null(strstr(assay_check_notes(c), "each row is checked by itself"));
  assay_check_output_t o = ASSAY_CHECK_OUTPUT_INIT;
  op_case_ok(assay_check_output(c, 0, &o));
  assert_true(o.faithful && o.elements == 12);
  assay_check_destroy(c);
  assay_samples_destroy(inputs);
  assay_tensor_release(batch);
  assay_model_release(model);
  assay_model_release(fixed);
  graph_case_release(in);
}

// ---- what is written ----------------------------------------------------------------------------

typedef struct text {
  char at[1 << 16];
  size_t n;
} text_t;

static assay_status_t keep(void* user, const char* data, size_t size) {
  text_t* t = user;
  t->n = size < sizeof t->at - 1 ? size : sizeof t->at - 1;
  memcpy(t->at, data, t->n);
  t->at[t->n] = 0;
  return NULL;
}

static assay_status_t refuse(void* user, const char* data, size_t size) {
  (void)user, (void)data, (void)size;
  return assay_status_create(ASSAY_CANCELLED, "enough");
}

static void reports_say_it(void** state) {
  (void)state;
  static text_t text;
  fixture_t f;
  open_case(&f, &minded);
  assay_check_t* c = check_of(&f, ASSAY_FORMAT_FP16, NULL);
  const assay_check_report_options_t names = {.struct_size = sizeof names, .model = "some.onnx"};
  const struct {
    assay_report_kind_t kind;
    const assay_check_report_options_t* names;
    const char* word;
  } rows[] = {{ASSAY_REPORT_TEXT, NULL, "UNFAITHFUL  model in fp16 on emu: 'y' "},
              {ASSAY_REPORT_TEXT, &names, "some.onnx in fp16 on emu"},
              {ASSAY_REPORT_JSON, &names, "\"schema\": \"assay.check/1\""},
              {ASSAY_REPORT_PAGE, NULL, "<!doctype html>"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    op_case_ok(assay_check_report(c, rows[i].kind, rows[i].names, keep, &text));
    if (!strstr(text.at, rows[i].word)) fail_msg("no '%s' in '%.300s'", rows[i].word, text.at);
  }
  fails(assay_check_report(c, ASSAY_REPORT_TEXT, NULL, refuse, NULL), ASSAY_CANCELLED, "enough");
  fails(assay_check_report(c, (assay_report_kind_t)9, NULL, keep, &text), ASSAY_INVALID_ARGUMENT,
        "kind 9");
  assay_check_destroy(c);
  close_case(&f);
}

// The model that the fix makes is faithful as it declares.
static void the_fix_is_a_model(void** state) {
  (void)state;
  fixture_t f, fixed = {0};
  open_case(&f, &minded);
  assay_check_t* c = check_of(&f, ASSAY_FORMAT_FP16, NULL);
  assert_true(assay_check_fix_has_model(c));
  op_case_ok(assay_check_write_model(c, in_folder("fixed.onnx")));
  op_case_ok(assay_check_write_options(c, in_folder("fix.txt")));
  op_case_ok(assay_check_write_report(c, ASSAY_REPORT_JSON, NULL, in_folder("check.json")));
  assay_check_destroy(c);
  op_case_ok(assay_model_load(in_folder("fixed.onnx"), &fixed.model));
  op_case_ok(
      assay_samples_create(fixed.model, 1, 1, (const char*[]){"x"}, f.in, NULL, &fixed.inputs));
  c = check_of(&fixed, ASSAY_FORMAT_NONE, NULL);
  assert_true(assay_check_faithful(c));
  assay_check_destroy(c);
  close_case(&fixed);
  char line[256] = "";
  FILE* file = fopen(in_folder("fix.txt"), "r");
  assert_non_null(file);
  for (int i = 0; i < 3; i++) assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  assert_string_equal(line, "--layer-precision 'up:fp32,down:fp32'\n");
  close_case(&f);
}

// ---- what is wrong ------------------------------------------------------------------------------

static void wrong_options_are_told_before_the_run(void** state) {
  (void)state;
  static const char *const unknown = "no_such_pass", *const demand = "cosine",
                           *const golden = "golden_snr_db >= 20";
  const size_t size = sizeof(assay_check_options_t);
  const struct {
    assay_check_options_t o;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {{.struct_size = size, .precision = ASSAY_FORMAT_INT4}, ASSAY_INVALID_ARGUMENT, "floating"},
      {{.struct_size = size, .precision = ASSAY_FORMAT_INT8}, ASSAY_UNSUPPORTED, "QuantizeLinear"},
      {{.struct_size = size, .accumulator = ASSAY_FORMAT_BOOL}, ASSAY_INVALID_ARGUMENT, "floating"},
      {{.struct_size = size, .layer_precision = "nothing*:fp32"}, ASSAY_NOT_FOUND, "nothing*"},
      {{.struct_size = size, .target = "abacus"}, ASSAY_INVALID_ARGUMENT, "abacus"},
      {{.struct_size = size, .passes_off = &unknown, .n_passes_off = 1},
       ASSAY_NOT_FOUND,
       "no_such_pass"},
      {{.struct_size = size, .passes_off = &unknown, .n_passes_off = 1, .fusion = ASSAY_FUSION_OFF},
       ASSAY_INVALID_ARGUMENT,
       "fusion is off"},
      {{.struct_size = size, .requirements = &demand, .n_requirements = 1},
       ASSAY_INVALID_ARGUMENT,
       "cosine"},
  };
  fixture_t f;
  open_case(&f, &harmless);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_check_t* c = NULL;
    fails(assay_check_create(f.model, &rows[i].o, &c), rows[i].code, rows[i].word);
    assert_null(c);
  }
  const assay_check_options_t o = {
      .struct_size = size, .requirements = &golden, .n_requirements = 1};
  assay_check_t* c = NULL;
  op_case_ok(assay_check_create(f.model, &o, &c));
  assert_true(assay_check_needs_golden(c));
  fails(assay_check_run(c, f.inputs, NULL), ASSAY_INVALID_ARGUMENT, "golden");
  assay_check_destroy(c);
  assay_check_destroy(NULL);
  close_case(&f);
}

static void runs_come_once_and_fit(void** state) {
  (void)state;
  static const graph_case_t two = {
      "two", 0, {"x float[4]", "k float[]"}, {NULL}, {"Mul up x k -> y"}, "y"};
  static text_t text;
  fixture_t f, other;
  assay_check_t* c = NULL;
  open_case(&f, &harmless);
  open_case(&other, &two);
  op_case_ok(assay_check_create(f.model, NULL, &c));
  fails(assay_check_report(c, ASSAY_REPORT_TEXT, NULL, keep, &text), ASSAY_INVALID_ARGUMENT,
        "has not run");
  assert_int_equal(assay_check_layer_count(c) + assay_check_output_count(c), 0);
  op_case_ok(assay_check_run(c, f.inputs, NULL));
  fails(assay_check_run(c, f.inputs, NULL), ASSAY_INVALID_ARGUMENT, "has run");
  assay_check_destroy(c);
  assay_samples_t* outputs = NULL;
  assay_samples_options_t as_outputs = ASSAY_SAMPLES_OPTIONS_INIT;
  as_outputs.outputs = true;
  op_case_ok(
      assay_samples_create(f.model, 1, 1, (const char*[]){"y"}, f.in, &as_outputs, &outputs));
  op_case_ok(assay_check_create(f.model, NULL, &c));
  fails(assay_check_run(c, outputs, NULL), ASSAY_INVALID_ARGUMENT, "not samples of");
  fails(assay_check_run(c, other.inputs, NULL), ASSAY_INVALID_ARGUMENT, "not samples of");
  assay_check_destroy(c);
  op_case_ok(assay_check_create(other.model, NULL, &c));
  fails(assay_check_run(c, f.inputs, NULL), ASSAY_INVALID_ARGUMENT, "not samples of");
  assay_check_destroy(c);
  assay_samples_destroy(outputs);
  close_case(&f);
  close_case(&other);
}

static assay_status_t use(void* user) {
  const fixture_t* f = user;
  static const char* const off = "dead_code";
  static text_t text;
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_t* c = NULL;
  o.precision = ASSAY_FORMAT_FP16;
  o.passes_off = &off;
  o.n_passes_off = 1;
  assay_status_t st = assay_check_create(f->model, &o, &c);
  if (!st) st = assay_check_run(c, f->inputs, NULL);
  if (!st) st = assay_check_report(c, ASSAY_REPORT_TEXT, NULL, keep, &text);
  assay_check_destroy(c);
  return st;
}

static void any_allocation_may_fail(void** state) {
  (void)state;
  fixture_t f;
  open_case(&f, &minded);
  op_case_ok(use(&f));
  assert_true(fail_each(100, use, &f) > 0);
  close_case(&f);
}

static int make_folder(void** state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  static const char* const names[] = {"fixed.onnx", "fix.txt", "check.json"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i]));
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overflow_is_found_and_fixed),
      cmocka_unit_test(both_fixes_are_found),
      cmocka_unit_test(fixes_may_be_the_same),
      cmocka_unit_test(shorter_structs_stay_within_their_size),
      cmocka_unit_test(golden_tells_of_the_export),
      cmocka_unit_test(a_batch_is_checked_row_by_row),
      cmocka_unit_test(reports_say_it),
      cmocka_unit_test(the_fix_is_a_model),
      cmocka_unit_test(wrong_options_are_told_before_the_run),
      cmocka_unit_test(runs_come_once_and_fit),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
