// Values of one tensor, and what statistics of all kinds share: reading elements in blocks.
#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/codec.h"
#include "formats/stats.h"
#include "formats/sums.h"

enum { BLOCK = ASSAY_STATS_BLOCK, CHUNK = ASSAY_STATS_CHUNK, WAVE = ASSAY_STATS_WAVE };

const double* assay_block_read(assay_type_t type, const void* data, int64_t first, int64_t n,
                               double* buffer) {
  if (type == ASSAY_TYPE_DOUBLE) {
    const unsigned char* p = (const unsigned char*)data + 8 * (size_t)first;
    if ((uintptr_t)p % _Alignof(double) == 0) return (const double*)(const void*)p;
  }
  if (assay_type_is_float(type)) {
    assay_unpack(type, data, first, n, buffer);
    return buffer;
  }
  int64_t integers[BLOCK];
  assay_unpack(type, data, first, n, integers);
  if (type == ASSAY_TYPE_UINT64)
    for (int64_t i = 0; i < n; i++) buffer[i] = (double)(uint64_t)integers[i];
  else
    for (int64_t i = 0; i < n; i++) buffer[i] = (double)integers[i];
  return buffer;
}

// In order: chunk by chunk. squares: of the values; spread: of their distances to the mean.
typedef struct moments {
  int64_t n, nan, inf[2], finite, zero, subnormal, overflow;
  double min, max, abs_min;
  assay_sum_t sum, squares, spread;
} moments_t;

struct assay_value_stats {
  double min_normal, max_finite;  // of the format
  moments_t moments;
  assay_histogram_t histogram;
};

static const moments_t none = {
    .min = (double)INFINITY, .max = -(double)INFINITY, .abs_min = (double)INFINITY};

// ---- a block ------------------------------------------------------------------------------------

// Patterns of float64 and integers in the same order; its own inverse.
static inline int64_t sortable(int64_t bits) { return bits < 0 ? bits ^ INT64_MAX : bits; }

// Minima, maxima and counts; false if something is not finite.
ASSAY_WIDE static bool scan(const double* x, int64_t n, double min_normal, double max_finite,
                            moments_t* m) {
  int64_t top = 0, zero = 0, subnormal = 0, overflow = 0;
  int64_t minimum = INT64_MAX, min = INT64_MAX, max = INT64_MIN;
#pragma omp simd reduction(max : top, max) reduction(min : minimum, min) \
    reduction(+ : zero, subnormal, overflow)
  for (int64_t i = 0; i < n; i++) {
    double v = x[i] + 0.0, a = fabs(v);
    int64_t bits = (int64_t)assay_bits_of(a), key = sortable((int64_t)assay_bits_of(v));
    top = bits > top ? bits : top;
    min = key < min ? key : min;
    max = key > max ? key : max;
    zero += bits == 0;
    subnormal += a < min_normal;
    overflow += a > max_finite;
    int64_t nonzero = bits ? bits : INT64_MAX;
    minimum = nonzero < minimum ? nonzero : minimum;
  }
  if (top >= (int64_t)ASSAY_EXPONENT) return false;
  *m = (moments_t){.n = n, .finite = n, .zero = zero, .overflow = overflow};
  m->min = assay_of_bits((uint64_t)sortable(min));
  m->max = assay_of_bits((uint64_t)sortable(max));
  m->subnormal = min_normal > 0 ? subnormal - zero : 0;
  m->abs_min = minimum == INT64_MAX ? (double)INFINITY : assay_of_bits((uint64_t)minimum);
  return true;
}

// Sums of x and of x^2, then of (x - mean)^2, all of x / 2^scale.
ASSAY_WIDE static void sum_plain(const double* x, int64_t n, double out[3]) {
  int64_t whole = n / 8 * 8, rest_n = n - whole;
  double rest[8] = {0}, v[8];
  memcpy(rest, x + whole, (size_t)rest_n * sizeof *rest);
  assay_lanes_t s = {0}, q = {0}, d2 = {0};
  for (int64_t i = 0; i <= whole; i += 8) {
    assay_prefetch(x + i);
    assay_lanes_t a = ASSAY_LANES_LOAD(i < whole ? x + i : rest);
    s += a;
    q += a * a;
  }
  memcpy(v, &s, sizeof v), out[0] = assay_lanes_sum(v);
  memcpy(v, &q, sizeof v), out[1] = assay_lanes_sum(v);
  double mean = out[0] / (double)n;
  for (int64_t i = rest_n; i < 8; i++) rest[i] = mean;
  for (int64_t i = 0; i <= whole; i += 8) {
    assay_lanes_t a = ASSAY_LANES_LOAD(i < whole ? x + i : rest) - mean;
    d2 += a * a;
  }
  memcpy(v, &d2, sizeof v), out[2] = assay_lanes_sum(v);
}

