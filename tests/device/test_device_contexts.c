// Contexts of the public API on a device with memory of its own: several threads share it, and
// inputs and outputs lie in its memory.
#include <assay/device_memory.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/device/code.h"
#include "mock/mock.h"
#include "runtime/engine_case.h"

static float images[MAX * IMAGE];
static float want[MAX + 1][MAX * CLASSES];  // by how many images are run at once

static int calm(void** state) {
  (void)state;
  mock_fail(MOCK_NO_FAULT, 0);
  mock_delay(5, 200);
  mock_prefer_cpu_kernels(false);
  assay_code_forget();
  return mock_live() ? -1 : 0;
}

static int calm_with_cpu_kernels(void** state) {
  const int left = calm(state);
  mock_prefer_cpu_kernels(true);
  return left;
}

static assay_engine_t* classifier(void) {
  const assay_engine_options_t o = {.struct_size = sizeof o, .target = "mock"};
  assay_engine_t* e = build_model("classifier", &o);
  assay_context_t* c = open_context(e, NULL);
  fill(images, MAX * IMAGE, 11);
  for (int64_t n = 1; n <= MAX; n++) classify(c, images, n, want[n]);
  assay_context_destroy(c);
  return e;
}

static void expect(const void* have, int64_t n) {
  assert_memory_equal(have, want[n], (size_t)n * CLASSES * sizeof **want);
}

// ---- threads ------------------------------------------------------------------------------------

enum { THREADS = 6, RUNS = 30 };

typedef struct job {
  assay_engine_t* engine;
  unsigned seed;
  const char* wrong;  // NULL: nothing
} job_t;

static assay_status_t run(assay_context_t* c, int64_t n, bool start, float* out) {
  const int64_t dims[] = {n, 3, 16, 16};
  assay_status_t st = assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, images,
                                               (size_t)n * IMAGE * sizeof *images);
  if (!st) st = assay_context_bind_output(c, 0, out, MAX * CLASSES * sizeof *out);
  if (!st && !start) return assay_context_run(c);
  if (!st) st = assay_context_start(c);
  return st ? st : assay_context_wait(c);
}

// cmocka is for one thread: what is wrong is said at the end.
static void* work(void* p) {
  job_t* j = p;
  float out[MAX * CLASSES];
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  assay_context_t* c = NULL;
  o.threads = 1;
  o.profile = j->seed % 3 == 0;
  assay_status_t st = assay_context_create(j->engine, &o, &c);
  unsigned random = j->seed;
  for (int i = 0; !st && !j->wrong && i < RUNS; i++) {
    random = random * 1664525u + 1013904223u;
    const int64_t n = 1 + (random >> 16) % MAX;
    memset(out, 0, sizeof out);
    st = run(c, n, i % 2, out);
    if (!st && memcmp(out, want[n], (size_t)n * CLASSES * sizeof *out) != 0)
      j->wrong = "other numbers than those of one thread";
  }
  if (st) j->wrong = "a run failed";
  assay_status_free(st);
  assay_context_destroy(c);
  return NULL;
}

static void threads_share_a_device(void** state) {
  (void)state;
  pthread_t threads[THREADS];
  job_t jobs[THREADS];
  assay_engine_release(classifier());
  // An engine that has put no constants on the device yet.
  const assay_engine_options_t o = {.struct_size = sizeof o, .target = "mock"};
  assay_engine_t* e = build_model("classifier", &o);
  for (unsigned i = 0; i < THREADS; i++) {
    jobs[i] = (job_t){.engine = e, .seed = i};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++)
    if (jobs[i].wrong) fail_msg("thread %d: %s", i, jobs[i].wrong);
  assay_engine_release(e);
}

// ---- memory of the device -----------------------------------------------------------------------

typedef struct memory {
  assay_device_ptr_t in, out;
} memory_t;

static memory_t device_memory(void) {
  memory_t m;
  ok(mock_alloc(sizeof images + 64, &m.in));
  ok(mock_alloc(sizeof *want + 64, &m.out));
  return m;
}

static void release(memory_t m) {
  mock_free(m.in);
  mock_free(m.out);
}

static void bind(assay_context_t* c, assay_device_ptr_t in, assay_device_ptr_t out, int64_t n) {
  const int64_t dims[] = {n, 3, 16, 16};
  ok(assay_context_bind_input_on_device(c, 0, ASSAY_TYPE_FLOAT, 4, dims, in,
                                        (size_t)n * IMAGE * sizeof *images));
  ok(assay_context_bind_output_on_device(c, 0, out, (size_t)n * CLASSES * sizeof **want));
}

