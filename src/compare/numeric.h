// Arrays of numbers as NumPy computes with them: each operation rounded to the array's type, sums
// in NumPy's order, so that what is printed agrees with what its users know to the last digit.
//
// Source: NumPy 2.4, numpy/_core/src/umath/loops_utils.h.src (pairwise summation), lib/_methods.py,
// lib/_function_base_impl.py (median, quantile), lib/_histograms_impl.py.
#ifndef ASSAY_COMPARE_NUMERIC_H_
#define ASSAY_COMPARE_NUMERIC_H_

#include "base/str.h"
#include "formats/format.h"
#include "tensor/tensor.h"

// What is computed in. Floats are kept in `f`, the others in `i` (uint64 by its bits).
typedef enum assay_numeric_kind {
  ASSAY_NUMERIC_F16,
  ASSAY_NUMERIC_F32,
  ASSAY_NUMERIC_F64,
  ASSAY_NUMERIC_BOOL,
  ASSAY_NUMERIC_I32,
  ASSAY_NUMERIC_I64,
  ASSAY_NUMERIC_U64,
} assay_numeric_kind_t;

typedef struct assay_numeric {
  assay_numeric_kind_t number;
  assay_type_t type;  // as it is printed: of the tensor, or of the number
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  int64_t n;
  double* f;
  int64_t* i;
} assay_numeric_t;

static inline bool assay_numeric_is_float(assay_numeric_kind_t k) { return k <= ASSAY_NUMERIC_F64; }
void assay_numeric_deinit(assay_numeric_t* a);
// A copy of a tensor's elements, rounded to its type. Types that NumPy lacks: bfloat16 and smaller
// floats are float32, integers below 8 bits int32. UNSUPPORTED: elements that are not numbers.
assay_status_t assay_numeric_from(assay_tensor_t* t, assay_numeric_t* out) ASSAY_MUST_USE;
// Room for elements of a kind in the shape of another array.
assay_status_t assay_numeric_like(const assay_numeric_t* shape, assay_numeric_kind_t number,
                                  assay_numeric_t* out) ASSAY_MUST_USE;
// float16 as float32, in place.
void assay_numeric_widen(assay_numeric_t* a);

static inline double assay_numeric_round(assay_numeric_kind_t k, double x) {
  if (k == ASSAY_NUMERIC_F32) return (double)(float)x;
  if (k == ASSAY_NUMERIC_F16) return assay_format_round(ASSAY_FORMAT_FP16, x, ASSAY_OVERFLOW_IEEE);
  return x;
}
// The type of an operation between two.
assay_numeric_kind_t assay_numeric_join(assay_numeric_kind_t a, assay_numeric_kind_t b);
// An element as float64: of 64-bit integers the nearest.
static inline double assay_numeric_at(const assay_numeric_t* a, int64_t i) {
  if (a->f) return a->f[i];
  return a->number == ASSAY_NUMERIC_U64 ? (double)(uint64_t)a->i[i] : (double)a->i[i];
}

// Element by element, in the joined type; integers wrap. bool is an integer of 32 bits here.
assay_status_t assay_numeric_subtract(const assay_numeric_t* a, const assay_numeric_t* b,
                                      assay_numeric_t* out) ASSAY_MUST_USE;
assay_status_t assay_numeric_multiply(const assay_numeric_t* a, const assay_numeric_t* b,
                                      assay_numeric_t* out) ASSAY_MUST_USE;
// Quotients are float64 unless both are floats.
assay_status_t assay_numeric_divide(const assay_numeric_t* a, const assay_numeric_t* b,
                                    assay_numeric_t* out) ASSAY_MUST_USE;
void assay_numeric_abs(assay_numeric_t* a);

// Sum: of floats in their type, of integers wrapped to 64 bits and given as float64.
double assay_numeric_sum(const assay_numeric_t* a);
// Mean in a type of float: of no elements NaN.
double assay_numeric_mean(const assay_numeric_t* a, assay_numeric_kind_t in);
// The type that a mean has by itself: its own for floats, else float64.
static inline assay_numeric_kind_t assay_numeric_of_mean(assay_numeric_kind_t k) {
  return assay_numeric_is_float(k) ? k : ASSAY_NUMERIC_F64;
}

// Of no elements: 0, at -1; with NaN: NaN, at the first one.
typedef struct assay_extreme {
  double x;
  int64_t at;
} assay_extreme_t;
assay_extreme_t assay_numeric_min(const assay_numeric_t* a);
assay_extreme_t assay_numeric_max(const assay_numeric_t* a);

// What depends on the order of elements, which is found as far as it is needed. The array stays,
// unchanged, until the end of it.
typedef struct assay_ranked {
  const assay_numeric_t* a;
  int64_t n;
  bool nan;
  assay_numeric_kind_t in;
  int64_t* counts;      // of elements by their upper bits; NULL: few, x has them all
  double* x;            // elements of one bucket, which hold the ranks from `start`
  int64_t start, held;  // how many they are
  int64_t placed;       // of x, those before it are no larger
  int key;              // the bucket; -1: none yet
} assay_ranked_t;
assay_status_t assay_ranked_init(const assay_numeric_t* a, assay_ranked_t* out) ASSAY_MUST_USE;
void assay_ranked_deinit(assay_ranked_t* r);
// Of no elements 0; NaN if there is one. float16 is widened.
double assay_ranked_median(assay_ranked_t* r);
// Linear between neighbours; of no elements infinity, NaN if there is one.
double assay_ranked_quantile(assay_ranked_t* r, double q);

typedef struct assay_numeric_stats {
  double mean, deviation, variance, median;
  assay_extreme_t min, max;
  double magnitude;  // mean of the absolute values
  double p90, p95, p99;
} assay_numeric_stats_t;
assay_status_t assay_numeric_stats(const assay_numeric_t* a,
                                   assay_numeric_stats_t* out) ASSAY_MUST_USE;

bool assay_numeric_same_shape(const assay_numeric_t* a, const assay_numeric_t* b);

enum { ASSAY_NUMERIC_BINS = 10 };
typedef struct assay_numeric_bins {
  double edges[ASSAY_NUMERIC_BINS + 1];
  int64_t count[ASSAY_NUMERIC_BINS];
} assay_numeric_bins_t;
typedef struct assay_numeric_range {
  double first, last;
} assay_numeric_range_t;
// Counts in equal bins over a range, which is a pair of Python's numbers; NULL: from the smallest
// to the largest element. What lies outside is not counted. False: it is not finite.
bool assay_numeric_bins(const assay_numeric_t* a, const assay_numeric_range_t* range,
                        assay_numeric_bins_t* out);

#endif  // ASSAY_COMPARE_NUMERIC_H_
