// The rare reduction of a large angle, of one element: for CPUs (reduce.c) and kernels of GPUs,
// which say what VONE and VTABLE are.
#ifndef ASSAY_BACKENDS_VMATH_REDUCE_ONE_H_
#define ASSAY_BACKENDS_VMATH_REDUCE_ONE_H_

// x 2 / pi mod 4, x of these bits, from the bits of 2 / pi that count: those above are multiples of
// 4, those below change it by less than 2^-70. Source: M. Payne and R. Hanek, Radian reduction for
// trigonometric functions, SIGNUM Newsletter 18 (1983).
#ifndef __CUDACC_RTC__  // which says nothing of extensions
__extension__
#endif
    typedef unsigned __int128 wide_t;

VTABLE uint64_t two_over_pi[4] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
                                  0xfe5163abdebbc561};

VONE double reduce_turns(uint32_t bits, double* turns) {
  const int exponent = (int)(bits >> 23 & 0xff) - 150;  // x = mantissa * 2^exponent
  const uint64_t mantissa = (bits & 0x7fffff) | 0x800000;
  // 96 bits of weights from 2^(1 - exponent) down.
  const int first = exponent - 2, word = first / 64, shift = first % 64;
  const wide_t pair = (wide_t)two_over_pi[word] << 64 | two_over_pi[word + 1];
  const uint64_t after = word + 2 < 4 ? two_over_pi[word + 2] : 0;
  const wide_t window = shift ? pair << shift | after >> (64 - shift) : pair;
  const wide_t product = (window >> 32) * mantissa << 32;  // its first two bits are whole turns
  const wide_t k = (product + ((wide_t)1 << 125)) >> 126;
  wide_t rest = product - (k << 126);
  const bool below = rest >> 127;
  if (below) rest = 0 - rest;
  const double r = (double)rest * 0x1p-126 * 0x1.921fb54442d18p+0;
  const bool negative = bits >> 31;
  *turns = 0x1.8p52 + (double)(negative ? 4 - (int)k : (int)k);
  return below != negative ? -r : r;
}

#endif  // ASSAY_BACKENDS_VMATH_REDUCE_ONE_H_
