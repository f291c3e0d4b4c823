// Products of bf16 on CPUs with AVX512-BF16.
#include "backends/cpu/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

// Loops over rows have to disappear for the sums to be registers.
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { LANES = 16, MOST = 12, WIDE = 4 };

// `rows` and `vectors` are constants where this is inlined: its sums stay in registers.
TARGET __attribute__((always_inline)) static inline void block(
    int rows, int vectors, int64_t pairs, const uint32_t* a, int64_t a_step, const uint32_t* panel,
    const float* start, int64_t start_step, float* c, int64_t c_step) {
  __m512 sum[MOST][WIDE];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
      start ? _mm512_loadu_ps(start + i * start_step + j * LANES) : _mm512_setzero_ps();
  for (int64_t l = 0; l < pairs; l++, panel += CPU_PANEL) {
    const uint32_t* next = panel + pairs * CPU_PANEL;
    const __m512bh b0 = (__m512bh)_mm512_loadu_si512(panel);
    const __m512bh b1 = vectors > 1 ? (__m512bh)_mm512_loadu_si512(panel + LANES) : b0;
    const __m512bh b2 = vectors > 2 ? (__m512bh)_mm512_loadu_si512(next) : b0;
    const __m512bh b3 = vectors > 3 ? (__m512bh)_mm512_loadu_si512(next + LANES) : b0;
    UNROLL for (int i = 0; i < rows; i++) {
      const __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[i * a_step + l]);
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, b0);
      if (vectors > 1) sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, b1);
      if (vectors > 2) sum[i][2] = _mm512_dpbf16_ps(sum[i][2], x, b2);
      if (vectors > 3) sum[i][3] = _mm512_dpbf16_ps(sum[i][3], x, b3);
    }
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_storeu_ps(c + i * c_step + j * LANES, sum[i][j]);
}

#define ROWS(n, vectors)                                                      \
  for (; m >= (n); m -= (n), a += (n)*a_step, c += (n)*c_step) {              \
    block(n, vectors, pairs, a, a_step, panel, start, start_step, c, c_step); \
    if (start) start += (n)*start_step;                                       \
  }
#define NARROW(vectors) \
  ROWS(12, vectors) ROWS(8, vectors) ROWS(4, vectors) ROWS(2, vectors) ROWS(1, vectors)
#define BROAD(vectors) \
  if (m != 8) {        \
    ROWS(6, vectors)   \
  }                    \
  ROWS(4, vectors) ROWS(2, vectors) ROWS(1, vectors)

TARGET void cpu_gemm_panel_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                                const uint32_t* panel, float* c, int64_t c_step, bool adds) {
  const float* start = adds ? c : NULL;
  const int64_t start_step = c_step;
  NARROW(2)
}

TARGET void cpu_gemm_panels_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                                 const uint32_t* panel, float* c, int64_t c_step, bool adds) {
  const float* start = adds ? c : NULL;
  const int64_t start_step = c_step;
  BROAD(4)
}

TARGET void cpu_gemm_block_bf16(const cpu_gemm_block_t* b) {
  const int64_t pairs = b->k, a_step = b->a_step, start_step = b->start_step, c_step = b->c_step;
  const uint32_t *a = b->a, *panel = b->panels;
  const float* start = b->start;
  float* c = b->c;
  int64_t m = b->m;
  switch (b->vectors) {
    case 1:
      NARROW(1)
      break;
    case 2:
      NARROW(2)
      break;
    case 3:
      BROAD(3)
      break;
    default:
      BROAD(4)
      break;
  }
}

bool cpu_gemm_has_bf16(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bf16");
}
#else
bool cpu_gemm_has_bf16(void) { return false; }
void cpu_gemm_panel_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                         const uint32_t* panel, float* c, int64_t c_step, bool adds) {
  (void)m, (void)pairs, (void)a, (void)a_step, (void)panel, (void)c, (void)c_step, (void)adds;
}
void cpu_gemm_panels_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                          const uint32_t* panels, float* c, int64_t c_step, bool adds) {
  cpu_gemm_panel_bf16(m, pairs, a, a_step, panels, c, c_step, adds);
}
void cpu_gemm_block_bf16(const cpu_gemm_block_t* b) { (void)b; }
#endif
