// Error and value statistics against plain loops in long double, sorting and counting.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs the four above before it
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "formats/stats.h"

static const double inf = (double)INFINITY;
static uint64_t seed;

#define CHECK(condition, ...)     \
  do {                            \
    if (!(condition)) {           \
      print_error(__VA_ARGS__);   \
      fail_msg("%s", #condition); \
    }                             \
  } while (0)
#define OK(expression)                                              \
  do {                                                              \
    assay_status_t ok_status = (expression);                        \
    if (ok_status) fail_msg("%s", assay_status_message(ok_status)); \
  } while (0)

static double uniform(uint64_t* state) {  // splitmix64
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}
static double normal(uint64_t* state) {
  double s = 0;
  for (int i = 0; i < 12; i++) s += uniform(state) - 0.5;
  return s;
}

// ---- tensors that the tests are about ---------------------------------------------------------

typedef enum kind {
  ORDINARY,   // normal values, errors of rounding to fp16
  EXACT,      // no error
  RELU,       // half are zero
  WIDE,       // magnitudes over 200 octaves, many below any window
  GEMM,       // errors that do not depend on the value
  HUGE_ONES,  // squares overflow
  TINY,       // squares underflow
  MIXED,      // huge, ordinary and tiny runs
  SPECIALS,   // NaN and infinities among them
  ONE_SIGN,   // large mean, small spread
  ZEROS,
  GROWING,  // each run far larger than the one before
  KINDS,
} kind_t;
static const char* const kind_names[KINDS] = {"ordinary", "exact",    "relu",  "wide",
                                              "gemm",     "huge",     "tiny",  "mixed",
                                              "specials", "one sign", "zeros", "growing"};

static void fill(kind_t kind, int64_t n, double* engine, double* reference) {
  uint64_t state = seed + (uint64_t)kind;
  for (int64_t i = 0; i < n; i++) {
    double y = normal(&state), x;
    switch (kind) {
      case RELU:
        y = y > 0 ? y : 0;
        break;
      case WIDE:
        y = ldexp(y, (int)(uniform(&state) * 200) - 100);
        break;
      case HUGE_ONES:
        y = ldexp(y, 1019);
        break;
      case TINY:
        y = ldexp(y, -1060);
        break;
      case MIXED:
        y = ldexp(y, i / 700 % 3 == 0 ? 900 : i / 700 % 3 == 1 ? 0 : -900);
        break;
      case ONE_SIGN:
        y = 1e6 + y;
        break;
      case ZEROS:
        y = i % 2 ? 0.0 : -0.0;
        break;
      case GROWING:
        y = ldexp(y, (int)(i / 300 % 40) * 20 - 400);
        break;
      default:
        break;
    }
    x = y * (1 + ldexp(uniform(&state) - 0.5, -9));
    if (kind == ORDINARY || kind == RELU || kind == SPECIALS)
      x = assay_format_round(ASSAY_FORMAT_FP16, y, ASSAY_OVERFLOW_IEEE);
    if (kind == EXACT || kind == ZEROS) x = y;
    if (kind == GEMM) x = y + ldexp(normal(&state), -8);
    if (kind == HUGE_ONES && i % 97 == 0) x = -DBL_MAX, y = DBL_MAX;  // the difference overflows
    if (kind == SPECIALS) {
      static const double special[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1};
      int k = (int)(uniform(&state) * 40), m = (int)(uniform(&state) * 4);
      if (k < 3) x = special[k];
      if (k < 3 || k == 30) y = special[m];
    }
    engine[i] = x;
    reference[i] = y;
  }
}

static int ascending(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Equal to within `relative`, or a step where numbers are subnormal; infinities and NaN by kind.
static bool near(double a, double b, double relative) {
  if (a == b || (a != a && b != b)) return true;
  return fabs(a - b) <= fmax(relative * fabs(b), 0x1p-1074);
}

// ---- the oracle -----------------------------------------------------------------------------

// Bins by their definition: the first 6 bits of the mantissa.
static double bin_low(double x) {
  if (x == 0 || fabs(x) < 0x1p-1028) return 0;
  int e = ilogb(x) < -1022 ? -1022 : ilogb(x);
  return ldexp(trunc(ldexp(x, 6 - e)), e - 6);
}

static double kl_by_sorting(const double* p_values, const double* q_values, int64_t n) {
  double* bins = malloc((size_t)n * 2 * sizeof *bins);
  for (int64_t i = 0; i < n; i++) {
    bins[i] = bin_low(p_values[i]);
    bins[n + i] = bin_low(q_values[i]);
  }
  double *p = bins, *q = bins + n;
  qsort(p, (size_t)n, sizeof *p, ascending);
  qsort(q, (size_t)n, sizeof *q, ascending);
  long double sum = 0;
  int64_t count = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t i = 0, j = 0; i < n || j < n;) {
      double v = j >= n || (i < n && p[i] <= q[j]) ? p[i] : q[j];
      int64_t a = 0, b = 0;
      while (i < n && p[i] == v) i++, a++;
      while (j < n && q[j] == v) j++, b++;
      count += !pass;
      if (!pass) continue;
      long double total = (long double)n + (long double)count / 2;
      long double pa = ((long double)a + 0.5L) / total, qb = ((long double)b + 0.5L) / total;
      sum += pa * logl(pa / qb);
    }
  }
  free(bins);
  return n ? (double)sum : 0;
}

