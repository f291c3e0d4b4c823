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
#include "formats/codec.h"
#include "formats/stats.h"
#include "formats/sums.h"

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

typedef struct block {
  const double *a, *b;    // engine, reference
  int64_t n, first;       // first: place of the first element in the tensor
  const uint16_t* place;  // of the elements within the block; NULL: all are there
  double* error;
  double max_error, max[2];
  int64_t zero_errors, zero_references;
  double max_zero_error;  // largest error of a reference that is 0
} block_t;

static int64_t place_of(const block_t* k, int64_t i) {
  return k->first + (k->place ? k->place[i] : i);
}

// Errors and maxima; false if something is not finite (and then errors mean nothing).
ASSAY_WIDE static bool make_errors(block_t* k) {
  const double *a = k->a, *b = k->b;
  double* error = k->error;
  // Of positive numbers the larger has the larger pattern; those of infinity and NaN are the
  // largest.
  int64_t max_a = 0, max_b = 0, max_e = 0, max_z = 0, zero_e = 0, zero_b = 0;
#pragma omp simd reduction(max : max_a, max_b, max_e, max_z) reduction(+ : zero_e, zero_b)
  for (int64_t i = 0; i < k->n; i++) {
    double d = fabs(a[i] - b[i]);
    d = d > DBL_MAX ? DBL_MAX : d;
    error[i] = d;
    int64_t ea = (int64_t)(assay_bits_of(a[i]) & ~ASSAY_SIGN);
    int64_t eb = (int64_t)(assay_bits_of(b[i]) & ~ASSAY_SIGN), ee = (int64_t)assay_bits_of(d);
    int64_t ez = eb ? 0 : ee;
    max_a = ea > max_a ? ea : max_a;
    max_b = eb > max_b ? eb : max_b;
    max_e = ee > max_e ? ee : max_e;
    max_z = ez > max_z ? ez : max_z;
    zero_e += ee == 0;
    zero_b += eb == 0;
  }
  if (max_a >= (int64_t)ASSAY_EXPONENT || max_b >= (int64_t)ASSAY_EXPONENT) return false;
  k->max[0] = assay_of_bits((uint64_t)max_a);
  k->max[1] = assay_of_bits((uint64_t)max_b);
  k->max_error = assay_of_bits((uint64_t)max_e);
  k->max_zero_error = assay_of_bits((uint64_t)max_z);
  k->zero_errors = zero_e;
  k->zero_references = zero_b;
  return true;
}

