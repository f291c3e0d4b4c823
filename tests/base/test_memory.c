// The limit on memory: what is refused, what is counted, and what is said of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// cmocka needs these before it
#include <cmocka.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "tensor/tensor.h"

static void machine(void** state) {
  (void)state;
  uint64_t total = assay_memory_total(), available = assay_memory_available();
  assert_true(total > 100 << 20);
  assert_true(available > 0);
  assert_true(available <= total);
}

static void counted(void** state) {
  (void)state;
  int64_t before = assay_memory_used();
  char* p = assay_malloc(1000);
  assert_in_range(assay_memory_used() - before, 1000, 1100);
  p = assay_realloc(p, 100000);
  assert_in_range(assay_memory_used() - before, 100000, 105000);
  p = assay_realloc(p, 10);
  assert_true(assay_memory_used() - before < 100000);
  assay_free(p);
  assert_int_equal(assay_memory_used(), before);
}

static void limited(void** state) {
  (void)state;
  size_t bytes = 0;
  int64_t capacity = 0;
  assert_int_equal(assay_memory_set_limit(assay_memory_used() + (10 << 20)), 0);
  assert_null(assay_malloc(11 << 20));
  assert_true(assay_alloc_refused(&bytes, &capacity));
  assert_int_equal(bytes, 11 << 20);
  assert_in_range(capacity, 9 << 20, 10 << 20);
  void* p = assay_malloc(6 << 20);
  assert_non_null(p);
  assert_false(assay_alloc_refused(&bytes, &capacity));
  assert_null(assay_calloc(1 << 20, 6));  // together too much
  // Growing counts what is added only.
  void* q = assay_realloc(p, 9 << 20);
  assert_non_null(q);
  assert_null(assay_realloc(q, 12 << 20));
  assay_free(q);
  assert_int_equal(assay_memory_set_limit(0), assay_memory_used() + (10 << 20));
}

// Without a limit: more than the machine has is refused at once, though the kernel might grant it.
static void absurd(void** state) {
  (void)state;
  assert_null(assay_malloc((size_t)assay_memory_total() + 1));
  assert_null(assay_malloc(SIZE_MAX));
  assert_null(assay_malloc(SIZE_MAX / 2));
  assert_null(assay_calloc(SIZE_MAX / 2, 4));
  void* p = assay_malloc((size_t)assay_memory_available() / 8);
  assert_non_null(p);
  assay_free(p);
}

static void message_of_tensor(void** state) {
  (void)state;
  assay_tensor_t* t = NULL;
  assay_memory_set_limit(assay_memory_used() + 1000000);
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, 2, (int64_t[]){1000, 1000}, &t);
  assay_memory_set_limit(0);
  assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
  const char* text = assay_status_message(st);
  if (!strstr(text,
              "tensor float[1000, 1000]: out of memory: 8.0 MB more are needed, 1.0 MB can be had"))
    fail_msg("%s", text);
  assay_status_free(st);
  assert_null(t);
}

static void texts(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint64_t bytes;
  } good[] = {
      {"0", 0},
      {"123", 123},
      {"500M", 500000000},
      {"16G", 16000000000},
      {"16 GB", 16000000000},
      {"1.5GiB", 1610612736},
      {"2k", 2000},
      {"2Ki", 2048},
      {"1e9", 1000000000},
      {"1TB", 1000000000000},
  };
  static const char* const bad[] = {"", "G", "-1", "1X", "1GG", "1G ", "nan", "inf", "1e30", "16E"};
  static const struct {
    uint64_t bytes;
    const char* text;
  } shown[] = {
      {0, "0 bytes"},    {999, "999 bytes"}, {1000, "1.0 kB"},          {99949, "99.9 kB"},
      {99950, "100 kB"}, {999600, "1.0 MB"}, {17179869184u, "17.2 GB"}, {UINT64_MAX, "18.4 EB"}};
  uint64_t x;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_true(assay_bytes_parse(good[i].text, &x));
    assert_true(x == good[i].bytes);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (assay_bytes_parse(bad[i], &x)) fail_msg("'%s' was taken", bad[i]);
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
    assert_string_equal(ASSAY_BYTES_TEXT(shown[i].bytes), shown[i].text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(machine), cmocka_unit_test(counted),           cmocka_unit_test(limited),
      cmocka_unit_test(absurd),  cmocka_unit_test(message_of_tensor), cmocka_unit_test(texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
