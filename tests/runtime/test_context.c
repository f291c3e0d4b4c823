// Contexts of the public API: where inputs and outputs lie, how runs go and end, what is seen of
// them.
#include "base/alloc.h"
#include "engine_case.h"
#include "onnx/models.h"

static float images[MAX * IMAGE];
static float want[MAX + 1][MAX * CLASSES];  // by how many images are run at once
static char capacity[MAX * IMAGE * sizeof(float) + 64];

// Engine and expected results, in fp32 on the CPU.
static assay_engine_t* classifier(void) {
  assay_engine_t* e = build_model("classifier", NULL);
  fill(images, MAX * IMAGE, 7);
  assay_context_t* c = open_context(e, NULL);
  for (int64_t n = 1; n <= MAX; n++) classify(c, images, n, want[n]);
  assay_context_destroy(c);
  return e;
}

static void expect(const void* have, int64_t n) {
  assert_memory_equal(have, want[n], (size_t)n * CLASSES * sizeof **want);
}

static void outputs_lie_where_they_are_bound(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  float out[MAX * CLASSES];
  // The tensor sets the size, also back and forth.
  const int64_t sizes[] = {2, MAX, 1, 2, 2};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    memset(out, 0, sizeof out);
    bind_images(c, images, sizes[i]);
    ok(assay_context_bind_output(c, 0, out, sizeof out));
    ok(assay_context_run(c));
    expect(out, sizes[i]);
    assert_false(assay_context_output_copied(c, 0));
    assay_tensor_t* t = assay_context_output(c, 0);
    assert_int_equal(assay_tensor_dims(t)[0], sizes[i]);
    assay_tensor_release(t);
  }
  // New numbers in the same memory, and memory of its own again.
  float* moved = malloc(2 * IMAGE * sizeof *moved);
  assert_non_null(moved);
  memset(moved, 0, 2 * IMAGE * sizeof *moved);
  bind_images(c, moved, 2);
  ok(assay_context_run(c));
  memcpy(moved, images, 2 * IMAGE * sizeof *moved);
  ok(assay_context_run(c));
  expect(out, 2);
  memset(out, 0, sizeof out);
  ok(assay_context_bind_output(c, 0, NULL, 0));
  ok(assay_context_run(c));
  assert_true(out[0] == 0);
  free(moved);
  assay_context_destroy(c);
  assay_engine_release(e);
}

static void memory_at_any_address(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  const int64_t dims[] = {2, 3, 16, 16};
  const size_t in_bytes = 2 * IMAGE * sizeof(float), out_bytes = 2 * CLASSES * sizeof(float);
  for (int offset = 0; offset < 5; offset++) {
    memcpy(capacity + offset, images, in_bytes);
    ok(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, capacity + offset, in_bytes));
    // The output lies behind the input, then in its midst.
    char* places[] = {capacity + offset + in_bytes, capacity + offset + 8};
    for (int k = 0; k < 2; k++) {
      ok(assay_context_bind_output(c, 0, places[k], out_bytes));
      ok(assay_context_run(c));
      assert_int_equal(assay_context_output_copied(c, 0), k == 1 || offset % 4 != 0);
      expect(places[k], 2);
    }
  }
  assay_context_destroy(c);
  assay_engine_release(e);
}

static void what_does_not_fit_is_refused(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  const int64_t dims[] = {2, 3, 16, 16}, wide[] = {2, 3, 16, 17}, negative[] = {-2, 3, 16, 16};
  const size_t bytes = 2 * IMAGE * sizeof(float);
  float out[2 * CLASSES];
  fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "not bound");
  fails(assay_context_bind_input(c, 1, ASSAY_TYPE_FLOAT, 4, dims, images, bytes),
        ASSAY_INVALID_ARGUMENT, "no 1");
  fails(assay_context_bind_input(c, 0, ASSAY_TYPE_DOUBLE, 4, dims, capacity, 2 * bytes),
        ASSAY_INVALID_ARGUMENT, "double");
  fails(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, wide, capacity, bytes / 16 * 17),
        ASSAY_INVALID_ARGUMENT, "image");
  fails(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, negative, images, bytes),
        ASSAY_INVALID_ARGUMENT, "image");
  fails(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 3, dims, images, bytes / 16),
        ASSAY_INVALID_ARGUMENT, "image");
  fails(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, images, bytes - 1),
        ASSAY_INVALID_ARGUMENT, "bytes");
  fails(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, NULL, bytes),
        ASSAY_INVALID_ARGUMENT, "address");
  fails(assay_context_bind_input(c, 0, ASSAY_TYPE_STRING, 4, dims, images, bytes),
        ASSAY_INVALID_ARGUMENT, "set_input");
  fails(assay_context_bind_output(c, 1, out, sizeof out), ASSAY_INVALID_ARGUMENT, "no 1");
  bind_images(c, images, 2);
  ok(assay_context_bind_output(c, 0, out, sizeof out - 1));
  fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "79");
  assert_null(assay_context_output(c, 0));
  ok(assay_context_bind_output(c, 0, out, sizeof out));
  ok(assay_context_run(c));
  expect(out, 2);
  ok(assay_context_set_input(c, 0, NULL));
  fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "not bound");
  assay_context_destroy(c);
  assay_engine_release(e);
}

