// Engines for a range of shapes: what is refused, and that running and building again and again
// takes no more memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "data/samples.h"
#include "onnx/load.h"
#include "runtime/executor.h"

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

static void texts_are_read(void** state) {
  (void)state;
  static const char* const bad[] = {"",
                                    "x",
                                    "1x",
                                    "1x2:3",
                                    "1:2",
                                    "0:1:2",
                                    "2:1:3",
                                    "1:3:2",
                                    "1:2:3:4",
                                    "1x2:1:3",
                                    "-1:1:1",
                                    "1:1:1x",
                                    "1:1:1:",
                                    "1 :1:1",
                                    "1x1x1x1x1x1x1x1x1",
                                    "99999999999999999999",
                                    "[1,2",
                                    "[1x2]",
                                    "[]",
                                    "[1]:2:3",
                                    "[2]:[1]:[3]"};
  assay_profile_t p;
  ok(assay_profile_parse("x", "1x80:4x80:8x80", &p));
  assert_int_equal(p.rank, 2);
  assert_true(p.min[0] == 1 && p.opt[0] == 4 && p.max[0] == 8 && p.max[1] == 80);
  ok(assay_profile_check(&p, 2, (int64_t[]){5, 80}));
  ok(assay_profile_parse("x", "3x4", &p));
  assert_true(p.min[1] == 4 && p.opt[1] == 4 && p.max[1] == 4);
  assert_false(p.values);
  ok(assay_profile_parse("s", "[1,2]:[3,4]:[5,6]", &p));
  assert_true(p.values && p.rank == 2 && p.min[1] == 2 && p.opt[0] == 3 && p.max[1] == 6);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assay_status_t st = assay_profile_parse("x", bad[i], &p);
    if (!st) fail_msg("'%s' was taken", bad[i]);
    assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
    assay_status_free(st);
  }
}

static assay_engine_t* build(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/transformer/model.onnx", getenv("ASSAY_TEST_MODELS"));
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
  const assay_plan_options_t options = {.fused = true};
  assay_model_t* m = NULL;
  assay_plan_t* plan = NULL;
  assay_engine_t* e = NULL;
  assay_profile_t p;
  ok(assay_onnx_load(path, 0, NULL, &m));
  ok(assay_plan_create(m, &precision, &options, 1, &plan));
  ok(assay_engine_create(plan, assay_backend_find("cpu"), NULL, &e));
  ok(assay_profile_parse("tokens", "1x1:4x16:8x32", &p));
  ok(assay_engine_set_profiles(e, &p, 1));
  assay_model_release(m);
  return e;
}

static assay_status_t run_shape(assay_engine_t* engine, assay_executor_t* e, int64_t rows,
                                int64_t columns) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(engine))->model;
  const int64_t dims[] = {rows, columns};
  const assay_input_shape_t shape = {"tokens", 2, dims};
  assay_samples_t s = {0};
  ok(assay_samples_generate_shaped(m, 1, &shape, 3, &s));
  assay_executor_reset(e);
  assay_status_t st = assay_executor_set_inputs(e, assay_samples_get(&s, 0));
  if (!st) st = assay_executor_run(e);
  assay_samples_deinit(&s);
  return st;
}

static void other_shapes_are_refused(void** state) {
  (void)state;
  assay_engine_t* engine = build();
  assay_executor_t* e = NULL;
  ok(assay_executor_run_engine(engine, NULL, &e));
  assay_status_t st = run_shape(engine, e, 9, 16);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  ok(run_shape(engine, e, 8, 32));
  assay_executor_destroy(e);
  assay_engine_release(engine);
}

static assay_tensor_t* vector(assay_type_t type, int64_t a, int64_t b, bool packed) {
  assay_tensor_t *wide = NULL, *t = NULL;
  ok(assay_tensor_vector_i64(type, 2, (int64_t[]){a, b}, &wide));
  if (!packed) return wide;
  ok(assay_tensor_pack(wide, &t));
  assay_tensor_release(wide);
  return t;
}

// Values of an input that holds a shape, in both widths and stores.
static void values_are_compared(void** state) {
  (void)state;
  const assay_type_t types[] = {ASSAY_TYPE_INT32, ASSAY_TYPE_INT64};
  assay_profile_t p;
  ok(assay_profile_parse("s", "[1,2]:[3,4]:[5,6]", &p));
  for (int i = 0; i < 4; i++) {
    assay_tensor_t* in = vector(types[i / 2], 5, 2, i % 2);
    assay_tensor_t* out = vector(types[i / 2], 5, 7, i % 2);
    assert_true(assay_profile_takes(&p, in));
    assert_false(assay_profile_takes(&p, out));
    assay_tensor_release(in);
    assay_tensor_release(out);
  }
}

