// A shorter way to the bytes of int8 layers (int8.h), for CPUs with AVX-512.
//
// A number in steps of the output, its zero point taken in, is put together by fused operations
// with what is known beforehand: v = sum * (factor / scale) + (shift / scale + zero). It differs
// from what the definition's own roundings give by less than `slack`. Where no v is as near as that
// to the middle between two integers, both round to the same one, so that the bytes are the
// definition's; where one is, the caller goes by the definition. `slack` holds within 512 steps of
// the zero point; further away all bytes are the type's limits, whichever way.
#ifndef ASSAY_OPS_QUANT_INT8_QUICK_H_
#define ASSAY_OPS_QUANT_INT8_QUICK_H_

#include "ops/quant/int8.h"

typedef struct int8_quick {
  const float *factor, *shift;  // by element
  float sure;                   // 0.5 - slack: fractions up to that are sure
  uint8_t min, max;             // of the bytes as unsigned ones
  uint8_t turn;                 // 128: the output is signed
} int8_quick_t;

// How far a number may be off is `halves` half units of a float's last place (2^-24) of 1; false:
// too far for a shorter way to be one, or it could leave int32.
bool int8_quick_slack(double halves, double max, float* out_sure);
// For a layer that does nothing to its sums but to limit and quantize them: n channels of factor
// and shift. False: it is none, or has no shorter way.
bool int8_quick_numbers(const assay_int8_t* q, int64_t n, float* factor, float* shift,
                        int8_quick_t* out);
// The same, and false on a CPU that cannot run what follows.
bool int8_quick_make(const assay_int8_t* q, int64_t n, float* factor, float* shift,
                     int8_quick_t* out);
// Bytes of n sums, as far as they are sure: how many there are, all of them or a multiple of 64.
int64_t int8_quick_run(const int8_quick_t* q, const int32_t* sums, int64_t n, void* out);
// Of up to 32 rows of n <= 64 sums, `step` (a multiple of 16) apart, which begin at one channel;
// their bytes lie out_step apart. A bit for each row that is not sure, and is not written.
uint32_t int8_quick_rows(const int8_quick_t* q, const int32_t* sums, int64_t step, int rows,
                         int64_t n, uint8_t* out, int64_t out_step);

#if defined(__x86_64__)
#include <immintrin.h>

#define INT8_QUICK_INLINE \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"), always_inline)) static inline

// Of four vectors, 64 bytes in order; both steps limit.
INT8_QUICK_INLINE __m512i int8_packed(const __m512i k[4]) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i low = _mm512_packs_epi32(k[0], k[1]), high = _mm512_packs_epi32(k[2], k[3]);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
}

// The unsigned bytes of 64 numbers, none of them NaN or 2^31 and more. False: not all are sure.
INT8_QUICK_INLINE bool int8_quick_bytes(const __m512 v[4], __m512 sure, __m512i* out) {
  enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC, LARGER_SIZE = 0x0b };
  const __m512i k[4] = {
      _mm512_cvt_roundps_epi32(v[0], NEAREST), _mm512_cvt_roundps_epi32(v[1], NEAREST),
      _mm512_cvt_roundps_epi32(v[2], NEAREST), _mm512_cvt_roundps_epi32(v[3], NEAREST)};
  // What lies between numbers and their nearest integers.
  const __m512 a = _mm512_range_ps(_mm512_reduce_ps(v[0], NEAREST), _mm512_reduce_ps(v[1], NEAREST),
                                   LARGER_SIZE);
  const __m512 b = _mm512_range_ps(_mm512_reduce_ps(v[2], NEAREST), _mm512_reduce_ps(v[3], NEAREST),
                                   LARGER_SIZE);
  *out = int8_packed(k);
  return !_mm512_cmp_ps_mask(_mm512_range_ps(a, b, LARGER_SIZE), sure, _CMP_GT_OQ);
}
#endif

#endif  // ASSAY_OPS_QUANT_INT8_QUICK_H_
