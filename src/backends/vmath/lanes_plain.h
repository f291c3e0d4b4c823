// Lanes of the vector functions without vectors: one element at a time, in C.
#ifndef ASSAY_BACKENDS_VMATH_LANES_H_
#define ASSAY_BACKENDS_VMATH_LANES_H_

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "backends/vmath/reduce.h"

#define VTARGET
#define VFN static inline __attribute__((always_inline, unused))

VFN uint32_t f_bits(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
VFN float f_from_bits(uint32_t b) {
  float x;
  memcpy(&x, &b, sizeof x);
  return x;
}
VFN uint64_t d_bits(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
VFN double d_from_bits(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}

VFN float f_fma(float a, float b, float c) { return fmaf(a, b, c); }
VFN float f_sqrt(float a) { return sqrtf(a); }
VFN double d_fma(double a, double b, double c) { return fma(a, b, c); }
VFN double d_sqrt(double a) { return sqrt(a); }
VFN double d_round(double x) { return rint(x); }  // ties to even
VFN double d_truncate(double x) { return trunc(x); }

#include "backends/vmath/lanes_one.h"

#endif  // ASSAY_BACKENDS_VMATH_LANES_H_
