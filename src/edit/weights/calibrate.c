// Ranges of activations from their magnitudes: what calibrators of int8 choose.
#include "edit/weights/calibrate.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "formats/stats.h"

// Bins of equal width, a power of two: 2^exponent. Where a magnitude lies beyond the last one,
// pairs of bins are put together until it fits: so the width depends on the largest magnitude
// alone, which lies in the upper half of the bins, and the counts do not depend on what came first.
enum { BINS = 4096, BINS_BITS = 12, LEVELS = 128 };

struct assay_calibration {
  const assay_calibrator_t* calibrator;
  double max;
  assay_value_stats_t* stats;  // NULL: the calibrator does without
  uint64_t* bins;              // the same
  int exponent;
};

assay_status_t assay_calibration_create(const assay_calibrator_t* for_calibrator,
                                        assay_calibration_t** out) {
  assay_calibration_t* m = NULL;
  ASSAY_TRY(ASSAY_NEW(&m));
  m->calibrator = for_calibrator;
  assay_status_t st = NULL;
  if (for_calibrator->ranks) st = assay_value_stats_create(ASSAY_FORMAT_NONE, &m->stats);
  if (!st && for_calibrator->counts) st = assay_new_array(BINS, sizeof *m->bins, &m->bins);
  if (st) return assay_calibration_destroy(m), st;
  *out = m;
  return NULL;
}

void assay_calibration_destroy(assay_calibration_t* m) {
  if (!m) return;
  assay_value_stats_destroy(m->stats);
  assay_free(m->bins);
  assay_free(m);
}

// ---- counting -----------------------------------------------------------------------------------

// The exponent of bins of which the last ones hold `max`, which is not zero.
static int exponent_for(double max) {
  int above;
  frexp(max, &above);  // most < 2^above
  return above - BINS_BITS;
}

static void widen_bins(assay_calibration_t* m, int exponent) {
  const int by = exponent - m->exponent;
  for (size_t i = 1; i < BINS; i++) {
    const uint64_t n = m->bins[i];
    m->bins[i] = 0;
    m->bins[by < BINS_BITS ? i >> by : 0] += n;
  }
  m->exponent = exponent;
}

// Zeros are not counted: every range has them exactly.
static void count(assay_calibration_t* m, double max_before, const double* x, int64_t n) {
  if (m->max == 0) return;
  const int exponent = exponent_for(m->max);
  if (max_before == 0)
    m->exponent = exponent;
  else if (exponent > m->exponent)
    widen_bins(m, exponent);
  // 1 / width is a power of two: products by it are exact, but where it overflows.
  const double per_width = ldexp(1, -m->exponent);
  for (int64_t i = 0; i < n; i++)
    if (x[i] > 0)
      m->bins[(size_t)(isfinite(per_width) ? x[i] * per_width : ldexp(x[i], -m->exponent))]++;
}

// Magnitudes of the finite elements; the others become NaN. Returns how many these are.
static int64_t take_magnitudes(double* x, int64_t n) {
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) {
    const bool finite = isfinite(x[i]);
    bad += !finite;
    x[i] = finite ? fabs(x[i]) : (double)NAN;
  }
  return bad;
}

assay_status_t assay_calibration_add(assay_calibration_t* m, assay_tensor_t* t,
                                     int64_t* out_not_finite) {
  assay_tensor_t *wide = NULL, *copy = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_tensor_copy(wide, &copy);
  if (!st) {
    double* x = assay_f64(copy);
    const double before = m->max;
    *out_not_finite = take_magnitudes(x, copy->size);
    if (m->stats) assay_value_stats_add(m->stats, ASSAY_TYPE_DOUBLE, x, copy->size);
    for (int64_t i = 0; i < copy->size; i++)
      if (x[i] > m->max) m->max = x[i];
    if (m->bins) count(m, before, x, copy->size);
  }
  assay_tensor_release(wide);
  assay_tensor_release(copy);
  return st;
}

// ---- calibrators --------------------------------------------------------------------------------

static assay_status_t range_minmax(const assay_calibration_t* m, double quantile, double* out) {
  (void)quantile;
  *out = m->max;
  return NULL;
}

