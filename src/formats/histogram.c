// Histograms of values, by sign, exponent and the first bits of the mantissa.
#include "formats/histogram.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "formats/codec.h"

enum { NEGATIVE = ASSAY_HISTOGRAM_OCTAVES / 2, SUB_BITS = 6, BIN_SHIFT = 52 - SUB_BITS };

void assay_histogram_deinit(assay_histogram_t* h) {
  assay_free(h->octaves);
  *h = (assay_histogram_t){0};
}

assay_octave_t* assay_histogram_octave(assay_histogram_t* h, unsigned octave) {
  size_t place = h->index[octave];
  if (place) return &h->octaves[place];
  place = h->len ? h->len : 1;
  assay_status_t st = assay_grow(&h->octaves, &h->capacity, place + 1, sizeof *h->octaves);
  if (st) {
    assay_status_free(st);
    h->failed = true;
    return NULL;
  }
  h->len = place + 1;
  h->octaves[place] = (assay_octave_t){.max_relative_at = -1};
  h->index[octave] = (uint16_t)place;
  return &h->octaves[place];
}

void assay_histogram_merge(assay_histogram_t* h, const assay_histogram_t* from, int64_t offset) {
  h->failed |= from->failed;
  for (unsigned k = 0; k < ASSAY_HISTOGRAM_OCTAVES; k++) {
    if (!from->index[k]) continue;
    const assay_octave_t* f = &from->octaves[from->index[k]];
    assay_octave_t* o = assay_histogram_octave(h, k);
    if (!o) return;
    for (int i = 0; i < ASSAY_HISTOGRAM_BINS; i++) o->count[i] += f->count[i];
    if (f->max_error > o->max_error) o->max_error = f->max_error;
    int64_t at = f->max_relative_at < 0 ? -1 : f->max_relative_at + offset;
    bool first = at >= 0 && (o->max_relative_at < 0 || at < o->max_relative_at);
    if (at >= 0 &&
        (f->max_relative > o->max_relative || (f->max_relative >= o->max_relative && first))) {
      o->max_relative = f->max_relative;
      o->max_relative_at = at;
    }
  }
}

uint64_t assay_histogram_total(const assay_histogram_t* h) {
  uint64_t n = 0;
  for (size_t k = 1; k < h->len; k++)
    for (int i = 0; i < ASSAY_HISTOGRAM_BINS; i++) n += h->octaves[k].count[i];
  return n;
}

// Bins in ascending order of value: the negative ones from -infinity, then the positive ones. An
// ordinal is sign and magnitude, as in a float64's pattern.
static uint32_t ordinal_of(uint32_t cursor) {
  const uint32_t half = NEGATIVE * ASSAY_HISTOGRAM_BINS;
  return cursor < half ? 2 * half - 1 - cursor : cursor - half;
}

bool assay_histogram_next(const assay_histogram_t* h, uint32_t* cursor, double* lo, double* hi,
                          uint64_t* count) {
  while (*cursor < ASSAY_HISTOGRAM_OCTAVES * ASSAY_HISTOGRAM_BINS) {
    uint32_t k = ordinal_of(*cursor), place = h->index[k / ASSAY_HISTOGRAM_BINS];
    if (!place) {
      *cursor += ASSAY_HISTOGRAM_BINS;  // octaves begin at multiples of it from either end
      continue;
    }
    ++*cursor;
    uint32_t bin = k % ASSAY_HISTOGRAM_BINS;
    const assay_octave_t* o = &h->octaves[place];
    uint64_t n = o->count[bin];
    if (!n) continue;
    double a = assay_of_bits((uint64_t)k << BIN_SHIFT);
    double b = assay_of_bits((uint64_t)(k + 1) << BIN_SHIFT);
    bool negative = k >= NEGATIVE * ASSAY_HISTOGRAM_BINS;
    *lo = negative ? b : a;
    *hi = negative ? a : b;
    *count = n;
    return true;
  }
  return false;
}

double assay_histogram_rank(const assay_histogram_t* h, uint64_t rank, double min, double max) {
  uint32_t cursor = 0;
  uint64_t before = 0, count;
  double lo, hi, r = 0;
  while (assay_histogram_next(h, &cursor, &lo, &hi, &count)) {
    before += count;
    // The middle of the bin; the bin of zero, which is 2^-1028 wide, counts as zero.
    uint64_t near_end = assay_bits_of(fabs(lo) < fabs(hi) ? lo : hi);
    r = lo == 0 || hi == 0 ? 0 : assay_of_bits(near_end | UINT64_C(1) << (BIN_SHIFT - 1));
    if (before > rank) break;
  }
  return r < min ? min : r > max ? max : r;
}

