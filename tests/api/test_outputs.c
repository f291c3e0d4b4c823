// Outputs by the public API: runs joined, written in formats, and read again.
#include "api_case.h"
#include "node_model.h"

static char folder[] = "/tmp/assay_api_outputs_XXXXXX";

static const char* in_folder(const char* name) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

// Two runs of 'y', of 1 and 2 rows.
static assay_outputs_t* two_runs(void) {
  static const float x[] = {1, 2, 3, 4, 5, 6};
  static const int64_t one[] = {1, 2}, two[] = {2, 2};
  assay_outputs_t* o = NULL;
  assay_tensor_t *a = floats(2, one, x), *b = floats(2, two, x + 2);
  ok(assay_outputs_create(&o));
  fails(assay_outputs_add(o, "y", a), ASSAY_INVALID_ARGUMENT, "of no run");
  ok(assay_outputs_begin_run(o));
  ok(assay_outputs_add(o, "y", a));
  fails(assay_outputs_add(o, "y", b), ASSAY_INVALID_ARGUMENT, "has 'y' already");
  ok(assay_outputs_begin_run(o));
  ok(assay_outputs_add(o, "y", b));
  assay_tensor_release(a);
  assay_tensor_release(b);
  return o;
}

static void runs_are_joined(void** state) {
  (void)state;
  float x[6];
  assay_outputs_t* o = two_runs();
  assert_int_equal(assay_outputs_joined_count(o), 0);
  for (int again = 0; again < 2; again++) {
    ok(assay_outputs_join(o));
    assert_int_equal(assay_outputs_joined_count(o), 1);
    assert_string_equal(assay_outputs_joined_name(o, 0), "y");
    assay_tensor_t* t = assay_outputs_joined_tensor(o, 0);
    assert_int_equal(assay_tensor_dims(t)[0], 3);
    ok(assay_tensor_read(t, x, sizeof x));
    for (int i = 0; i < 6; i++) assert_true(x[i] == (float)(i + 1));
    assert_null(assay_outputs_joined_name(o, 1));
    assert_null(assay_outputs_joined_tensor(o, 1));
  }
  // Of another second dimension they cannot be; what was joined stays.
  static const int64_t wide[] = {1, 3};
  assay_tensor_t* t = floats(2, wide, x);
  ok(assay_outputs_begin_run(o));
  ok(assay_outputs_add(o, "y", t));
  fails(assay_outputs_join(o), ASSAY_INVALID_ARGUMENT, "y");
  assert_int_equal(assay_tensor_dims(assay_outputs_joined_tensor(o, 0))[0], 3);
  fails(assay_outputs_save(o, in_folder("a.npz"), NULL), ASSAY_INVALID_ARGUMENT, "y");
  assay_tensor_release(t);
  assay_outputs_destroy(o);
  assay_outputs_destroy(NULL);
}

// What is written in each format is read again as the same, also a second time.
static void files_hold_the_same(void** state) {
  (void)state;
  static const struct {
    const char* name;
    bool compress;
  } rows[] = {{"y.npz", false}, {"y.npz", true}, {"y.safetensors", false}};
  assay_outputs_t* o = two_runs();
  ok(assay_outputs_save(o, in_folder("reference.npz"), NULL));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_outputs_options_t options = ASSAY_OUTPUTS_OPTIONS_INIT;
    assay_comparison_t* c = NULL;
    char path[128], reference[128];
    options.compress = rows[i].compress;
    snprintf(path, sizeof path, "%s", in_folder(rows[i].name));
    snprintf(reference, sizeof reference, "%s", in_folder("reference.npz"));
    ok(assay_outputs_save(o, path, &options));
    assert_string_equal(assay_outputs_notes(o), "");
    ok(assay_compare_files(path, reference, NULL, &c));
    assert_true(assay_comparison_passed(c));
    assert_true(assay_comparison_statistic(c, 0, ASSAY_STATISTIC_MAX_ABS) == 0);
    assay_comparison_destroy(c);
  }
  assay_outputs_destroy(o);
}

