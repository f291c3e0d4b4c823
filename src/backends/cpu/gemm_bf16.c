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

// `rows` and `panels` are constants where this is inlined: its sums stay in registers.
TARGET __attribute__((always_inline)) static inline void block(int rows, int panels, int64_t pairs,
                                                               const uint32_t* a, int64_t a_step,
                                                               const uint32_t* panel, float* c,
                                                               int64_t c_step, bool adds) {
  __m512 sum[MOST][WIDE];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 2 * panels; j++) sum[i][j] =
      adds ? _mm512_loadu_ps(c + i * c_step + j * LANES) : _mm512_setzero_ps();
  for (int64_t l = 0; l < pairs; l++, panel += CPU_PANEL) {
    const uint32_t* next = panel + pairs * CPU_PANEL;
    const __m512bh b0 = (__m512bh)_mm512_loadu_si512(panel);
    const __m512bh b1 = (__m512bh)_mm512_loadu_si512(panel + LANES);
    const __m512bh b2 = panels > 1 ? (__m512bh)_mm512_loadu_si512(next) : b0;
    const __m512bh b3 = panels > 1 ? (__m512bh)_mm512_loadu_si512(next + LANES) : b1;
    UNROLL for (int i = 0; i < rows; i++) {
      const __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[i * a_step + l]);
      sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, b0);
      sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, b1);
      if (panels == 1) continue;
      sum[i][2] = _mm512_dpbf16_ps(sum[i][2], x, b2);
      sum[i][3] = _mm512_dpbf16_ps(sum[i][3], x, b3);
    }
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 2 * panels; j++)
      _mm512_storeu_ps(c + i * c_step + j * LANES, sum[i][j]);
}

#define ROWS(n, panels)                                        \
  for (; m >= (n); m -= (n), a += (n)*a_step, c += (n)*c_step) \
    block(n, panels, pairs, a, a_step, panel, c, c_step, adds);

TARGET void cpu_gemm_panel_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                                const uint32_t* panel, float* c, int64_t c_step,
                                bool adds){ROWS(12, 1) ROWS(8, 1) ROWS(4, 1) ROWS(2, 1) ROWS(1, 1)}

TARGET void cpu_gemm_panels_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                                 const uint32_t* panel, float* c, int64_t c_step, bool adds) {
  if (m != 8) {
    ROWS(6, 2)
  }
  ROWS(4, 2)
  ROWS(2, 2)
  ROWS(1, 2)
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
#endif