double assay_histogram_kl(const assay_histogram_t* p, const assay_histogram_t* change) {
  double np = (double)assay_histogram_total(p);
  double nq = (double)(assay_histogram_total(p) + assay_histogram_total(change));
  if (np == 0 || nq == 0) return 0;
  static const assay_octave_t empty;
  double bins = 0, sum = 0, correction = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (unsigned k = 0; k < ASSAY_HISTOGRAM_OCTAVES; k++) {
      if (!p->index[k] && !change->index[k]) continue;
      const assay_octave_t* a = p->index[k] ? &p->octaves[p->index[k]] : &empty;
      const assay_octave_t* b = change->index[k] ? &change->octaves[change->index[k]] : &empty;
      for (int i = 0; i < ASSAY_HISTOGRAM_BINS; i++) {
        uint64_t x = a->count[i], y = x + b->count[i];
        if (!x && !y) continue;
        if (!pass) {
          bins += 1;
          continue;
        }
        double px = ((double)x + 0.5) / (np + bins / 2), qx = ((double)y + 0.5) / (nq + bins / 2);
        double term = px * assay_log(px / qx) - correction, next = sum + term;
        correction = (next - sum) - term;  // Kahan: the terms nearly cancel
        sum = next;
      }
    }
  }
  return sum > 0 ? sum : 0;
}

void assay_histogram_count(assay_histogram_t* h, double x, uint64_t more) {
  uint64_t bits = assay_bits_of(x + 0.0);  // one zero of two
  assay_octave_t* o = assay_histogram_octave(h, (unsigned)(bits >> 52));
  if (o) o->count[bits >> BIN_SHIFT & (ASSAY_HISTOGRAM_BINS - 1)] += more;
}

// ---- windows --------------------------------------------------------------------------------

void assay_window_open(assay_bin_window_t* w, int32_t base) {
  assay_window_flush(w);
  w->base = base;
  w->is_open = true;
}

bool assay_histogram_fit(assay_bin_window_t* w, double max) {
  enum { OCTAVES = ASSAY_WINDOW_SLOTS / ASSAY_HISTOGRAM_BINS };
  int32_t octave = (int32_t)(assay_bits_of(max) >> 52);
  int32_t at = octave - w->base / ASSAY_HISTOGRAM_BINS;
  if (w->is_open && at < OCTAVES && (at >= OCTAVES / 2 || w->base == 0)) return false;
  int32_t first = octave + 2 - OCTAVES;  // one octave of room above
  assay_window_open(w, first > 0 ? first * ASSAY_HISTOGRAM_BINS : 0);
  return true;
}

static uint64_t slot_total(const assay_bin_window_t* w, const uint16_t* lanes) {
  uint64_t low = (uint64_t)lanes[0] + lanes[1], high = (uint64_t)lanes[2] + lanes[3];
  return w->difference ? low - high : low + high;
}

// Whether an octave's counts are all zero.
ASSAY_WIDE static bool is_empty(const uint16_t* lanes, int n) {
  unsigned any = 0;
#pragma omp simd reduction(| : any)
  for (int i = 0; i < n; i++) any |= lanes[i];
  return !any;
}

void assay_window_flush(assay_bin_window_t* w) {
  enum { LANES = ASSAY_WINDOW_LANES, OCTAVE = ASSAY_HISTOGRAM_BINS * LANES };
  if (!w->is_open) return;
  w->is_open = false;
  w->in_lane = 0;
  for (int sign = 0; sign < 2; sign++) {
    uint16_t* half = w->count + sign * ASSAY_WINDOW_SLOTS * LANES;
    memset(half, 0, LANES * sizeof *half);
    for (int k = OCTAVE; k < ASSAY_WINDOW_SLOTS * LANES; k += OCTAVE) {
      if (is_empty(half + k, OCTAVE)) continue;
      unsigned octave = (unsigned)(w->base / ASSAY_HISTOGRAM_BINS + k / OCTAVE + sign * NEGATIVE);
      assay_octave_t* o = assay_histogram_octave(w->histogram, octave);
      for (int i = 0; o && i < ASSAY_HISTOGRAM_BINS; i++)
        o->count[i] += slot_total(w, half + k + i * LANES);
      memset(half + k, 0, OCTAVE * sizeof *half);
    }
  }
}

void assay_window_count(assay_bin_window_t* w, uint16_t* slots, int64_t n) {
  enum { LANES = ASSAY_WINDOW_LANES };
  uint16_t* restrict count = w->count;
  const uint16_t* restrict s = slots;
  memset(slots + n, 0, (LANES - 1) * sizeof *slots);
  int32_t more = (int32_t)(n / LANES) + 1;
  if (w->in_lane > UINT16_MAX - more) assay_window_open(w, w->base);
  w->in_lane += more;
  for (int64_t i = 0; i < n; i += LANES) {
    count[s[i] * LANES]++;
    count[s[i + 1] * LANES + 1]++;
    count[s[i + 2] * LANES + 2]++;
    count[s[i + 3] * LANES + 3]++;
  }
}
