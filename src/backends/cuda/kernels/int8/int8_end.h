// What becomes of the sums of layers on 8-bit integers, as ops/quant/int8.h defines it. The text of
// a layer (cuda/int8/end_text.c) includes this and says how: INT8_OUT, the output's type;
// INT8_QUANTIZES, and between INT8_LOW and INT8_HIGH; index_t; INT8_HAS_STEPS, where nodes are
// evaluated in float64; and
//
//   float int8_value(float f, index_t at, index_t channel, const int8_end_args_t* e)
//       What the nodes make of f, for element `at` of the output.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_END_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_END_H_

#include "int8_args.h"
#include "prelude.h"

// ---- what it reads ------------------------------------------------------------------------------

DEVICE index_t int8_place(const int8_source_args_t* s, index_t i) {
  const index_t n = (index_t)s->n;
  return i / (index_t)s->block % (index_t)s->outer * n + i / (index_t)s->inner % n;
}
// The difference is exact.
DEVICE float int8_signed(const int8_source_args_t* s, index_t i) {
  return ((float)GLOBAL(const int8_t, s->at)[i] - s->zero) * s->scale;
}
DEVICE float int8_unsigned(const int8_source_args_t* s, index_t i) {
  return ((float)GLOBAL(const uint8_t, s->at)[i] - s->zero) * s->scale;
}
DEVICE float int8_channel(const int8_source_args_t* s, index_t channel) {
  return GLOBAL(const float, s->at)[channel];
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

// Adding 1.5 * 2^23 rounds to an integer; beyond 512 steps all zero points leave the type.
DEVICE float int8_rounded(float x) {
  const float shift = 0x1.8p23F;
  return (x + shift) - shift;
}

DEVICE void int8_store(const int8_end_args_t* e, address_t y, index_t at, float x) {
  const float limited = int8_within(x, e->low, e->high);
#if INT8_QUANTIZES
  const float v = limited / e->scale;
  const float k = int8_rounded(int8_within(v, -512.0F, 512.0F)) + e->zero;
  const float in_type = v != v ? 0.0F : int8_within(k, INT8_LOW, INT8_HIGH);
  GLOBAL(INT8_OUT, y)[at] = (INT8_OUT)(int32_t)in_type;
#else
  GLOBAL(INT8_OUT, y)[at] = limited;
#endif
}

// fl32(sum) * factor + shift, each rounded.
DEVICE float int8_result(const int8_end_args_t* e, int32_t sum, index_t channel) {
  return (float)sum * GLOBAL(const float, e->factor)[channel] +
         GLOBAL(const float, e->shift)[channel];
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_END_H_
