// What quantizers round by, on the host.
#ifndef ASSAY_BACKENDS_LAYERS_POINTWISE_ROUNDING_H_
#define ASSAY_BACKENDS_LAYERS_POINTWISE_ROUNDING_H_

#include <stdint.h>
#include <string.h>

static inline uint32_t pointwise_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float pointwise_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#define ROUNDING_FUNCTION static inline __attribute__((unused))
#define ROUNDING_BITS(x) pointwise_bits(x)
#define ROUNDING_FLOAT(bits) pointwise_float(bits)
#include "backends/layers/pointwise_rounding.inc"
#undef ROUNDING_FUNCTION
#undef ROUNDING_BITS
#undef ROUNDING_FLOAT

#endif  // ASSAY_BACKENDS_LAYERS_POINTWISE_ROUNDING_H_