static void check_error_stats(const char* what, const assay_error_stats_t* s, const double* engine,
                              const double* reference, int64_t n, assay_format_t format) {
  assay_error_summary_t r;
  OK(assay_error_stats_summary(s, &r));
  double* errors = malloc(((size_t)n + 1) * sizeof *errors);
  double* a = malloc(((size_t)n + 1) * sizeof *a);
  double* b = malloc(((size_t)n + 1) * sizeof *b);
  int64_t* place = malloc(((size_t)n + 1) * sizeof *place);
  int64_t m = 0, nans[2] = {0}, infs[2] = {0}, equal_nan = 0, equal_inf = 0, mismatched = 0;
  int64_t first_mismatched = -1, ulp[ASSAY_ULP_SLOTS] = {0}, max_ulp = 0;
  long double e1 = 0, e2 = 0, a2 = 0, b2 = 0, ab = 0, abs_sum = 0;
  double max_abs = 0, scale = 0;
  int64_t max_at = -1;
  for (int64_t i = 0; i < n; i++) {
    double x = engine[i], y = reference[i];
    nans[0] += x != x;
    nans[1] += y != y;
    infs[0] += isinf(x) != 0;
    infs[1] += isinf(y) != 0;
    if (!isfinite(x) || !isfinite(y)) {
      if (x != x && y != y)
        equal_nan++;
      else if (x == y)
        equal_inf++;
      else if (!mismatched++)
        first_mismatched = i;
      continue;
    }
    double d = fabs(x - y);
    if (d > DBL_MAX) d = DBL_MAX;
    long double e = (long double)x - y;
    if (fabsl(e) > DBL_MAX) e = e > 0 ? DBL_MAX : -DBL_MAX;
    e1 += e, abs_sum += fabsl(e), e2 += e * e, ab += (long double)x * y;
    a2 += (long double)x * x, b2 += (long double)y * y;
    if (d > max_abs) max_abs = d, max_at = i;
    if (fabs(y) > scale) scale = fabs(y);
    errors[m] = d, a[m] = x, b[m] = y, place[m++] = i;
    if (format == ASSAY_FORMAT_NONE) continue;
    int64_t u =
        assay_format_ulp_distance(format, assay_format_round(format, x, ASSAY_OVERFLOW_IEEE),
                                  assay_format_round(format, y, ASSAY_OVERFLOW_IEEE));
    if (u > max_ulp) max_ulp = u;
    int slot = 0;
    if (u)
      for (slot = 1; slot < 64 && (INT64_C(1) << (slot - 1)) < u; slot++) {
      }
    ulp[slot]++;
  }
  CHECK(r.n == n && r.n_compared == m, "%s: n %" PRId64 ", compared %" PRId64, what, r.n,
        r.n_compared);
  CHECK(r.engine_nan == nans[0] && r.reference_nan == nans[1], "%s: NaN", what);
  CHECK(r.engine_inf == infs[0] && r.reference_inf == infs[1], "%s: infinities", what);
  CHECK(r.equal_nan == equal_nan && r.equal_inf == equal_inf, "%s: equal", what);
  CHECK(r.mismatched == mismatched && r.first_mismatched_at == first_mismatched, "%s: mismatched",
        what);
  CHECK(r.max_abs == max_abs && r.max_abs_at == max_at,
        "%s: max_abs %g at %" PRId64 ", expected %g at %" PRId64, what, r.max_abs, r.max_abs_at,
        max_abs, max_at);
  CHECK(r.worst_at == (mismatched ? first_mismatched : max_at), "%s: worst_at", what);
  CHECK(r.max_reference == scale, "%s: scale", what);
  long double count = m ? m : 1;
  double mean_tolerance = (double)(abs_sum / count) * 1e-13;
  CHECK(fabs(r.mean - (double)(e1 / count)) <= mean_tolerance, "%s: mean %g, expected %g", what,
        r.mean, (double)(e1 / count));
  // Means of magnitudes that double cannot square: long double can.
  CHECK(near(r.rms, (double)sqrtl(e2 / count), 1e-12), "%s: rms %g, expected %Lg", what, r.rms,
        sqrtl(e2 / count));
  CHECK(near(r.rms_reference, (double)sqrtl(b2 / count), 1e-12), "%s: rms_reference %g", what,
        r.rms_reference);
  CHECK(near(r.rms_engine, (double)sqrtl(a2 / count), 1e-12), "%s: rms_engine %g", what,
        r.rms_engine);
  double cosine = a2 > 0 && b2 > 0   ? (double)(ab / (sqrtl(a2) * sqrtl(b2)))
                  : a2 > 0 || b2 > 0 ? 0
                                     : 1;
  CHECK(fabs(r.cosine - cosine) < 1e-12, "%s: cosine %.17g, expected %.17g", what, r.cosine,
        cosine);
  double snr = e2 > 0 ? (double)(10 * log10l(b2 / e2)) : inf;
  CHECK(near(r.snr_db, snr, 1e-11) || fabs(r.snr_db - snr) < 1e-9, "%s: snr %g, expected %g", what,
        r.snr_db, snr);
  double psnr = e2 > 0 ? (double)(20 * log10l((long double)scale / sqrtl(e2 / count))) : inf;
  CHECK(near(r.psnr_db, psnr, 1e-11) || fabs(r.psnr_db - psnr) < 1e-9, "%s: psnr %g, expected %g",
        what, r.psnr_db, psnr);
  // Relative errors.
  double near_zero = scale > 0 ? ldexp(1, ilogb(scale) - 10) : 0, max_rel = 0, near_error = 0;
  int64_t near_count = 0, rel_at = -1;
  for (int64_t i = 0; i < m; i++) {
    if (fabs(b[i]) < near_zero || scale == 0) {
      near_count++;
      if (errors[i] > near_error) near_error = errors[i];
    } else if (errors[i] / fabs(b[i]) > max_rel) {
      max_rel = errors[i] / fabs(b[i]);
      rel_at = place[i];
    }
  }
  if (scale == 0 || near_zero >= 0x1p-1022) {
    CHECK(r.near_zero == near_zero && r.n_near_zero == near_count,
          "%s: near zero: %" PRId64 " below %g, expected %" PRId64 " below %g", what, r.n_near_zero,
          r.near_zero, near_count, near_zero);
    CHECK(near(r.near_zero_error, near_error > 0 ? near_error / scale : 0, 1e-15),
          "%s: near zero error %g", what, r.near_zero_error);
    CHECK(r.max_rel == max_rel && r.max_rel_at == rel_at,
          "%s: max_rel %g at %" PRId64 ", expected %g at %" PRId64, what, r.max_rel, r.max_rel_at,
          max_rel, rel_at);
  }
  // Ulps.
  if (format != ASSAY_FORMAT_NONE) {
    CHECK(r.max_ulp == max_ulp, "%s: max_ulp %" PRId64 ", expected %" PRId64, what, r.max_ulp,
          max_ulp);
    for (int i = 0; i < ASSAY_ULP_SLOTS; i++)
      CHECK(r.ulp[i] == ulp[i], "%s: ulp slot %d: %" PRId64 ", expected %" PRId64, what, i,
            r.ulp[i], ulp[i]);
  }
  // Divergence, percentiles, the histogram itself.
  double kl = kl_by_sorting(b, a, m);
  CHECK(fabs(r.kl - kl) <= 1e-9 * fabs(kl) + 1e-13, "%s: kl %.17g, expected %.17g", what, r.kl, kl);
  qsort(errors, (size_t)m, sizeof *errors, ascending);
  for (double p = 0; m && p <= 1; p += 0.01171875) {
    double rank = ceil(p * (double)m) - 1;
    double want = errors[rank > 0 ? (int64_t)rank : 0], got = assay_error_stats_percentile(s, p);
    CHECK(near(got, want, 1.0 / 128) || want < 0x1p-1020, "%s: percentile %g: %g, expected %g",
          what, p, got, want);
  }
  uint32_t cursor = 0;
  double lo, hi, last = -1;
  uint64_t bin_count;
  int64_t at = 0;
  while (assay_histogram_next(assay_error_stats_errors(s), &cursor, &lo, &hi, &bin_count)) {
    CHECK(lo > last || (lo == 0 && last < 0), "%s: bins out of order at %g", what, lo);
    CHECK(lo == 0 || lo < 0x1p-1022 || isinf(hi) || hi / lo - 1 <= 1.0 / 64, "%s: wide bin at %g",
          what, lo);
    last = lo;
    for (uint64_t i = 0; i < bin_count; i++, at++)
      CHECK(at < m && errors[at] >= lo && errors[at] < hi, "%s: bin [%g, %g) is wrong", what, lo,
            hi);
  }
  CHECK(at == m, "%s: histogram has %" PRId64 " of %" PRId64, what, at, m);
  free(errors);
  free(a);
  free(b);
  free(place);
}

