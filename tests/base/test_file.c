// Files: mappings whose pages are given back, and writers whose names others had.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "skip_case.h"

enum { PAGES = 2000, SLACK = 500 };  // the kernel counts pages roughly

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

static void write_file(const char* path, size_t n) {
  uint8_t* bytes = malloc(n);
  assert_non_null(bytes);
  for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(i * 7 + i / 251);
  ok(assay_file_write(path, bytes, n));
  free(bytes);
}

static void check_bytes(const assay_mapping_t* m, size_t first, size_t n) {
  for (size_t i = 0; i < n; i++)
    assert_int_equal(assay_mapping_data(m)[i], (uint8_t)((first + i) * 7 + (first + i) / 251));
}

static size_t resident(const assay_mapping_t* m, size_t page) {
  unsigned char in[PAGES + 1];
  size_t n = 0;
  assert_int_equal(mincore((void*)(uintptr_t)assay_mapping_data(m), assay_mapping_size(m), in), 0);
  for (size_t i = 0; i < assay_mapping_size(m) / page; i++) n += in[i] & 1;
  return n;
}

// Pages that the process has mapped, from /proc: what a file system keeps is not its memory.
static long process_pages(void) {
  long size, rss = -1;
  FILE* f = fopen("/proc/self/statm", "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%ld %ld", &size, &rss), 2);
  fclose(f);
  return rss;
}

static void forgotten_bytes_are_there_again(void** state) {
  (void)state;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = PAGES * page + 100;
  char path[64];
  assay_mapping_t *m = NULL, *part = NULL;
  snprintf(path, sizeof path, "/tmp/assay_test_file.%d", (int)getpid());
  write_file(path, n);
  ok(assay_mapping_open(path, &m));
  ok(assay_mapping_part(m, 3, n - 3, &part));
  check_bytes(m, 0, n);
  assert_int_equal(resident(m, page), PAGES);
  const long before = process_pages();
  assay_mapping_forget(part, assay_mapping_data(part) + 5, (PAGES - 1) * page);
  assert_true(process_pages() <= before - (PAGES - SLACK));
  check_bytes(m, 0, n);
  assay_mapping_forget(m, assay_mapping_data(m) + 1, 10);  // no whole page
  assay_mapping_forget(m, assay_mapping_data(m), 0);
  check_bytes(part, 3, n - 3);
  assay_mapping_release(part);
  assay_mapping_release_owner(m);
  unlink(path);
}

// There is no file to read these from again.
static void copied_bytes_stay(void** state) {
  (void)state;
  enum { N = 5 * 4096 };
  uint8_t* bytes = malloc(N);
  assay_mapping_t* m = NULL;
  assert_non_null(bytes);
  for (size_t i = 0; i < N; i++) bytes[i] = (uint8_t)(i * 7 + i / 251);
  ok(assay_mapping_copy(bytes, N, &m));
  free(bytes);
  assay_mapping_forget(m, assay_mapping_data(m), N);
  check_bytes(m, 0, N);
  assay_mapping_release(m);
}

// A process that died left a file under the second name that a writer uses.
// More zeros than there is memory cost nothing but addresses.
static void zeros_take_no_memory(void** state) {
  (void)state;
  const size_t n = (size_t)1 << 35;
  assay_mapping_t *m = NULL, *none = NULL;
  ok(assay_mapping_zeros(n, &m));
  assert_true(assay_mapping_size(m) == n);
  for (size_t i = 0; i < n; i += n / 7) assert_int_equal(assay_mapping_data(m)[i], 0);
  assert_int_equal(assay_mapping_data(m)[n - 1], 0);
  assay_mapping_release(m);
  ok(assay_mapping_zeros(0, &none));
  assert_int_equal(assay_mapping_size(none), 0);
  assay_mapping_release(none);
  assay_status_t st = assay_mapping_zeros(SIZE_MAX / 2, &none);
  assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
  assay_status_free(st);
}

static void what_a_dead_writer_left_goes(void** state) {
  (void)state;
  char path[64], left[96];
  assay_mapping_t* m = NULL;
  snprintf(path, sizeof path, "/tmp/assay_test_written.%d", (int)getpid());
  snprintf(left, sizeof left, "%s.assay-part", path);
  FILE* f = fopen(left, "w");
  assert_non_null(f);
  assert_true(fputs("left", f) >= 0);
  assert_int_equal(fclose(f), 0);
  write_file(path, 1000);
  ok(assay_mapping_open(path, &m));
  assert_int_equal(assay_mapping_size(m), 1000);
  check_bytes(m, 0, 1000);
  assay_mapping_release(m);
  assert_int_equal(unlink(path), 0);
  // Where files have names from the first, writers do not know that one.
  if (access(left, F_OK) == 0) {
    assert_int_equal(unlink(left), 0);
    skip_because("files have names from the first here");
  }
}

static void folders_are_made(void** state) {
  (void)state;
  char path[64], inner[96], file[112];
  snprintf(path, sizeof path, "/tmp/assay_test_folder.%d", (int)getpid());
  snprintf(inner, sizeof inner, "%s/a/b/", path);
  snprintf(file, sizeof file, "%sfile", inner);
  ok(assay_folder_make(inner));
  ok(assay_folder_make(inner));
  write_file(file, 10);
  assay_status_t st = assay_folder_make(file);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  assert_int_equal(unlink(file), 0);
  assert_int_equal(rmdir(inner), 0);
  snprintf(inner, sizeof inner, "%s/a", path);
  assert_int_equal(rmdir(inner), 0);
  assert_int_equal(rmdir(path), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forgotten_bytes_are_there_again),
      cmocka_unit_test(copied_bytes_stay),
      cmocka_unit_test(zeros_take_no_memory),
      cmocka_unit_test(what_a_dead_writer_left_goes),
      cmocka_unit_test(folders_are_made),
  };
  return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
