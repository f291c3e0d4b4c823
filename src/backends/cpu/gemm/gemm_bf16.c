// Products of bf16 on CPUs with AVX512-BF16.
#include "backends/cpu/gemm/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

// Loops over rows have to disappear for the sums to be registers.
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { LANES = 16, MAX = 12, WIDE = 4 };

// `rows` and `vectors` are constants where this is inlined: its sums stay in registers. `row`: the
// first of them.
TARGET __attribute__((always_inline)) static inline void block(int rows, int vectors,
                                                               const cpu_gemm_block_t* b,
                                                               int64_t row) {
  const int64_t k = b->k, a_step = b->a_step, n = b->pieces ? b->n_pieces : 1;
  const uint32_t* a = (const uint32_t*)b->a + row * a_step;
  const uint32_t* panel = b->panels;
  const float* start = b->start ? b->start + row * b->start_step : NULL;
  float* c = b->c + row * b->c_step;
  __m512 sum[MAX][WIDE];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
      start ? _mm512_loadu_ps(start + i * b->start_step + j * LANES) : _mm512_setzero_ps();
  const int64_t panel_size = (b->panel_rows ? b->panel_rows : k * n) * CPU_PANEL;
  cpu_gemm_ahead_t ahead = cpu_gemm_ahead(b, row, rows);
  const bool streams = rows <= CPU_GEMM_STREAM_ROWS && b->streams;
  for (int64_t p = 0; p < n; p++) {
    const uint32_t* at = a + (b->pieces ? b->pieces[p] : 0);
    for (int64_t l = 0, end; l < k; l = end) {
      for (int64_t f = 0; f < ahead.lines; f++, ahead.at += 64) {
        _mm_prefetch(ahead.at, _MM_HINT_T1);
        _mm_prefetch(ahead.at + panel_size * (int64_t)sizeof(uint32_t), _MM_HINT_T1);
      }
      end = k - l < CPU_GEMM_K_BLOCK ? k : l + CPU_GEMM_K_BLOCK;
      for (int64_t q = l; q < end; q++, panel += CPU_PANEL) {
        const uint32_t* next = panel + panel_size;
        const __m512bh b0 = (__m512bh)_mm512_loadu_si512(panel);
        const __m512bh b1 = vectors > 1 ? (__m512bh)_mm512_loadu_si512(panel + LANES) : b0;
        const __m512bh b2 = vectors > 2 ? (__m512bh)_mm512_loadu_si512(next) : b0;
        const __m512bh b3 = vectors > 3 ? (__m512bh)_mm512_loadu_si512(next + LANES) : b0;
        if (streams) {
          _mm_prefetch(panel + CPU_GEMM_STREAM_AHEAD * CPU_PANEL, _MM_HINT_T0);
          _mm_prefetch(panel + CPU_GEMM_STREAM_AHEAD * CPU_PANEL + LANES, _MM_HINT_T0);
          if (vectors > 2) _mm_prefetch(next + CPU_GEMM_STREAM_AHEAD * CPU_PANEL, _MM_HINT_T0);
          if (vectors > 3)
            _mm_prefetch(next + CPU_GEMM_STREAM_AHEAD * CPU_PANEL + LANES, _MM_HINT_T0);
        }
        UNROLL for (int i = 0; i < rows; i++) {
          const __m512bh x = (__m512bh)_mm512_set1_epi32((int)at[i * a_step + q]);
          sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, b0);
          if (vectors > 1) sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, b1);
          if (vectors > 2) sum[i][2] = _mm512_dpbf16_ps(sum[i][2], x, b2);
          if (vectors > 3) sum[i][3] = _mm512_dpbf16_ps(sum[i][3], x, b3);
        }
      }
    }
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_storeu_ps(c + i * b->c_step + j * LANES, sum[i][j]);
}

#define ROWS(n, vectors) \
  for (; b->m - row >= (n); row += (n)) block(n, vectors, b, row);
#define NARROW(vectors) \
  ROWS(12, vectors) ROWS(8, vectors) ROWS(4, vectors) ROWS(2, vectors) ROWS(1, vectors)
#define BROAD(vectors) \
  if (b->m != 8) {     \
    ROWS(6, vectors)   \
  }                    \
  ROWS(4, vectors) ROWS(2, vectors) ROWS(1, vectors)

TARGET void cpu_gemm_block_bf16(const cpu_gemm_block_t* b) {
  int64_t row = 0;
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
void cpu_gemm_block_bf16(const cpu_gemm_block_t* b) { (void)b; }
#endif

void cpu_gemm_panel_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                         const uint32_t* panel, float* c, int64_t c_step, bool adds) {
  const cpu_gemm_block_t b = cpu_gemm_block_of(2, m, pairs, a, a_step, panel, c, c_step, adds);
  cpu_gemm_block_bf16(&b);
}

void cpu_gemm_panels_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                          const uint32_t* from, float* c, int64_t c_step, bool adds) {
  const cpu_gemm_block_t b = cpu_gemm_block_of(4, m, pairs, a, a_step, from, c, c_step, adds);
  cpu_gemm_block_bf16(&b);
}