static assay_error_stats_t* new_stats(assay_format_t format) {
  assay_error_options_t options = ASSAY_ERROR_OPTIONS_INIT;
  options.ulp_format = format;
  assay_error_stats_t* s = NULL;
  OK(assay_error_stats_create(&options, &s));
  return s;
}

enum { MAX_N = 300000 };
static double engine[MAX_N], reference[MAX_N];

static void test_errors(void** state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 2, 7, 8, 9, 1000, 1024, 1025, 20000, 65536, 65537, MAX_N};
  static const assay_format_t formats[] = {
      ASSAY_FORMAT_NONE,    ASSAY_FORMAT_FP16, ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP64,
      ASSAY_FORMAT_FP8E4M3, ASSAY_FORMAT_BF16, ASSAY_FORMAT_TF32, ASSAY_FORMAT_INT8};
  for (int kind = 0; kind < KINDS; kind++) {
    fill((kind_t)kind, MAX_N, engine, reference);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      assay_format_t format = formats[(i + (size_t)kind) % (sizeof formats / sizeof *formats)];
      if (format == ASSAY_FORMAT_FP8E4M3 && kind == HUGE_ONES) format = ASSAY_FORMAT_FP32;
      char what[99];
      snprintf(what, sizeof what, "%s, n %" PRId64 ", ulps of %s, seed %" PRIu64, kind_names[kind],
               sizes[i], assay_format_name(format), seed);
      assay_error_stats_t* s = new_stats(format);
      assay_error_stats_add(s, ASSAY_TYPE_DOUBLE, engine, ASSAY_TYPE_DOUBLE, reference, sizes[i]);
      check_error_stats(what, s, engine, reference, sizes[i], format);
      assay_error_stats_destroy(s);
    }
  }
}

