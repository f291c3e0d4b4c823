// What links do to a block of 64 elements in registers, with AVX-512. For those who include it:
// once, where the compiler knows these instructions.
#ifndef ASSAY_BACKENDS_CPU_POINTWISE_CHAIN_LANES_H_
#define ASSAY_BACKENDS_CPU_POINTWISE_CHAIN_LANES_H_

#include "backends/cpu/pointwise/chain.h"
#include "backends/vmath/lanes_avx512.h"
// Its functions need the lanes.
#include "backends/vmath/float32.h"

#define TARGET VTARGET
#define INLINE VFN
#define TARGET_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512bf16")))

enum { VECTORS = 4, BLOCK = 64 };
// Vectors in arrays stay in registers only where the loops over them are gone.
#define UNROLL _Pragma("GCC unroll 4")

// In float32 lanes, and as they are narrowed then.
#define EITHER(name, parameters, in_float32, in_float64)                             \
  INLINE __m512 name parameters {                                                    \
    const __m512 y = in_float32;                                                     \
    if (use == CPU_V_FLOAT32) return y;                                              \
    const __mmask16 open = use == CPU_V_FLOAT16 ? half_is_open(y) : bf16_is_open(y); \
    return OPEN_IN_FLOAT64(y, open, in_float64);                                     \
  }
EITHER(sigmoid, (__m512 x, cpu_vmath_use_t use), v_sigmoid(x), v_sigmoid64(x, true))
EITHER(gelu, (__m512 x, cpu_vmath_use_t use), v_short_gelu(x), v_gelu64(x, true))
EITHER(gelu_tanh, (__m512 x, cpu_vmath_use_t use), v_short_gelu_tanh(x), v_gelu_tanh64(x, true))
EITHER(hard_sigmoid, (__m512 x, float alpha, float beta, cpu_vmath_use_t use),
       v_hard_sigmoid(x, alpha, beta), v_hard_sigmoid64(x, alpha, beta, true))

INLINE bool some_open(const __m512* y) {
  __m512i near = SET32(-1);
  UNROLL for (int v = 0; v < VECTORS; v++) {
    const __m512i low = _mm512_and_epi32(F_INT(y[v]), SET32(0xffff));
    near = _mm512_min_epu32(near, _mm512_sub_epi32(low, SET32(0x8000 - 2)));
  }
  return _mm512_cmple_epu32_mask(near, SET32(4)) != 0;
}
INLINE bool some_half_open(const __m512* y) {
  unsigned open = 0;
  UNROLL for (int v = 0; v < VECTORS; v++) open |= half_is_open(y[v]);
  return open != 0;
}
// Numbers that half_is_open takes for open as they are below its normal ones, and that round for
// certain as they should. Of Swish, whose relative error is small wherever its argument is finite:
// those not near the middle of two neighbours, which are 2^-24 apart. Of HardSwish: zeros of
// arguments up to -3.
INLINE __mmask16 swish_is_settled(__m512 x, __m512 y) {
  const __m512 size = _mm512_abs_ps(y), half = _mm512_set1_ps(0.5F);
  const __m512 rounded = _mm512_sub_ps(_mm512_add_ps(size, half), half);
  const __m512 off = _mm512_abs_ps(_mm512_sub_ps(size, rounded));
  const __mmask16 finite =
      _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(0x1p16F), _CMP_LT_OQ);
  const __mmask16 below =
      _mm512_mask_cmp_ps_mask(finite, size, _mm512_set1_ps(0x1p-14F), _CMP_LT_OQ);
  return _mm512_mask_cmp_ps_mask(below, off, _mm512_set1_ps(0x1p-25F - 0x1p-33F), _CMP_LT_OQ);
}
INLINE __mmask16 hard_swish_is_settled(__m512 x, __m512 y) {
  const __mmask16 zero = _mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_EQ_OQ);
  const __mmask16 finite = _mm512_mask_cmp_ps_mask(zero, x, _mm512_set1_ps(-0x1p16F), _CMP_GT_OQ);
  return _mm512_mask_cmp_ps_mask(finite, x, _mm512_set1_ps(-3), _CMP_LE_OQ);
}
// The short Swish and HardSwish of a block. All its vectors are looked at together: whether a
// number lies near the middle of two neighbours (bf16_is_open, half_is_open), which is rare.
#define BLOCKWISE(name, alpha, in_float32, in_float64)                                             \
  TARGET                                                                                           \
  __attribute__((noinline)) static void name##_exactly(const __m512* in, float alpha, bool half,   \
                                                       __m512* y) {                                \
    (void)alpha;                                                                                   \
    for (int v = 0; v < VECTORS; v++) {                                                            \
      const __m512 x = in[v];                                                                      \
      const __mmask16 open =                                                                       \
          half ? half_is_open(y[v]) & (__mmask16)~name##_is_settled(x, y[v]) : bf16_is_open(y[v]); \
      if (open) y[v] = f_select(open, in_float64, y[v]);                                           \
    }                                                                                              \
  }                                                                                                \
  INLINE void name(__m512* in, float alpha, cpu_vmath_use_t use) {                                 \
    __m512 y[VECTORS];                                                                             \
    (void)alpha;                                                                                   \
    UNROLL for (int v = 0; v < VECTORS; v++) {                                                     \
      const __m512 x = in[v];                                                                      \
      y[v] = in_float32;                                                                           \
    }                                                                                              \
    const bool half = use == CPU_V_FLOAT16;                                                        \
    if (use != CPU_V_FLOAT32 && (half ? some_half_open(y) : some_open(y)))                         \
      name##_exactly(in, alpha, half, y);                                                          \
    UNROLL for (int v = 0; v < VECTORS; v++) in[v] = y[v];                                         \
  }
