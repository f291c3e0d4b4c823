// The statistics of an output as they would be with its error grown or shrunk.
#include <math.h>

#include "account/outputs.h"

// With d = got - ref: sum of d*d, of d*ref, of d, each by its power of the root.
static void resize(assay_error_sum_t* e, double ratio) {
  const double root = sqrt(ratio), along = e->sum_dot - e->sum_ref2;
  e->sum_err2 *= ratio;
  e->sum_err *= root;
  e->max_abs *= root;
  e->max_rel *= root;
  e->sum_dot = e->sum_ref2 + root * along;
  e->sum_got2 = e->sum_ref2 + 2 * root * along + e->sum_err2;
}

// Engine against golden is engine against truth and truth against golden.
static void resize_golden(assay_output_check_t* o, const assay_error_sum_t* was, double ratio) {
  assay_error_sum_t* e = &o->engine_golden;
  const double cross = e->sum_err2 - o->golden.sum_err2 - was->sum_err2;
  const double now = o->golden.sum_err2 + ratio * was->sum_err2 + sqrt(ratio) * cross;
  const double root = e->sum_err2 > 0 ? sqrt(fmax(0, now) / e->sum_err2) : 1;
  e->sum_err2 = fmax(0, now);
  e->max_abs *= root;
  e->max_rel *= root;
}

void assay_output_resize(assay_output_check_t* o, double ratio) {
  const assay_error_sum_t was = o->error;
  const double root = sqrt(ratio);
  resize(&o->error, ratio);
  if (o->has_golden) resize_golden(o, &was, ratio);
  if (!o->is_float) o->differing = llround(root * (double)o->differing);
  o->steps.difference2 *= ratio;
  o->steps.largest = llround(fmin(root * (double)o->steps.largest, 0x1p62));
  o->part_ratio = ratio;
}