static assay_status_t range_percentile(const assay_calibration_t* m, double quantile, double* out) {
  *out = quantile < 1 ? assay_value_stats_percentile(m->stats, quantile) : m->max;
  return NULL;
}

// Sums over the bins before each, so that a divergence takes a step for a level, not one for a bin.
typedef struct sums {
  uint64_t count[BINS + 1];    // of elements
  uint32_t filled[BINS + 1];   // of bins that have any
  double count_log[BINS + 1];  // of n log n
} sums_t;

static double times_log(uint64_t n) { return n ? (double)n * assay_log((double)n) : 0; }

static void add_up(const uint64_t* bins, size_t n, sums_t* s) {
  for (size_t i = 0; i < n; i++) {
    s->count[i + 1] = s->count[i] + bins[i];
    s->filled[i + 1] = s->filled[i] + (bins[i] != 0);
    s->count_log[i + 1] = s->count_log[i] + times_log(bins[i]);
  }
}

// sum P log(P/Q) of the first k of n bins. P: their counts, what lies above them put into the last
// one. Q: the counts without that, each of 128 levels spread evenly over those of its bins that are
// not empty. Where the last one is, Q has half an element there (Krichevsky and Trofimov, 1981):
// else a far outlier, with a gap before it, could never be clipped.
static double divergence(const sums_t* s, const uint64_t* bins, size_t n, size_t k) {
  const uint64_t all = s->count[n], kept = s->count[k], clipped = all - kept;
  const double half = clipped && !bins[k - 1] ? 0.5 : 0;
  if (!kept) return (double)INFINITY;
  const double p_log_p = s->count_log[k - 1] + times_log(bins[k - 1] + clipped);
  double p_log_q = half > 0 ? (double)clipped * assay_log(half) : 0;
  for (size_t level = 0; level < LEVELS; level++) {
    const size_t from = level * k / LEVELS, to = (level + 1) * k / LEVELS;
    const uint64_t in_level = s->count[to] - s->count[from];
    const uint64_t weight = in_level + (to == k && half == 0 ? clipped : 0);
    if (in_level)
      p_log_q +=
          (double)weight * assay_log((double)in_level / (double)(s->filled[to] - s->filled[from]));
  }
  return (p_log_p - p_log_q) / (double)all - assay_log((double)all) +
         assay_log((double)kept + half);
}

// Source: Migacz, "8-bit Inference with TensorRT", GTC 2017, "Entropy Calibration - pseudocode".
// Its 2048 bins up to the largest magnitude are 2049 to 4096 here, see above; zeros are not
// counted. Of equal divergences the widest range is taken: there clipping gains nothing.
static assay_status_t range_entropy(const assay_calibration_t* m, double quantile, double* out) {
  sums_t* s = NULL;
  size_t n = BINS, best;
  double min;
  (void)quantile;
  *out = m->max;
  if (m->max == 0) return NULL;
  while (!m->bins[n - 1]) n--;
  ASSAY_TRY(ASSAY_NEW(&s));
  add_up(m->bins, n, s);
  min = divergence(s, m->bins, n, best = n);
  for (size_t k = n; k-- > LEVELS;) {
    const double d = divergence(s, m->bins, n, k);
    if (d < min) min = d, best = k;
  }
  assay_free(s);
  *out = ldexp((double)best + 0.5, m->exponent);
  return NULL;
}

static const assay_calibrator_t calibrators[] = {
    {.name = "minmax", .range = range_minmax},
    {.name = "entropy", .counts = true, .range = range_entropy},
    {.name = "percentile", .ranks = true, .range = range_percentile},
};

const assay_calibrator_t* assay_calibrator_find(const char* name) {
  for (size_t i = 0; i < sizeof calibrators / sizeof *calibrators; i++)
    if (strcmp(calibrators[i].name, name) == 0) return &calibrators[i];
  return NULL;
}

assay_status_t assay_calibration_range(const assay_calibration_t* m, double quantile, double* out) {
  assay_value_summary_t counted;
  double range = 0;
  if (m->stats) ASSAY_TRY(assay_value_stats_summary(m->stats, &counted));  // none may be missing
  ASSAY_TRY(m->calibrator->range(m, quantile, &range));
  // A quantile of values that are mostly zero is zero, and would clip all the others away.
  *out = range > 0 && range < m->max ? range : m->max;
  return NULL;
}
