// Sums in NumPy's order and type, and the statistics that are made of them.
#include <math.h>
#include <string.h>

#include "compare/numeric.h"
#include "formats/codec.h"

enum { BLOCK = 128, WAYS = 8 };

// What is summed: elements, or something of each.
typedef enum term { ELEMENT, MAGNITUDE, SQUARE } term_t;
typedef struct terms {
  const assay_numeric_t* a;
  term_t term;
  double shift;  // taken from each before that
  assay_numeric_kind_t in;
} terms_t;

// The sum of up to BLOCK terms, eight sums side by side. A macro, so that float32 and float64 run
// in their own type: a sum, difference or product of two float32 that is rounded from float64 is
// the one that float32 gives.
#define SUM_BLOCK(name, real, rounded)                                                      \
  ASSAY_WIDE static double name(const double* x, int64_t n, term_t term, double shift) {    \
    real y[BLOCK], r[WAYS] = {0}, sum = 0;                                                  \
    int64_t i = 0;                                                                          \
    _Pragma("omp simd") for (int64_t k = 0; k < n; k++) y[k] = rounded(x[k] - shift);       \
    if (term == MAGNITUDE)                                                                  \
      _Pragma("omp simd") for (int64_t k = 0; k < n; k++) y[k] = (real)fabs((double)y[k]);  \
    if (term == SQUARE)                                                                     \
      _Pragma("omp simd") for (int64_t k = 0; k < n; k++) y[k] = rounded(y[k] * y[k]);      \
    if (n >= WAYS) {                                                                        \
      memcpy(r, y, sizeof r);                                                               \
      for (i = WAYS; i < n - n % WAYS; i += WAYS)                                           \
        _Pragma("omp simd") for (int k = 0; k < WAYS; k++) r[k] = rounded(r[k] + y[i + k]); \
      for (int step = 1; step < WAYS; step *= 2)                                            \
        for (int k = 0; k < WAYS; k += 2 * step) r[k] = rounded(r[k] + r[k + step]);        \
      sum = r[0];                                                                           \
    }                                                                                       \
    for (; i < n; i++) sum = rounded(sum + y[i]);                                           \
    return (double)sum;                                                                     \
  }

#define ROUND_F16(x) assay_numeric_round(ASSAY_NUMERIC_F16, (x))
#define ROUND_F32(x) (float)(x)
#define ROUND_F64(x) (x)
SUM_BLOCK(block_f16, double, ROUND_F16)
SUM_BLOCK(block_f32, float, ROUND_F32)
SUM_BLOCK(block_f64, double, ROUND_F64)

static double block(const terms_t* t, int64_t from, int64_t n) {
  double integers[BLOCK];
  const double* x = t->a->f ? t->a->f + from : integers;
  for (int64_t i = 0; !t->a->f && i < n; i++) integers[i] = assay_numeric_at(t->a, from + i);
  if (t->in == ASSAY_NUMERIC_F16) return block_f16(x, n, t->term, t->shift);
  if (t->in == ASSAY_NUMERIC_F32) return block_f32(x, n, t->term, t->shift);
  return block_f64(x, n, t->term, t->shift);
}

// Halves down to a block.
static double pairwise(const terms_t* t, int64_t from, int64_t n) {
  if (n <= BLOCK) return block(t, from, n);
  int64_t half = n / 2;
  half -= half % WAYS;
  return assay_numeric_round(t->in, pairwise(t, from, half) + pairwise(t, from + half, n - half));
}

// Elements that are of another type than the sum come in pieces.
static double sum_of(const terms_t* t, bool cast) {
  enum { PIECE = 8192 };
  double sum = 0;
  if (!cast) return pairwise(t, 0, t->a->n);
  for (int64_t i = 0; i < t->a->n; i += PIECE) {
    const int64_t n = t->a->n - i < PIECE ? t->a->n - i : PIECE;
    sum = assay_numeric_round(t->in, sum + pairwise(t, i, n));
  }
  return sum;
}

double assay_numeric_sum(const assay_numeric_t* a) {
  const terms_t t = {.a = a, .in = a->number};
  uint64_t sum = 0;
  if (a->f) return sum_of(&t, false);
  for (int64_t i = 0; i < a->n; i++) sum += (uint64_t)a->i[i];
  return a->number == ASSAY_NUMERIC_U64 ? (double)sum : (double)(int64_t)sum;
}

static double mean_of(const assay_numeric_t* a, assay_numeric_kind_t in, term_t term) {
  const terms_t t = {.a = a, .term = term, .in = in};
  return assay_numeric_round(in, sum_of(&t, in != a->number) / (double)a->n);
}

double assay_numeric_mean(const assay_numeric_t* a, assay_numeric_kind_t in) {
  return mean_of(a, in, ELEMENT);
}

// ---- statistics ---------------------------------------------------------------------------------

// float16 is widened for these, and kept for means and quantiles.
static double variance(const assay_numeric_t* a) {
  assay_numeric_t wide = *a;
  if (!a->n) return 0;
  assay_numeric_widen(&wide);
  const assay_numeric_kind_t in = assay_numeric_of_mean(wide.number);
  const terms_t t = {.a = &wide, .term = SQUARE, .in = in, .shift = assay_numeric_mean(&wide, in)};
  // What is left of the mean is an array of the sum's type already.
  return assay_numeric_round(in, sum_of(&t, false) / (double)a->n);
}

assay_status_t assay_numeric_stats(const assay_numeric_t* a, assay_numeric_stats_t* out) {
  assay_numeric_stats_t s = {0};
  assay_numeric_t wide = *a;
  assay_ranked_t ranked;
  ASSAY_TRY(assay_ranked_init(a, &ranked));
  assay_numeric_widen(&wide);
  s.mean = mean_of(a, ASSAY_NUMERIC_F32, ELEMENT);
  s.magnitude = mean_of(a, ASSAY_NUMERIC_F32, MAGNITUDE);
  s.variance = variance(a);
  s.deviation = assay_numeric_round(assay_numeric_of_mean(wide.number), sqrt(s.variance));
  s.min = assay_numeric_min(a);
  s.max = assay_numeric_max(a);
  s.median = assay_ranked_median(&ranked);
  s.p90 = assay_ranked_quantile(&ranked, 0.9);
  s.p95 = assay_ranked_quantile(&ranked, 0.95);
  s.p99 = assay_ranked_quantile(&ranked, 0.99);
  assay_ranked_deinit(&ranked);
  *out = s;
  return NULL;
}
