// Private to src/formats: how a float format is rounded to, encoded and decoded, as numbers that
// branch-free loops run on. One row a format; every step is exact or a single IEEE operation, so
// that all widths of vectors give the same bits.
#ifndef ASSAY_FORMATS_CODEC_H_
#define ASSAY_FORMATS_CODEC_H_

#include <math.h>
#include <string.h>

#include "base/target.h"
#include "formats/format.h"

// Compiled for several widths of vectors, the widest that the CPU has being chosen at load time.
#if !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ASSAY_WIDE ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
#else
#define ASSAY_WIDE
#endif

// Loops marked `omp simd` need not be vectorized in every build (sanitizers, -O0).
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define ASSAY_SIGN (UINT64_C(1) << 63)
#define ASSAY_EXPONENT UINT64_C(0x7ff0000000000000)
#define ASSAY_QUIET (UINT64_C(1) << 51)

typedef struct assay_codec {
  // Rounding. Adding 2^(53-p) times the leading power of two and subtracting it again leaves p
  // bits.
  double min_normal, magic;
  double max, limit;            // limit: the power of two above max; larger values act as it does
  uint64_t nan_keep, nan_flip;  // the result of NaN is ((bits ^ flip) & keep): itself, or -0
  uint64_t zero_sign;           // the sign bit that a zero may have
  // Patterns. A magnitude's pattern is its ordinal: how many steps it lies above zero.
  int shift;           // of a float64's mantissa to the pattern's
  int pad;             // zero bits below the mantissa in the stored pattern (tf32)
  uint64_t half, odd;  // added before the shift, for ties to even
  uint64_t offset;     // what the exponent's bias takes off, in pattern steps
  double sub_magic;    // 2^52 smallest subnormals: adding it leaves the ordinal in the low bits
  uint64_t max_ordinal, min_normal_ordinal;
  uint64_t nan_pattern;    // as stored, without sign
  uint64_t sign_pattern;   // the sign bit, as stored
  int sign_shift;          // from there to a float64's
  uint64_t past;           // bits of the float64 that the pattern after max's means
  uint64_t negative_zero;  // and the pattern of -0: NaN where there is no such number
  uint64_t none_sign;      // what NaN's sign is xor-ed with (formats without NaN)
  bool has_infinity, has_nan;
} assay_codec_t;

// NULL for formats that are not IEEE-like: integers, e8m0, none.
const assay_codec_t* assay_codec(assay_format_t format);

static inline uint64_t assay_bits_of(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
static inline double assay_of_bits(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}

// What stands in place of a value past the end.
static inline double assay_codec_over(const assay_codec_t* c, assay_overflow_t overflow) {
  if (overflow == ASSAY_OVERFLOW_SATURATE || (!c->has_infinity && !c->has_nan)) return c->max;
  return c->has_infinity ? (double)INFINITY : (double)NAN;
}
static inline uint64_t assay_codec_over_pattern(const assay_codec_t* c, assay_overflow_t overflow) {
  if (overflow == ASSAY_OVERFLOW_SATURATE || (!c->has_infinity && !c->has_nan))
    return c->max_ordinal << c->pad;
  return c->has_infinity ? (c->max_ordinal + 1) << c->pad : c->nan_pattern;
}

// The nearest value, not for fp64.
static inline double assay_codec_round(const assay_codec_t* c, double x, double over) {
  uint64_t bits = assay_bits_of(x), sign = bits & ASSAY_SIGN;
  double a = assay_of_bits(bits ^ sign);
  double b = a < c->limit ? a : c->limit;  // NaN: limit
  double lead = b > c->min_normal ? b : c->min_normal;
  double m = assay_of_bits(assay_bits_of(lead) & ASSAY_EXPONENT) * c->magic;
  double r = (b + m) - m;
  r = r > c->max ? over : r;
  sign &= r == 0 ? c->zero_sign : ASSAY_SIGN;
  uint64_t number = assay_bits_of(r) | sign;
  uint64_t nan = ((bits | ASSAY_QUIET) ^ c->nan_flip) & c->nan_keep;
  return assay_of_bits(x != x ? nan : number);
}

// Steps from zero to the nearest value to |x|; max_ordinal + 1 past the end and for NaN.
static inline uint64_t assay_codec_ordinal(const assay_codec_t* c, double x) {
  uint64_t a = assay_bits_of(x) & ~ASSAY_SIGN;
  uint64_t normal = ((a + c->half + ((a >> c->shift) & c->odd)) >> c->shift) - c->offset;
  uint64_t sub = assay_bits_of(assay_of_bits(a) + c->sub_magic) - assay_bits_of(c->sub_magic);
  int64_t k = (int64_t)(assay_of_bits(a) < c->min_normal ? sub : normal);
  int64_t top = (int64_t)c->max_ordinal + 1;
  return (uint64_t)(k < top ? k : top);
}

// The stored pattern of the nearest value; over is assay_codec_over_pattern().
static inline uint64_t assay_codec_encode(const assay_codec_t* c, double x, uint64_t over) {
  uint64_t k = assay_codec_ordinal(c, x);
  uint64_t sign = assay_bits_of(x) & ASSAY_SIGN ? c->sign_pattern : 0;
  uint64_t kept = c->zero_sign ? ~UINT64_C(0) : 0;
  uint64_t number = k > c->max_ordinal ? over : k << c->pad;
  number |= sign & (k ? ~UINT64_C(0) : kept);
  uint64_t nan = c->nan_pattern | (sign ^ c->none_sign);
  return x != x ? nan : number;
}

// The value of a stored pattern. NaN comes out quiet, with its sign and no payload.
static inline double assay_codec_decode(const assay_codec_t* c, uint64_t pattern) {
  uint64_t sign = (pattern & c->sign_pattern) << c->sign_shift;
  uint64_t k = (pattern & (c->sign_pattern - 1)) >> c->pad;
  uint64_t normal = (k + c->offset) << c->shift;
  double sub = assay_of_bits(assay_bits_of(c->sub_magic) + k) - c->sub_magic;
  uint64_t number = k < c->min_normal_ordinal ? assay_bits_of(sub) : normal;
  number = k > c->max_ordinal ? c->past : number;
  number = k > c->max_ordinal + 1 ? ASSAY_EXPONENT | ASSAY_QUIET : number;
  number |= sign;
  return assay_of_bits(number == ASSAY_SIGN ? c->negative_zero : number);
}

// e8m0: patterns 0 to 254 are 2^-127 to 2^127, 255 is NaN.
static inline uint64_t assay_e8m0_encode(double x, assay_e8m0_mode_t mode,
                                         assay_overflow_t overflow) {
  static const uint64_t add[] = {[ASSAY_E8M0_NEAREST] = UINT64_C(1) << 51,
                                 [ASSAY_E8M0_UP] = (UINT64_C(1) << 52) - 1,
                                 [ASSAY_E8M0_DOWN] = 0};
  bool saturate = overflow == ASSAY_OVERFLOW_SATURATE;
  if (x != x || x < 0) return 255;
  int64_t k = (int64_t)(((assay_bits_of(x) & ~ASSAY_SIGN) + add[mode]) >> 52) - (1023 - 127);
  if (x < 0x1p-500) k = -1;  // zero, and float64 subnormals, which the line above is not meant for
  if (k < 0) return saturate ? 0 : 255;
  if (k > 254) return saturate ? 254 : 255;
  return (uint64_t)k;
}
static inline double assay_e8m0_decode(uint64_t pattern) {
  return pattern == 255 ? (double)NAN : assay_of_bits((pattern + (1023 - 127)) << 52);
}

#endif  // ASSAY_FORMATS_CODEC_H_
