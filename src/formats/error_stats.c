// Error of one tensor against another.
//
// A chunk goes through in blocks that stay in the first-level cache: vector loops make errors,
// maxima, sums and distances in ulps; a scalar loop counts into histograms. Pairs that are not
// finite on both sides are counted and taken out first, so that the loops need not know of them.
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "formats/error_block.h"
#include "formats/stats.h"

enum { BLOCK = ASSAY_STATS_BLOCK, CHUNK = ASSAY_STATS_CHUNK, WAVE = ASSAY_STATS_WAVE };

// What is summed in order: chunk by chunk.
typedef struct moments {
  int64_t n, compared;
  int64_t nan[2], inf[2];  // engine, reference
  int64_t equal_nan, equal_inf, mismatched, first_mismatched_at, max_abs_at;
  double max_error, max[2];
  assay_sum_t e, ee, aa, bb, ab;
} moments_t;

// What is counted in any order: one of these a thread.
typedef struct counts {
  assay_histogram_t errors, references;
  assay_histogram_t change;  // the histogram of the engine's values is references + change
  uint64_t ulp[ASSAY_ULP_SLOTS], max_ulp;
} counts_t;

struct assay_error_stats {
  assay_error_options_t options;
  moments_t moments;
  counts_t counts;
};

// ---- a block ------------------------------------------------------------------------------------

typedef assay_error_block_t block_t;

static int64_t place_of(const block_t* k, int64_t i) {
  return k->first + (k->place ? k->place[i] : i);
}

// Sums where squares would leave float64's range: everything scaled by powers of two.
static void sum_scaled(const block_t* k, const int scale[3], double out[5]) {
  memset(out, 0, 5 * sizeof *out);
  for (int64_t i = 0; i < k->n; i++) {
    double d = k->a[i] - k->b[i];
    d = ldexp(d > DBL_MAX ? DBL_MAX : d < -DBL_MAX ? -DBL_MAX : d, -scale[2]);
    double x = ldexp(k->a[i], -scale[0]), y = ldexp(k->b[i], -scale[1]);
    out[0] += d;
    out[1] += d * d;
    out[2] += x * x;
    out[3] += y * y;
    out[4] += x * y;
  }
}

// plain: the sums as they come out.
static void add_sums(moments_t* m, const block_t* k, const double plain[5]) {
  double s[5];
  int scale[3] = {assay_block_scale(k->max[0]), assay_block_scale(k->max[1]),
                  assay_block_scale(k->max_error)};
  if (scale[0] || scale[1] || scale[2])
    sum_scaled(k, scale, s);
  else
    memcpy(s, plain, sizeof s);
  assay_sum_add(&m->e, s[0], scale[2]);
  assay_sum_add(&m->ee, s[1], 2 * scale[2]);
  assay_sum_add(&m->aa, s[2], 2 * scale[0]);
  assay_sum_add(&m->bb, s[3], 2 * scale[1]);
  assay_sum_add(&m->ab, s[4], scale[0] + scale[1]);
}

static void add_maxima(moments_t* m, const block_t* k) {
  for (int side = 0; side < 2; side++)
    if (k->max[side] > m->max[side]) m->max[side] = k->max[side];
  if (!(k->max_error > m->max_error)) return;
  m->max_error = k->max_error;
  int64_t i = 0;
  while (k->error[i] < k->max_error) i++;
  m->max_abs_at = place_of(k, i);
}

// ---- counting -----------------------------------------------------------------------------------

// A thread's windows, and the worst errors of the octaves in the references' window.
typedef struct windows {
  assay_bin_window_t errors, references;
  assay_bin_window_t change;  // has the references' base
  int32_t changes;            // counted in it
  double max_error[ASSAY_WINDOW_OCTAVES], max_relative[ASSAY_WINDOW_OCTAVES];
  assay_error_slots_t slots;
} windows_t;

