// The inner loops of the emulated matrix products: chains of fused multiply-adds whose bits are the
// same on every machine, with or without FMA instructions.
#include "ops/matmul/gemm_fma.h"

#include <math.h>
#include <stddef.h>

// Every element's chain runs in the order of l with one rounding a step, so vector width and block
// size cannot show in the result.

// ---- portable ---------------------------------------------------------------------------------

enum { PORTABLE_MR = 4, PORTABLE_NR = 8 };

// fmaf is correctly rounded with and without hardware (the C library emulates it).
static void block_portable(int64_t k, const float* a, const float* b, float* c) {
  for (int64_t l = 0; l < k; l++, a += PORTABLE_MR, b += PORTABLE_NR) {
    for (int i = 0; i < PORTABLE_MR; i++) {
      for (int j = 0; j < PORTABLE_NR; j++) {
        c[i * PORTABLE_NR + j] = fmaf(a[i], b[j], c[i * PORTABLE_NR + j]);
      }
    }
  }
}

static void row_portable(int64_t n, double a, const double* b, const double* s, double* y) {
  for (int64_t j = 0; j < n; j++) y[j] = fma(a, b[j], s[j]);
}

static const assay_fma_kernels_t portable = {.name = "portable",
                                             .mr = PORTABLE_MR,
                                             .nr = PORTABLE_NR,
                                             .block = block_portable,
                                             .row = row_portable};

// ---- x86 --------------------------------------------------------------------------------------

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET_AVX2 __attribute__((target("avx2,fma")))
#define TARGET_AVX512 __attribute__((target("avx512f")))

// 4 rows of 24 columns: 12 accumulators, 3 for b, 1 for a of the 16 registers.
enum { AVX2_MR = 4, AVX2_NR = 24 };

TARGET_AVX2 static void block_avx2(int64_t k, const float* a, const float* b, float* c) {
  __m256 s[AVX2_MR][3];
  for (int i = 0; i < AVX2_MR; i++) {
    for (int v = 0; v < 3; v++) s[i][v] = _mm256_loadu_ps(c + i * AVX2_NR + v * 8);
  }
  for (int64_t l = 0; l < k; l++, a += AVX2_MR, b += AVX2_NR) {
    const __m256 b0 = _mm256_loadu_ps(b);
    const __m256 b1 = _mm256_loadu_ps(b + 8);
    const __m256 b2 = _mm256_loadu_ps(b + 16);
#pragma GCC unroll 4
    for (int i = 0; i < AVX2_MR; i++) {
      const __m256 x = _mm256_broadcast_ss(a + i);
      s[i][0] = _mm256_fmadd_ps(x, b0, s[i][0]);
      s[i][1] = _mm256_fmadd_ps(x, b1, s[i][1]);
      s[i][2] = _mm256_fmadd_ps(x, b2, s[i][2]);
    }
  }
  for (int i = 0; i < AVX2_MR; i++) {
    for (int v = 0; v < 3; v++) _mm256_storeu_ps(c + i * AVX2_NR + v * 8, s[i][v]);
  }
}

TARGET_AVX2 static void row_avx2(int64_t n, double a, const double* b, const double* s, double* y) {
  const __m256d x = _mm256_set1_pd(a);
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    _mm256_storeu_pd(y + j, _mm256_fmadd_pd(x, _mm256_loadu_pd(b + j), _mm256_loadu_pd(s + j)));
  }
  for (; j < n; j++) {
    y[j] = _mm_cvtsd_f64(_mm_fmadd_sd(_mm_set_sd(a), _mm_set_sd(b[j]), _mm_set_sd(s[j])));
  }
}

static const assay_fma_kernels_t avx2 = {
    .name = "avx2", .mr = AVX2_MR, .nr = AVX2_NR, .block = block_avx2, .row = row_avx2};

// 6 rows of 64 columns: 24 accumulators, 4 for b, 1 for a of the 32 registers.
enum { AVX512_MR = 6, AVX512_NR = 64 };

TARGET_AVX512 static void block_avx512(int64_t k, const float* a, const float* b, float* c) {
  __m512 s[AVX512_MR][4];
  for (int i = 0; i < AVX512_MR; i++) {
    for (int v = 0; v < 4; v++) s[i][v] = _mm512_loadu_ps(c + i * AVX512_NR + v * 16);
  }
  for (int64_t l = 0; l < k; l++, a += AVX512_MR, b += AVX512_NR) {
    const __m512 b0 = _mm512_loadu_ps(b);
    const __m512 b1 = _mm512_loadu_ps(b + 16);
    const __m512 b2 = _mm512_loadu_ps(b + 32);
    const __m512 b3 = _mm512_loadu_ps(b + 48);
#pragma GCC unroll 6
    for (int i = 0; i < AVX512_MR; i++) {
      const __m512 x = _mm512_set1_ps(a[i]);
      s[i][0] = _mm512_fmadd_ps(x, b0, s[i][0]);
      s[i][1] = _mm512_fmadd_ps(x, b1, s[i][1]);
      s[i][2] = _mm512_fmadd_ps(x, b2, s[i][2]);
      s[i][3] = _mm512_fmadd_ps(x, b3, s[i][3]);
    }
  }
  for (int i = 0; i < AVX512_MR; i++) {
    for (int v = 0; v < 4; v++) _mm512_storeu_ps(c + i * AVX512_NR + v * 16, s[i][v]);
  }
}

TARGET_AVX512 static void row_avx512(int64_t n, double a, const double* b, const double* s,
                                     double* y) {
  const __m512d x = _mm512_set1_pd(a);
  for (int64_t j = 0; j < n; j += 8) {
    const __mmask8 some = n - j < 8 ? (__mmask8)((1u << (n - j)) - 1) : (__mmask8)0xff;
    const __m512d r =
        _mm512_fmadd_pd(x, _mm512_maskz_loadu_pd(some, b + j), _mm512_maskz_loadu_pd(some, s + j));
    _mm512_mask_storeu_pd(y + j, some, r);
  }
}

static const assay_fma_kernels_t avx512 = {
    .name = "avx512", .mr = AVX512_MR, .nr = AVX512_NR, .block = block_avx512, .row = row_avx512};
#endif

// ---- choice -----------------------------------------------------------------------------------

const assay_fma_kernels_t* assay_fma_kernels_at(int i) {
  const assay_fma_kernels_t* can[4] = {NULL};
  int n = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) can[n++] = &avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) can[n++] = &avx2;
#endif
  can[n++] = &portable;
  return i >= 0 && i < n ? can[i] : NULL;
}

const assay_fma_kernels_t* assay_fma_kernels(void) { return assay_fma_kernels_at(0); }
