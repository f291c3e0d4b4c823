// Blocks that are kept for later lie in files: nothing about them changes, and nothing of them
// stays.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs the four above before it
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/spill.h"
#include "tensor/tensor.h"

enum { N = 1 << 15 };  // elements: 256 kB

static assay_tensor_t* numbers(int64_t n) {
  assay_tensor_t* t = NULL;
  assert_null(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, &n, &t));
  for (int64_t i = 0; i < n; i++) assay_f64(t)[i] = (double)i / 3;
  return t;
}

static void assert_numbers(const assay_tensor_t* t) {
  for (int64_t i = 0; i < t->size; i++) assert_true(assay_f64(t)[i] == (double)i / 3);
}

static int set_up(void** state) {
  (void)state;
  assay_spill_set_limit(1);
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  assay_spill_set_limit(0);
  return 0;
}

static void elements_stay(void** state) {
  (void)state;
  const int64_t live = assay_alloc_live(), used = assay_memory_used();
  assay_tensor_t* t = numbers(N);
  assay_tensor_spill(t);
  assert_int_equal(assay_spill_count(), 1);
  assert_true(assay_memory_used() - used < N);  // not the elements
  assert_false(assay_tensor_is_sole(t));        // kernels do not write to it
  assert_numbers(t);
  assay_spill_trim();
  assert_numbers(t);
  assay_tensor_t *other = numbers(N), *copy = NULL;
  assay_tensor_spill(other);
  assert_int_equal(assay_spill_count(), 2);
  assert_null(assay_tensor_copy(t, &copy));
  assay_tensor_release(t);
  assert_numbers(other);
  assert_numbers(copy);
  assay_tensor_release(other);
  assay_tensor_release(copy);
  assert_int_equal(assay_spill_count(), 0);
  assert_int_equal(assay_alloc_live(), live);
}

static void packed_ones_too(void** state) {
  (void)state;
  assay_tensor_t *t = numbers(N), *packed = NULL, *wide = NULL;
  assert_null(assay_tensor_pack(t, &packed));
  assay_tensor_spill(packed);
  assert_int_equal(assay_spill_count(), 1);
  assert_null(assay_tensor_widen(packed, &wide));
  for (int64_t i = 0; i < N; i++) assert_true(assay_f64(wide)[i] == (double)(float)((double)i / 3));
  assay_tensor_release(t);
  assay_tensor_release(packed);
  assay_tensor_release(wide);
  assert_int_equal(assay_spill_count(), 0);
}

// Another has the elements: they stay where that one knows them to be.
static void shared_ones_stay(void** state) {
  (void)state;
  assay_tensor_t *t = numbers(N), *view = NULL;
  const int64_t dims[] = {2, N / 2};
  assert_null(assay_tensor_view(t, 2, dims, &view));
  assay_tensor_spill(t);
  assay_tensor_spill(view);
  assert_int_equal(assay_spill_count(), 0);
  assert_ptr_equal(t->data, view->data);
  assay_tensor_release(view);
  assay_tensor_release(t);
}

static void small_ones_stay(void** state) {
  (void)state;
  assay_tensor_t* t = numbers(100);
  assay_tensor_spill(t);
  assert_int_equal(assay_spill_count(), 0);
  assay_tensor_release(t);
}

static void without_need_all_stay(void** state) {
  (void)state;
  assay_spill_set_limit(INT64_MAX);
  assay_tensor_t* t = numbers(N);
  assay_tensor_spill(t);
  assert_int_equal(assay_spill_count(), 0);
  assay_tensor_release(t);
}

// Where there is no folder, memory has to do.
static void without_a_folder_all_stay(void** state) {
  (void)state;
  const char* was = getenv("TMPDIR");
  char* kept = was ? strdup(was) : NULL;
  setenv("TMPDIR", "/no/such/folder", 1);
  assay_tensor_t* t = numbers(N);
  assay_tensor_spill(t);
  assert_int_equal(assay_spill_count(), 0);
  assert_numbers(t);
  assay_tensor_release(t);
  if (kept)
    setenv("TMPDIR", kept, 1);
  else
    unsetenv("TMPDIR");
  free(kept);
}

// No allocation that fails loses elements.
static void without_memory_all_stay(void** state) {
  (void)state;
  for (uint64_t nth = 1; nth < 4; nth++) {
    const int64_t live = assay_alloc_live();
    assay_tensor_t* t = numbers(N);
    assay_alloc_fail_after(nth, true);
    assay_tensor_spill(t);
    assay_alloc_fail_after(0, false);
    assert_numbers(t);
    assay_tensor_release(t);
    assert_int_equal(assay_spill_count(), 0);
    assert_int_equal(assay_alloc_live(), live);
  }
}

#define ROW(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {ROW(elements_stay),          ROW(packed_ones_too),
                                     ROW(shared_ones_stay),       ROW(small_ones_stay),
                                     ROW(without_need_all_stay),  ROW(without_a_folder_all_stay),
                                     ROW(without_memory_all_stay)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
