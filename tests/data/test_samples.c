// Samples as callers of the library make them: from files, tensors and random numbers, against what
// the options ask for.
#include <assay/assay.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "fail_case.h"
#include "status_case.h"

static char folder[] = "/tmp/assay_samples_XXXXXX";

static assay_model_t* load(const char* path) {
  assay_model_t* model = NULL;
  ok(assay_model_load(path, &model));
  return model;
}

// A file of this text in the test's folder; its path in a buffer that the next but three uses.
static const char* file(const char* name, const char* text) {
  static char paths[4][256];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof *paths, "%s/%s", folder, name);
  FILE* f = fopen(path, "w");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
  return path;
}

// Elements of a value of a sample: float64.
static void holds(const assay_samples_t* s, size_t sample, size_t value, size_t n,
                  const double* want) {
  double got[64];
  assay_tensor_t* t = assay_samples_tensor(s, sample, value);
  assert_non_null(t);
  assert_int_equal(assay_tensor_size(t), n);
  ok(assay_tensor_read_f64(t, got, n));
  for (size_t i = 0; i < n; i++) assert_float_equal(got[i], want[i], 0);
}

// ---- files --------------------------------------------------------------------------------------

static const double FIRST[] = {1, 2, 3, 4, 5, 6}, SECOND[] = {7, 8, 9, 10, 11, 12};
static const char TWO[] = "{\"x\": [[[1,2,3],[4,5,6]],[[7,8,9],[10,11,12]]]}";

static void files_are_cut_into_samples(void** state) {
  (void)state;
  assay_model_t* model = load("models/small/loop.onnx");
  // Files, options, samples.
  const struct {
    const char *text[2], *name[2];
    size_t n_files, n_samples;
  } rows[] = {{{"{\"x\": [[1,2,3],[4,5,6]]}"}, {"one.json"}, 1, 1},
              {{TWO}, {"two.json"}, 1, 2},
              {{"{\"x\": [[1,2,3],[4,5,6]]}", "{\"x\": [[7,8,9],[10,11,12]]}"},
               {"a.json", "b.json"},
               2,
               2}};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    const char* names[2] = {0};
    assay_samples_t* s = NULL;
    for (size_t i = 0; i < rows[r].n_files; i++) names[i] = file(rows[r].name[i], rows[r].text[i]);
    ok(assay_samples_load(model, rows[r].n_files, names, NULL, &s));
    assert_int_equal(assay_samples_count(s), rows[r].n_samples);
    assert_string_equal(assay_samples_value_name(s, 0), "x");
    holds(s, 0, 0, 6, FIRST);
    if (rows[r].n_samples > 1) holds(s, 1, 0, 6, SECOND);
    assert_null(assay_samples_tensor(s, rows[r].n_samples, 0));
    assert_null(assay_samples_tensor(s, 0, assay_samples_value_count(s)));
    assert_null(assay_samples_value_name(s, assay_samples_value_count(s)));
    assay_samples_destroy(s);
  }
  assay_model_release(model);
}

static void a_file_can_be_named_for_an_input(void** state) {
  (void)state;
  assay_model_t* model = load("models/small/loop.onnx");
  assay_samples_t* s = NULL;
  char named[300];
  snprintf(named, sizeof named, "x=%s", file("plain.json", "{\"z\": [[1,2,3],[4,5,6]]}"));
  ok(assay_samples_load(model, 1, (const char*[]){named}, NULL, &s));
  holds(s, 0, 0, 6, FIRST);
  assay_samples_destroy(s);
  assay_model_release(model);
}

static void notes_say_what_was_done(void** state) {
  (void)state;
  assay_model_t* model = load("models/small/loop.onnx");
  assay_samples_t* s = NULL;
  char text[100];
  const char* path = file("more.json", "{\"x\": [[1,2,3],[4,5,NaN]], \"other\": [1]}");
  ok(assay_samples_load(model, 1, &path, NULL, &s));
  assert_non_null(strstr(assay_samples_notes(s), "array 'other' is not used"));
  assert_string_equal(assay_samples_unfinite(s, text, sizeof text), "'x' holds 1 NaN");
  assert_string_equal(assay_samples_unfinite(s, text, 4), "'x'");
  assert_int_equal(assay_samples_image_count(s), 0);
  assay_samples_destroy(s);
  assay_model_release(model);
}

