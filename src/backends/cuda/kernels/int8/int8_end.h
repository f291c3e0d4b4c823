// What becomes of the sums of layers on 8-bit integers, as ops/quant/int8.h defines it. The text of
// a layer (cuda/int8/end_text.c) includes this and says how: INT8_OUT, the output's type;
// INT8_QUANTIZES 1: it is of 8 bits, signed (INT8_SIGNED 1) or not; INT8_INVERSE 1: the inverse of
// its scale is a normal number, as are those around it; INT8_BOTH 1: what it is of is stored, too;
// INT8_BELOW 0, INT8_ABOVE 0: floats have no lower, no upper limit; index_t; INT8_HAS_STEPS, where
// nodes are evaluated in float64; and
//
//   float int8_value(float f, index_t at, index_t channel, const int8_end_args_t* e)
//       What the nodes make of f, for element `at` of the output.
//   void int8_values(const float* f, const int8_words_t* words, index_t at, index_t channel,
//                    const int8_end_args_t* e, float* y)
//       The same of INT8_TOGETHER elements that lie side by side, of channels that do; `at` is a
//       multiple of their number.
//   void int8_read(index_t at, const int8_end_args_t* e, int8_words_t* words)
//       What they read that lies as they do, for int8_values: w1 is that of source 1.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_END_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_END_H_

#include "int8_args.h"
#include "prelude.h"

// ---- what it reads ------------------------------------------------------------------------------

DEVICE index_t int8_place(const int8_source_args_t* s, index_t i) {
  const index_t n = (index_t)s->n;
  return i / (index_t)s->block % (index_t)s->outer * n + i / (index_t)s->inner % n;
}
// Of a byte. The difference is exact.
DEVICE float int8_of(const int8_source_args_t* s, int32_t byte) {
  return ((float)byte - s->zero) * s->scale;
}
DEVICE float int8_signed(const int8_source_args_t* s, index_t i) {
  return int8_of(s, GLOBAL(const int8_t, s->at)[i]);
}
DEVICE float int8_unsigned(const int8_source_args_t* s, index_t i) {
  return int8_of(s, GLOBAL(const uint8_t, s->at)[i]);
}
DEVICE float int8_real(const int8_source_args_t* s, index_t i) {
  return GLOBAL(const float, s->at)[i];
}
DEVICE float int8_channel(const int8_source_args_t* s, index_t channel) {
  return GLOBAL(const float, s->at)[channel];
}

// Bytes that lie side by side, as one word: the first one is the lowest.
DEVICE uint32_t int8_word(address_t from, index_t i) {
  if (from % INT8_TOGETHER == 0) return GLOBAL(const uint32_t, from)[i / INT8_TOGETHER];
  uint32_t word = 0;
  UNROLL
  for (int k = 0; k < INT8_TOGETHER; k++)
    word |= (uint32_t)GLOBAL(const uint8_t, from)[i + (index_t)k] << (8 * k);
  return word;
}
// Floats that do, as words.
DEVICE void int8_reals(address_t from, index_t i, uint32_t* words) {
  const float* x = GLOBAL(const float, from) + i;
  if (from % 16 == 0) {
    READ_16(x, words);
    return;
  }
  UNROLL
  for (int k = 0; k < INT8_TOGETHER; k++) words[k] = bits_of(x[k]);
}
DEVICE void int8_all_real(const int8_source_args_t* s, const uint32_t* words, float* to) {
  (void)s;
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) to[i] = float_of(words[i]);
}
DEVICE void int8_all_signed(const int8_source_args_t* s, uint32_t word, float* to) {
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) to[i] = int8_of(s, (int8_t)(word >> (8 * i) & 255));
}
DEVICE void int8_all_unsigned(const int8_source_args_t* s, uint32_t word, float* to) {
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) to[i] = int8_of(s, (int32_t)(word >> (8 * i) & 255));
}

// ---- what it computes ---------------------------------------------------------------------------

