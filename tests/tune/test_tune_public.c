// Tuning as callers of the library do it: what is found, written and reported.
#include <assay/assay.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fail_case.h"
#include "passes/graph_case.h"

static char folder[] = "/tmp/assay_tune_XXXXXX";

// Each layer in fp16 adds about as much error.
static const graph_case_t chain = {
    "chain",
    0,
    {"x float[8,64]"},
    {"w float[64,64]", "v float[64,64]", "u float[64,8]"},
    {"MatMul one x w -> a", "MatMul two a v -> b", "MatMul three b u -> y"},
    "y"};

typedef struct fixture {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_samples_t* inputs;
} fixture_t;

static void open_case(fixture_t* f) {
  *f = (fixture_t){0};
  f->model = graph_case_model(&chain, f->in);
  op_case_ok(assay_samples_create(f->model, 1, 1, (const char*[]){"x"}, f->in, NULL, &f->inputs));
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

static assay_tune_t* tune_with(const fixture_t* f, const char* requirement) {
  assay_tune_options_t o = ASSAY_TUNE_OPTIONS_INIT;
  assay_tune_t* t = NULL;
  o.requirements = &requirement;
  o.n_requirements = 1;
  o.fewest_layers = true;
  op_case_ok(assay_tune_create(f->model, &o, &t));
  op_case_ok(assay_tune_run(t, f->inputs, NULL));
  return t;
}

static const char* in_folder(const char* name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

// Of the output with all in fp16.
static double snr_in_fp16(const fixture_t* f) {
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_output_t output = ASSAY_CHECK_OUTPUT_INIT;
  assay_check_t* c = NULL;
  o.precision = ASSAY_FORMAT_FP16;
  op_case_ok(assay_check_create(f->model, &o, &c));
  op_case_ok(assay_check_run(c, f->inputs, NULL));
  op_case_ok(assay_check_output(c, 0, &output));
  assay_check_destroy(c);
  return output.snr_db;
}

// What is chosen meets the requirement, in the mixed model, too.
static void an_assignment_is_found_and_written(void** state) {
  (void)state;
  fixture_t f, mixed = {0};
  open_case(&f);
  char requirement[64];
  snprintf(requirement, sizeof requirement, "snr_db >= %.3f", snr_in_fp16(&f) + 1.5);
  assay_tune_t* t = tune_with(&f, requirement);
  assert_true(assay_tune_met(t));
  assert_int_equal(assay_tune_format(t, 0), ASSAY_FORMAT_FP16);
  assert_int_equal(assay_tune_format(t, 1), ASSAY_FORMAT_FP32);
  assert_int_equal(assay_tune_format(t, 2), ASSAY_FORMAT_NONE);
  const size_t n = assay_tune_assignment_count(t);
  size_t chosen = n;
  assert_true(n >= 3);
  for (size_t i = 0; i < n; i++) {
    assay_tune_assignment_t a = ASSAY_TUNE_ASSIGNMENT_INIT;
    op_case_ok(assay_tune_assignment(t, i, &a));
    assert_true(a.seconds > 0 && (a.met || !a.chosen));
    assert_int_equal(assay_tune_assignment_layers(t, i, 0) + assay_tune_assignment_layers(t, i, 1),
                     3);
    if (i < 2) assert_int_equal(assay_tune_assignment_layers(t, i, 1 - i), 3);
    if (i < 2) assert_int_equal(a.met, i == 0);
    if (a.chosen) chosen = i;
  }
  assert_true(chosen < n && chosen > 0);
  assert_int_equal(assay_tune_node_count(t, 0), assay_tune_assignment_layers(t, chosen, 0));
  assert_true(assay_tune_node_count(t, 0) > 0 && assay_tune_node_count(t, 1) > 0);
  assert_non_null(assay_tune_node(t, 0, 0));
  assert_null(assay_tune_node(t, 0, 3));
  assert_null(assay_tune_node(t, 2, 0));
  op_case_ok(assay_tune_write_model(t, in_folder("mixed.onnx")));
  op_case_ok(assay_tune_write_options(t, in_folder("tune.txt")));
  assay_tune_destroy(t);
  op_case_ok(assay_model_load(in_folder("mixed.onnx"), &mixed.model));
  op_case_ok(
      assay_samples_create(mixed.model, 1, 1, (const char*[]){"x"}, f.in, NULL, &mixed.inputs));
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_t* c = NULL;
  o.requirements = (const char*[]){requirement};
  o.n_requirements = 1;
  op_case_ok(assay_check_create(mixed.model, &o, &c));
  op_case_ok(assay_check_run(c, mixed.inputs, NULL));
  assert_true(assay_check_faithful(c));
  assay_check_destroy(c);
  close_case(&mixed);
  close_case(&f);
}

typedef struct text {
  char at[1 << 16];
} text_t;

static assay_status_t keep(void* user, const char* data, size_t size) {
  text_t* t = user;
  snprintf(t->at, sizeof t->at, "%.*s", (int)size, data);
  return NULL;
}

// What fp32 does not meet, nothing does.
static void what_cannot_be_met_is_told(void** state) {
  (void)state;
  static text_t text;
  fixture_t f;
  open_case(&f);
  assay_tune_t* t = tune_with(&f, "snr_db >= 250");
  const assay_tune_report_options_t names = {.struct_size = sizeof names, .model = "some.onnx"};
  assert_false(assay_tune_met(t));
  assert_int_equal(assay_tune_node_count(t, 0), 0);
  fails(assay_tune_write_model(t, in_folder("none.onnx")), ASSAY_NOT_FOUND, "no assignment");
  op_case_ok(assay_tune_report(t, ASSAY_REPORT_TEXT, &names, keep, &text));
  assert_non_null(strstr(text.at, "NOT POSSIBLE  some.onnx on emu"));
  op_case_ok(assay_tune_report(t, ASSAY_REPORT_JSON, NULL, keep, &text));
  assert_non_null(strstr(text.at, "\"schema\": \"assay.tune/1\""));
  fails(assay_tune_report(t, ASSAY_REPORT_PAGE, NULL, keep, &text), ASSAY_UNSUPPORTED, "JSON");
  fails(assay_tune_run(t, f.inputs, NULL), ASSAY_INVALID_ARGUMENT, "has run");
  assay_tune_assignment_t a = ASSAY_TUNE_ASSIGNMENT_INIT;
  fails(assay_tune_assignment(t, 99, &a), ASSAY_INVALID_ARGUMENT, "assignment 99");
  assay_tune_destroy(t);
  close_case(&f);
}

static void wrong_options_are_told_before_the_run(void** state) {
  (void)state;
  static const assay_format_t high[] = {ASSAY_FORMAT_FP64},
                              twice[] = {ASSAY_FORMAT_FP16, ASSAY_FORMAT_FP16},
                              many[] = {ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16, ASSAY_FORMAT_TF32,
                                        ASSAY_FORMAT_FP8E4M3};
  const size_t size = sizeof(assay_tune_options_t);
  const struct {
    assay_tune_options_t o;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {{.struct_size = size, .formats = high, .n_formats = 1}, ASSAY_INVALID_ARGUMENT, "below"},
      {{.struct_size = size, .formats = twice, .n_formats = 2}, ASSAY_INVALID_ARGUMENT, "twice"},
      {{.struct_size = size, .formats = many, .n_formats = 4}, ASSAY_INVALID_ARGUMENT, "one to 3"},
      {{.struct_size = size, .device = "abacus"}, ASSAY_INVALID_ARGUMENT, "abacus"},
      {{.struct_size = size, .device = "here"}, ASSAY_INVALID_ARGUMENT, "cpu"},
      {{.struct_size = size, .timing_cache = "x"}, ASSAY_INVALID_ARGUMENT, "timing cache"},
      {{.struct_size = size, .layer_precision = "none*:fp32"}, ASSAY_NOT_FOUND, "none*"},
  };
  static text_t text;
  fixture_t f;
  open_case(&f);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_tune_t* t = NULL;
    fails(assay_tune_create(f.model, &rows[i].o, &t), rows[i].code, rows[i].word);
    assert_null(t);
  }
  assay_tune_t* t = NULL;
  op_case_ok(assay_tune_create(f.model, NULL, &t));
  assert_false(assay_tune_needs_golden(t));
  fails(assay_tune_report(t, ASSAY_REPORT_TEXT, NULL, keep, &text), ASSAY_INVALID_ARGUMENT,
        "has not run");
  assay_tune_destroy(t);
  assay_tune_destroy(NULL);
  assert_string_equal(assay_tune_device_name(0), "generic");
  assert_null(assay_tune_device_name(100));
  close_case(&f);
}

static assay_status_t use(void* user) {
  const fixture_t* f = user;
  assay_tune_options_t o = ASSAY_TUNE_OPTIONS_INIT;
  assay_tune_t* t = NULL;
  o.layer_precision = "three:fp32";
  o.max_runs = 1;
  assay_status_t st = assay_tune_create(f->model, &o, &t);
  if (!st) st = assay_tune_run(t, f->inputs, NULL);
  assay_tune_destroy(t);
  return st;
}

static void any_allocation_may_fail(void** state) {
  (void)state;
  fixture_t f;
  open_case(&f);
  op_case_ok(use(&f));
  assert_true(fail_each(60, use, &f) > 0);
  close_case(&f);
}

static int make_folder(void** state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  unlink(in_folder("mixed.onnx"));
  unlink(in_folder("tune.txt"));
  return rmdir(folder);
}

// ---- samples in parts ---------------------------------------------------------------------------

enum { PART_SAMPLES = 5 };

typedef struct elsewhere {
  const fixture_t* f;
  const char* requirement;
  assay_tensor_t* x[PART_SAMPLES];
  size_t at[4];        // where parts begin, and the end
  int spoiled;         // 1: a part is left out; 2: a part is damaged; 3: of another assignment
  size_t assignments;  // that were run
  assay_str_t kept;    // the first part of the first one
} elsewhere_t;

static assay_status_t keep_bytes(void* user, const char* data, size_t size) {
  assay_str_append_n(user, data, size);
  return NULL;
}

static assay_tune_t* tune_of(const elsewhere_t* e, assay_tune_elsewhere_fn_t* run) {
  assay_tune_options_t o = ASSAY_TUNE_OPTIONS_INIT;
  assay_tune_t* t = NULL;
  o.requirements = &e->requirement;
  o.n_requirements = 1;
  o.fewest_layers = true;
  o.front = 3;
  o.elsewhere = run;
  o.user = (void*)e;
  op_case_ok(assay_tune_create(e->f->model, &o, &t));
  return t;
}

static assay_samples_t* some_of(elsewhere_t* e, size_t first, size_t end) {
  assay_samples_t* s = NULL;
  op_case_ok(assay_samples_create(e->f->model, end - first, 1, (const char*[]){"x"}, e->x + first,
                                  NULL, &s));
  return s;
}

static assay_status_t add_part(elsewhere_t* e, size_t i, const void* assignment, size_t size,
                               assay_tune_parts_t* parts) {
  assay_tune_t* worker = tune_of(e, NULL);
  assay_samples_t* some = some_of(e, e->at[i], e->at[i + 1]);
  assay_str_t part = {0};
  op_case_ok(assay_tune_run_part(worker, assignment, size, some, NULL, keep_bytes, &part));
  if (e->spoiled == 2) part.text[part.len / 2] ^= 1;
  const bool other = e->spoiled == 3 && e->assignments > 1;
  assay_status_t st = other ? assay_tune_add_part(parts, e->kept.text, e->kept.len)
                            : assay_tune_add_part(parts, part.text, part.len);
  if (!e->kept.len) assay_str_append_n(&e->kept, part.text, part.len);
  assay_str_deinit(&part);
  assay_samples_destroy(some);
  assay_tune_destroy(worker);
  return st;
}

static assay_status_t run_parts(void* user, const void* assignment, size_t size,
                                assay_tune_parts_t* parts) {
  elsewhere_t* e = user;
  assay_status_t st = NULL;
  e->assignments++;
  for (size_t i = 0; !st && i + (e->spoiled == 1) < 3; i++)
    st = add_part(e, i, assignment, size, parts);
  return st;
}

// The report without the seconds that the run took.
static char* report_of(const assay_tune_t* t) {
  char* json = NULL;
  op_case_ok(assay_tune_report(t, ASSAY_REPORT_JSON, NULL, assay_report_collect, &json));
  char* took = strstr(json, "\"seconds\":");
  assert_non_null(took);
  const char* end = strchr(took, '\n');
  memmove(took, end, strlen(end) + 1);
  return json;
}

static void open_elsewhere(elsewhere_t* e, fixture_t* f) {
  uint64_t seed = 5;
  char name[64];
  open_case(f);
  *e = (elsewhere_t){.f = f, .requirement = "snr_db >= 71", .at = {0, 1, 3, PART_SAMPLES}};
  for (size_t k = 0; k < PART_SAMPLES; k++)
    e->x[k] = graph_case_tensor(chain.inputs[0], name, &seed);
}

static void close_elsewhere(elsewhere_t* e, fixture_t* f) {
  for (size_t k = 0; k < PART_SAMPLES; k++) assay_tensor_release(e->x[k]);
  assay_str_deinit(&e->kept);
  close_case(f);
}

static void parts_make_the_whole(void** state) {
  fixture_t f;
  elsewhere_t e;
  (void)state;
  open_elsewhere(&e, &f);
  assay_samples_t* all = some_of(&e, 0, PART_SAMPLES);
  assay_tune_t *here = tune_of(&e, NULL), *there = tune_of(&e, run_parts);
  op_case_ok(assay_tune_run(here, all, NULL));
  op_case_ok(assay_tune_run(there, all, NULL));
  char *want = report_of(here), *got = report_of(there);
  assert_true(assay_tune_assignment_count(here) > 2);
  assert_string_equal(got, want);
  assay_text_free(want);
  assay_text_free(got);
  assay_tune_destroy(here);
  assay_tune_destroy(there);
  assay_samples_destroy(all);
  close_elsewhere(&e, &f);
}

static void parts_that_do_not_fit_are_refused(void** state) {
  static const char* const words[] = {"parts of 3 samples were added, of 5", "damaged",
                                      "another assignment"};
  fixture_t f;
  elsewhere_t e;
  (void)state;
  open_elsewhere(&e, &f);
  assay_samples_t* all = some_of(&e, 0, PART_SAMPLES);
  for (e.spoiled = 1; e.spoiled <= 3; e.spoiled++) {
    assay_tune_t* t = tune_of(&e, run_parts);
    e.assignments = 0;
    fails(assay_tune_run(t, all, NULL), e.spoiled == 2 ? ASSAY_CORRUPT : ASSAY_INVALID_ARGUMENT,
          words[e.spoiled - 1]);
    assay_tune_destroy(t);
  }
  assay_tune_t* t = tune_of(&e, NULL);
  fails(assay_tune_run_part(t, "x", 1, all, NULL, keep_bytes, &e.kept), ASSAY_CORRUPT,
        "not a part");
  assay_tune_destroy(t);
  assay_samples_destroy(all);
  close_elsewhere(&e, &f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_assignment_is_found_and_written),
      cmocka_unit_test(parts_make_the_whole),
      cmocka_unit_test(parts_that_do_not_fit_are_refused),
      cmocka_unit_test(what_cannot_be_met_is_told),
      cmocka_unit_test(wrong_options_are_told_before_the_run),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