// What an error must reach to be a new worst one, by octave, as a slot: an octave's smallest number
// times its worst relative error is no more than the error that comes next. Errors below their
// window are left to count_below.
static void set_limit(windows_t* w, int i, const assay_octave_t* o) {
  unsigned octave = (unsigned)(w->references.base / ASSAY_HISTOGRAM_BINS + i);
  w->max_error[i] = o ? o->max_error : 0;
  w->max_relative[i] = o ? o->max_relative * (1 - 0x1p-50) : 0;
  double limit = fmin(w->max_error[i], assay_of_bits((uint64_t)octave << 52) * w->max_relative[i]);
  int32_t slot = (int32_t)(assay_bits_of(limit) >> 46) - w->errors.base;
  if (slot < ASSAY_HISTOGRAM_BINS) slot = ASSAY_HISTOGRAM_BINS;
  w->slots.limit[i] = (uint16_t)(slot < ASSAY_WINDOW_SLOTS ? slot : ASSAY_WINDOW_SLOTS);
}

// A pair of which something may be the worst of its octave (of the reference's magnitude).
static void note_worst(assay_histogram_t* h, windows_t* w, double error, double reference,
                       int64_t at) {
  unsigned octave = (unsigned)((assay_bits_of(reference) & ~ASSAY_SIGN) >> 52);
  assay_octave_t* o = assay_histogram_octave(h, octave);
  if (!o) return;
  if (error > o->max_error) o->max_error = error;
  double relative = error > 0 && reference != 0 ? error / fabs(reference) : 0;
  if (relative > 0 && relative >= o->max_relative) {
    if (relative > o->max_relative || at < o->max_relative_at) o->max_relative_at = at;
    o->max_relative = relative;
  }
  int slot = (int)octave - w->references.base / ASSAY_HISTOGRAM_BINS;
  if (slot <= 0 || slot >= ASSAY_WINDOW_OCTAVES) return;
  set_limit(w, slot, o);
}

// Most pass the limit only since their reference is not the octave's smallest number.
static void note_large(counts_t* c, windows_t* w, const block_t* k, int64_t i) {
  int octave = w->slots.b[i] / ASSAY_HISTOGRAM_BINS % ASSAY_WINDOW_OCTAVES;
  double error = k->error[i];
  if (error < fabs(k->b[i]) * w->max_relative[octave] && error <= w->max_error[octave]) return;
  note_worst(&c->references, w, error, k->b[i], place_of(k, i));
}

// Places the windows for errors and magnitudes of a block.
static void fit_windows(counts_t* c, windows_t* w, const block_t* k) {
  bool moved = assay_histogram_fit(&w->errors, k->max_error);
  if (assay_histogram_fit(&w->references, fmax(k->max[0], k->max[1]))) {
    assay_window_open(&w->change, w->references.base);
    moved = true;
  }
  if (!moved) return;
  const assay_histogram_t* h = &c->references;
  unsigned first = (unsigned)(w->references.base / ASSAY_HISTOGRAM_BINS);
  w->slots.base_e = w->errors.base;
  w->slots.base = w->references.base;
  w->slots.limit[0] = UINT16_MAX;  // what lies below is left to count_below
  for (unsigned i = 1; i < ASSAY_WINDOW_OCTAVES; i++) {
    unsigned place = first + i < ASSAY_HISTOGRAM_OCTAVES / 2 ? h->index[first + i] : 0;
    set_limit(w, (int)i, place ? &h->octaves[place] : NULL);
  }
}

// The engine's value is in another bin than the reference's.
static void count_change(counts_t* c, windows_t* w, const block_t* k, int64_t i) {
  const int low = ASSAY_WINDOW_SLOTS - 1;
  int a = w->slots.a[i], b = w->slots.b[i];
  if (a & low && b & low) {
    w->changes++;
    w->change.count[a * ASSAY_WINDOW_LANES + (i & 1)]++;
    w->change.count[b * ASSAY_WINDOW_LANES + 2 + (i & 1)]++;
    return;
  }
  assay_histogram_count(&c->change, k->a[i], 1);
  assay_histogram_count(&c->change, k->b[i], ~UINT64_C(0));
}