// Sizes that only a run tells, outputs of several types, on both targets.
static void several_outputs(void** state) {
  (void)state;
  enum { BEST = 2 * 3, SELECTED = 60 };
  const char* const targets[] = {"cpu", "emu"};
  float image[36], best[BEST];
  int64_t where[BEST], selected[SELECTED];
  const int64_t dims[] = {1, 1, 6, 6};
  fill(image, 36, 3);
  for (int i = 0; i < 2; i++) {
    const assay_engine_options_t o = {.struct_size = sizeof o, .target = targets[i]};
    assay_engine_t* e = build_model("detector", &o);
    assay_context_t* c = open_context(e, NULL);
    ok(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, image, sizeof image));
    ok(assay_context_bind_output(c, 0, selected, sizeof selected));
    ok(assay_context_bind_output(c, 1, best, sizeof best));
    ok(assay_context_bind_output(c, 2, where, sizeof where));
    ok(assay_context_run(c));
    assay_tensor_t* t = assay_context_output(c, 0);
    const int64_t n = assay_tensor_dims(t)[0];
    assert_in_range(n, 1, SELECTED / 3);
    for (int64_t k = 0; k < n; k++) {
      assert_int_equal(selected[3 * k], 0);
      assert_in_range(selected[3 * k + 1], 0, 1);
      assert_in_range(selected[3 * k + 2], 0, 35);
    }
    assay_tensor_release(t);
    for (int k = 0; k < BEST; k++) assert_in_range(where[k], 0, 35);
    assert_true(best[0] >= best[1] && best[1] >= best[2]);
    if (i) assert_true(assay_context_output_copied(c, 1));
    ok(assay_context_bind_output(c, 2, best, sizeof best));
    fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "overlap");
    assay_context_destroy(c);
    assay_engine_release(e);
  }
}

static void put_sized(onnx_builder_t* b, uint32_t field, const char* name, const char* size) {
  const onnx_mark_t info = onnx_begin(b, field);
  onnx_put_name(b, 1, name);
  const onnx_mark_t type = onnx_begin(b, 2), tensor = onnx_begin(b, 1);
  onnx_put_int(b, 1, ASSAY_TYPE_FLOAT);
  const onnx_mark_t shape = onnx_begin(b, 2), dim = onnx_begin(b, 1);
  onnx_put_text(b, 2, size);
  onnx_end(b, dim);
  onnx_end(b, shape);
  onnx_end(b, tensor);
  onnx_end(b, type);
  onnx_end(b, info);
}

// y = a + b, z = a - b, and a itself is an output; all of size N.
static assay_engine_t* sums(void) {
  onnx_builder_t b = {0};
  put_head(&b, 8, 17);
  const onnx_mark_t graph = onnx_begin(&b, 7);
  onnx_put_text(&b, 2, "g");
  put_node(&b, 1, "Add", "add", "a b -> y");
  put_node(&b, 1, "Sub", "subtract", "a b -> z");
  put_sized(&b, 11, "a", "N");
  put_sized(&b, 11, "b", "N");
  put_sized(&b, 12, "y", "N");
  put_sized(&b, 12, "z", "N");
  put_sized(&b, 12, "a", "N");
  onnx_end(&b, graph);
  assert_null(b.status);
  assay_model_t* m = NULL;
  assay_engine_t* e = NULL;
  ok(assay_model_load_bytes(b.bytes, b.len, NULL, &m));
  onnx_builder_deinit(&b);
  ok(assay_engine_build(m, NULL, &e));
  assay_model_release(m);
  return e;
}