static void types_that_a_format_lacks_are_told(void** state) {
  (void)state;
  static const uint16_t bits[] = {0x3f80, 0x4000};
  static const int64_t dims[] = {2};
  assay_outputs_t* o = NULL;
  assay_tensor_t* t = NULL;
  assay_outputs_options_t options = ASSAY_OUTPUTS_OPTIONS_INIT;
  ok(assay_tensor_make(ASSAY_TYPE_BFLOAT16, 1, dims, bits, sizeof bits, &t));
  ok(assay_outputs_create(&o));
  ok(assay_outputs_begin_run(o));
  ok(assay_outputs_add(o, "b", t));
  ok(assay_outputs_save(o, in_folder("b.json"), NULL));
  assert_non_null(strstr(assay_outputs_notes(o), "b"));
  options.raw_bits = true;
  ok(assay_outputs_save(o, in_folder("b.json"), &options));
  assert_string_equal(assay_outputs_notes(o), "");
  options.struct_size = offsetof(assay_outputs_options_t, raw_bits);  // does not know of it
  ok(assay_outputs_save(o, in_folder("b.json"), &options));
  assert_non_null(strstr(assay_outputs_notes(o), "b"));
  options = (assay_outputs_options_t)ASSAY_OUTPUTS_OPTIONS_INIT;
  options.compress = true;
  fails(assay_outputs_save(o, in_folder("b.npy"), &options), ASSAY_INVALID_ARGUMENT, ".npz");
  fails(assay_outputs_save(o, in_folder("b.zip"), NULL), ASSAY_INVALID_ARGUMENT, "b.zip");
  fails(assay_outputs_check_path("b.zip"), ASSAY_INVALID_ARGUMENT, "b.zip");
  ok(assay_outputs_check_path("b.npz"));
  fails(assay_outputs_save(o, "/nowhere/b.npz", NULL), ASSAY_NOT_FOUND, "/nowhere/b.npz");
  assay_outputs_destroy(o);
  assay_tensor_release(t);
}

// What is said of a file's tensors goes from samples to outputs, in safetensors.
static void metadata_is_handed_on(void** state) {
  (void)state;
  static const char said[] = "{\"by\": \"a test\", \"format\": \"pt\"}";
  static const char* const bad[] = {"[]", "{\"a\": 1}", "{", "text"};
  static const float x[] = {1, 2};
  static const int64_t dims[] = {1, 2};
  char path[128], plain[128];
  assay_model_t* m = NULL;
  assay_samples_t *with = NULL, *without = NULL;
  assay_outputs_t* o = NULL;
  assay_tensor_t* t = floats(2, dims, x);
  write_node_model(in_folder("add.onnx"), "", "Add");
  ok(assay_model_load(in_folder("add.onnx"), &m));
  snprintf(path, sizeof path, "%s", in_folder("said.safetensors"));
  snprintf(plain, sizeof plain, "%s", in_folder("plain.safetensors"));
  ok(assay_outputs_create(&o));
  ok(assay_outputs_begin_run(o));
  ok(assay_outputs_add(o, "x", t));
  ok(assay_outputs_save(o, plain, NULL));
  ok(assay_outputs_set_metadata(o, said));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    fails(assay_outputs_set_metadata(o, bad[i]), ASSAY_CORRUPT, "metadata of outputs");
  // Written twice, and of no harm where a format has no place for it.
  for (int again = 0; again < 2; again++) ok(assay_outputs_save(o, path, NULL));
  ok(assay_outputs_save(o, in_folder("said.npz"), NULL));
  const char* const both[] = {plain, path};
  ok(assay_samples_load(m, 2, both, NULL, &with));
  assert_string_equal(assay_samples_metadata(with), said);
  assay_samples_options_t of_outputs = ASSAY_SAMPLES_OPTIONS_INIT;
  of_outputs.outputs = true;
  ok(assay_samples_load(m, 2, both, &of_outputs, &without));
  assert_string_equal(assay_samples_metadata(without), said);
  assay_samples_destroy(without);
  ok(assay_outputs_set_metadata(o, NULL));
  ok(assay_outputs_save(o, path, NULL));
  ok(assay_samples_load(m, 1, both + 1, NULL, &without));
  assert_string_equal(assay_samples_metadata(without), "");
  assay_samples_destroy(without);
  ok(assay_samples_random(m, 1, 0, NULL, &without));
  assert_string_equal(assay_samples_metadata(without), "");
  assay_samples_destroy(without);
  assay_samples_destroy(with);
  assay_outputs_destroy(o);
  assay_tensor_release(t);
  assay_model_release(m);
}

static assay_status_t join_and_save(void) {
  static const float x[] = {1, 2};
  static const int64_t dims[] = {2};
  assay_outputs_t* o = NULL;
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_tensor_make(ASSAY_TYPE_FLOAT, 1, dims, x, sizeof x, &t);
  if (!st) st = assay_outputs_create(&o);
  for (int i = 0; !st && i < 2; i++) {
    st = assay_outputs_begin_run(o);
    if (!st) st = assay_outputs_add(o, "y", t);
  }
  if (!st) st = assay_outputs_join(o);
  if (!st) st = assay_outputs_save(o, in_folder("y.npz"), NULL);
  assay_outputs_destroy(o);
  assay_tensor_release(t);
  return st;
}

static void every_allocation_may_fail(void** state) {
  (void)state;
  allocations_fail(join_and_save);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_are_joined),
      cmocka_unit_test(files_hold_the_same),
      cmocka_unit_test(metadata_is_handed_on),
      cmocka_unit_test(types_that_a_format_lacks_are_told),
      cmocka_unit_test(every_allocation_may_fail),
  };
  char command[128];
  if (!mkdtemp(folder)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) ? 1 : failed;
}