// What lies below a window: looked up one by one.
static void count_below(counts_t* c, const block_t* k, windows_t* w, bool kl) {
  const int low = ASSAY_WINDOW_SLOTS - 1;
  const assay_error_slots_t* s = &w->slots;
  for (int64_t i = 0; i < k->n; i++) {
    bool small_error = !s->e[i] && k->error[i] > 0;
    if (small_error) assay_histogram_count(&c->errors, k->error[i], 1);
    if (s->b[i] & low) {
      if (small_error) note_worst(&c->references, w, k->error[i], k->b[i], place_of(k, i));
      continue;
    }
    if (k->b[i] == 0) continue;
    assay_histogram_count(&c->references, k->b[i], 1);
    note_worst(&c->references, w, k->error[i], k->b[i], place_of(k, i));
    if (kl && s->a[i] == s->b[i]) count_change(c, w, k, i);
  }
}

// Few elements are marked, unless errors are large.
static void count_marked(counts_t* c, const block_t* k, windows_t* w, bool kl) {
  for (int64_t i = 0; i < k->n; i += 32) {
    for (uint32_t bits = w->slots.large[i / 32]; bits; bits &= bits - 1)
      note_large(c, w, k, i + __builtin_ctz(bits));
    for (uint32_t bits = kl ? w->slots.moved[i / 32] : 0; bits; bits &= bits - 1)
      count_change(c, w, k, i + __builtin_ctz(bits));
  }
}

static void count_block(counts_t* c, const block_t* k, windows_t* w, bool kl) {
  assay_error_slots_t* s = &w->slots;
  fit_windows(c, w, k);
  assay_error_block_slots(k, s);
  assay_window_count(&w->references, s->b, k->n);
  assay_window_count(&w->errors, s->e, k->n);
  if (k->max_error > 0) count_marked(c, k, w, kl);
  if (k->zero_errors) assay_histogram_count(&c->errors, 0, (uint64_t)k->zero_errors);
  if (k->zero_references) {
    assay_histogram_count(&c->references, 0, (uint64_t)k->zero_references);
    note_worst(&c->references, w, k->max_zero_error, 0, 0);
  }
  if (s->below_e || s->below_b) count_below(c, k, w, kl);
  if (w->changes > UINT16_MAX - BLOCK) {  // a lane may have all of them
    assay_window_open(&w->change, w->references.base);
    w->changes = 0;
  }
}

// Distances in steps of a format that is not IEEE-like; returns the largest.
static uint64_t count_other_ulps(assay_format_t format, const block_t* k, uint64_t* counts) {
  uint64_t max = 0;
  for (int64_t i = 0; i < k->n; i++) {
    double a = assay_format_round(format, k->a[i], ASSAY_OVERFLOW_IEEE);
    double b = assay_format_round(format, k->b[i], ASSAY_OVERFLOW_IEEE);
    int64_t distance = assay_format_ulp_distance(format, a, b);
    // -1: a number against what the format has no number for.
    uint64_t d = distance < 0 ? INT64_MAX : (uint64_t)distance;
    counts[d ? 64 - (unsigned)__builtin_clzll(2 * d - 1) : 0]++;
    if (d > max) max = d;
  }
  return max;
}

static void count_ulps(counts_t* c, const block_t* k, assay_format_t format) {
  const assay_codec_t* codec = assay_codec(format);
  uint64_t max =
      codec ? assay_error_block_ulps(k, codec, c->ulp) : count_other_ulps(format, k, c->ulp);
  if (max > c->max_ulp) c->max_ulp = max;
}

// ---- chunks ---------------------------------------------------------------------------------

// Counts and removes the pairs that are not finite on both sides; returns how many are left.
static int64_t take_out(moments_t* m, const block_t* k, double* a, double* b, uint16_t* place) {
  int64_t left = 0;
  for (int64_t i = 0; i < k->n; i++) {
    double x = k->a[i], y = k->b[i];
    if (isfinite(x) && isfinite(y)) {
      a[left] = x;
      b[left] = y;
      place[left++] = (uint16_t)i;
      continue;
    }
    m->nan[0] += isnan(x);
    m->nan[1] += isnan(y);
    m->inf[0] += isinf(x) != 0;
    m->inf[1] += isinf(y) != 0;
    if (isnan(x) && isnan(y)) {
      m->equal_nan++;
    } else if (isinf(x) && isinf(y) && (x > 0) == (y > 0)) {
      m->equal_inf++;
    } else {
      if (!m->mismatched++) m->first_mismatched_at = k->first + i;
    }
  }
  return left;
}