static void check_output(assay_context_t* c, assay_device_ptr_t out, int64_t n) {
  float have[MAX * CLASSES];
  int64_t dims[32];
  int rank = -1;
  assert_null(assay_context_output(c, 0));
  ok(assay_context_output_shape(c, 0, &rank, dims));
  assert_int_equal(rank, 2);
  assert_true(dims[0] == n && dims[1] == CLASSES);
  ok(mock_read(out, have, (size_t)n * CLASSES * sizeof *have));
  expect(have, n);
}

// At multiples of what kernels need, and beside them; with captures, which hold addresses.
static void inputs_and_outputs_lie_on_the_device(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  const memory_t m[] = {device_memory(), device_memory()};
  for (int k = 0; k < 24; k++) {
    const int64_t n = 1 + k / 8;
    const memory_t at = m[k / 4 % 2];
    const uint64_t beside = k % 8 == 7 ? 4 : 0;
    ok(mock_write(at.in + beside, images, (size_t)n * IMAGE * sizeof *images));
    bind(c, at.in + beside, at.out + beside, n);
    ok(assay_context_run(c));
    check_output(c, at.out + beside, n);
  }
  // And back to the host's memory, one by one.
  float have[MAX * CLASSES];
  ok(assay_context_bind_output(c, 0, have, sizeof have));
  ok(assay_context_run(c));
  expect(have, 3);
  bind_images(c, images, 2);
  ok(assay_context_bind_output_on_device(c, 0, m[0].out, sizeof have));
  ok(assay_context_run(c));
  check_output(c, m[0].out, 2);
  ok(assay_context_bind_output_on_device(c, 0, 0, 0));
  classify(c, images, 4, have);
  expect(have, 4);
  assay_context_destroy(c);
  assay_engine_release(e);
  release(m[0]);
  release(m[1]);
}

// Memory of the library's own, in place of another package's; and what cannot be had.
static void memory_of_the_library(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  assay_device_memory_t *in = NULL, *out = NULL, *none = NULL;
  ok(assay_device_memory_create("mock", sizeof images, &in));
  ok(assay_device_memory_create("mock", sizeof *want, &out));
  ok(assay_device_memory_create("mock", 0, &none));
  assert_int_equal(assay_device_memory_bytes(in), sizeof images);
  assert_int_equal(assay_device_memory_address(in) % MOCK_ALIGNMENT, 0);
  assert_int_equal(assay_device_memory_device(in), 0);
  assert_true(assay_device_memory_address(none) != 0);
  uint64_t streams[2] = {0};
  ok(assay_device_memory_stream(in, &streams[0]));
  ok(assay_device_memory_stream(out, &streams[1]));
  assert_true(streams[0] && streams[1] && streams[0] != streams[1]);
  for (int64_t n = 1; n <= MAX; n++) {
    float have[MAX * CLASSES];
    // In two pieces.
    const size_t bytes = (size_t)n * IMAGE * sizeof *images, half = bytes / 2;
    ok(assay_device_memory_write(in, 0, images, half));
    ok(assay_device_memory_write(in, half, (const char*)images + half, bytes - half));
    bind(c, assay_device_memory_address(in), assay_device_memory_address(out), n);
    ok(assay_context_run(c));
    ok(assay_device_memory_read(out, 0, have, (size_t)n * CLASSES * sizeof *have));
    expect(have, n);
    ok(assay_device_memory_read(out, 4, have, 4));
    assert_memory_equal(have, want[n] + 1, 4);
  }
  // Another one's.
  float first = 0;
  assay_device_memory_t* view = NULL;
  ok(assay_device_memory_wrap("mock", assay_device_memory_address(out), 2 * sizeof first, &view));
  assert_int_equal(assay_device_memory_address(view), assay_device_memory_address(out));
  ok(assay_device_memory_read(view, 4, &first, sizeof first));
  assert_memory_equal(&first, want[MAX] + 1, sizeof first);
  fails(assay_device_memory_read(view, 8, &first, sizeof first), ASSAY_INVALID_ARGUMENT, "beyond");
  assay_device_memory_destroy(view);
  ok(assay_device_memory_read(out, 4, &first, sizeof first));
  fails(assay_device_memory_wrap("mock", 0, 4, &view), ASSAY_INVALID_ARGUMENT, "no address");
  fails(assay_device_memory_wrap("cpu", 256, 4, &view), ASSAY_UNSUPPORTED, "'cpu'");
  ok(assay_device_memory_write(none, 0, NULL, 0));
  fails(assay_device_memory_write(none, 0, images, 1), ASSAY_INVALID_ARGUMENT,
        "beyond the 0 bytes");
  fails(assay_device_memory_write(in, sizeof images - 4, images, 8), ASSAY_INVALID_ARGUMENT,
        "beyond");
  fails(assay_device_memory_read(in, SIZE_MAX, images, 2), ASSAY_INVALID_ARGUMENT, "beyond");
  assay_device_memory_destroy(in);
  assay_device_memory_destroy(out);
  assay_device_memory_destroy(none);
  assay_device_memory_destroy(NULL);
  fails(assay_device_memory_create("cpu", 4, &in), ASSAY_UNSUPPORTED, "'cpu'");
  fails(assay_device_memory_create("nothing", 4, &in), ASSAY_INVALID_ARGUMENT, "nothing");
  mock_fail(MOCK_FAULT_ALLOC, 1);
  fails(assay_device_memory_create("mock", 4, &in), ASSAY_NO_MEMORY, "no room");
  mock_fail(MOCK_FAULT_QUEUE, 1);
  fails(assay_device_memory_create("mock", 4, &in), ASSAY_DEVICE, "no queue");
  assert_null(in);
  assay_context_destroy(c);
  assay_engine_release(e);
}