static bool same_summary(const assay_error_stats_t* a, const assay_error_stats_t* b) {
  assay_error_summary_t x, y;
  memset(&x, 0, sizeof x);
  memset(&y, 0, sizeof y);
  OK(assay_error_stats_summary(a, &x));
  OK(assay_error_stats_summary(b, &y));
  return memcmp(&x, &y, sizeof x) == 0;
}

// The same bits for 1, 2, 3 and 7 threads.
static void test_threads(void** state) {
  (void)state;
  int before = omp_get_max_threads();
  for (int kind = 0; kind < KINDS; kind++) {
    fill((kind_t)kind, MAX_N, engine, reference);
    assay_error_stats_t* one = NULL;
    assay_value_summary_t v1, v2;
    memset(&v1, 0, sizeof v1);
    memset(&v2, 0, sizeof v2);
    static const int threads[] = {1, 2, 3, 7};
    for (int t = 0; t < 4; t++) {
      omp_set_num_threads(threads[t]);
      assay_error_stats_t* s = new_stats(ASSAY_FORMAT_FP16);
      assay_error_stats_add(s, ASSAY_TYPE_DOUBLE, engine, ASSAY_TYPE_DOUBLE, reference, MAX_N);
      assay_value_stats_t* v = NULL;
      OK(assay_value_stats_create(ASSAY_FORMAT_FP16, &v));
      assay_value_stats_add(v, ASSAY_TYPE_DOUBLE, engine, MAX_N);
      OK(assay_value_stats_summary(v, t ? &v2 : &v1));
      assay_value_stats_destroy(v);
      if (!one) {
        one = s;
        continue;
      }
      CHECK(same_summary(one, s), "%s: %d threads", kind_names[kind], threads[t]);
      CHECK(memcmp(&v1, &v2, sizeof v1) == 0, "%s: values, %d threads", kind_names[kind],
            threads[t]);
      assay_error_stats_destroy(s);
    }
    assay_error_stats_destroy(one);
  }
  omp_set_num_threads(before);
}

// Several calls and merged objects say what one call says.
static void test_merge(void** state) {
  (void)state;
  enum { N = 200000, CUT = 70001 };
  for (int kind = 0; kind < KINDS; kind++) {
    fill((kind_t)kind, N, engine, reference);
    assay_error_stats_t *calls = new_stats(ASSAY_FORMAT_BF16),
                        *first = new_stats(ASSAY_FORMAT_BF16),
                        *second = new_stats(ASSAY_FORMAT_BF16),
                        *empty = new_stats(ASSAY_FORMAT_BF16);
    for (int64_t i = 0; i < N; i += CUT)
      assay_error_stats_add(calls, ASSAY_TYPE_DOUBLE, engine + i, ASSAY_TYPE_DOUBLE, reference + i,
                            N - i < CUT ? N - i : CUT);
    check_error_stats(kind_names[kind], calls, engine, reference, N, ASSAY_FORMAT_BF16);
    assay_error_stats_add(first, ASSAY_TYPE_DOUBLE, engine, ASSAY_TYPE_DOUBLE, reference, CUT);
    assay_error_stats_add(second, ASSAY_TYPE_DOUBLE, engine + CUT, ASSAY_TYPE_DOUBLE,
                          reference + CUT, N - CUT);
    assay_error_stats_merge(first, second);
    assay_error_stats_merge(first, empty);
    check_error_stats(kind_names[kind], first, engine, reference, N, ASSAY_FORMAT_BF16);
    assay_error_stats_merge(empty, first);
    CHECK(same_summary(empty, first), "%s: merged into nothing", kind_names[kind]);
    assay_error_stats_destroy(calls);
    assay_error_stats_destroy(first);
    assay_error_stats_destroy(second);
    assay_error_stats_destroy(empty);
  }
}