static void sizes_of_one_name_agree(void** state) {
  (void)state;
  enum { N = 100 };
  assay_engine_t* e = sums();
  assay_context_t* c = open_context(e, NULL);
  const int64_t n = N, less = N - 1;
  float a[N], b[N], was[N], z[N], same[N];
  fill(was, N, 1);
  fill(b, N, 2);
  memcpy(a, was, sizeof a);
  ok(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 1, &n, a, sizeof a));
  ok(assay_context_bind_input(c, 1, ASSAY_TYPE_FLOAT, 1, &less, b, sizeof b - sizeof *b));
  fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "'N' is 99 in dimension 0 of input 'b'");
  ok(assay_context_bind_input(c, 1, ASSAY_TYPE_FLOAT, 1, &n, b, sizeof b));
  // y goes where a lies, which is read until the end.
  ok(assay_context_bind_output(c, 0, a, sizeof a));
  ok(assay_context_bind_output(c, 1, z, sizeof z));
  ok(assay_context_bind_output(c, 2, same, sizeof same));
  for (int run = 0; run < 3; run++) {
    memcpy(was, a, sizeof a);
    ok(assay_context_run(c));
    for (int i = 0; i < N; i++) {
      assert_true(a[i] == was[i] + b[i]);
      assert_true(z[i] == was[i] - b[i]);
      assert_true(same[i] == was[i]);
    }
    assert_true(assay_context_output_copied(c, 0));
    assert_false(assay_context_output_copied(c, 1));
    assert_true(assay_context_output_copied(c, 2));
  }
  // An output that is an input is the caller's own, whatever becomes of the input's memory.
  ok(assay_context_bind_output(c, 2, NULL, 0));
  memcpy(was, a, sizeof a);
  ok(assay_context_run(c));
  memset(a, 0, sizeof a);
  assay_tensor_t* t = assay_context_output(c, 2);
  ok(assay_tensor_read(t, same, sizeof same));
  assert_memory_equal(same, was, sizeof was);
  assay_tensor_release(t);
  assay_context_destroy(c);
  assay_engine_release(e);
}

static void scalars_and_bodies(void** state) {
  (void)state;
  assay_engine_t* e = build_model("loop", NULL);
  assay_context_t* c = open_context(e, NULL);
  const int64_t steps = 5, dims[] = {3, 4};
  float start[12], end[12];
  assay_tensor_t* t = NULL;
  fill(start, 12, 2);
  ok(assay_tensor_make(ASSAY_TYPE_INT64, 0, NULL, &steps, sizeof steps, &t));
  ok(assay_context_set_input(c, 0, t));
  assay_tensor_release(t);
  ok(assay_context_bind_input(c, 1, ASSAY_TYPE_FLOAT, 2, dims, start, sizeof start));
  ok(assay_context_bind_output(c, 0, end, sizeof end));
  ok(assay_context_run(c));
  t = assay_context_output(c, 1);
  assert_int_equal(assay_tensor_dims(t)[0], 5);
  assay_tensor_release(t);
  assay_context_destroy(c);
  assay_engine_release(e);
}

// ---- runs of its own thread ---------------------------------------------------------------------

static void runs_in_its_own_thread(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  float out[MAX * CLASSES];
  fails(assay_context_wait(c), ASSAY_INVALID_ARGUMENT, "assay_context_start");
  assert_true(assay_context_wait_for(c, 0));
  ok(assay_context_start(c));
  fails(assay_context_wait(c), ASSAY_INVALID_ARGUMENT, "not bound");
  ok(assay_context_bind_output(c, 0, out, sizeof out));
  for (int i = 0; i < 5; i++) {
    memset(out, 0, sizeof out);
    bind_images(c, images, 1 + i);
    ok(assay_context_start(c));
    assert_true(assay_context_wait_for(c, 60000));
    fails(assay_context_start(c), ASSAY_INVALID_ARGUMENT, "wait");
    ok(assay_context_wait(c));
    expect(out, 1 + i);
  }
  ok(assay_context_run(c));
  ok(assay_context_start(c));
  assay_context_destroy(c);  // with a run under way, or just ended
  assay_engine_release(e);
}

// ---- cancelling, taps, profiles -----------------------------------------------------------------

typedef struct watch {
  assay_context_t* context;
  size_t calls, cancel_at, fail_at;
  bool saw_image, saw_probabilities;
} watch_t;

static assay_status_t inspect(void* user, const assay_layer_values_t* v) {
  watch_t* w = user;
  w->calls++;
  for (size_t i = 0; i < v->n_inputs; i++)
    if (strcmp(v->input_names[i], "image") == 0)
      w->saw_image = assay_tensor_rank(v->inputs[i]) == 4;
  for (size_t i = 0; i < v->n_outputs; i++) {
    float x[2 * CLASSES];
    if (strcmp(v->output_names[i], "probabilities") != 0) continue;
    ok(assay_tensor_read(v->outputs[i], x, sizeof x));
    expect(x, 2);
    w->saw_probabilities = true;
  }
  if (w->calls == w->cancel_at) assay_context_cancel(w->context);
  if (w->calls == w->fail_at) return assay_status_create(ASSAY_DEVICE, "seen enough");
  return NULL;
}