typedef struct write_job {
  assay_device_ptr_t to;
  const float* from;
  size_t bytes;
} write_job_t;

static assay_status_t write_late(void* user) {
  const write_job_t* j = user;
  void* at = NULL;
  usleep(20000);
  assay_status_t st = mock_at(j->to, j->bytes, &at);
  if (!st) memcpy(at, j->from, j->bytes);
  return st;
}

// What another package puts into the stream before a run is done before the run reads its inputs.
static void runs_come_after_what_is_in_their_stream(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  const memory_t m = device_memory();
  uint64_t stream = 0;
  int device = -1;
  ok(assay_context_stream(c, &stream, &device));
  assert_int_equal(device, 0);
  for (int64_t n = 1; n <= MAX; n++) {
    const write_job_t job = {m.in, images, (size_t)n * IMAGE * sizeof *images};
    bind(c, m.in, m.out, n);
    ok(mock_enqueue((assay_queue_t*)(uintptr_t)stream,
                    &(mock_work_t){write_late, NULL, (void*)&job}));
    ok(assay_context_run(c));
    check_output(c, m.out, n);
  }
  assay_context_destroy(c);
  assay_engine_release(e);
  release(m);
  // A target without a device.
  e = build_model("classifier", NULL);
  c = open_context(e, NULL);
  fails(assay_context_stream(c, &stream, NULL), ASSAY_UNSUPPORTED, "'cpu'");
  assay_context_destroy(c);
  assay_engine_release(e);
}

static void an_output_may_lie_over_an_input(void** state) {
  (void)state;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  const memory_t m = device_memory();
  for (int k = 0; k < 4; k++) {
    ok(mock_write(m.in, images, 2 * IMAGE * sizeof *images));
    bind(c, m.in, m.in, 2);
    ok(assay_context_run(c));
    check_output(c, m.in, 2);
  }
  assay_context_destroy(c);
  assay_engine_release(e);
  release(m);
}

static assay_status_t ignore(void* user, const assay_layer_values_t* values) {
  *(size_t*)user += values->n_inputs;
  return NULL;
}

// A tap reads what lies on the device.
static void taps_read_the_device(void** state) {
  (void)state;
  size_t seen = 0;
  assay_engine_t* e = classifier();
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  o.tap = ignore;
  o.tap_user = &seen;
  assay_context_t* c = open_context(e, &o);
  const memory_t m = device_memory();
  ok(mock_write(m.in, images, 2 * IMAGE * sizeof *images));
  bind(c, m.in, m.out, 2);
  ok(assay_context_run(c));
  check_output(c, m.out, 2);
  assert_true(seen > 0);
  assay_context_destroy(c);
  assay_engine_release(e);
  release(m);
}