BLOCKWISE(swish, alpha, v_short_swish(x, alpha), v_swish64(x, alpha, true))
BLOCKWISE(hard_swish, none, v_short_hard_swish(x), v_hard_swish64(x, true))

// Both give the second operand where one is NaN or both are zero, which is why it is x.
INLINE __m512 limited(__m512 x, __m512 min, __m512 max) {
  return _mm512_min_ps(max, _mm512_max_ps(min, x));
}
INLINE void relu(__m512* x) {
  UNROLL for (int v = 0; v < VECTORS; v++) x[v] =
      _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x[v], _mm512_setzero_ps(), _CMP_NLT_UQ), x[v]);
}

// Whether a block has numbers that the CPU's own conversion to bfloat16 takes for zeros.
INLINE bool some_subnormal(const __m512* x) {
  enum { SUBNORMAL = 0x20 };
  unsigned found = 0;
  UNROLL for (int v = 0; v < VECTORS; v++) found |= _mm512_fpclass_ps_mask(x[v], SUBNORMAL);
  return found != 0;
}
// The upper half of each element is its cpu_to_bf16.
INLINE __m512i rounded_to_bf16(__m512 x) {
  const __m512i b = _mm512_castps_si512(x), y = _mm512_add_epi32(b, _mm512_set1_epi32(0x7fff));
  const __mmask16 odd = _mm512_test_epi32_mask(b, _mm512_set1_epi32(0x10000));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(_mm512_mask_add_epi32(y, odd, y, _mm512_set1_epi32(1)), nan, b,
                              _mm512_set1_epi32(0x00400000));
}
// Of two vectors, one after the other.
INLINE __m512i to_bf16_both(__m512 x, __m512 y) {
  const __m512i odd = _mm512_add_epi16(
      _mm512_set1_epi32(0x00030001),
      _mm512_mullo_epi32(_mm512_set1_epi32(0x00040004),
                         _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)));
  return _mm512_permutex2var_epi16(rounded_to_bf16(x), odd, rounded_to_bf16(y));
}
INLINE __m256i to_bf16(__m512 x) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded_to_bf16(x), 16));
}

#endif  // ASSAY_BACKENDS_CPU_POINTWISE_CHAIN_LANES_H_
