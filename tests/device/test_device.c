// What device.h says of every driver, on the device for tests. Another driver is tested by its row.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device_case.h"

static const assay_device_driver_t* const driver = &mock_driver;
static assay_device_t* device;

static int open_device(void** state) {
  if (calm(state)) return -1;
  mock_delay(7, 300);
  ok(driver->open(0, &device));
  return 0;
}

static int close_device(void** state) {
  driver->close(device);
  return calm(state);
}

static assay_queue_t* new_queue(void) {
  assay_queue_t* q = NULL;
  ok(driver->queue_create(device, &q));
  return q;
}

static assay_device_ptr_t new_memory(assay_queue_t* q, size_t bytes) {
  assay_device_ptr_t p = 0;
  ok(driver->alloc(q, bytes, &p));
  assert_int_equal(p % device->alignment, 0);
  return p;
}

static void end(assay_queue_t* q, size_t n, const assay_device_ptr_t* p) {
  for (size_t i = 0; i < n; i++) driver->free(q, p[i]);
  ok(driver->queue_wait(q, NULL));
  driver->queue_destroy(q);
}

static void there_is_one_device(void** state) {
  (void)state;
  assay_device_t* other = NULL;
  assay_str_t text = {0};
  size_t have, total;
  fails(driver->open(1000, &other), ASSAY_DEVICE, "1000");
  ok(driver->open(0, &other));
  driver->close(other);
  driver->describe(device, &text);
  assert_true(text.len > 0);
  assay_str_deinit(&text);
  ok(driver->memory(device, &have, &total));
  assert_true(have <= total);
}

