// When contexts take memory: at their start for the shapes to come, or as runs need it; results are
// the same.
#include "base/alloc.h"
#include "engine_case.h"
#include "fail_case.h"

static float images[MAX * IMAGE];

// Two profiles: of 1 to 2 images, and of 4 to 6.
static assay_engine_t* build_two(void) {
  static const int64_t dims[][4] = {
      {1, 3, 16, 16}, {2, 3, 16, 16}, {4, 3, 16, 16}, {MAX, 3, 16, 16}};
  const assay_engine_shape_t shapes[] = {{"image", 4, dims[0], dims[0], dims[1]},
                                         {"image", 4, dims[2], dims[2], dims[3]}};
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  o.shapes = shapes;
  o.n_shapes = 2;
  fill(images, MAX * IMAGE, 7);
  return build_model("classifier", &o);
}

static assay_context_t* open_with(assay_engine_t* e, assay_allocation_t allocation, int profile) {
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  o.allocation = allocation;
  o.allocation_profile = profile;
  return open_context(e, &o);
}

// Bytes that a context has taken which ran so many images and nothing else.
static size_t memory_of(assay_engine_t* e, int64_t n, float* out) {
  assay_context_t* c = open_with(e, ASSAY_ALLOCATE_RUNTIME, 0);
  assert_int_equal(assay_context_memory(c), 0);
  classify(c, images, n, out);
  const size_t bytes = assay_context_memory(c);
  assay_context_destroy(c);
  return bytes;
}

static void memory_is_taken_when_it_was_asked_for(void** state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 4, MAX, 1};
  enum { N = sizeof sizes / sizeof *sizes };
  float want[N][MAX * CLASSES] = {{0}}, got[MAX * CLASSES] = {0};
  size_t bytes[N];
  assay_engine_t* e = build_two();
  for (int i = 0; i < N; i++) bytes[i] = memory_of(e, sizes[i], want[i]);
  assert_true(0 < bytes[1] && bytes[1] < bytes[3]);
  // The allocation, its profile, what there is at the start, and behind all runs.
  const struct {
    assay_allocation_t allocation;
    int profile;
    size_t start, end;
  } rows[] = {{ASSAY_ALLOCATE_STATIC, 0, bytes[3], bytes[3]},
              {ASSAY_ALLOCATE_PROFILE, 0, bytes[1], bytes[3]},
              {ASSAY_ALLOCATE_PROFILE, 1, bytes[3], bytes[3]},
              {ASSAY_ALLOCATE_RUNTIME, 0, 0, bytes[3]}};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    assay_context_t* c = open_with(e, rows[r].allocation, rows[r].profile);
    assert_int_equal(assay_context_memory(c), rows[r].start);
    for (int i = 0; i < N; i++) {
      const size_t before = assay_context_memory(c);
      classify(c, images, sizes[i], got);
      assert_memory_equal(got, want[i], (size_t)sizes[i] * CLASSES * sizeof *got);
      const size_t min = before > bytes[i] ? before : bytes[i];
      assert_int_equal(assay_context_memory(c), min);  // nothing is taken that was there
    }
    assert_int_equal(assay_context_memory(c), rows[r].end);
    assay_context_destroy(c);
  }
  assay_engine_release(e);
}

static assay_status_t count(void* user, const assay_layer_values_t* values) {
  (void)values;
  ++*(int*)user;
  return NULL;
}

// The runs of made-up inputs are nobody's business.
static void taps_do_not_see_it(void** state) {
  (void)state;
  float out[CLASSES];
  int n = 0;
  assay_engine_t* e = build_two();
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  o.allocation = ASSAY_ALLOCATE_STATIC;
  o.tap = count;
  o.tap_user = &n;
  assay_context_t* c = open_context(e, &o);
  assert_int_equal(n, 0);
  assert_null(assay_context_output(c, 0));
  classify(c, images, 1, out);
  assert_int_equal(n, assay_context_layer_count(c));
  assay_context_destroy(c);
  assay_engine_release(e);
}

static void other_models_run_as_ever(void** state) {
  (void)state;
  // Open sizes without a range: nothing is known at the start.
  assay_engine_t* e = build_model("classifier", NULL);
  float out[MAX * CLASSES], again[MAX * CLASSES];
  const size_t bytes = memory_of(e, MAX, out);
  assay_context_t* c = open_with(e, ASSAY_ALLOCATE_STATIC, 0);
  assert_int_equal(assay_context_memory(c), 0);
  classify(c, images, MAX, again);
  assert_memory_equal(again, out, sizeof out);
  assert_int_equal(assay_context_memory(c), bytes);
  assay_context_destroy(c);
  assay_engine_release(e);
  // Fixed sizes without a profile: those.
  e = build_model("detector", NULL);
  c = open_with(e, ASSAY_ALLOCATE_STATIC, 0);
  assert_true(assay_context_memory(c) > 0);
  assay_context_destroy(c);
  assay_engine_release(e);
}

static void what_makes_no_sense_is_refused(void** state) {
  (void)state;
  assay_engine_t* e = build_two();
  assay_context_t* c = NULL;
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  o.allocation = ASSAY_ALLOCATE_PROFILE;
  o.allocation_profile = 2;
  fails(assay_context_create(e, &o, &c), ASSAY_INVALID_ARGUMENT, "no profile 2: the engine has 2");
  o.allocation_profile = -1;
  fails(assay_context_create(e, &o, &c), ASSAY_INVALID_ARGUMENT, "no profile -1");
  o.allocation = (assay_allocation_t)9;
  fails(assay_context_create(e, &o, &c), ASSAY_INVALID_ARGUMENT, "not 9");
  // A caller that does not know of it.
  o.struct_size = offsetof(assay_context_options_t, allocation);
  c = open_context(e, &o);
  assert_int_equal(assay_context_memory(c), 0);
  assay_context_destroy(c);
  assay_engine_release(e);
}

static void allocations_may_fail(void** state) {
  (void)state;
  assay_engine_t* e = build_two();
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  o.allocation = ASSAY_ALLOCATE_STATIC;
  for (int sticky = 0; sticky < 2; sticky++) {
    bool reached = true;
    for (uint64_t n = 1; reached; n = fail_next(n, 64)) {
      assay_context_t* c = NULL;
      const int64_t live = assay_alloc_live();
      assay_alloc_fail_after(n, sticky);
      assay_status_t st = assay_context_create(e, &o, &c);
      reached = assay_alloc_fail_after(0, false) >= n;
      const bool failed = st;
      if (!reached) ok(st), st = NULL;
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_context_destroy(c);
      if (failed) assert_true(assay_alloc_live() <= live);
    }
  }
  assay_engine_release(e);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_is_taken_when_it_was_asked_for), cmocka_unit_test(taps_do_not_see_it),
      cmocka_unit_test(other_models_run_as_ever), cmocka_unit_test(what_makes_no_sense_is_refused),
      cmocka_unit_test(allocations_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