static void sum_scaled(const double* x, int64_t n, int scale, double out[3]) {
  memset(out, 0, 3 * sizeof *out);
  for (int64_t i = 0; i < n; i++) {
    double v = ldexp(x[i], -scale);
    out[0] += v;
    out[1] += v * v;
  }
  double mean = out[0] / (double)n;
  for (int64_t i = 0; i < n; i++) {
    double v = ldexp(x[i], -scale) - mean;
    out[2] += v * v;
  }
}

// Slots in the window, of the upper halves of the patterns; returns how many lie below it.
ASSAY_WIDE static int64_t make_slots(const double* x, int32_t n, int32_t base, uint16_t* slots) {
  int32_t low = 0;
#pragma omp simd reduction(+ : low)
  for (int32_t i = 0; i < n; i++) {
    uint32_t high = (uint32_t)(assay_bits_of(x[i]) >> 32);
    int32_t slot = (int32_t)((high & INT32_MAX) >> 14) - base;
    slot = slot >= ASSAY_HISTOGRAM_BINS ? slot : 0;
    low += slot == 0;
    slots[i] = (uint16_t)((uint32_t)slot | high >> 31 << ASSAY_WINDOW_BITS);
  }
  return low;
}

static void count_block(assay_bin_window_t* w, const double* x, int64_t n, const moments_t* k) {
  uint16_t slots[BLOCK + ASSAY_WINDOW_LANES];
  assay_histogram_fit(w, k->max > -k->min ? k->max : -k->min);
  int64_t below = make_slots(x, (int32_t)n, w->base, slots) - k->zero;
  assay_window_count(w, slots, n);
  if (k->zero) assay_histogram_count(w->histogram, 0, (uint64_t)k->zero);
  for (int64_t i = 0; below && i < n; i++)
    if (!(slots[i] & (ASSAY_WINDOW_SLOTS - 1)) && x[i] != 0)
      assay_histogram_count(w->histogram, x[i], 1);
}

// ---- chunks -----------------------------------------------------------------------------------

// Appends. Spreads join as in Chan, Golub and LeVeque, Updating formulae (1979), (2.1b).
static void merge_moments(moments_t* m, const moments_t* from) {
  if (m->finite && from->finite) {
    // Halves, since the difference of two means may overflow.
    double d =
        assay_sum_mean(&from->sum, from->finite) / 2 - assay_sum_mean(&m->sum, m->finite) / 2;
    int scale = assay_block_scale(fabs(d));
    d = ldexp(d, 1 - scale);
    double a = (double)m->finite, b = (double)from->finite;
    assay_sum_add(&m->spread, d * d * (a / (a + b) * b), 2 * scale);
  }
  assay_sum_merge(&m->spread, &from->spread);
  assay_sum_merge(&m->sum, &from->sum);
  assay_sum_merge(&m->squares, &from->squares);
  m->n += from->n;
  m->nan += from->nan;
  m->inf[0] += from->inf[0];
  m->inf[1] += from->inf[1];
  m->finite += from->finite;
  m->zero += from->zero;
  m->subnormal += from->subnormal;
  m->overflow += from->overflow;
  if (from->min < m->min) m->min = from->min;
  if (from->max > m->max) m->max = from->max;
  if (from->abs_min < m->abs_min) m->abs_min = from->abs_min;
}

static void add_chunk(const assay_value_stats_t* s, moments_t* m, assay_histogram_t* h,
                      assay_type_t type, const void* data, int64_t first, int64_t n) {
  double buffer[BLOCK], finite[BLOCK];
  assay_bin_window_t window = {.histogram = h};
  *m = none;
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t count = n - i < BLOCK ? n - i : BLOCK;
    const double* x = assay_block_read(type, data, first + i, count, buffer);
    moments_t k = none;
    if (!scan(x, count, s->min_normal, s->max_finite, &k)) {
      int64_t left = 0;
      for (int64_t j = 0; j < count; j++) {
        if (isfinite(x[j]))
          finite[left++] = x[j];
        else if (isnan(x[j]))
          m->nan++;
        else
          m->inf[x[j] < 0]++;
      }
      m->n += count - left;
      count = left;
      x = finite;
      (void)scan(x, count, s->min_normal, s->max_finite, &k);
    }
    if (!count) continue;
    double sums[3];
    int scale = assay_block_scale(k.max > -k.min ? k.max : -k.min);
    if (scale)
      sum_scaled(x, count, scale, sums);
    else
      sum_plain(x, count, sums);
    assay_sum_add(&k.sum, sums[0], scale);
    assay_sum_add(&k.squares, sums[1], 2 * scale);
    assay_sum_add(&k.spread, sums[2], 2 * scale);
    count_block(&window, x, count, &k);
    merge_moments(m, &k);
  }
  assay_window_flush(&window);
}