static void what_is_wrong_with_files_is_told(void** state) {
  (void)state;
  assay_model_t* model = load("models/small/loop.onnx");
  const char* const dtype = "x:int3";
  const double zero = 0;
  const struct {
    const char* text;
    assay_samples_options_t o;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {"{\"y\": [1]}", ASSAY_SAMPLES_OPTIONS_INIT, ASSAY_NOT_FOUND, "input 'x'"},
      {"{\"x\": [1, 2]}", ASSAY_SAMPLES_OPTIONS_INIT, ASSAY_INVALID_ARGUMENT, "shape"},
      {"{\"x\": [1,", ASSAY_SAMPLES_OPTIONS_INIT, ASSAY_CORRUPT, "bad.json"},
      {TWO,
       {.struct_size = sizeof rows->o, .dtypes = &dtype, .n_dtypes = 1},
       ASSAY_INVALID_ARGUMENT,
       "x:int3"},
      {TWO, {.struct_size = sizeof rows->o, .image_height = 5}, ASSAY_INVALID_ARGUMENT, "width"},
      {TWO, {.struct_size = sizeof rows->o, .crop_width = -1}, ASSAY_INVALID_ARGUMENT, "-1"},
      {TWO, {.struct_size = sizeof rows->o, .image_layout = "hwc"}, ASSAY_INVALID_ARGUMENT, "hwc"},
      {TWO, {.struct_size = sizeof rows->o, .n_image_mean = 4}, ASSAY_INVALID_ARGUMENT, "mean"},
      {TWO,
       {.struct_size = sizeof rows->o, .image_std = &zero, .n_image_std = 1},
       ASSAY_INVALID_ARGUMENT,
       "divides by 0"},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    assay_samples_t* s = NULL;
    const char* path = file("bad.json", rows[r].text);
    fails(assay_samples_load(model, 1, &path, &rows[r].o, &s), rows[r].code, rows[r].word);
    assert_null(s);
  }
  assay_samples_t* s = NULL;
  fails(assay_samples_load(model, 0, NULL, NULL, &s), ASSAY_INVALID_ARGUMENT, "no files");
  fails(assay_samples_load(model, 1, (const char*[]){"/nowhere.npz"}, NULL, &s), ASSAY_NOT_FOUND,
        "/nowhere.npz");
  assay_model_release(model);
}

static void inputs_may_be_left_out_if_asked(void** state) {
  (void)state;
  assay_model_t* model = load("models/small/loop.onnx");
  assay_samples_options_t o = ASSAY_SAMPLES_OPTIONS_INIT;
  assay_samples_t* s = NULL;
  const char* path = file("none.json", "{\"other\": [1]}");
  o.partial = true;
  ok(assay_samples_load(model, 1, &path, &o, &s));
  assert_null(assay_samples_tensor(s, 0, 0));
  assay_samples_destroy(s);
  assay_model_release(model);
}

static void outputs_are_matched_with_outputs(void** state) {
  (void)state;
  assay_model_t* model = load("models/small/loop.onnx");
  assay_samples_options_t o = ASSAY_SAMPLES_OPTIONS_INIT;
  assay_samples_t* s = NULL;
  const char* path = file("golden.json", "{\"y\": [[1,2,3],[4,5,6]]}");
  o.outputs = true;
  ok(assay_samples_load(model, 1, &path, &o, &s));
  assert_int_equal(assay_samples_value_count(s), assay_model_output_count(model));
  assert_string_equal(assay_samples_value_name(s, 1), "steps");
  holds(s, 0, 0, 6, FIRST);
  assert_null(assay_samples_tensor(s, 0, 1));
  assay_samples_destroy(s);
  assay_model_release(model);
}

// ---- tensors ------------------------------------------------------------------------------------

static assay_tensor_t* floats(int64_t rows, const float* x) {
  assay_tensor_t* t = NULL;
  ok(assay_tensor_make(ASSAY_TYPE_FLOAT, 2, (const int64_t[]){rows, 3}, x,
                       (size_t)rows * 3 * sizeof *x, &t));
  return t;
}

static void tensors_are_samples(void** state) {
  (void)state;
  assay_model_t* model = load("models/small/loop.onnx");
  static const float both[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  static const uint16_t bits[] = {0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0};  // of bf16
  assay_tensor_t* t[] = {floats(2, both), floats(2, both + 6), floats(4, both), NULL};
  ok(assay_tensor_make(ASSAY_TYPE_UINT16, 2, (const int64_t[]){2, 3}, bits, sizeof bits, &t[3]));
  const char *const x[] = {"x", "x"}, *const dtypes[] = {"z:fp16", "x:bf16"};
  assay_samples_options_t as_bf16 = ASSAY_SAMPLES_OPTIONS_INIT;
  as_bf16.dtypes = dtypes;
  as_bf16.n_dtypes = 2;
  const struct {
    size_t n_runs, at, n_samples;
    const assay_samples_options_t* options;
  } rows[] = {{1, 0, 1, NULL}, {2, 0, 2, NULL}, {1, 2, 2, NULL}, {1, 3, 1, &as_bf16}};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    assay_samples_t* s = NULL;
    ok(assay_samples_create(model, rows[r].n_runs, 1, x, t + rows[r].at, rows[r].options, &s));
    assert_int_equal(assay_samples_count(s), rows[r].n_samples);
    holds(s, 0, 0, 6, FIRST);
    if (rows[r].n_samples > 1) holds(s, 1, 0, 6, SECOND);
    assert_false(assay_samples_dtype_used(s, 0));
    assert_int_equal(assay_samples_dtype_used(s, 1), rows[r].options != NULL);
    assay_samples_destroy(s);
  }
  assay_samples_t* s = NULL;
  fails(assay_samples_create(model, 1, 2, x, t, NULL, &s), ASSAY_INVALID_ARGUMENT, "named 'x'");
  fails(assay_samples_create(model, 0, 1, x, t, NULL, &s), ASSAY_INVALID_ARGUMENT, "no runs");
  fails(assay_samples_create(model, 1, 1, x, &(assay_tensor_t*){NULL}, NULL, &s),
        ASSAY_INVALID_ARGUMENT, "no tensor for 'x'");
  for (size_t i = 0; i < 4; i++) assay_tensor_release(t[i]);
  assay_model_release(model);
}

