// Functions in float64 for the epilogue of int8 layers, written so that compilers turn a loop over
// them into vector code: no branches, no calls, and no fused operation, so that every instruction
// set gives the same bits.
//
// What is computed here is rounded once to float32. Each is within 2^-48 of the function's value
// (relative; where that is in float32's range; tests/ops/test_int8_functions.c), so that the
// float32 is the nearest one except where that value lies within 2^-48 of a tie: about one argument
// in 2^23, and then the neighbour that is taken is as near as the other to 2^-24 of an ulp. Emu,
// CPU and CUDA take the same neighbour, since this is their common definition.
#ifndef ASSAY_OPS_QUANT_INT8_FUNCTIONS_H_
#define ASSAY_OPS_QUANT_INT8_FUNCTIONS_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double int8_of_bits(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}
static inline uint64_t int8_bits(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

#define INT8_FN static inline
#include "ops/quant/int8_functions.inc"

#endif  // ASSAY_OPS_QUANT_INT8_FUNCTIONS_H_