// Packed and canonical tensors of all types, at an odd address.
static void test_types(void** state) {
  (void)state;
  enum { N = 5000 };
  static unsigned char packed[16 * N + 1];
  static double values[2 * N], words[2 * N], other[2 * N];
  for (int t = 1; t < ASSAY_TYPE_COUNT; t++) {
    assay_type_t type = (assay_type_t)t;
    if (type == ASSAY_TYPE_STRING) continue;
    bool is_complex = assay_type_is_complex(type), floats = assay_type_is_float(type) || is_complex;
    int64_t parts = is_complex ? 2 : 1;
    uint64_t random = seed;
    for (int64_t i = 0; i < N * parts; i++) {
      values[i] = floats ? normal(&random) : floor(uniform(&random) * 4);
      int64_t integer = (int64_t)values[i];
      if (floats)
        words[i] = values[i];
      else
        memcpy(&words[i], &integer, sizeof integer);
      other[i] = values[i] + (i % 10 == 0 ? 0.25 : 0);
    }
    assay_pack(type, words, N, packed + 1, ASSAY_OVERFLOW_IEEE);
    assay_unpack(type, packed + 1, 0, N, words);
    for (int64_t i = 0; i < N * parts; i++) {
      int64_t integer;
      memcpy(&integer, &words[i], sizeof integer);
      values[i] = floats ? words[i] : (double)integer;
    }
    assay_error_stats_t* s = new_stats(ASSAY_FORMAT_FP32);
    assay_error_stats_add(s, type, packed + 1,
                          is_complex ? ASSAY_TYPE_COMPLEX128 : ASSAY_TYPE_DOUBLE, other, N);
    check_error_stats(assay_type_name(type), s, values, other, N * parts, ASSAY_FORMAT_FP32);
    assay_error_stats_destroy(s);
  }
}