// Runs layer by layer and captured ones: the parts of a run are those of the device's clock, and no
// longer together than the run; bits stay what they are.
static void runs_are_timed_by_events(void** state) {
  (void)state;
  float out[MAX * CLASSES];
  assay_engine_t* e = classifier();
  for (int profile = 0; profile < 2; profile++) {
    assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
    o.times = true;
    o.profile = profile;
    assay_context_t* c = open_context(e, &o);
    for (int i = 0; i < 5; i++) {
      assay_run_times_t t = ASSAY_RUN_TIMES_INIT;
      const double begin = assay_clock_seconds();
      ok(run(c, 2, i % 2, out));
      const double wall = 1e6 * (assay_clock_seconds() - begin);
      expect(out, 2);
      ok(assay_context_times(c, &t));
      assert_true(t.enqueue > 0 && t.upload > 0 && t.compute > 0 && t.download > 0);
      assert_true(t.upload + t.compute + t.download <= wall + 1 && t.enqueue <= wall);
      int64_t sum = 0;
      for (size_t k = 0; k < assay_context_layer_count(c); k++) {
        assay_layer_run_t layer = ASSAY_LAYER_RUN_INIT;
        ok(assay_context_layer(c, k, &layer));
        sum += layer.duration_ns;
      }
      assert_true(profile ? sum > 0 && 1e-3 * (double)sum <= wall + 1 : sum == 0);
    }
    assay_context_destroy(c);
  }
  assay_engine_release(e);
}

// On the host all of a run is computing; a context that was not asked to does not tell.
static void hosts_only_compute(void** state) {
  (void)state;
  float out[MAX * CLASSES];
  assay_engine_t* e = build_model("classifier", NULL);
  for (int times = 0; times < 2; times++) {
    assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
    assay_run_times_t t = ASSAY_RUN_TIMES_INIT;
    o.times = times;
    assay_context_t* c = open_context(e, &o);
    ok(run(c, 2, false, out));
    ok(assay_context_times(c, &t));
    assert_true(times ? t.compute > 0 : t.compute == 0);
    assert_true(t.enqueue == 0 && t.upload == 0 && t.download == 0);
    assay_context_destroy(c);
  }
  assay_engine_release(e);
}

static void bad_memory_is_refused(void** state) {
  (void)state;
  const int64_t dims[] = {2, 3, 16, 16};
  const size_t bytes = 2 * IMAGE * sizeof *images;
  assay_engine_t* e = classifier();
  assay_context_t* c = open_context(e, NULL);
  const memory_t m = device_memory();
  int rank;
  int64_t shape[32];
  fails(assay_context_bind_input_on_device(c, 0, ASSAY_TYPE_FLOAT, 4, dims, 0, bytes),
        ASSAY_INVALID_ARGUMENT, "no address");
  fails(assay_context_bind_input_on_device(c, 0, ASSAY_TYPE_FLOAT, 4, dims, m.in, bytes - 4),
        ASSAY_INVALID_ARGUMENT, "image");
  fails(assay_context_bind_input_on_device(c, 0, ASSAY_TYPE_DOUBLE, 4, dims, m.in, 2 * bytes),
        ASSAY_INVALID_ARGUMENT, "double");
  fails(assay_context_output_shape(c, 0, &rank, shape), ASSAY_NOT_FOUND, "probabilities");
  ok(mock_write(m.in, images, bytes));
  bind(c, m.in, m.out, 2);
  ok(assay_context_bind_output_on_device(c, 0, m.out, 2 * CLASSES * sizeof(float) - 1));
  fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "are bound on the device");
  // Memory that is not there is found out by the device.
  bind(c, m.in + (1ull << 40), m.out, 2);
  fails(assay_context_run(c), ASSAY_DEVICE, "illegal address");
  bind(c, m.in, m.out, 2);
  ok(assay_context_run(c));
  check_output(c, m.out, 2);
  assay_context_destroy(c);
  assay_engine_release(e);
  release(m);
  // A target without a device.
  e = build_model("classifier", NULL);
  c = open_context(e, NULL);
  fails(assay_context_bind_input_on_device(c, 0, ASSAY_TYPE_FLOAT, 4, dims, 4096, bytes),
        ASSAY_UNSUPPORTED, "no device");
  fails(assay_context_bind_output_on_device(c, 0, 4096, bytes), ASSAY_UNSUPPORTED, "no device");
  assay_context_destroy(c);
  assay_engine_release(e);
}