// Several profiles: each with ranges of the same inputs; a run fits one of them.
static void one_of_several_takes_a_run(void** state) {
  (void)state;
  assay_engine_t* engine = build();
  assay_executor_t* e = NULL;
  assay_profile_t p[2];
  ok(assay_profile_parse("tokens", "1x1:2x2:4x4", &p[0]));
  ok(assay_profile_parse("tokens", "6x8:6x8:8x16", &p[1]));
  p[1].profile = 2;
  assay_status_t st = assay_engine_set_profiles(engine, p, 2);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  p[1].profile = 1;
  ok(assay_engine_set_profiles(engine, p, 2));
  ok(assay_executor_run_engine(engine, NULL, &e));
  ok(run_shape(engine, e, 4, 4));
  ok(run_shape(engine, e, 8, 8));
  st = run_shape(engine, e, 5, 8);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assert_non_null(strstr(assay_status_message(st), "[1, 1] to [4, 4] or [6, 8] to [8, 16]"));
  assay_status_free(st);
  assay_executor_destroy(e);
  assay_engine_release(engine);
}

// What built_with_several() gave comes back, and what is not there is an error.
static void expect_ranges(const assay_engine_t* engine) {
  assay_engine_range_t r = ASSAY_ENGINE_RANGE_INIT, small = {.struct_size = 8};
  assert_int_equal(assay_engine_profile_count(engine), 2);
  ok(assay_engine_profile_range(engine, 1, 0, &r));
  assert_true(!r.values && r.rank == 2 && r.min[0] == 6 && r.min[1] == 8);
  assert_true(r.best[0] == 6 && r.best[1] == 8 && r.max[0] == 8 && r.max[1] == 16);
  const struct {
    size_t profile, input;
    assay_engine_range_t* out;
  } bad[] = {{2, 0, &r}, {0, 9, &r}, {0, 0, &small}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assay_status_t st =
        assay_engine_profile_range(engine, bad[i].profile, bad[i].input, bad[i].out);
    assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
    assay_status_free(st);
  }
}

// The public way: a range of an input that has one already belongs to the next profile.
static void built_with_several(void** state) {
  (void)state;
  char path[512];
  const int64_t minimum[2][2] = {{1, 1}, {6, 8}}, best[2][2] = {{2, 2}, {6, 8}};
  const int64_t maximum[2][2] = {{4, 4}, {8, 16}};
  const assay_engine_shape_t shapes[] = {{"tokens", 2, best[0], minimum[0], maximum[0]},
                                         {"tokens", 2, best[1], minimum[1], maximum[1]}};
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_model_t* m = NULL;
  assay_engine_t* engine = NULL;
  assay_executor_t* e = NULL;
  const assay_profile_t* p;
  o.shapes = shapes;
  o.n_shapes = 2;
  snprintf(path, sizeof path, "%s/transformer/model.onnx", getenv("ASSAY_TEST_MODELS"));
  ok(assay_onnx_load(path, 0, NULL, &m));
  ok(assay_engine_build(m, &o, &engine));
  assert_int_equal(assay_engine_profiles(engine, &p), 2);
  assert_true(p[0].profile == 0 && p[1].profile == 1 && p[1].max[1] == 16);
  expect_ranges(engine);
  ok(assay_executor_run_engine(engine, NULL, &e));
  ok(run_shape(engine, e, 8, 16));
  ok(run_shape(engine, e, 3, 1));
  assay_status_t st = run_shape(engine, e, 3, 8);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  assay_executor_destroy(e);
  assay_engine_release(engine);
  assay_model_release(m);
}

// Segments of the last sizes are kept: behind some runs of every kind nothing more is allocated.
static void runs_take_no_more_memory(void** state) {
  (void)state;
  enum { SETTLE = 400, RUNS = 1000 };
  const assay_random_t r = assay_random_make(11, "shapes", 0);
  assay_engine_t* engine = build();
  assay_executor_t* e = NULL;
  int64_t settled = 0, maximum = 0;
  ok(assay_executor_run_engine(engine, NULL, &e));
  for (uint64_t i = 0; i < RUNS; i++) {
    const int64_t rows = 1 + (int64_t)(assay_random_uniform(&r, 2 * i) * 8);
    const int64_t columns = 1 + (int64_t)(assay_random_uniform(&r, 2 * i + 1) * 32);
    ok(run_shape(engine, e, rows, columns));
    const int64_t used = assay_memory_used();
    if (i < SETTLE && used > settled) settled = used;
    if (i >= SETTLE && used > maximum) maximum = used;
  }
  if (maximum > settled + settled / 10)
    fail_msg("seed 11: %lld bytes behind %d runs, %lld behind %d", (long long)settled, SETTLE,
             (long long)maximum, RUNS);
  assay_executor_destroy(e);
  assay_engine_release(engine);
}

static void builds_leave_nothing(void** state) {
  (void)state;
  enum { BUILDS = 100 };
  int64_t live = 0;
  for (int i = 0; i < BUILDS; i++) {
    assay_engine_t* engine = build();
    assay_executor_t* e = NULL;
    ok(assay_executor_run_engine(engine, NULL, &e));
    ok(run_shape(engine, e, 1 + i % 8, 1 + i % 32));
    assay_executor_destroy(e);
    assay_engine_release(engine);
    if (i == 0) live = assay_alloc_live();
    assert_true(assay_alloc_live() <= live);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_read),      cmocka_unit_test(other_shapes_are_refused),
      cmocka_unit_test(values_are_compared), cmocka_unit_test(one_of_several_takes_a_run),
      cmocka_unit_test(built_with_several),  cmocka_unit_test(runs_take_no_more_memory),
      cmocka_unit_test(builds_leave_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
