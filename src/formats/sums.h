// Private to src/formats: sums that neither overflow nor underflow, and blocks of elements.
#ifndef ASSAY_FORMATS_SUMS_H_
#define ASSAY_FORMATS_SUMS_H_

#include <math.h>
#include <stdint.h>

#include "formats/codec.h"

// Elements that one thread takes at a time, and elements that are worked on in the cache. Results
// depend on both, so they are the same everywhere.
enum { ASSAY_STATS_CHUNK = 1 << 16, ASSAY_STATS_BLOCK = 1 << 10, ASSAY_STATS_WAVE = 128 };

// (hi + lo) * 2^exponent; lo is what rounding hi left over (Knuth, TAOCP 2, 4.2.2).
typedef struct assay_sum {
  double hi, lo;
  int exponent;
} assay_sum_t;

// Adds part * 2^exponent. Exponents are 0, or those of blocks that need scaling.
static inline void assay_sum_add(assay_sum_t* s, double part, int exponent) {
  if (part == 0) return;
  if (s->hi == 0 || exponent > s->exponent) {
    int down = s->hi == 0 ? 0 : s->exponent - exponent;
    s->hi = ldexp(s->hi, down);
    s->lo = ldexp(s->lo, down);
    s->exponent = exponent;
  } else if (exponent < s->exponent) {
    part = ldexp(part, exponent - s->exponent);
  }
  double t = s->hi + part, back = t - s->hi;
  s->lo += (s->hi - (t - back)) + (part - back);
  s->hi = t;
}
static inline void assay_sum_merge(assay_sum_t* s, const assay_sum_t* from) {
  assay_sum_add(s, from->hi, from->exponent);
  assay_sum_add(s, from->lo, from->exponent);
}
static inline double assay_sum_mantissa(const assay_sum_t* s) { return s->hi + s->lo; }
static inline double assay_sum_mean(const assay_sum_t* s, int64_t n) {
  return n ? ldexp(assay_sum_mantissa(s) / (double)n, s->exponent) : 0;
}
// The root of the mean of a sum of squares; its exponent is even.
static inline double assay_sum_rms(const assay_sum_t* s, int64_t n) {
  double m = assay_sum_mantissa(s);
  return n && m > 0 ? ldexp(sqrt(m / (double)n), s->exponent / 2) : 0;
}

// The scale of a block: 0 where its squares (magnitudes up to `max`) stay far inside float64's
// range, else the power of two to divide by.
static inline int assay_block_scale(double max) {
  return max == 0 || (max >= 0x1p-400 && max <= 0x1p400) ? 0 : ilogb(max);
}

// 8 lanes, whatever the width of the CPU's vectors: the order of a sum does not depend on it.
typedef double assay_lanes_t __attribute__((vector_size(64)));
typedef double assay_lanes_loose_t __attribute__((vector_size(64), aligned(8)));
#define ASSAY_LANES_LOAD(p) ((assay_lanes_t) * (const assay_lanes_loose_t*)(const void*)(p))
static inline double assay_lanes_sum(const double v[8]) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// Has memory fetch the same place of the next block, if the tensor lies there, while this block is
// counted.
static inline void assay_prefetch(const double* p) {
  __builtin_prefetch((const void*)((uintptr_t)p + ASSAY_STATS_BLOCK * sizeof *p));
}

// n <= ASSAY_STATS_BLOCK elements from `first` as float64: where they lie, or converted into
// buffer.
const double* assay_block_read(assay_type_t type, const void* data, int64_t first, int64_t n,
                               double* buffer);
// Complex tensors are twice as many real ones.
static inline assay_type_t assay_block_type(assay_type_t type, int64_t* n) {
  if (!assay_type_is_complex(type)) return type;
  *n *= 2;
  return type == ASSAY_TYPE_COMPLEX64 ? ASSAY_TYPE_FLOAT : ASSAY_TYPE_DOUBLE;
}

#endif  // ASSAY_FORMATS_SUMS_H_