typedef struct side {
  assay_type_t type;
  const void* data;
} side_t;

// Elements from `first` on, n of them, of which the first is number `at` of all that were ever
// added.
static void add_chunk(const assay_error_options_t* options, moments_t* m, counts_t* c, windows_t* w,
                      const side_t sides[2], int64_t first, int64_t n, int64_t at) {
  double buffer[2][BLOCK], finite[2][BLOCK], error[BLOCK], sums[5];
  uint16_t place[BLOCK];
  *m = (moments_t){.n = n, .first_mismatched_at = -1, .max_abs_at = -1};
  for (int64_t i = 0; i < n; i += BLOCK) {
    block_t k = {.n = n - i < BLOCK ? n - i : BLOCK, .first = at + i, .error = error};
    k.a = assay_block_read(sides[0].type, sides[0].data, first + i, k.n, buffer[0]);
    k.b = assay_block_read(sides[1].type, sides[1].data, first + i, k.n, buffer[1]);
    if (!assay_error_block_scan(&k, sums)) {
      k.n = take_out(m, &k, finite[0], finite[1], place);
      k.a = finite[0];
      k.b = finite[1];
      k.place = place;
      (void)assay_error_block_scan(&k, sums);
    }
    if (!k.n) continue;
    m->compared += k.n;
    add_maxima(m, &k);
    add_sums(m, &k, sums);
    // While the block is in the first-level cache: counting takes that for itself.
    if (options->ulp_format != ASSAY_FORMAT_NONE) count_ulps(c, &k, options->ulp_format);
    count_block(c, &k, w, !options->no_kl);
  }
}

// Appends; places in `from` are shifted by `offset`.
static void merge_moments(moments_t* m, const moments_t* from, int64_t offset) {
  m->n += from->n;
  m->compared += from->compared;
  for (int side = 0; side < 2; side++) {
    m->nan[side] += from->nan[side];
    m->inf[side] += from->inf[side];
    if (from->max[side] > m->max[side]) m->max[side] = from->max[side];
  }
  m->equal_nan += from->equal_nan;
  m->equal_inf += from->equal_inf;
  m->mismatched += from->mismatched;
  if (m->first_mismatched_at < 0 && from->first_mismatched_at >= 0)
    m->first_mismatched_at = from->first_mismatched_at + offset;
  if (from->max_error > m->max_error) {
    m->max_error = from->max_error;
    m->max_abs_at = from->max_abs_at + offset;
  }
  assay_sum_merge(&m->e, &from->e);
  assay_sum_merge(&m->ee, &from->ee);
  assay_sum_merge(&m->aa, &from->aa);
  assay_sum_merge(&m->bb, &from->bb);
  assay_sum_merge(&m->ab, &from->ab);
}

static void merge_counts(counts_t* c, const counts_t* from, int64_t offset) {
  assay_histogram_merge(&c->errors, &from->errors, offset);
  assay_histogram_merge(&c->change, &from->change, offset);
  assay_histogram_merge(&c->references, &from->references, offset);
  for (int i = 0; i < ASSAY_ULP_SLOTS; i++) c->ulp[i] += from->ulp[i];
  if (from->max_ulp > c->max_ulp) c->max_ulp = from->max_ulp;
}

static void deinit_counts(counts_t* c) {
  assay_histogram_deinit(&c->errors);
  assay_histogram_deinit(&c->change);
  assay_histogram_deinit(&c->references);
}