static void the_host_cannot_read_it(void** state) {
  (void)state;
  assay_queue_t* q = new_queue();
  const assay_device_ptr_t p = new_memory(q, 64);
  const pid_t child = fork();
  if (!child) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    _exit(*(const volatile char*)(uintptr_t)p ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  end(q, 1, &p);
}

static void work_is_done_in_order(void** state) {
  (void)state;
  enum { BYTES = 1000 };
  assay_queue_t* q = new_queue();
  const assay_device_ptr_t p[] = {new_memory(q, BYTES), new_memory(q, BYTES)};
  char from[BYTES], to[BYTES];
  for (int i = 0; i < BYTES; i++) from[i] = (char)i;
  for (int k = 0; k < 20; k++) {
    memset(to, 0, sizeof to);
    ok(driver->upload(q, from, p[0], BYTES));
    ok(driver->copy(q, p[0], p[1], BYTES));
    ok(driver->fill(q, p[1] + 10, (uint8_t)k, 5));
    ok(driver->copy(q, p[1] + 10, p[1] + 500, 5));
    ok(driver->upload(q, NULL, p[0], 0));
    ok(driver->download(q, p[1], to, BYTES));
    ok(driver->queue_wait(q, NULL));
    assert_memory_equal(to, from, 10);
    assert_memory_equal(to + 505, from + 505, BYTES - 505);
    for (int i = 0; i < 5; i++) assert_true(to[10 + i] == k && to[500 + i] == k);
  }
  end(q, 2, p);
}

static void events_order_queues(void** state) {
  (void)state;
  assay_queue_t *a = new_queue(), *b = new_queue();
  assay_event_t *made = NULL, *read = NULL, *never = NULL;
  const assay_device_ptr_t p = new_memory(a, sizeof(int));
  double microseconds = -1;
  ok(driver->event_create(device, &made));
  ok(driver->event_create(device, &read));
  ok(driver->event_create(device, &never));
  ok(driver->event_wait(never));
  ok(driver->event_order(never, a));
  for (int k = 0; k < 50; k++) {
    int to = -1;
    ok(driver->event_order(read, a));
    ok(driver->upload(a, &k, p, sizeof k));
    ok(driver->event_record(made, a));
    ok(driver->event_order(made, b));
    ok(driver->download(b, p, &to, sizeof to));
    ok(driver->event_record(read, b));
    ok(driver->event_wait(read));
    assert_int_equal(to, k);
  }
  ok(driver->event_elapsed(made, read, &microseconds));
  assert_true(microseconds >= 0);
  driver->event_destroy(made);
  driver->event_destroy(read);
  driver->event_destroy(never);
  driver->queue_destroy(b);
  end(a, 1, &p);
}

static void a_failure_is_told_once(void** state) {
  (void)state;
  assay_queue_t* q = new_queue();
  const assay_device_ptr_t p = new_memory(q, 16);
  int64_t mark = -1;
  char to[16] = "untouched";
  const char zeros[16] = {0};
  ok(driver->upload(q, zeros, p, 16));
  ok(driver->mark(q, 41));
  ok(driver->fill(q, p + 8, 1, 9));  // one byte too far
  ok(driver->mark(q, 42));
  ok(driver->download(q, p, to, 16));
  fails(driver->queue_wait(q, &mark), ASSAY_DEVICE, "illegal address");
  assert_int_equal(mark, 41);
  assert_string_equal(to, "untouched");
  ok(driver->queue_wait(q, NULL));
  ok(driver->download(q, p, to, 16));
  ok(driver->queue_wait(q, NULL));
  assert_memory_equal(to, zeros, 16);
  end(q, 1, &p);
}

static void what_was_freed_is_gone(void** state) {
  (void)state;
  assay_queue_t* q = new_queue();
  const assay_device_ptr_t p = new_memory(q, 16);
  driver->free(q, p);
  driver->free(q, 0);
  ok(driver->fill(q, p, 1, 16));
  fails(driver->queue_wait(q, NULL), ASSAY_DEVICE, "illegal address");
  end(q, 0, NULL);
}

static void memory_ends(void** state) {
  (void)state;
  assay_queue_t* q = new_queue();
  assay_device_ptr_t p[2] = {0};
  mock_memory(1000);
  ok(driver->alloc(q, 600, &p[0]));
  fails(driver->alloc(q, 600, &p[1]), ASSAY_NO_MEMORY, "600 bytes");
  ok(driver->alloc(q, 400, &p[1]));
  end(q, 2, p);
}

static void captures_are_done_when_launched(void** state) {
  (void)state;
  assay_queue_t *q = new_queue(), *other = new_queue();
  const assay_device_ptr_t p[] = {new_memory(q, 64), new_memory(q, 64)};
  assay_capture_t* c = NULL;
  char to[64], want[64];
  ok(driver->fill(q, p[0], 1, 64));
  ok(driver->fill(q, p[1], 2, 64));
  ok(driver->capture_begin(q));
  ok(driver->copy(q, p[0], p[1], 64));
  ok(driver->fill(q, p[0], 3, 64));
  ok(driver->capture_end(q, &c));
  memset(want, 2, 64);
  ok(driver->download(q, p[1], to, 64));
  ok(driver->queue_wait(q, NULL));
  assert_memory_equal(to, want, 64);
  for (int k = 0; k < 3; k++) {
    assay_queue_t* in = k < 2 ? q : other;
    memset(want, k ? 3 : 1, 64);
    ok(driver->capture_launch(c, in));
    ok(driver->download(in, p[1], to, 64));
    ok(driver->queue_wait(in, NULL));
    assert_memory_equal(to, want, 64);
  }
  ok(driver->capture_launch(c, q));
  driver->capture_destroy(c);  // waits
  driver->queue_destroy(other);
  end(q, 2, p);
}

static void captures_hold_work_of_the_device_only(void** state) {
  (void)state;
  assay_queue_t* q = new_queue();
  const assay_device_ptr_t p = new_memory(q, 64);
  assay_device_ptr_t more = 0;
  assay_capture_t* c = NULL;
  char to[64];
  ok(driver->capture_begin(q));
  assay_status_t st = driver->download(q, p, to, 64);
  assay_status_t ended = driver->capture_end(q, &c);
  assert_true(st || ended);
  assay_status_free(st);
  assay_status_free(ended);
  assert_null(c);
  ok(driver->capture_begin(q));
  fails(driver->alloc(q, 64, &more), ASSAY_INTERNAL, "capture");
  fails(driver->queue_wait(q, NULL), ASSAY_INTERNAL, "captured");
  ok(driver->capture_end(q, &c));
  driver->capture_destroy(c);
  end(q, 1, &p);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_device, close_device)
  const struct CMUnitTest tests[] = {TEST(there_is_one_device),
                                     TEST(the_host_cannot_read_it),
                                     TEST(work_is_done_in_order),
                                     TEST(events_order_queues),
                                     TEST(a_failure_is_told_once),
                                     TEST(what_was_freed_is_gone),
                                     TEST(memory_ends),
                                     TEST(captures_are_done_when_launched),
                                     TEST(captures_hold_work_of_the_device_only)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
