// Slices of outputs: dead ones, and small ones that are lost.
#include <math.h>

#include "account/verdict/slices.h"
#include "status_case.h"

enum { ROWS = 64, CHANNELS = 4 };

// What channel 1 of 4 is in truth, and what was got; all others are right.
typedef struct row {
  const char* name;
  double size, got_factor, got_offset, ref_offset;
  int64_t dead, small;
  double small_loss;  // at least; 0: none
} row_t;

static const row_t rows[] = {
    {"right", 1, 1, 0, 0, 0, 0, 0},
    {"dead", 1, 0, 0, 0, 1, 0, 0},
    {"dead, at another value", 1, 0, 5, 0, 1, 0, 0},
    {"small and dead", 0.001, 0, 0, 0, 1, 1, 0.9},
    {"small and right", 0.001, 1, 0, 0, 0, 1, 0},
    {"small and lost", 0.001, -1, 0, 0, 0, 1, 3.9},
    {"dead in truth, too", 0, 0, 0, 0, 0, 0, 0},
    {"varies by less than formats tell apart", 0.001, 0, 1, 1, 0, 0, 0},
    {"below what fp16 holds", 1e-7, 0, 0, 0, 0, 0, 0},
};

static void fill(const row_t* r, assay_tensor_t* got, assay_tensor_t* ref) {
  for (int64_t i = 0; i < ROWS * CHANNELS; i++) {
    const double x = sin((double)(7 * (i / CHANNELS) + i % CHANNELS));
    const bool this_one = i % CHANNELS == 1;
    assay_f64(ref)[i] = this_one ? r->size * x + r->ref_offset : x;
    assay_f64(got)[i] = this_one ? r->got_factor * r->size * x + r->got_offset : x;
  }
}

static void slices_are_judged(void** state) {
  const int64_t dims[2] = {ROWS, CHANNELS};
  (void)state;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const row_t* r = &rows[k];
    assay_tensor_t *got = NULL, *ref = NULL;
    assay_slices_t* s = NULL;
    ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 2, dims, &got));
    ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 2, dims, &ref));
    ok(assay_slices_create(&s));
    fill(r, got, ref);
    ok(assay_slices_add(s, got, ref));
    const assay_slices_found_t f = assay_slices_judge(s);
    if (f.dead != r->dead || f.small != r->small || (f.dead && f.first != 1) ||
        !(f.small_loss >= r->small_loss) || (r->small_loss == 0 && f.small_loss > 0))
      fail_msg("%s: %lld dead, %lld small, loss %g", r->name, (long long)f.dead, (long long)f.small,
               f.small_loss);
    assay_slices_destroy(s);
    assay_tensor_release(got);
    assay_tensor_release(ref);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slices_are_judged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