void assay_error_stats_add(assay_error_stats_t* s, assay_type_t engine_type, const void* engine,
                           assay_type_t reference_type, const void* reference, int64_t n) {
  int64_t also_n = n;
  const side_t sides[2] = {{assay_block_type(engine_type, &n), engine},
                           {assay_block_type(reference_type, &also_n), reference}};
  if (also_n < n) n = also_n;  // a complex side against a real one
  int64_t chunks = n / CHUNK + (n % CHUNK != 0);
  int threads = omp_get_max_threads();
  if (chunks < 4) threads = 1;
  if (threads > chunks) threads = (int)chunks;
  // Without memory for the threads' counts one thread does it.
  counts_t* extra = threads > 1 ? assay_calloc((size_t)threads - 1, sizeof *extra) : NULL;
  if (!extra) threads = 1;
  int64_t before = s->moments.n;
  for (int64_t wave = 0; wave < chunks; wave += WAVE) {
    moments_t part[WAVE];
    int64_t end = chunks - wave < WAVE ? chunks - wave : WAVE;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
      int thread = omp_get_thread_num();
      counts_t* c = thread && threads > 1 ? &extra[thread - 1] : &s->counts;
      windows_t w = {.errors.histogram = &c->errors,
                     .references.histogram = &c->references,
                     .change = {.histogram = &c->change, .difference = true}};
#pragma omp for schedule(dynamic)
      for (int64_t i = 0; i < end; i++) {
        int64_t first = (wave + i) * CHUNK, left = n - first;
        add_chunk(&s->options, &part[i], c, &w, sides, first, left < CHUNK ? left : CHUNK,
                  before + first);
      }
      assay_window_flush(&w.errors);
      assay_window_flush(&w.references);
      assay_window_flush(&w.change);
    }
    for (int64_t i = 0; i < end; i++) merge_moments(&s->moments, &part[i], 0);
  }
  for (int i = 0; i + 1 < threads; i++) {
    merge_counts(&s->counts, &extra[i], 0);
    deinit_counts(&extra[i]);
  }
  assay_free(extra);
}

void assay_error_stats_merge(assay_error_stats_t* s, const assay_error_stats_t* from) {
  int64_t offset = s->moments.n;
  merge_moments(&s->moments, &from->moments, offset);
  merge_counts(&s->counts, &from->counts, offset);
}

// ---- life, and what comes out -------------------------------------------------------------------

assay_status_t assay_error_stats_create(const assay_error_options_t* options_or_null,
                                        assay_error_stats_t** out) {
  assay_error_options_t options = ASSAY_ERROR_OPTIONS_INIT;
  if (options_or_null) {
    size_t size = options_or_null->struct_size;
    memcpy(&options, options_or_null, size < sizeof options ? size : sizeof options);
  }
  assay_error_stats_t* s = NULL;
  ASSAY_TRY(ASSAY_NEW(&s));
  s->options = options;
  s->moments.first_mismatched_at = s->moments.max_abs_at = -1;
  *out = s;
  return NULL;
}

void assay_error_stats_destroy(assay_error_stats_t* s) {
  if (!s) return;
  deinit_counts(&s->counts);
  assay_free(s);
}

const assay_histogram_t* assay_error_stats_errors(const assay_error_stats_t* s) {
  return &s->counts.errors;
}
const assay_histogram_t* assay_error_stats_references(const assay_error_stats_t* s) {
  return &s->counts.references;
}

double assay_error_stats_percentile(const assay_error_stats_t* s, double p) {
  int64_t n = s->moments.compared;
  if (!n) return 0;
  if (p >= 1) return s->moments.max_error;
  double rank = ceil(p * (double)n) - 1;
  return assay_histogram_rank(&s->counts.errors, rank > 0 ? (uint64_t)rank : 0, 0,
                              s->moments.max_error);
}

