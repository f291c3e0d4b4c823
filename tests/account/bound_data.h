// Data on which rounding bounds are tested, and how far limits lie from what rounding did.
#ifndef ASSAY_TESTS_ACCURACY_BOUND_DATA_H_
#define ASSAY_TESTS_ACCURACY_BOUND_DATA_H_

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "ops/bound.h"

typedef enum pattern {
  PATTERN_NORMAL,
  PATTERN_ONE_SIGN,
  PATTERN_CONSTANT,
  PATTERN_SORTED,
  PATTERN_CANCELLING,  // x and -x in pairs, beside each other or half a tensor apart
  PATTERN_HUGE,        // one term far larger than the others
  PATTERN_TINY,        // subnormal, or nearly
  PATTERN_WIDE,        // of all magnitudes
  PATTERN_COUNT,
} pattern_t;

static const char* const pattern_names[] = {"normal",     "one sign", "constant", "sorted",
                                            "cancelling", "huge",     "tiny",     "wide"};

typedef struct data {
  assay_random_t random;
  uint64_t at;  // the next draw's number
} data_t;

static inline double uniform(data_t* d) { return assay_random_uniform(&d->random, d->at++); }
static inline double normal(data_t* d) { return assay_random_normal(&d->random, d->at++); }
static inline int64_t below(data_t* d, int64_t n) { return (int64_t)(uniform(d) * (double)n); }

static inline int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static inline void pair_up(double* x, int64_t n, bool beside) {
  const int64_t half = n / 2;
  for (int64_t k = 0; k < half; k++) {
    if (beside)
      x[2 * k + 1] = -x[2 * k];
    else
      x[half + k] = -x[k];
  }
}

// Fills x[n] by a pattern, within the range of a format.
static inline void make_pattern(data_t* d, pattern_t pattern, const assay_format_info_t* f,
                                double* x, int64_t n) {
  const double scale = ldexp(1, (int)below(d, 7) - 3), sign = uniform(d) < 0.7 ? 1 : -1;
  const int max_exponent = ilogb(f->max);
  const int spread = max_exponent > 40 ? 30 : max_exponent - 3;
  const double value = scale * normal(d);
  const int64_t place = below(d, n > 0 ? n : 1);
  const bool beside = uniform(d) < 0.5;
  const int huge = 6 + (int)below(d, max_exponent - 12), tiny = (int)below(d, 6) - 4;
  for (int64_t i = 0; i < n; i++) {
    if (pattern == PATTERN_ONE_SIGN)
      x[i] = sign * scale * uniform(d);
    else if (pattern == PATTERN_CONSTANT)
      x[i] = value;
    else if (pattern == PATTERN_TINY)
      x[i] = ldexp(f->min_normal, tiny) * normal(d);
    else if (pattern == PATTERN_WIDE)
      x[i] = ldexp(normal(d), (int)below(d, 2 * spread) - spread);
    else
      x[i] = scale * normal(d);
  }
  if (pattern == PATTERN_SORTED) qsort(x, (size_t)n, sizeof *x, ascending);
  if (pattern == PATTERN_CANCELLING) pair_up(x, n, beside);
  if (pattern == PATTERN_HUGE && n) x[place] = ldexp(x[place], huge);
}

// ---- how tight limits are ----------------------------------------------------------------------

static inline bool holds_floats(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static inline bool same_shape(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->rank == b->rank && a->store == b->store &&
         !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// Probable limit / own error of one output: median of the limits, storing included, over the worst
// of the errors. 0: nothing was rounded.
static inline assay_status_t tightness(const assay_tensor_t* y, const assay_tensor_t* t,
                                       const assay_limits_t* l, assay_format_t storage,
                                       assay_format_t compute, double* out) {
  *out = 0;
  if (!holds_floats(y) || !t || !same_shape(y, t) || !l->probable) return NULL;
  const bool stores = assay_bound_unit(storage) > assay_bound_unit(compute);
  double *limits = NULL, worst = 0;
  int64_t n = 0;
  ASSAY_TRY(assay_new_array((size_t)y->size, sizeof *limits, &limits));
  for (int64_t k = 0; k < y->size; k++) {
    const double s = assay_f64(y)[k], p = assay_f64(l->probable)[k], error = s - assay_f64(t)[k];
    if (!(fabs(error) < (double)INFINITY) || !(p < (double)INFINITY) || p == 0) continue;
    limits[n++] = p + (stores ? assay_format_ulp(storage, s) / 2 : 0);
    worst = fmax(worst, fabs(error));
  }
  if (n) qsort(limits, (size_t)n, sizeof *limits, ascending);
  if (worst > 0) *out = limits[n / 2] / worst;
  assay_free(limits);
  return NULL;
}

#endif  // ASSAY_TESTS_ACCURACY_BOUND_DATA_H_