// ---- random ones --------------------------------------------------------------------------------

static void random_ones_follow_their_seed(void** state) {
  (void)state;
  char path[256];
  snprintf(path, sizeof path, "%s/classifier/model.onnx", getenv("ASSAY_TEST_MODELS"));
  assay_model_t* model = load(path);
  const int64_t dims[] = {2, -1, -1, -1};
  const assay_engine_shape_t shape = {assay_model_input_name(model, 0), 4, dims, NULL, NULL};
  assay_samples_t* s[4] = {0};
  ok(assay_samples_random(model, 1, 0, NULL, &s[0]));
  ok(assay_samples_random(model, 1, 0, NULL, &s[1]));
  ok(assay_samples_random(model, 2, 0, NULL, &s[2]));
  ok(assay_samples_random(model, 1, 1, &shape, &s[3]));
  double x[4][2] = {{0}};
  for (size_t i = 0; i < 4; i++) {
    assay_tensor_t* t = assay_samples_tensor(s[i], 0, 0);
    const size_t n = (size_t)assay_tensor_size(t);
    double* all = calloc(n, sizeof *all);
    ok(assay_tensor_read_f64(t, all, n));
    memcpy(x[i], all, sizeof x[i]);
    free(all);
    assert_int_equal(assay_samples_count(s[i]), 1);
    assert_int_equal(assay_tensor_dims(t)[0], i == 3 ? 2 : 1);
    assert_string_equal(assay_samples_notes(s[i]), "");
  }
  assert_memory_equal(x[0], x[1], sizeof x[0]);
  assert_memory_not_equal(x[0], x[2], sizeof x[0]);
  for (size_t i = 0; i < 4; i++) assay_samples_destroy(s[i]);
  const assay_engine_shape_t flat = {assay_model_input_name(model, 0), 1, dims, NULL, NULL};
  fails(assay_samples_random(model, 1, 1, &flat, &s[0]), ASSAY_INVALID_ARGUMENT, "1 dimensions");
  assay_samples_destroy(NULL);
  assay_model_release(model);
}

// ---- memory -------------------------------------------------------------------------------------

static assay_status_t load_two(void* model) {
  const char* const paths[] = {file("first.json", TWO), file("second.json", TWO)};
  const char* const dtype = "z:bf16";
  assay_samples_options_t o = ASSAY_SAMPLES_OPTIONS_INIT;
  o.dtypes = &dtype;
  o.n_dtypes = 1;
  assay_samples_t* s = NULL;
  assay_status_t st = assay_samples_load(model, 2, paths, &o, &s);
  assert_int_equal(!st, s != NULL);
  assay_samples_destroy(s);
  return st;
}

static void any_allocation_may_fail(void** state) {
  (void)state;
  assay_model_t* model = load("models/small/loop.onnx");
  assert_true(fail_each(200, load_two, model) > 0);
  assay_model_release(model);
}

static int make_folder(void** state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  static const char* const names[] = {"one.json",    "two.json",   "a.json",     "b.json",
                                      "plain.json",  "more.json",  "bad.json",   "none.json",
                                      "golden.json", "first.json", "second.json"};
  (void)state;
  char path[256];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_are_cut_into_samples),
      cmocka_unit_test(a_file_can_be_named_for_an_input),
      cmocka_unit_test(notes_say_what_was_done),
      cmocka_unit_test(what_is_wrong_with_files_is_told),
      cmocka_unit_test(inputs_may_be_left_out_if_asked),
      cmocka_unit_test(outputs_are_matched_with_outputs),
      cmocka_unit_test(tensors_are_samples),
      cmocka_unit_test(random_ones_follow_their_seed),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