#ifdef INT8_HAS_STEPS
DEVICE uint64_t int8_bits(double x) { return bits_of64(x); }
DEVICE double int8_of_bits(uint64_t b) { return double_of(b); }
#define INT8_FN DEVICE
#include "ops/quant/int8_functions.inc"

DEVICE double int8_limited(double x, double min, double max) {
  const double above = x < min ? min : x;
  return above > max ? max : above;
}
#define INT8_LIMITED(x, min, max) int8_limited(x, min, max)
#define INT8_STEP(name, binary, a0, d0, a1, d1, expression)           \
  DEVICE double int8_do_##name(double x, double z, const double* p) { \
    (void)x, (void)z, (void)p;                                        \
    return expression;                                                \
  }
#include "ops/quant/int8_steps.inc"
#undef INT8_STEP
#endif

DEVICE float int8_within(float x, float low, float high) {
  const float above = x < low ? low : x;
  return above > high ? high : above;
}
#ifndef INT8_BELOW
#define INT8_BELOW 1
#endif
#ifndef INT8_ABOVE
#define INT8_ABOVE 1
#endif
// What is stored of a float.
DEVICE float int8_limited_real(const int8_end_args_t* e, float x) {
  const float above = INT8_BELOW && x < e->low ? e->low : x;
  return INT8_ABOVE && above > e->high ? e->high : above;
}

// Adding 1.5 * 2^23 rounds to an integer; beyond 512 steps all zero points leave the type.
DEVICE float int8_rounded(float x) {
  const float shift = 0x1.8p23F;
  return (x + shift) - shift;
}

// The integer that a float becomes, which the type still limits: rne(x / scale) + zero, where the
// quotient is rounded to float32; 0 of a NaN. Past 512 steps all zero points leave the type.
#if INT8_INVERSE
// The quotient to the last bit without a division, with the scale's inverse as near as a float is:
// a quotient that is off by less than its last place becomes the right one by what is left of x,
// times the inverse (Markstein; Muller et al., Handbook of Floating-Point Arithmetic, "Newton-
// Raphson division"). The first product may be off by more, and is made better the same way first.
// Limits are taken before, where all that is beyond leaves the type: nothing overflows. Quotients
// so small that they lose bits are 0 in any case.
DEVICE int32_t int8_steps(const int8_end_args_t* e, float x) {
  const float within = SMALLER(LARGER(x, e->least), e->most);
  const float about = within * e->inverse;
  const float near = FMA(FMA(-about, e->scale, within), e->inverse, about);
  const float v = FMA(FMA(-near, e->scale, within), e->inverse, near);
  // Behind this sum the integer is the lower bits.
  const int32_t k = (int32_t)(bits_of(v + 0x1.8p23F) - bits_of(0x1.8p23F));
  return x != x ? 0 : k + e->whole_zero;
}

// Sooner had: the integer next to x times the inverse, as the type limits it, which is the one
// unless *rest, how far the product lies from it, is INT8_CERTAIN or more. From 300 steps on all
// zero points leave the type, and one step more or less changes nothing; below, the product is off
// by less than 300 * 2^-24, and rounding moves the quotient by 2^-16 at most: no more than what is
// left to the middle between two integers, where others begin. *rest of a NaN is one.
#define INT8_CERTAIN (0.5F - 0x1.2p-15F)
DEVICE int32_t int8_steps_roughly(const int8_end_args_t* e, float x, float* rest) {
  const float shift = 0x1.8p23F;
  const float within = SMALLER_OR_NAN(LARGER_OR_NAN(x, e->least), e->most);
  const float sum = FMA(within, e->inverse, shift);
  *rest = MAGNITUDE(FMA(within, e->inverse, shift - sum));
  return (int32_t)(bits_of(sum) + ((uint32_t)e->whole_zero - bits_of(shift)));
}
// Of n at once, a constant: one in some 15,000 is not certain.
DEVICE void int8_all_steps(const int8_end_args_t* e, const float* x, int n, int32_t* k) {
  bool certain = true;
  UNROLL
  for (int i = 0; i < n; i++) {
    float rest;
    k[i] = int8_steps_roughly(e, x[i], &rest);
    certain &= rest < INT8_CERTAIN;
  }
  if (certain) return;
  UNROLL
  for (int i = 0; i < n; i++) k[i] = int8_steps(e, x[i]);
}
#else
DEVICE int32_t int8_steps(const int8_end_args_t* e, float x) {
  const float v = int8_within(x, e->low, e->high) / e->scale;
  const float k = int8_rounded(int8_within(v, -512.0F, 512.0F));
  return v != v ? 0 : (int32_t)k + e->whole_zero;
}
DEVICE void int8_all_steps(const int8_end_args_t* e, const float* x, int n, int32_t* k) {
  UNROLL
  for (int i = 0; i < n; i++) k[i] = int8_steps(e, x[i]);
}
#endif