// Relative errors, with those of elements near zero apart: whole octaves of the reference.
static void summarize_relative(const assay_error_stats_t* s, assay_error_summary_t* r) {
  const assay_histogram_t* h = &s->counts.references;
  double scale = r->max_reference, near_error = 0;
  // Without any scale all elements are zero, and near zero.
  unsigned below = ASSAY_HISTOGRAM_OCTAVES / 2;
  if (scale > 0) {
    int e = ilogb(scale) - s->options.near_zero_octaves;
    r->near_zero = ldexp(1, e);
    below = e < -1022 ? 0 : (unsigned)(e + 1023);
  }
  r->max_rel_at = -1;
  for (unsigned k = 0; k < ASSAY_HISTOGRAM_OCTAVES; k++) {
    if (!h->index[k]) continue;
    const assay_octave_t* o = &h->octaves[h->index[k]];
    if (k % (ASSAY_HISTOGRAM_OCTAVES / 2) < below) {
      for (int i = 0; i < ASSAY_HISTOGRAM_BINS; i++) r->n_near_zero += (int64_t)o->count[i];
      if (o->max_error > near_error) near_error = o->max_error;
      continue;
    }
    int64_t at = o->max_relative_at;
    bool same = o->max_relative >= r->max_rel && o->max_relative <= r->max_rel;
    if (at >= 0 && (o->max_relative > r->max_rel || (same && at < r->max_rel_at))) {
      r->max_rel = o->max_relative;
      r->max_rel_at = at;
    }
  }
  r->near_zero_error = near_error > 0 ? near_error / scale : 0;
}

// 10 log10(a / b) of two sums of squares.
static double decibels(const assay_sum_t* a, const assay_sum_t* b) {
  double x = assay_sum_mantissa(a), y = assay_sum_mantissa(b);
  if (!(y > 0)) return (double)INFINITY;
  if (!(x > 0)) return -(double)INFINITY;
  return 10 * (assay_log10(x / y) + (a->exponent - b->exponent) * assay_log10(2));
}

assay_status_t assay_error_stats_summary(const assay_error_stats_t* s, assay_error_summary_t* out) {
  const moments_t* m = &s->moments;
  const counts_t* c = &s->counts;
  if (c->errors.failed || c->change.failed || c->references.failed) return assay_status_no_memory();
  assay_error_summary_t r = {.n = m->n,
                             .n_compared = m->compared,
                             .engine_nan = m->nan[0],
                             .engine_inf = m->inf[0],
                             .reference_nan = m->nan[1],
                             .reference_inf = m->inf[1],
                             .equal_nan = m->equal_nan,
                             .equal_inf = m->equal_inf,
                             .mismatched = m->mismatched,
                             .first_mismatched_at = m->first_mismatched_at,
                             .max_abs = m->max_error,
                             .max_abs_at = m->max_abs_at,
                             .max_engine = m->max[0],
                             .max_reference = m->max[1]};
  r.worst_at = m->mismatched ? m->first_mismatched_at : m->max_abs_at;
  r.mean = assay_sum_mean(&m->e, m->compared);
  r.rms = assay_sum_rms(&m->ee, m->compared);
  r.rms_engine = assay_sum_rms(&m->aa, m->compared);
  r.rms_reference = assay_sum_rms(&m->bb, m->compared);
  summarize_relative(s, &r);
  r.p50 = assay_error_stats_percentile(s, 0.5);
  r.p90 = assay_error_stats_percentile(s, 0.9);
  r.p99 = assay_error_stats_percentile(s, 0.99);
  r.p999 = assay_error_stats_percentile(s, 0.999);
  double aa = assay_sum_mantissa(&m->aa), bb = assay_sum_mantissa(&m->bb);
  if (aa > 0 && bb > 0) {
    int shift = m->ab.exponent - (m->aa.exponent + m->bb.exponent) / 2;
    double cosine = ldexp(assay_sum_mantissa(&m->ab) / sqrt(aa) / sqrt(bb), shift);
    r.cosine = cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    if (!(m->max_error > 0)) r.cosine = 1;  // not 1 - 2^-53
  } else {
    r.cosine = aa > 0 || bb > 0 ? 0 : 1;
  }
  r.snr_db = decibels(&m->bb, &m->ee);
  double ee = assay_sum_mantissa(&m->ee);
  r.psnr_db = (double)INFINITY;
  if (ee > 0)
    r.psnr_db = 20 * assay_log10(r.max_reference) -
                10 * (assay_log10(ee / (double)m->compared) + m->ee.exponent * assay_log10(2));
  if (!s->options.no_kl) r.kl = assay_histogram_kl(&c->references, &c->change);
  r.max_ulp = (int64_t)c->max_ulp;
  for (int i = 0; i < ASSAY_ULP_SLOTS; i++) r.ulp[i] = (int64_t)c->ulp[i];
  *out = r;
  return NULL;
}