// What a user reads about small tensors, by hand.
static void test_by_hand(void** state) {
  (void)state;
  static const struct {
    const char* what;
    int n;
    double engine[4], reference[4];
    double max_abs, max_rel, mean, rms, cosine, snr_db;
    int64_t worst_at, mismatched;
  } rows[] = {
      {"nothing", 0, {0}, {0}, 0, 0, 0, 0, 1, (double)INFINITY, -1, 0},
      {"exact", 2, {1, -2}, {1, -2}, 0, 0, 0, 0, 1, (double)INFINITY, -1, 0},
      {"zeros of both signs", 2, {0.0, -0.0}, {-0.0, 0.0}, 0, 0, 0, 0, 1, (double)INFINITY, -1, 0},
      {"opposite", 1, {-2}, {2}, 4, 2, -4, 4, -1, -6.0205999132796239, 0, 0},
      {"engine all zero", 2, {0, 0}, {3, 4}, 4, 1, -3.5, 3.5355339059327378, 0, 0, 1, 0},
      {"equal infinities and NaN",
       3,
       {(double)INFINITY, (double)NAN, 1},
       {(double)INFINITY, (double)NAN, 1},
       0,
       0,
       0,
       0,
       1,
       (double)INFINITY,
       -1,
       0},
      {"overflow",
       3,
       {1, (double)INFINITY, 2.5},
       {1, 65520, 2},
       0.5,
       0.25,
       0.25,
       0.35355339059327379,
       0.99654575824487955,
       13.010299956639813,
       1,
       1},
      {"infinity against minus infinity",
       1,
       {(double)INFINITY},
       {-(double)INFINITY},
       0,
       0,
       0,
       0,
       1,
       (double)INFINITY,
       0,
       1},
      {"NaN against infinity",
       1,
       {(double)NAN},
       {(double)INFINITY},
       0,
       0,
       0,
       0,
       1,
       (double)INFINITY,
       0,
       1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_error_stats_t* s = new_stats(ASSAY_FORMAT_NONE);
    assay_error_stats_add(s, ASSAY_TYPE_DOUBLE, rows[i].engine, ASSAY_TYPE_DOUBLE,
                          rows[i].reference, rows[i].n);
    assay_error_summary_t r;
    OK(assay_error_stats_summary(s, &r));
    CHECK(r.max_abs == rows[i].max_abs && r.max_rel == rows[i].max_rel && r.mean == rows[i].mean &&
              near(r.rms, rows[i].rms, 1e-15) && near(r.cosine, rows[i].cosine, 1e-15) &&
              (near(r.snr_db, rows[i].snr_db, 1e-14) || fabs(r.snr_db - rows[i].snr_db) < 1e-14) &&
              r.worst_at == rows[i].worst_at && r.mismatched == rows[i].mismatched,
          "%s: max_abs %g max_rel %g mean %g rms %.17g cosine %.17g snr %.17g worst %" PRId64
          " mismatched %" PRId64,
          rows[i].what, r.max_abs, r.max_rel, r.mean, r.rms, r.cosine, r.snr_db, r.worst_at,
          r.mismatched);
    assay_error_stats_destroy(s);
  }
}

// An fp64 tensor's squares overflow; the figures do not.
static void test_scale(void** state) {
  (void)state;
  fill(ORDINARY, 20000, engine, reference);
  assay_error_summary_t plain, scaled;
  static const int exponents[] = {-980, -600, -401, 399, 600, 1000};
  assay_error_stats_t* s = new_stats(ASSAY_FORMAT_NONE);
  assay_error_stats_add(s, ASSAY_TYPE_DOUBLE, engine, ASSAY_TYPE_DOUBLE, reference, 20000);
  OK(assay_error_stats_summary(s, &plain));
  assay_error_stats_destroy(s);
  for (size_t k = 0; k < sizeof exponents / sizeof *exponents; k++) {
    static double a[20000], b[20000];
    for (int i = 0; i < 20000; i++) {
      a[i] = ldexp(engine[i], exponents[k]);
      b[i] = ldexp(reference[i], exponents[k]);
    }
    s = new_stats(ASSAY_FORMAT_NONE);
    assay_error_stats_add(s, ASSAY_TYPE_DOUBLE, a, ASSAY_TYPE_DOUBLE, b, 20000);
    OK(assay_error_stats_summary(s, &scaled));
    assay_error_stats_destroy(s);
    int e = exponents[k];
    CHECK(near(ldexp(scaled.rms, -e), plain.rms, 1e-12) &&
              near(scaled.cosine, plain.cosine, 1e-13) &&
              near(scaled.snr_db, plain.snr_db, 1e-12) &&
              near(scaled.psnr_db, plain.psnr_db, 1e-12) &&
              near(ldexp(scaled.mean, -e), plain.mean, 1e-9) && scaled.max_rel == plain.max_rel &&
              near(ldexp(scaled.p99, -e), plain.p99, 1e-12),
          "2^%d: rms %g cosine %.17g snr %g psnr %g mean %g", e, scaled.rms, scaled.cosine,
          scaled.snr_db, scaled.psnr_db, scaled.mean);
  }
}

// ---- values ---------------------------------------------------------------------------------

static void check_values(const char* what, const double* x, int64_t n, assay_format_t format,
                         const assay_value_stats_t* s) {
  assay_value_summary_t r, want = {.n = n};
  OK(assay_value_stats_summary(s, &r));
  const assay_format_info_t* f = assay_format_info(format);
  double* finite = malloc(((size_t)n + 1) * sizeof *finite);
  int64_t m = 0;
  long double sum = 0, squares = 0, spread = 0, abs_sum = 0;
  want.abs_min = inf;
  for (int64_t i = 0; i < n; i++) {
    want.n_nan += x[i] != x[i];
    want.n_positive_inf += x[i] == inf;
    want.n_negative_inf += x[i] == -inf;
    if (!isfinite(x[i])) continue;
    finite[m++] = x[i];
    double a = fabs(x[i]);
    want.n_zero += a == 0;
    want.n_subnormal += a > 0 && f->is_float && a < f->min_normal;
    want.n_overflow += f->is_float && a > f->max;
    if (a > want.abs_max) want.abs_max = a;
    if (a > 0 && a < want.abs_min) want.abs_min = a;
    sum += x[i], squares += (long double)a * a, abs_sum += a;
  }
  for (int64_t i = 0; i < m; i++) spread += (finite[i] - sum / m) * (finite[i] - sum / m);
  qsort(finite, (size_t)m, sizeof *finite, ascending);
  if (isinf(want.abs_min)) want.abs_min = 0;
  CHECK(r.n == n && r.n_finite == m && r.n_nan == want.n_nan, "%s: counts", what);
  CHECK(r.n_positive_inf == want.n_positive_inf && r.n_negative_inf == want.n_negative_inf,
        "%s: infinities", what);
  CHECK(r.n_zero == want.n_zero && r.n_subnormal == want.n_subnormal &&
            r.n_overflow == want.n_overflow,
        "%s: %" PRId64 " zero, %" PRId64 " subnormal, %" PRId64 " overflow", what, r.n_zero,
        r.n_subnormal, r.n_overflow);
  CHECK(r.abs_max == want.abs_max && r.abs_min == want.abs_min, "%s: magnitudes %g %g", what,
        r.abs_max, r.abs_min);
  if (m) {
    CHECK(r.min == finite[0] && r.max == finite[m - 1], "%s: min %g max %g", what, r.min, r.max);
    CHECK(fabs(r.mean - (double)(sum / m)) <= 1e-14 * (double)(abs_sum / m), "%s: mean %g", what,
          r.mean);
    CHECK(near(r.rms, (double)sqrtl(squares / m), 1e-12), "%s: rms %g", what, r.rms);
    CHECK(near(r.std, (double)sqrtl(spread / m), 1e-9) || r.std < 1e-15 * r.rms,
          "%s: std %.17g, expected %.17Lg", what, r.std, sqrtl(spread / m));
  } else {
    CHECK(r.min == 0 && r.max == 0 && r.mean == 0 && r.rms == 0 && r.std == 0, "%s: empty", what);
  }
  for (double p = 0; m && p <= 1; p += 0.0546875) {
    double rank = ceil(p * (double)m) - 1, wanted = finite[rank > 0 ? (int64_t)rank : 0];
    double got = assay_value_stats_percentile(s, p);
    CHECK(near(got, wanted, 1.0 / 128) || fabs(wanted) < 0x1p-1020,
          "%s: percentile %g: %g, expected %g", what, p, got, wanted);
  }
  uint32_t cursor = 0;
  double lo, hi;
  uint64_t count;
  int64_t at = 0;
  while (assay_histogram_next(assay_value_stats_histogram(s), &cursor, &lo, &hi, &count))
    for (uint64_t i = 0; i < count; i++, at++)
      CHECK(at < m && (lo >= 0 && hi > 0 ? finite[at] >= lo && finite[at] < hi
                                         : finite[at] > lo && finite[at] <= hi),
            "%s: bin %g to %g has not %g", what, lo, hi, finite[at]);
  CHECK(at == m, "%s: histogram", what);
  free(finite);
}

static void test_values(void** state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 8, 1000, 1025, 65537, MAX_N};
  for (int kind = 0; kind < KINDS; kind++) {
    fill((kind_t)kind, MAX_N, engine, reference);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      assay_format_t format = i % 2 ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_FP32;
      assay_value_stats_t *s = NULL, *rest = NULL;
      OK(assay_value_stats_create(format, &s));
      OK(assay_value_stats_create(format, &rest));
      assay_value_stats_add(s, ASSAY_TYPE_DOUBLE, engine, sizes[i] / 3);
      assay_value_stats_add(rest, ASSAY_TYPE_DOUBLE, engine + sizes[i] / 3,
                            sizes[i] - sizes[i] / 3);
      assay_value_stats_merge(s, rest);
      char what[99];
      snprintf(what, sizeof what, "%s, n %" PRId64, kind_names[kind], sizes[i]);
      check_values(what, engine, sizes[i], format, s);
      assay_value_stats_destroy(s);
      assay_value_stats_destroy(rest);
    }
  }
}