ASSAY_WIDE static void sum_plain(const block_t* k, double out[5]) {
  const double *a = k->a, *b = k->b;
  assay_lanes_t e = {0}, ee = {0}, aa = {0}, bb = {0}, ab = {0};
  int64_t whole = k->n / 8 * 8;
  double rest[2][8] = {{0}};
  for (int64_t i = whole; i < k->n; i++) {
    rest[0][i - whole] = a[i];
    rest[1][i - whole] = b[i];
  }
  for (int64_t i = 0; i <= whole; i += 8) {
    // The next block, if the tensor lies there: memory works while this one is counted.
    assay_prefetch(a + i);
    assay_prefetch(b + i);
    assay_lanes_t x = ASSAY_LANES_LOAD(i < whole ? a + i : rest[0]);
    assay_lanes_t y = ASSAY_LANES_LOAD(i < whole ? b + i : rest[1]);
    assay_lanes_t d = x - y;
    e += d;
    ee += d * d;
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  double v[8];
  memcpy(v, &e, sizeof v), out[0] = assay_lanes_sum(v);
  memcpy(v, &ee, sizeof v), out[1] = assay_lanes_sum(v);
  memcpy(v, &aa, sizeof v), out[2] = assay_lanes_sum(v);
  memcpy(v, &bb, sizeof v), out[3] = assay_lanes_sum(v);
  memcpy(v, &ab, sizeof v), out[4] = assay_lanes_sum(v);
}

// The same where squares would leave float64's range: everything scaled by powers of two.
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

static void add_sums(moments_t* m, const block_t* k) {
  double s[5];
  int scale[3] = {assay_block_scale(k->max[0]), assay_block_scale(k->max[1]),
                  assay_block_scale(k->max_error)};
  if (scale[0] || scale[1] || scale[2])
    sum_scaled(k, scale, s);
  else
    sum_plain(k, s);
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

// A chunk's windows, and the worst errors of the octaves in the references' window.
typedef struct windows {
  assay_window_t errors, references;
  // What an error must reach to be a new worst one: by octave, since an octave's smallest
  // number times its worst relative error is no more than the error that comes next.
  double limit[ASSAY_WINDOW_SLOTS / ASSAY_HISTOGRAM_BINS];
  uint16_t error_slot[BLOCK + 1], engine_slot[BLOCK], reference_slot[BLOCK + 1];
  uint8_t moved[BLOCK + 8];  // is the engine's value in another bin than the reference's?
} windows_t;

// Not 0, so that elements without error stay out of it.
static double limit_of(const assay_octave_t* o, unsigned octave) {
  double least = assay_of_bits((uint64_t)octave << 52) * o->max_relative * (1 - 0x1p-50);
  return fmax(least < o->max_error ? least : o->max_error, 0x1p-1074);
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
  if (slot > 0 && slot < ASSAY_WINDOW_SLOTS / ASSAY_HISTOGRAM_BINS)
    w->limit[slot] = limit_of(o, octave);
}

static void fit_references(counts_t* c, windows_t* w, double max) {
  if (!assay_histogram_fit(&w->references, max)) return;
  const assay_histogram_t* h = &c->references;
  unsigned first = (unsigned)(w->references.base / ASSAY_HISTOGRAM_BINS);
  w->limit[0] = (double)INFINITY;  // what lies below is left to count_below
  for (unsigned i = 1; i < ASSAY_WINDOW_SLOTS / ASSAY_HISTOGRAM_BINS; i++) {
    unsigned place = first + i < ASSAY_HISTOGRAM_OCTAVES / 2 ? h->index[first + i] : 0;
    w->limit[i] = place ? limit_of(&h->octaves[place], first + i) : 0x1p-1074;
  }
}

// Slots in the windows, of the upper halves of the patterns. below: how many errors and references
// other than zero lie below them.
ASSAY_WIDE static void make_slots(const block_t* k, windows_t* w, int64_t below[2]) {
  const double *a = k->a, *b = k->b, *e = k->error;
  uint16_t *slot_a = w->engine_slot, *slot_b = w->reference_slot, *slot_e = w->error_slot;
  const int32_t base = w->references.base, base_e = w->errors.base;
  const int32_t n = (int32_t)k->n;
  int32_t low_e = 0, low_b = 0;
#pragma omp simd reduction(+ : low_e, low_b)
  for (int32_t i = 0; i < n; i++) {
    uint32_t high_a = (uint32_t)(assay_bits_of(a[i]) >> 32);
    uint32_t high_b = (uint32_t)(assay_bits_of(b[i]) >> 32);
    uint32_t high_e = (uint32_t)(assay_bits_of(e[i]) >> 32);
    int32_t ka = (int32_t)((high_a & INT32_MAX) >> 14) - base;
    int32_t kb = (int32_t)((high_b & INT32_MAX) >> 14) - base;
    int32_t ke = (int32_t)(high_e >> 14) - base_e;
    ka = ka >= ASSAY_HISTOGRAM_BINS ? ka : 0;
    kb = kb >= ASSAY_HISTOGRAM_BINS ? kb : 0;
    ke = ke >= ASSAY_HISTOGRAM_BINS ? ke : 0;
    low_b += kb == 0;
    low_e += ke == 0;
    uint32_t sa = (uint32_t)ka | high_a >> 31 << ASSAY_WINDOW_BITS;
    uint32_t sb = (uint32_t)kb | high_b >> 31 << ASSAY_WINDOW_BITS;
    slot_a[i] = (uint16_t)sa;
    slot_b[i] = (uint16_t)sb;
    slot_e[i] = (uint16_t)ke;
  }
  below[0] = low_e - k->zero_errors;
  below[1] = low_b - k->zero_references;
}

static inline void count_one(assay_histogram_t* h, double x, uint64_t more) {
  uint64_t bits = assay_bits_of(x);
  size_t place = h->index[bits >> 52];
  if (place && bits != ASSAY_SIGN)
    h->octaves[place].count[bits >> 46 & (ASSAY_HISTOGRAM_BINS - 1)] += more;
  else
    assay_histogram_count(h, x, more);
}

static void count_change(counts_t* c, double engine, double reference) {
  count_one(&c->change, engine, 1);
  count_one(&c->change, reference, ~UINT64_C(0));
}

// What lies below a window: looked up one by one.
static void count_below(counts_t* c, const block_t* k, windows_t* w, bool kl) {
  const uint16_t low = ASSAY_WINDOW_SLOTS - 1;
  for (int64_t i = 0; i < k->n; i++) {
    if (!w->error_slot[i] && k->error[i] > 0) assay_histogram_count(&c->errors, k->error[i], 1);
    if (w->reference_slot[i] & low || k->b[i] == 0) continue;
    assay_histogram_count(&c->references, k->b[i], 1);
    note_worst(&c->references, w, k->error[i], k->b[i], place_of(k, i));
    if (kl && w->engine_slot[i] == w->reference_slot[i]) count_change(c, k->a[i], k->b[i]);
  }
}

// Few values are in other bins, unless errors are large: eight at a time are passed over.
static void count_moved(counts_t* c, const block_t* k, windows_t* w) {
  memset(w->moved + k->n, 0, 8);
#pragma omp simd
  for (int64_t i = 0; i < k->n; i++) w->moved[i] = w->engine_slot[i] != w->reference_slot[i];
  for (int64_t i = 0; i < k->n; i += 8) {
    uint64_t eight;
    memcpy(&eight, w->moved + i, sizeof eight);
    for (int64_t j = i; eight; j++, eight >>= 8)
      if (eight & 1) count_change(c, k->a[j], k->b[j]);
  }
}

static void count_block(counts_t* c, const block_t* k, windows_t* w, bool kl) {
  const int low = ASSAY_WINDOW_SLOTS - 1;
  int64_t below[2];
  assay_histogram_fit(&w->errors, k->max_error);
  fit_references(c, w, fmax(k->max[0], k->max[1]));
  make_slots(k, w, below);
  const uint16_t *slot_e = w->error_slot, *slot_b = w->reference_slot;
  w->error_slot[k->n] = w->reference_slot[k->n] = 0;
  for (int64_t i = 0; i < k->n; i += 2) {
    w->references.count[0][slot_b[i]]++;
    w->errors.count[0][slot_e[i]]++;
    w->references.count[1][slot_b[i + 1]]++;
    w->errors.count[1][slot_e[i + 1]]++;
  }
  if (k->max_error > 0) {
    for (int64_t i = 0; i < k->n; i++)
      if (k->error[i] >= w->limit[(slot_b[i] & low) / ASSAY_HISTOGRAM_BINS])
        note_worst(&c->references, w, k->error[i], k->b[i], place_of(k, i));
    if (kl) count_moved(c, k, w);
  }
  if (k->zero_errors) assay_histogram_count(&c->errors, 0, (uint64_t)k->zero_errors);
  if (k->zero_references) {
    assay_histogram_count(&c->references, 0, (uint64_t)k->zero_references);
    note_worst(&c->references, w, k->max_zero_error, 0, 0);
  }
  if (below[0] || below[1]) count_below(c, k, w, kl);
}

// Slots of the distances in steps of an IEEE-like format (they are below 2^33); returns the
// largest.
ASSAY_WIDE static uint64_t make_ulps(const assay_codec_t* codec, const double* a, const double* b,
                                     int64_t n, uint64_t* slots) {
  const assay_codec_t c = *codec;
  int64_t max = 0;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++) {
    int64_t x = (int64_t)assay_codec_ordinal(&c, a[i]), y = (int64_t)assay_codec_ordinal(&c, b[i]);
    x = assay_bits_of(a[i]) & ASSAY_SIGN ? -x : x;
    y = assay_bits_of(b[i]) & ASSAY_SIGN ? -y : y;
    int64_t d = x > y ? x - y : y - x;
    max = d > max ? d : max;
    // The exponent of 2d - 1 as float64, which is made by putting it below 2^52.
    double v = assay_of_bits(assay_bits_of(0x1p52) + (uint64_t)(2 * d - 1)) - 0x1p52;
    uint64_t slot = (assay_bits_of(v) >> 52) - 1022;
    slots[i] = d ? slot : 0;
  }
  return (uint64_t)max;
}

// The same for formats of other kinds.
static uint64_t make_other_ulps(assay_format_t format, const block_t* k, uint64_t* slots) {
  uint64_t max = 0;
  for (int64_t i = 0; i < k->n; i++) {
    double a = assay_format_round(format, k->a[i], ASSAY_OVERFLOW_IEEE);
    double b = assay_format_round(format, k->b[i], ASSAY_OVERFLOW_IEEE);
    int64_t distance = assay_format_ulp_distance(format, a, b);
    // -1: a number against what the format has no number for.
    uint64_t d = distance < 0 ? INT64_MAX : (uint64_t)distance;
    slots[i] = d ? 64 - (unsigned)__builtin_clzll(2 * d - 1) : 0;
    if (d > max) max = d;
  }
  return max;
}

typedef uint8_t bytes_t __attribute__((vector_size(64)));

// Distances fall into few slots: each is counted by comparing all, 64 at a time.
ASSAY_WIDE static void count_slots(const uint64_t* slots, int64_t n, unsigned last, uint64_t* out) {
  _Alignas(64) uint8_t narrow[BLOCK + 64];
  memset(narrow, 0xff, sizeof narrow);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) narrow[i] = (uint8_t)slots[i];
  for (unsigned slot = 0; slot <= last; slot++) {
    bytes_t all = {0}, one, wanted = all + (uint8_t)slot;
    for (int64_t i = 0; i < n; i += 64) {  // at most 16 times: lanes do not overflow
      memcpy(&one, narrow + i, sizeof one);
      all -= (bytes_t)(one == wanted);
    }
    uint8_t lanes[64];
    memcpy(lanes, &all, sizeof lanes);
    uint64_t sum = 0;
    for (int i = 0; i < 64; i++) sum += lanes[i];
    out[slot] += sum;
  }
}

