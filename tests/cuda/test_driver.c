// The driver of GPUs: on a driver without a GPU (fake/), whose every call fails once; and on a real
// GPU where there is one (ASSAY_TEST_GPU=1).
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "backends/cuda/driver.h"
#include "base/alloc.h"
#include "fake/fake.h"
#include "skip_case.h"
#include "status_case.h"

static const assay_device_driver_t* const driver = &assay_device_driver_cuda;
static fake_state_t* fake;  // NULL: a real GPU
static fake_end_fn_t* fake_end;

enum { BYTES = 1000 };

static int calm(void** state) {
  (void)state;
  if (!fake) return 0;
  const bool left = fake->live != 0;
  *fake = (fake_state_t){.version = 13000, .devices = 1, .capability = 90};
  return left ? -1 : 0;
}

// ---- what is missing ----------------------------------------------------------------------------

static void what_is_missing_is_said(void** state) {
  (void)state;
  if (!fake) skip_because("a real driver has what it has");
  assay_device_t* d = NULL;
  static const struct {
    fake_state_t state;
    int number;
    const char* says;
  } rows[] = {
      {{.version = 11080, .devices = 1, .capability = 90}, 0, "knows CUDA 11.8, and 12.0"},
      {{.version = 13000, .devices = 0, .capability = 90}, 0, "no device that it may use"},
      {{.version = 13000, .devices = 1, .capability = 90, .without = "cuGraphLaunch"},
       0,
       "no function 'cuGraphLaunch'"},
      {{.version = 13000, .devices = 1, .capability = 75}, 0, "capability 7.5; 8.0 (Ampere)"},
      {{.version = 13000, .devices = 1, .capability = 80, .no_pools = true}, 0, "no memory pools"},
      {{.version = 13000, .devices = 2, .capability = 80}, 2, "there is no GPU 2: 2 are there"},
      {{.version = 13000, .devices = 1, .capability = 80}, -1, "there is no GPU -1: 1 is there"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    *fake = rows[i].state;
    fails(driver->open(rows[i].number, &d), ASSAY_DEVICE, rows[i].says);
    assert_null(d);
    assert_int_equal(fake->live, 0);
  }
}

static void a_device_is_described(void** state) {
  (void)state;
  assay_device_t *d = NULL, *again = NULL;
  assay_str_t text = {0};
  size_t left = 0, total = 0;
  ok(driver->open(0, &d));
  ok(driver->open(0, &again));
  driver->close(again);
  driver->describe(d, &text);
  if (fake)
    assert_string_equal(assay_str_get(&text),
                        "A GPU for tests, compute capability 9.0, 4 multiprocessors, CUDA 13.0");
  else
    print_message("%s\n", assay_str_get(&text));
  assay_str_deinit(&text);
  ok(driver->memory(d, &left, &total));
  assert_true(left > 0 && left <= total);
  driver->close(d);
}

// ---- work ---------------------------------------------------------------------------------------

// Copies, fills, events and captures of two queues; sums what comes out into *out.
typedef struct tools {
  assay_device_t* device;
  assay_queue_t *a, *b;
  assay_event_t *made, *read, *never;
  assay_capture_t* capture;
  assay_device_ptr_t p[2];
  void* pinned;
} tools_t;

// Whatever failed, what is still in the queues uses the memory.
static void tools_deinit(tools_t* t) {
  if (t->a) assay_status_free(driver->queue_wait(t->a, NULL));
  if (t->b) assay_status_free(driver->queue_wait(t->b, NULL));
  driver->capture_destroy(t->capture);
  driver->event_destroy(t->made);
  driver->event_destroy(t->read);
  driver->event_destroy(t->never);
  for (int i = 0; i < 2; i++)
    if (t->a) driver->free(t->a, t->p[i]);
  if (t->device) driver->host_free(t->device, t->pinned);
  if (t->a) driver->queue_destroy(t->a);
  if (t->b) driver->queue_destroy(t->b);
  if (t->device) driver->close(t->device);
  *t = (tools_t){0};
}

static assay_status_t tools_init(tools_t* t) {
  ASSAY_TRY(driver->open(0, &t->device));
  ASSAY_TRY(driver->queue_create(t->device, &t->a));
  ASSAY_TRY(driver->queue_create(t->device, &t->b));
  ASSAY_TRY(driver->event_create(t->device, &t->made));
  ASSAY_TRY(driver->event_create(t->device, &t->read));
  ASSAY_TRY(driver->event_create(t->device, &t->never));
  ASSAY_TRY(driver->host_alloc(t->device, BYTES, &t->pinned));
  for (int i = 0; i < 2; i++) ASSAY_TRY(driver->alloc(t->a, BYTES, &t->p[i]));
  return NULL;
}

static assay_status_t in_order(tools_t* t, unsigned char byte, unsigned char* out) {
  char from[BYTES];
  memset(from, byte, sizeof from);
  ASSAY_TRY(driver->mark(t->a, 7));
  ASSAY_TRY(driver->upload(t->a, from, t->p[0], BYTES));
  ASSAY_TRY(driver->copy(t->a, t->p[0], t->p[1], BYTES));
  ASSAY_TRY(driver->fill(t->a, t->p[1] + 10, (uint8_t)(byte + 1), 5));
  ASSAY_TRY(driver->upload(t->a, NULL, t->p[0], 0));
  ASSAY_TRY(driver->event_record(t->made, t->a));
  ASSAY_TRY(driver->event_order(t->never, t->b));
  ASSAY_TRY(driver->event_order(t->made, t->b));
  ASSAY_TRY(driver->download(t->b, t->p[1], t->pinned, BYTES));
  ASSAY_TRY(driver->event_record(t->read, t->b));
  ASSAY_TRY(driver->event_wait(t->read));
  memcpy(out, t->pinned, BYTES);
  return driver->queue_wait(t->b, NULL);
}

static assay_status_t note(tools_t* t) {
  ASSAY_TRY(driver->copy(t->a, t->p[0], t->p[1], 64));
  return driver->fill(t->a, t->p[0], 3, 64);
}

// Launched twice: the second time what the first left is copied.
static assay_status_t captured(tools_t* t, unsigned char* out) {
  ASSAY_TRY(driver->capture_begin(t->a));
  assay_status_t st = note(t);
  assay_status_t ended = driver->capture_end(t->a, &t->capture);
  if (st) return assay_status_free(ended), st;
  ASSAY_TRY(ended);
  for (int k = 0; k < 2; k++) {
    ASSAY_TRY(driver->capture_launch(t->capture, t->a));
    ASSAY_TRY(driver->download(t->a, t->p[1], out, 64));
    ASSAY_TRY(driver->queue_wait(t->a, NULL));
  }
  return NULL;
}

static assay_status_t work(unsigned char* first, unsigned char* second, double* microseconds) {
  tools_t t = {0};
  assay_status_t st = tools_init(&t);
  if (!st) st = in_order(&t, 40, first);
  if (!st) st = driver->event_elapsed(t.made, t.read, microseconds);
  if (!st) st = captured(&t, second);
  tools_deinit(&t);
  return st;
}

static void work_is_done_in_order(void** state) {
  (void)state;
  unsigned char first[BYTES], second[64];
  double microseconds = -1;
  ok(work(first, second, &microseconds));
  for (int i = 0; i < BYTES; i++) assert_int_equal(first[i], i >= 10 && i < 15 ? 41 : 40);
  for (int i = 0; i < 64; i++) assert_int_equal(second[i], 3);
  assert_true(microseconds >= 0);
}

static void captures_hold_work_of_the_device_only(void** state) {
  (void)state;
  tools_t t = {0};
  assay_device_ptr_t more = 0;
  char to[64] = {0};
  ok(tools_init(&t));
  ok(driver->capture_begin(t.a));
  fails(driver->download(t.a, t.p[0], to, 64), ASSAY_INTERNAL, "capture");
  fails(driver->upload(t.a, to, t.p[0], 64), ASSAY_INTERNAL, "capture");
  fails(driver->alloc(t.a, 64, &more), ASSAY_INTERNAL, "capture");
  fails(driver->queue_wait(t.a, NULL), ASSAY_INTERNAL, "captured");
  ok(driver->mark(t.a, 1));
  ok(driver->capture_end(t.a, &t.capture));
  tools_deinit(&t);
}

static void memory_ends(void** state) {
  (void)state;
  tools_t t = {0};
  assay_device_ptr_t more = 0;
  unsigned char first[BYTES];
  ok(tools_init(&t));
  fails(driver->alloc(t.a, (size_t)1 << 50, &more), ASSAY_NO_MEMORY,
        "no room for 1125899906842624");
  assert_true(!more);
  ok(in_order(&t, 1, first));  // the device is still good
  tools_deinit(&t);
}

// ---- faults -------------------------------------------------------------------------------------

// Every call of the driver fails once: it is told, with the call's name, and nothing is left.
static void every_call_may_fail(void** state) {
  (void)state;
  if (!fake) skip_because("a real driver does not fail on demand");
  unsigned char first[BYTES], second[64];
  double microseconds;
  ok(work(first, second, &microseconds));
  const int calls = fake->calls;
  int told = 0;
  assert_true(calls > 100);
  for (int n = 1; n <= calls; n++) {
    *fake = (fake_state_t){
        .version = 13000, .devices = 1, .capability = 90, .fail_after = n, .result = 999};
    assay_status_t st = work(first, second, &microseconds);
    if (st && !strstr(assay_status_message(st), fake->failed))
      fail_msg("call %d, %s: %s", n, fake->failed, assay_status_message(st));
    told += st != NULL;
    assay_status_free(st);
    if (fake->live) fail_msg("call %d, %s: %d left", n, fake->failed, fake->live);
  }
  // What is only given back has nobody to tell.
  assert_true(told > calls * 2 / 3);
}

static void failed_allocations_of_the_host_are_survived(void** state) {
  (void)state;
  if (!fake) skip_because("its own driver allocates, too");
  unsigned char first[BYTES], second[64];
  double microseconds;
  for (uint64_t n = 1;; n++) {
    const int64_t before = assay_alloc_live();
    assay_alloc_fail_after(n, false);
    assay_status_t st = work(first, second, &microseconds);
    const bool done = assay_alloc_fail_after(0, false) < n;
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    assert_int_equal(fake->live, 0);
    assert_int_equal(assay_alloc_live(), before);
    if (done) break;
  }
}

// A kernel that breaks the context is told once, with where the queue was; then the GPU is lost.
static void a_lost_device_is_told_once(void** state) {
  (void)state;
  if (!fake) skip_because("it would be lost");
  tools_t t = {0};
  int64_t at = -1;
  ok(tools_init(&t));
  ok(driver->mark(t.a, 41));
  fake->breaks = 700;
  fails(driver->queue_wait(t.a, &at), ASSAY_DEVICE, "cuStreamSynchronize gave");
  assert_int_equal(at, 41);
  const int calls = fake->calls;
  fails(driver->queue_wait(t.a, &at), ASSAY_DEVICE, "GPU 0 was lost by an earlier failure");
  fails(driver->fill(t.a, t.p[0], 1, 8), ASSAY_DEVICE, "was lost");
  assert_int_equal(at, -1);
  assert_int_equal(fake->calls, calls);
  tools_deinit(&t);
  fake_end();  // what was in a lost context goes with it
}

// The folder of the driver without a GPU, before any is opened.
static void find_driver(void) {
  const char* folder = getenv("ASSAY_TEST_LIBCUDA");
  union {
    void* symbol;
    fake_state_fn_t* function;
  } found = {NULL};
  union {
    void* symbol;
    fake_end_fn_t* function;
  } end = {NULL};
  char path[4096];
  if (getenv("ASSAY_TEST_GPU")) return;
  snprintf(path, sizeof path, "%s/libcuda.so.1", folder ? folder : ".");
  setenv("ASSAY_CUDA_PATH", folder ? folder : ".", 1);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) found.symbol = dlsym(library, "fake_state");
  if (library) end.symbol = dlsym(library, "fake_end");
  if (!found.symbol || !end.symbol) {
    fprintf(stderr, "no %s: run it by ctest\n", path);
    exit(1);
  }
  fake = found.function();
  fake_end = end.function;
}

int main(void) {
  find_driver();
#define TEST(f) cmocka_unit_test_setup_teardown(f, calm, calm)
  const struct CMUnitTest tests[] = {TEST(what_is_missing_is_said),
                                     TEST(a_device_is_described),
                                     TEST(work_is_done_in_order),
                                     TEST(captures_hold_work_of_the_device_only),
                                     TEST(memory_ends),
                                     TEST(every_call_may_fail),
                                     TEST(failed_allocations_of_the_host_are_survived),
                                     TEST(a_lost_device_is_told_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
