// Normalizations of rows with one scale and bias an element, many rows at a time.
#include "backends/cpu/norm/norm_rows.h"

#include <math.h>

#include "backends/cpu/pointwise/chain.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define INLINE static inline TARGET __attribute__((always_inline))

enum { LANES = 32 };

// Of a row's `left` elements, those in vector v of two.
INLINE __mmask16 mask_of(int64_t left, int v) {
  const int64_t n = left - 16 * v;
  return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

INLINE __m512 load(const void* x, bool wide, int64_t at, __mmask16 mask) {
  if (wide) return _mm512_maskz_loadu_ps(mask, (const float*)x + at);
  const __m256i y = _mm256_maskz_loadu_epi16(mask, (const uint16_t*)x + at);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(y), 16));
}

// cpu_to_bf16.
INLINE __m256i to_bf16(__m512 x) {
  const __m512i b = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
  const __m512i y = _mm512_add_epi32(_mm512_add_epi32(b, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(
      _mm512_srli_epi32(_mm512_mask_or_epi32(y, nan, b, _mm512_set1_epi32(0x00400000)), 16));
}

// The lanes of both vectors, pairwise: 16 apart, then 8, 4, 2 and 1.
INLINE float join(__m512 a, __m512 b) {
  const __m512 s = _mm512_add_ps(a, b);
  const __m256 t = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
  __m128 u = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
  u = _mm_add_ps(u, _mm_movehl_ps(u, u));
  return _mm_cvtss_f32(_mm_add_ss(u, _mm_movehdup_ps(u)));
}

INLINE float sum(const void* x, bool wide, int64_t at, int64_t n) {
  __m512 a = _mm512_setzero_ps(), b = a;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    a = _mm512_add_ps(a, load(x, wide, at + i, 0xffff));
    b = _mm512_add_ps(b, load(x, wide, at + i + 16, 0xffff));
  }
  const __mmask16 m = mask_of(n - i, 0), o = mask_of(n - i, 1);
  a = _mm512_mask_add_ps(a, m, a, load(x, wide, at + i, m));
  b = _mm512_mask_add_ps(b, o, b, load(x, wide, at + i + 16, o));
  return join(a, b);
}

INLINE __m512 add_square(__m512 s, __mmask16 mask, __m512 x, __m512 mean) {
  const __m512 d = _mm512_sub_ps(x, mean);
  return _mm512_mask_add_ps(s, mask, s, _mm512_mul_ps(d, d));
}

INLINE float sum_of_squares(const void* x, bool wide, int64_t at, int64_t n, float mean) {
  const __m512 c = _mm512_set1_ps(mean);
  __m512 a = _mm512_setzero_ps(), b = a;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    a = add_square(a, 0xffff, load(x, wide, at + i, 0xffff), c);
    b = add_square(b, 0xffff, load(x, wide, at + i + 16, 0xffff), c);
  }
  const __mmask16 m = mask_of(n - i, 0), o = mask_of(n - i, 1);
  a = add_square(a, m, load(x, wide, at + i, m), c);
  b = add_square(b, o, load(x, wide, at + i + 16, o), c);
  return join(a, b);
}

INLINE void normalize(const cpu_norm_rows_t* k, bool wide, bool wide_out, const void* x, int64_t at,
                      float mean, float inverse, void* y) {
  const __m512 c = _mm512_set1_ps(mean), f = _mm512_set1_ps(inverse);
  for (int64_t i = 0; i < k->size; i += 16) {
    const __mmask16 m = mask_of(k->size - i, 0);
    __m512 z = _mm512_mul_ps(_mm512_sub_ps(load(x, wide, at + i, m), c), f);
    if (k->scale) z = _mm512_mul_ps(z, _mm512_maskz_loadu_ps(m, k->scale + i));
    if (k->bias) z = _mm512_add_ps(z, _mm512_maskz_loadu_ps(m, k->bias + i));
    if (wide_out)
      _mm512_mask_storeu_ps((float*)y + at + i, m, z);
    else
      _mm256_mask_storeu_epi16((uint16_t*)y + at + i, m, to_bf16(z));
  }
}

INLINE void all_rows(const cpu_norm_rows_t* k, bool wide, bool wide_out, const void* x,
                     int64_t from, int64_t to, void* y) {
  const float n = (float)k->size;
  for (int64_t r = from; r < to; r++) {
    const int64_t at = r * k->size;
    const float mean = k->centered ? sum(x, wide, at, k->size) / n : 0;
    const float variance = sum_of_squares(x, wide, at, k->size, mean) / n;
    normalize(k, wide, wide_out, x, at, mean, 1 / sqrtf(variance + k->epsilon), y);
  }
}

TARGET static void run(const cpu_norm_rows_t* k, const void* x, int64_t from, int64_t to, void* y) {
  const bool wide = k->in == ASSAY_TYPE_FLOAT, wide_out = k->out == ASSAY_TYPE_FLOAT;
  if (wide && wide_out)
    all_rows(k, true, true, x, from, to, y);
  else if (wide)
    all_rows(k, true, false, x, from, to, y);
  else if (wide_out)
    all_rows(k, false, true, x, from, to, y);
  else
    all_rows(k, false, false, x, from, to, y);
}
#else
static void run(const cpu_norm_rows_t* k, const void* x, int64_t from, int64_t to, void* y) {
  (void)k, (void)x, (void)from, (void)to, (void)y;
}
#endif

static bool is_known(assay_type_t t) { return t == ASSAY_TYPE_FLOAT || t == ASSAY_TYPE_BFLOAT16; }

bool cpu_norm_rows(const cpu_norm_rows_t* k, const void* x, int64_t from, int64_t to, void* y) {
  if (!is_known(k->in) || !is_known(k->out) || !cpu_has_chains()) return false;
  run(k, x, from, to, y);
  return true;
}