void assay_value_stats_add(assay_value_stats_t* s, assay_type_t type, const void* data, int64_t n) {
  type = assay_block_type(type, &n);
  int64_t chunks = n / CHUNK + (n % CHUNK != 0);
  int threads = omp_get_max_threads();
  if (chunks < 4) threads = 1;
  if (threads > chunks) threads = (int)chunks;
  // Without memory for the threads' histograms one thread does it.
  assay_histogram_t* extra = threads > 1 ? assay_calloc((size_t)threads - 1, sizeof *extra) : NULL;
  if (!extra) threads = 1;
  for (int64_t wave = 0; wave < chunks; wave += WAVE) {
    moments_t part[WAVE];
    int64_t end = chunks - wave < WAVE ? chunks - wave : WAVE;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < end; i++) {
      int thread = omp_get_thread_num();
      int64_t first = (wave + i) * CHUNK, left = n - first;
      add_chunk(s, &part[i], threads > 1 && thread ? &extra[thread - 1] : &s->histogram, type, data,
                first, left < CHUNK ? left : CHUNK);
    }
    for (int64_t i = 0; i < end; i++) merge_moments(&s->moments, &part[i]);
  }
  for (int i = 0; i + 1 < threads; i++) {
    assay_histogram_merge(&s->histogram, &extra[i], 0);
    assay_histogram_deinit(&extra[i]);
  }
  assay_free(extra);
}

void assay_value_stats_merge(assay_value_stats_t* s, const assay_value_stats_t* from) {
  merge_moments(&s->moments, &from->moments);
  assay_histogram_merge(&s->histogram, &from->histogram, 0);
}

// ---- life, and what comes out -------------------------------------------------------------------

assay_status_t assay_value_stats_create(assay_format_t format, assay_value_stats_t** out) {
  assay_value_stats_t* s = NULL;
  ASSAY_TRY(ASSAY_NEW(&s));
  const assay_format_info_t* f = assay_format_info(format);
  s->min_normal = f->is_float ? f->min_normal : 0;
  s->max_finite = f->is_float ? f->max : DBL_MAX;
  s->moments = none;
  *out = s;
  return NULL;
}

void assay_value_stats_destroy(assay_value_stats_t* s) {
  if (!s) return;
  assay_histogram_deinit(&s->histogram);
  assay_free(s);
}

const assay_histogram_t* assay_value_stats_histogram(const assay_value_stats_t* s) {
  return &s->histogram;
}

double assay_value_stats_percentile(const assay_value_stats_t* s, double p) {
  const moments_t* m = &s->moments;
  if (!m->finite) return 0;
  if (p <= 0) return m->min;
  if (p >= 1) return m->max;
  double rank = ceil(p * (double)m->finite) - 1;
  return assay_histogram_rank(&s->histogram, rank > 0 ? (uint64_t)rank : 0, m->min, m->max);
}

assay_status_t assay_value_stats_summary(const assay_value_stats_t* s, assay_value_summary_t* out) {
  const moments_t* m = &s->moments;
  if (s->histogram.failed) return assay_status_no_memory();
  assay_value_summary_t r = {.n = m->n,
                             .n_nan = m->nan,
                             .n_positive_inf = m->inf[0],
                             .n_negative_inf = m->inf[1],
                             .n_finite = m->finite,
                             .n_zero = m->zero,
                             .n_subnormal = m->subnormal,
                             .n_overflow = m->overflow};
  if (m->finite) {
    r.min = m->min;
    r.max = m->max;
    r.abs_max = m->max > -m->min ? m->max : -m->min;
    r.abs_min = isinf(m->abs_min) ? 0 : m->abs_min;
    r.mean = assay_sum_mean(&m->sum, m->finite);
    r.rms = assay_sum_rms(&m->squares, m->finite);
    r.std = assay_sum_rms(&m->spread, m->finite);
  }
  *out = r;
  return NULL;
}
