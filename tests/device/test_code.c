// Compiled kernels as bytes: compiled once, kept in plans, and not for ever in a process.
#include <pthread.h>

#include "base/alloc.h"
#include "device_case.h"
#include "exec/device/code.h"

enum { SMALL = 100, LARGE = ASSAY_CODE_BYTES / 4 };

typedef struct source {
  char byte;
  size_t bytes;
  bool fails;
  int compiled;
} source_t;

static assay_status_t compile(void* user, void** out, size_t* out_bytes) {
  source_t* s = user;
  s->compiled++;
  if (s->fails) return ASSAY_ERROR(ASSAY_DEVICE, "no compiler");
  *out = assay_malloc(s->bytes);
  if (!*out) return assay_status_no_memory();
  memset(*out, s->byte, s->bytes);
  *out_bytes = s->bytes;
  return NULL;
}

// From the store; compiled says how often this source has been compiled by then.
static void expect(assay_weights_t* store, const char* key, source_t* s, int compiled) {
  const void* code = NULL;
  size_t bytes = 0;
  ok(assay_code_get(store, key, compile, s, &code, &bytes));
  assert_int_equal(bytes, s->bytes);
  assert_true(!bytes || ((const char*)code)[bytes - 1] == s->byte);
  assert_int_equal(s->compiled, compiled);
}

static void it_is_compiled_once(void** state) {
  (void)state;
  assay_weights_t *a = NULL, *b = NULL;
  source_t one = {.byte = 1, .bytes = SMALL}, two = {.byte = 2, .bytes = SMALL + 1};
  const void* code = NULL;
  size_t bytes = 0;
  ok(assay_weights_create(&a));
  ok(assay_weights_create(&b));
  expect(a, "one", &one, 1);
  expect(a, "two", &two, 1);
  expect(a, "one", &one, 1);
  expect(b, "one", &one, 1);  // another store, the same process
  assay_code_forget();
  expect(b, "one", &one, 1);  // the store has it
  expect(b, "two", &two, 2);
  assert_int_equal(assay_weights_count(a), 2);
  one.fails = true;
  fails(assay_code_get(a, "three", compile, &one, &code, &bytes), ASSAY_DEVICE, "no compiler");
  one.fails = false;
  expect(a, "three", &one, 3);
  assay_weights_destroy(a);
  assay_weights_destroy(b);
}

// What was asked for last stays when there is too much.
static void the_oldest_is_dropped(void** state) {
  (void)state;
  source_t s[5];
  const char* keys[] = {"0", "1", "2", "3", "4"};
  const int again[] = {0, 1, 0, 0, 0};
  for (int i = 0; i < 5; i++) s[i] = (source_t){.byte = (char)i, .bytes = LARGE};
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 5; i++) {
      assay_weights_t* store = NULL;
      ok(assay_weights_create(&store));
      if (!round) expect(store, keys[i], &s[i], 1);
      if (!round && i == 3) expect(store, keys[0], &s[0], 1);  // from here on 1 is the oldest
      if (round && i != 1) expect(store, keys[i], &s[i], 1 + again[i]);
      assay_weights_destroy(store);
    }
  assay_weights_t* store = NULL;
  ok(assay_weights_create(&store));
  expect(store, keys[1], &s[1], 2);
  assay_weights_destroy(store);
}

static void* ask(void* user) {
  assay_weights_t* store = user;
  source_t s = {.byte = 7, .bytes = SMALL};
  const void* code = NULL;
  size_t bytes = 0;
  assay_status_t st = assay_code_get(store, "shared", compile, &s, &code, &bytes);
  if (st) return assay_status_free(st), NULL;
  return (void*)(intptr_t)(1 + s.compiled);
}

static void threads_compile_once(void** state) {
  (void)state;
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  assay_weights_t* stores[THREADS];
  intptr_t sum = 0;
  for (int i = 0; i < THREADS; i++) {
    ok(assay_weights_create(&stores[i]));
    assert_int_equal(pthread_create(&threads[i], NULL, ask, stores[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void* got = NULL;
    assert_int_equal(pthread_join(threads[i], &got), 0);
    sum += (intptr_t)got;
    assay_weights_destroy(stores[i]);
  }
  assert_int_equal(sum, THREADS + 1);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, calm, calm)
  const struct CMUnitTest tests[] = {TEST(it_is_compiled_once), TEST(the_oldest_is_dropped),
                                     TEST(threads_compile_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