// ---- rankings -------------------------------------------------------------------------------

static void test_topk(void** state) {
  (void)state;
  static const struct {
    const char* what;
    double engine[5], reference[5];
    int64_t rows, cols;
    int k;
    int64_t first, set, order;
    double overlap;
  } rows[] = {{"the same", {1, 5, 3}, {1, 5, 3}, 1, 3, 2, 1, 1, 1, 1},
              {"swapped", {4, 5, 3}, {5, 4, 3}, 1, 3, 2, 0, 1, 0, 1},
              {"half", {9, 1, 8}, {9, 8, 1}, 1, 3, 2, 1, 0, 0, 0.5},
              {"ties go to the first", {2, 2, 1}, {3, 2, 1}, 1, 3, 1, 1, 1, 1, 1},
              {"k is cut", {1, 2}, {1, 2}, 1, 2, 64, 1, 1, 1, 1},
              {"NaN is last", {(double)NAN, 1, 2}, {0, 1, 2}, 1, 3, 3, 1, 1, 1, 1},
              {"NaN is not the largest", {(double)NAN, 1, 2}, {9, 1, 2}, 1, 3, 1, 0, 0, 0, 0},
              {"infinities", {-(double)INFINITY, (double)INFINITY}, {0, 1}, 1, 2, 1, 1, 1, 1, 1},
              {"two rows", {1, 2, 2, 1}, {1, 2, 1, 2}, 2, 2, 1, 1, 1, 1, 0.5},
              {"no rows", {0}, {0}, 0, 5, 1, 0, 0, 0, 1},
              {"no columns", {0}, {0}, 5, 0, 1, 0, 0, 0, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_topk_t r;
    OK(assay_topk_compare(ASSAY_TYPE_DOUBLE, rows[i].engine, ASSAY_TYPE_DOUBLE, rows[i].reference,
                          rows[i].rows, rows[i].cols, rows[i].k, &r));
    CHECK(r.same_first == rows[i].first && r.same_set == rows[i].set &&
              r.same_order == rows[i].order && r.overlap == rows[i].overlap,
          "%s: first %" PRId64 " set %" PRId64 " order %" PRId64 " overlap %g", rows[i].what,
          r.same_first, r.same_set, r.same_order, r.overlap);
  }
  assay_topk_t r;
  for (int k = 0; k <= ASSAY_TOPK_MAX + 1; k += ASSAY_TOPK_MAX + 1) {
    assay_status_t st =
        assay_topk_compare(ASSAY_TYPE_DOUBLE, engine, ASSAY_TYPE_DOUBLE, engine, 1, 1, k, &r);
    assert_non_null(st);
    assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
    assay_status_free(st);
  }
  // Rows longer than a block, against sorting.
  enum { COLS = 3001 };
  uint64_t random = seed;
  for (int i = 0; i < 2 * COLS; i++) {
    reference[i] = floor(normal(&random) * 500);
    engine[i] = reference[i] + (i % 3 ? 0 : floor(uniform(&random) * 40));
  }
  int64_t shared = 0;
  for (int row = 0; row < 2; row++) {
    bool taken[2][COLS] = {{false}};
    for (int side = 0; side < 2; side++) {
      const double* x = (side ? reference : engine) + row * COLS;
      for (int k = 0; k < 20; k++) {
        int best = -1;
        for (int i = 0; i < COLS; i++)
          if (!taken[side][i] && (best < 0 || x[i] > x[best])) best = i;
        taken[side][best] = true;
      }
    }
    for (int i = 0; i < COLS; i++) shared += taken[0][i] && taken[1][i];
  }
  OK(assay_topk_compare(ASSAY_TYPE_DOUBLE, engine, ASSAY_TYPE_DOUBLE, reference, 2, COLS, 20, &r));
  CHECK(r.overlap == (double)shared / 40, "overlap %g, expected %g", r.overlap,
        (double)shared / 40);
}

// ---- memory ---------------------------------------------------------------------------------

// Allocation k fails, for all k: an error or the right answer, and nothing stays behind.
static void test_no_memory(void** state) {
  (void)state;
  enum { N = 300000 };
  fill(WIDE, N, engine, reference);
  int64_t live = assay_alloc_live();
  int failures = 0;
  for (int sticky = 0; sticky < 2; sticky++) {
    for (uint64_t k = 1, made;; k++) {
      (void)assay_alloc_fail_after(k, sticky);
      assay_error_stats_t *s = NULL, *t = NULL;
      assay_value_stats_t* v = NULL;
      assay_error_summary_t r;
      assay_value_summary_t w;
      assay_status_t st = assay_error_stats_create(NULL, &s);
      if (!st) st = assay_error_stats_create(NULL, &t);
      if (!st) st = assay_value_stats_create(ASSAY_FORMAT_FP16, &v);
      if (!st) {
        assay_error_stats_add(s, ASSAY_TYPE_DOUBLE, engine, ASSAY_TYPE_DOUBLE, reference, N);
        assay_error_stats_add(t, ASSAY_TYPE_DOUBLE, engine, ASSAY_TYPE_DOUBLE, reference, 3000);
        assay_value_stats_add(v, ASSAY_TYPE_DOUBLE, engine, N);
        assay_error_stats_merge(s, t);
        st = assay_error_stats_summary(s, &r);
        if (!st) st = assay_value_stats_summary(v, &w);
      }
      made = assay_alloc_fail_after(0, false);
      if (st) {
        failures++;
        CHECK(assay_status_code(st) == ASSAY_NO_MEMORY, "allocation %" PRIu64 ": %s", k,
              assay_status_message(st));
        assay_status_free(st);
      } else {
        CHECK(r.n == N + 3000 && w.n == N, "allocation %" PRIu64, k);
      }
      assay_error_stats_destroy(s);
      assay_error_stats_destroy(t);
      assay_value_stats_destroy(v);
      CHECK(assay_alloc_live() == live, "allocation %" PRIu64 ": something stays", k);
      if (made < k) break;  // it took fewer
    }
  }
  assert_true(failures > 10);
}

int main(void) {
  const char* text = getenv("ASSAY_TEST_SEED");
  seed = text ? strtoull(text, NULL, 10) : 20250101;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand),  cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_threads),  cmocka_unit_test(test_merge),
                                     cmocka_unit_test(test_types),    cmocka_unit_test(test_scale),
                                     cmocka_unit_test(test_values),   cmocka_unit_test(test_topk),
                                     cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