static void count_ulps(counts_t* c, const block_t* k, assay_format_t format) {
  uint64_t slots[BLOCK];
  const assay_codec_t* codec = assay_codec(format);
  uint64_t max =
      codec ? make_ulps(codec, k->a, k->b, k->n, slots) : make_other_ulps(format, k, slots);
  if (max > c->max_ulp) c->max_ulp = max;
  count_slots(slots, k->n, max ? 64 - (unsigned)__builtin_clzll(2 * max - 1) : 0, c->ulp);
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
static void add_chunk(const assay_error_options_t* options, moments_t* m, counts_t* c,
                      const side_t sides[2], int64_t first, int64_t n, int64_t at) {
  double buffer[2][BLOCK], finite[2][BLOCK], error[BLOCK];
  uint16_t place[BLOCK];
  windows_t windows = {.errors.histogram = &c->errors, .references.histogram = &c->references};
  *m = (moments_t){.n = n, .first_mismatched_at = -1, .max_abs_at = -1};
  for (int64_t i = 0; i < n; i += BLOCK) {
    block_t k = {.n = n - i < BLOCK ? n - i : BLOCK, .first = at + i, .error = error};
    k.a = assay_block_read(sides[0].type, sides[0].data, first + i, k.n, buffer[0]);
    k.b = assay_block_read(sides[1].type, sides[1].data, first + i, k.n, buffer[1]);
    if (!make_errors(&k)) {
      k.n = take_out(m, &k, finite[0], finite[1], place);
      k.a = finite[0];
      k.b = finite[1];
      k.place = place;
      (void)make_errors(&k);
    }
    if (!k.n) continue;
    m->compared += k.n;
    add_maxima(m, &k);
    add_sums(m, &k);
    count_block(c, &k, &windows, !options->no_kl);
    if (options->ulp_format != ASSAY_FORMAT_NONE) count_ulps(c, &k, options->ulp_format);
  }
  assay_window_flush(&windows.errors);
  assay_window_flush(&windows.references);
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
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < end; i++) {
      int thread = omp_get_thread_num();
      int64_t first = (wave + i) * CHUNK, left = n - first;
      add_chunk(&s->options, &part[i], threads > 1 && thread ? &extra[thread - 1] : &s->counts,
                sides, first, left < CHUNK ? left : CHUNK, before + first);
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
  return 10 * (log10(x / y) + (a->exponent - b->exponent) * log10(2));
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
    r.psnr_db = 20 * log10(r.max_reference) -
                10 * (log10(ee / (double)m->compared) + m->ee.exponent * log10(2));
  if (!s->options.no_kl) r.kl = assay_histogram_kl(&c->references, &c->change);
  r.max_ulp = (int64_t)c->max_ulp;
  for (int i = 0; i < ASSAY_ULP_SLOTS; i++) r.ulp[i] = (int64_t)c->ulp[i];
  *out = r;
  return NULL;
}
