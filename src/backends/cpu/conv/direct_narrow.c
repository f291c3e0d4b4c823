// By fused multiply-adds of float32 on CPUs with vectors of 8: the same sums.
#include <stddef.h>

#include "backends/cpu/conv/direct_kernel.h"
#include "backends/cpu/pointwise/convert.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define INLINE static inline TARGET __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 6")
#endif

enum { LANES = 8, ROWS = 5, HALF = 2 * LANES };

// Rows [first, first + rows), columns [column, column + HALF) of a panel; `rows` is known when this
// is compiled: the sums stay in registers.
INLINE void block(const int rows, const direct_block_t* b, int first, int column) {
  __m256 sum[ROWS][2];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 2; j++) sum[i][j] =
      b->start ? _mm256_loadu_ps(b->start + (first + i) * b->start_step + column + j * LANES)
               : _mm256_setzero_ps();
  for (int t = 0; t < b->n_taps; t++) {
    const uint32_t* const* at = b->at + (ptrdiff_t)t * DIRECT_ROWS + first;
    const float* panel = (const float*)b->panel + b->taps[t] * b->units * DIRECT_PANEL + column;
    const float* row[ROWS];
    UNROLL for (int i = 0; i < rows; i++) row[i] = (const float*)at[i];
    for (int64_t u = 0; u < b->units; u++, panel += DIRECT_PANEL) {
      const __m256 w0 = _mm256_loadu_ps(panel), w1 = _mm256_loadu_ps(panel + LANES);
      UNROLL for (int i = 0; i < rows; i++) {
        const __m256 x = _mm256_set1_ps(row[i][u]);
        sum[i][0] = _mm256_fmadd_ps(x, w0, sum[i][0]);
        sum[i][1] = _mm256_fmadd_ps(x, w1, sum[i][1]);
      }
    }
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 2; j++)
      _mm256_storeu_ps(b->sums + (first + i) * b->step + column + j * LANES, sum[i][j]);
}

// The last columns first, as what is written after a row's end is written over (direct_run.c).
TARGET static void run_block(direct_block_t* b) {
  for (int column = b->vectors * DIRECT_LANES - HALF; column >= 0; column -= HALF)
    for (int first = 0, rows; first < b->rows; first += rows) {
      const int left = b->rows - first;
      // As many in each as there can be, and at least three.
      rows = left > ROWS + 2 || left == ROWS ? ROWS : left > ROWS ? 3 : left;
      switch (rows) {
        case 1:
          block(1, b, first, column);
          break;
        case 2:
          block(2, b, first, column);
          break;
        case 3:
          block(3, b, first, column);
          break;
        case 4:
          block(4, b, first, column);
          break;
        default:
          block(5, b, first, column);
          break;
      }
    }
}

static void run_widen(assay_type_t type, const uint16_t* from, int64_t n, float* to) {
  cpu_widen(from, type, 0, n, to);
}

const direct_way_t cpu_direct_floats_narrow = {.block = run_block, .widen = run_widen};
#else
const direct_way_t cpu_direct_floats_narrow = {0};
#endif