#if INT8_SIGNED
#define INT8_PACK pack_s8
#define INT8_LOW (-128)
#define INT8_HIGH 127
#else
#define INT8_PACK pack_u8
#define INT8_LOW 0
#define INT8_HIGH 255
#endif

// Whether all that is stored begins at a multiple of what int8_store_all stores at once.
DEVICE bool int8_is_aligned(const int8_end_args_t* e, address_t y) {
  return (y | e->real) % 16 == 0;
}

DEVICE void int8_store_real(const int8_end_args_t* e, address_t y, index_t at, float x) {
  GLOBAL(float, y)[at] = int8_limited_real(e, x);
}
DEVICE void int8_store_reals(const int8_end_args_t* e, address_t y, index_t at, const float* x) {
  uint32_t words[INT8_TOGETHER];
  UNROLL
  for (int i = 0; i < INT8_TOGETHER; i++) words[i] = bits_of(int8_limited_real(e, x[i]));
  STORE_16(GLOBAL(float, y) + at, words);
}

DEVICE void int8_store(const int8_end_args_t* e, address_t y, index_t at, float x) {
#if INT8_QUANTIZES
  const int32_t k = int8_steps(e, x);
  GLOBAL(INT8_OUT, y)[at] = (INT8_OUT)(k < INT8_LOW ? INT8_LOW : k > INT8_HIGH ? INT8_HIGH : k);
#if INT8_BOTH
  int8_store_real(e, e->real, at, x);
#endif
#else
  int8_store_real(e, y, at, x);
#endif
}

// The same of INT8_TOGETHER, at a multiple of their bytes, from each of n places on; n is a
// constant, up to INT8_PLACES.
#define INT8_PLACES 4
DEVICE void int8_store_places(const int8_end_args_t* e, address_t y, const index_t* at, int n,
                              const float* x) {
#if INT8_QUANTIZES
  int32_t k[INT8_PLACES * INT8_TOGETHER];
  int8_all_steps(e, x, n * INT8_TOGETHER, k);
  UNROLL
  for (int i = 0; i < n; i++) {
    const uint32_t words[1] = {INT8_PACK(k + i * INT8_TOGETHER)};
    STORE_4(GLOBAL(INT8_OUT, y) + at[i], words);
#if INT8_BOTH
    int8_store_reals(e, e->real, at[i], x + i * INT8_TOGETHER);
#endif
  }
#else
  UNROLL
  for (int i = 0; i < n; i++) int8_store_reals(e, y, at[i], x + i * INT8_TOGETHER);
#endif
}
DEVICE void int8_store_all(const int8_end_args_t* e, address_t y, index_t at, const float* x) {
  int8_store_places(e, y, &at, 1, x);
}

// fl32(sum) * factor + shift, each rounded.
DEVICE float int8_result(const int8_end_args_t* e, int32_t sum, index_t channel) {
  return (float)sum * GLOBAL(const float, e->factor)[channel] +
         GLOBAL(const float, e->shift)[channel];
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_END_H_