// Outputs that no kernel makes: Loop is emulated.
static void what_is_emulated_is_copied_there(void** state) {
  (void)state;
  const assay_engine_options_t o = {.struct_size = sizeof o, .target = "mock"};
  assay_engine_t* e = build_model("loop", &o);
  assay_context_t* c = open_context(e, NULL);
  const int64_t steps = 3, dims[] = {3, 4};
  float start[12], have[256] = {0}, on_device[256] = {0};
  fill(start, 12, 4);
  size_t i_steps, i_start;
  ok(assay_engine_find_input(e, "steps", &i_steps));
  ok(assay_engine_find_input(e, "start", &i_start));
  ok(assay_context_bind_input(c, i_steps, ASSAY_TYPE_INT64, 0, NULL, &steps, sizeof steps));
  ok(assay_context_bind_input(c, i_start, ASSAY_TYPE_FLOAT, 2, dims, start, sizeof start));
  ok(assay_context_run(c));
  assay_tensor_t* t = assay_context_output(c, 0);
  const size_t bytes = assay_tensor_bytes(t);
  assert_true(bytes > 0 && bytes <= sizeof have);
  ok(assay_tensor_read(t, have, bytes));
  assay_tensor_release(t);
  const memory_t m = device_memory();
  ok(mock_write(m.in, start, sizeof start));
  ok(assay_context_bind_input_on_device(c, i_start, ASSAY_TYPE_FLOAT, 2, dims, m.in, sizeof start));
  for (int k = 0; k < 3; k++) {
    ok(assay_context_bind_output_on_device(c, 0, m.out, bytes));
    ok(assay_context_run(c));
    ok(mock_read(m.out, on_device, bytes));
    assert_memory_equal(have, on_device, bytes);
  }
  ok(assay_context_bind_output_on_device(c, 0, m.out, bytes - 1));
  fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "are bound on the device");
  release(m);
  assay_context_destroy(c);
  assay_engine_release(e);
}

// ---- plans --------------------------------------------------------------------------------------

static void plans_are_written_and_read(void** state) {
  (void)state;
  char path[] = "device_plan_XXXXXX";
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  assay_engine_t *e = classifier(), *read = NULL;
  float have[MAX * CLASSES];
  ok(assay_engine_save(e, path));
  assay_engine_release(e);
  ok(assay_engine_load(path, &read));
  assay_context_t* c = open_context(read, NULL);
  for (int k = 0; k < 3; k++) {
    classify(c, images, 3, have);
    expect(have, 3);
  }
  assay_context_destroy(c);
  assay_engine_release(read);
  remove(path);
}

// A plan has the code of its kernels; an engine that is built compiles each once in a process.
static void code_is_compiled_once(void** state) {
  (void)state;
  char path[] = "device_code_XXXXXX";
  const int fd = mkstemp(path), before = mock_compiled();
  float have[MAX * CLASSES];
  assert_true(fd >= 0);
  assay_engine_t *made[2], *read = NULL;
  for (int i = 0; i < 2; i++) {
    made[i] = classifier();
    assay_context_t* c = open_context(made[i], NULL);
    classify(c, images, 3, have);
    assay_context_destroy(c);
    assert_int_equal(mock_compiled(), before + 1);
  }
  ok(assay_engine_save(made[0], path));
  for (int i = 0; i < 2; i++) assay_engine_release(made[i]);
  assay_code_forget();
  ok(assay_engine_load(path, &read));
  assay_context_t* c = open_context(read, NULL);
  classify(c, images, 3, have);
  expect(have, 3);
  assert_int_equal(mock_compiled(), before + 1);
  assay_context_destroy(c);
  assay_engine_release(read);
  remove(path);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, calm, calm)
  const struct CMUnitTest tests[] = {
      TEST(threads_share_a_device),
      cmocka_unit_test_setup_teardown(threads_share_a_device, calm_with_cpu_kernels, calm),
      TEST(inputs_and_outputs_lie_on_the_device),
      cmocka_unit_test_setup_teardown(inputs_and_outputs_lie_on_the_device, calm_with_cpu_kernels,
                                      calm),
      TEST(memory_of_the_library),
      TEST(runs_come_after_what_is_in_their_stream),
      TEST(an_output_may_lie_over_an_input),
      TEST(taps_read_the_device),
      TEST(runs_are_timed_by_events),
      TEST(hosts_only_compute),
      TEST(bad_memory_is_refused),
      TEST(what_is_emulated_is_copied_there),
      TEST(plans_are_written_and_read),
      TEST(code_is_compiled_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