static void layers_are_seen_and_runs_cancelled(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  watch_t w = {0};
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  o.tap = inspect;
  o.tap_user = &w;
  o.profile = true;
  o.threads = 1;
  assay_context_t* c = w.context = open_context(e, &o);
  bind_images(c, images, 2);
  ok(assay_context_run(c));
  const size_t n = assay_context_layer_count(c);
  assert_true(n > 3 && w.calls == n && w.saw_image && w.saw_probabilities);

  w = (watch_t){.context = c, .cancel_at = 2};
  fails(assay_context_run(c), ASSAY_CANCELLED, "before layer 2");
  assert_int_equal(w.calls, 2);
  assert_null(assay_context_output(c, 0));
  assay_layer_run_t run = ASSAY_LAYER_RUN_INIT;
  ok(assay_context_layer(c, 1, &run));
  assert_true(run.duration_ns > 0);
  ok(assay_context_layer(c, 2, &run));
  assert_int_equal(run.duration_ns, 0);

  w = (watch_t){.context = c, .cancel_at = 3};
  ok(assay_context_start(c));
  fails(assay_context_wait(c), ASSAY_CANCELLED, "layer");

  w = (watch_t){.context = c, .fail_at = 3};
  fails(assay_context_run(c), ASSAY_DEVICE, "seen enough");

  assay_context_cancel(c);  // nothing runs
  w = (watch_t){.context = c};
  ok(assay_context_run(c));
  int64_t end = 0;
  for (size_t i = 0; i < n; i++) {
    ok(assay_context_layer(c, i, &run));
    assert_true(*run.name && *run.op && *run.tactic);
    assert_int_equal(run.format, ASSAY_FORMAT_FP32);
    assert_true(run.start_ns >= end && run.duration_ns > 0);
    end = run.start_ns + run.duration_ns;
  }
  fails(assay_context_layer(c, n, &run), ASSAY_INVALID_ARGUMENT, "layer");
  assay_context_destroy(c);

  o.threads = -1;
  fails(assay_context_create(e, &o, &c), ASSAY_INVALID_ARGUMENT, "threads");
  assay_engine_release(e);
}

// ---- memory -------------------------------------------------------------------------------------

static assay_status_t use(assay_engine_t* e, float* out, size_t bytes) {
  const int64_t dims[] = {2, 3, 16, 16};
  assay_context_t* c = NULL;
  assay_status_t st = assay_context_create(e, NULL, &c);
  if (st) return st;
  st =
      assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, images, 2 * IMAGE * sizeof *images);
  if (!st) st = assay_context_bind_output(c, 0, out, bytes);
  if (!st) st = assay_context_start(c);
  if (!st) st = assay_context_wait(c);
  assay_context_destroy(c);
  return st;
}

static void any_allocation_may_fail(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  float out[2 * CLASSES];
  bool done = false;
  for (uint64_t n = 1; !done; n++) {
    const int64_t live = assay_alloc_live();
    assay_alloc_fail_after(n, false);
    assay_status_t st = use(e, out, sizeof out);
    done = assay_alloc_fail_after(0, false) < n;
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) fail_msg("%s", assay_status_message(st));
    assay_status_free(st);
    // What the engine keeps of weights for all contexts may have grown.
    assert_true(assay_alloc_live() >= live && assay_alloc_live() < live + 64);
    assert_true(n < 100000);
  }
  expect(out, 2);
  assay_engine_release(e);
}

static void runs_leave_nothing_behind(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  float out[MAX * CLASSES];
  int64_t live = 0;
  for (int i = 0; i < 200; i++) {
    bind_images(c, images, 1 + i % MAX);
    ok(assay_context_bind_output(c, 0, i % 3 ? out : NULL, sizeof out));
    ok(assay_context_run(c));
    if (i == 60) live = assay_alloc_live();
    if (i > 60) assert_in_range(assay_alloc_live(), live - 20, live + 20);
  }
  assay_context_destroy(c);
  assay_engine_release(e);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(outputs_lie_where_they_are_bound),
                                     cmocka_unit_test(memory_at_any_address),
                                     cmocka_unit_test(what_does_not_fit_is_refused),
                                     cmocka_unit_test(several_outputs),
                                     cmocka_unit_test(sizes_of_one_name_agree),
                                     cmocka_unit_test(scalars_and_bodies),
                                     cmocka_unit_test(runs_in_its_own_thread),
                                     cmocka_unit_test(layers_are_seen_and_runs_cancelled),
                                     cmocka_unit_test(any_allocation_may_fail),
                                     cmocka_unit_test(runs_leave_nothing_behind)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
