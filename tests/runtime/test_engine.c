// Engines of the public API: what they tell, options, plan files, errors.
#include <unistd.h>

#include "engine_case.h"

static void inputs_and_outputs(void** state) {
  (void)state;
  assay_engine_t* e = build_model("classifier", NULL);
  char text[64];
  size_t at = 9;
  assert_int_equal(assay_engine_input_count(e), 1);
  assert_int_equal(assay_engine_output_count(e), 1);
  const assay_io_t* in = assay_engine_input(e, 0);
  assert_string_equal(assay_io_name(in), "image");
  assert_int_equal(assay_io_kind(in), ASSAY_KIND_TENSOR);
  assert_int_equal(assay_io_elem(in), ASSAY_TYPE_FLOAT);
  assert_int_equal(assay_io_rank(in), 4);
  assert_int_equal(assay_io_dim(in, 0), -1);
  assert_int_equal(assay_io_dim(in, 1), 3);
  assert_int_equal(assay_io_dim(in, 4), -1);
  assert_string_equal(assay_io_type(in, text, sizeof text), "float[N, 3, 16, 16]");
  assert_null(assay_engine_input(e, 1));
  assert_null(assay_engine_output(e, 1));
  ok(assay_engine_find_output(e, "probabilities", &at));
  assert_int_equal(at, 0);
  fails(assay_engine_find_input(e, "picture", &at), ASSAY_NOT_FOUND, "image");
  assay_engine_release(assay_engine_retain(e));
  assay_engine_release(e);
  assay_engine_release(NULL);
}

static void shapes_are_settled(void** state) {
  (void)state;
  const int64_t dims[] = {4, -1, -1, 16};
  const assay_engine_shape_t shape = {"image", 4, dims, NULL, NULL};
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  o.shapes = &shape;
  o.n_shapes = 1;
  assay_engine_t* e = build_model("classifier", &o);
  assert_int_equal(assay_io_dim(assay_engine_input(e, 0), 0), 4);
  assert_int_equal(assay_io_dim(assay_engine_output(e, 0), 0), 4);
  assay_engine_release(e);
  // The loop has a function of the model's, which is not looked up again.
  const assay_engine_options_t batch = {.struct_size = sizeof batch, .batch = 3};
  e = build_model("loop", &batch);
  assert_int_equal(assay_io_dim(assay_engine_input(e, 1), 0), 3);
  assay_engine_release(e);
}

static void ranges_hold(void** state) {
  (void)state;
  const int64_t best[] = {2, 3, 16, 16}, min[] = {1, 3, 16, 16}, max[] = {4, 3, 16, 16};
  const assay_engine_shape_t shape = {"image", 4, best, min, max};
  const assay_engine_options_t o = {.struct_size = sizeof o, .shapes = &shape, .n_shapes = 1};
  static float images[5 * IMAGE];
  float out[4 * CLASSES];
  assay_engine_t* e = build_model("classifier", &o);
  assert_int_equal(assay_io_dim(assay_engine_input(e, 0), 0), -1);
  assay_context_t* c = open_context(e, NULL);
  classify(c, images, 1, out);
  classify(c, images, 4, out);
  const int64_t large[] = {5, 3, 16, 16};
  fails(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, large, images, sizeof images),
        ASSAY_INVALID_ARGUMENT, "5");
  assay_context_destroy(c);
  assay_engine_release(e);
}

static void options_that_make_no_sense(void** state) {
  (void)state;
  const int64_t dims[] = {4, 4, 16, 16}, small[] = {2, 4, 16, 16};
  const assay_engine_shape_t wrong = {"image", 4, dims, NULL, NULL},
                             nobody = {"x", 4, dims, NULL, NULL},
                             twisted = {"image", 4, dims, dims, small};
  const struct {
    assay_engine_options_t options;
    assay_code_t code;
    const char* word;
  } cases[] = {
      {{.target = "tpu"}, ASSAY_INVALID_ARGUMENT, "tpu"},
      {{.precision = ASSAY_FORMAT_INT8}, ASSAY_UNSUPPORTED, "int8"},
      {{.precision = (assay_format_t)999}, ASSAY_INVALID_ARGUMENT, "precision"},
      {{.layer_precision = "nobody:bf16"}, ASSAY_NOT_FOUND, "nobody"},
      {{.shapes = &wrong, .n_shapes = 1}, ASSAY_INVALID_ARGUMENT, "image"},
      {{.shapes = &twisted, .n_shapes = 1}, ASSAY_INVALID_ARGUMENT, "range"},
      {{.shapes = &nobody, .n_shapes = 1}, ASSAY_INVALID_ARGUMENT, "'x'"},
      {{.batch = -1}, ASSAY_INVALID_ARGUMENT, "batch"},
      {{.tactic_sources = "abacus"}, ASSAY_INVALID_ARGUMENT, "abacus"},
      {{.strict = true, .precision = ASSAY_FORMAT_FP8E4M3}, ASSAY_UNSUPPORTED, "layer"},
  };
  char path[512];
  assay_model_t* m = NULL;
  snprintf(path, sizeof path, "%s/classifier/model.onnx", getenv("ASSAY_TEST_MODELS"));
  ok(assay_model_load(path, &m));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assay_engine_options_t o = cases[i].options;
    assay_engine_t* e = NULL;
    o.struct_size = sizeof o;
    fails(assay_engine_build(m, &o, &e), cases[i].code, cases[i].word);
    assert_null(e);
  }
  assay_model_release(m);
}

static void plan_files_and_timings(void** state) {
  (void)state;
  char plan[64], cache[64];
  float images[2 * IMAGE], want[2 * CLASSES], have[2 * CLASSES];
  assay_engine_t *built, *loaded = NULL;
  snprintf(plan, sizeof plan, "/tmp/assay-test-engine-%ld.plan", (long)getpid());
  snprintf(cache, sizeof cache, "/tmp/assay-test-engine-%ld.times", (long)getpid());
  unlink(cache);
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  o.timing_cache = cache;
  o.batch = 2;
  for (int again = 0; again < 2; again++) {
    built = build_model("classifier", &o);
    assert_int_equal(access(cache, R_OK), 0);
    ok(assay_engine_save(built, plan));
    ok(assay_engine_load(plan, &loaded));
    fill(images, 2 * IMAGE, 1);
    assay_context_t *a = open_context(built, NULL), *b = open_context(loaded, NULL);
    classify(a, images, 2, want);
    classify(b, images, 2, have);
    assert_memory_equal(want, have, sizeof want);
    assay_context_destroy(a);
    assay_context_destroy(b);
    assay_engine_release(built);
    assay_engine_release(loaded);
  }
  unlink(plan);
  unlink(cache);
  fails(assay_engine_load(plan, &loaded), ASSAY_NOT_FOUND, plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_and_outputs), cmocka_unit_test(shapes_are_settled),
      cmocka_unit_test(ranges_hold), cmocka_unit_test(options_that_make_no_sense),
      cmocka_unit_test(plan_files_and_timings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
