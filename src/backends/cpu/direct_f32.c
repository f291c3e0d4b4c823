#include "backends/cpu/direct_kernel.h"
#include <immintrin.h>
#include <stddef.h>
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define INLINE static inline TARGET __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 14")
INLINE void finish(const int rows, const int vectors, const direct_finish_t* f,
                   __m512 sum[DIRECT_ROWS][2]) {
  const uint32_t mask = (uint32_t)((1ull << f->columns) - 1);
  const __m512 zero = _mm512_setzero_ps();
  if (f->add) {
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
        _mm512_add_ps(sum[i][j],
                      _mm512_maskz_loadu_ps((__mmask16)(mask >> j * DIRECT_LANES),
                                            (const float*)f->add + f->at[i] + j * DIRECT_LANES));
  }
  if (f->relu) {
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
        _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(sum[i][j], zero, _CMP_NLT_UQ), sum[i][j]);
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_mask_storeu_ps((float*)f->out + f->at[i] + j * DIRECT_LANES,
                            (__mmask16)(mask >> j * DIRECT_LANES), sum[i][j]);
}

// `rows` and `vectors` are known when this is compiled: the sums stay in registers.
INLINE void block(const int rows, const int vectors, direct_block_t* b) {
  __m512 sum[DIRECT_ROWS][2];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
      b->start ? _mm512_loadu_ps(b->start + j * DIRECT_LANES) : _mm512_setzero_ps();
  const int64_t units = b->units;
  if (b->write_ahead)
    for (int i = 0; i < b->rows_ahead; i++) {
      __builtin_prefetch(b->write_ahead + b->ahead[i] * b->element, 1);
      if (vectors > 1) __builtin_prefetch(b->write_ahead + b->ahead[i] * b->element + 64, 1);
    }
  if (b->read_ahead)
    for (int i = 0; i < b->rows_ahead; i++) {
      __builtin_prefetch(b->read_ahead + b->ahead[i] * b->element);
      if (vectors > 1) __builtin_prefetch(b->read_ahead + b->ahead[i] * b->element + 64);
    }
  const char* fetch = b->fetch;
  const int64_t every = fetch ? b->fetch_every : units;
  for (int t = 0; t < b->n_taps; t++) {
    const uint32_t* const* at = b->at + (ptrdiff_t)t * DIRECT_ROWS;
    const float* panel = (const float*)(const void*)b->panel + b->taps[t] * units * DIRECT_PANEL;
    const float* row[DIRECT_ROWS];
    UNROLL for (int i = 0; i < rows; i++) row[i] = (const float*)(const void*)at[i];
    for (int64_t u = 0; u < units;) {
      const int64_t end = units - u > every ? u + every : units;
      if (fetch) {
        __builtin_prefetch(fetch, 0, 2);
        __builtin_prefetch(fetch + 64, 0, 2);
        fetch += 128;
      }
      for (; u < end; u++, panel += DIRECT_PANEL) {
        const __m512 w0 = _mm512_loadu_ps(panel);
        const __m512 w1 = vectors > 1 ? _mm512_loadu_ps(panel + DIRECT_LANES) : w0;
        UNROLL for (int i = 0; i < rows; i++) {
          const __m512 x = _mm512_set1_ps(row[i][u]);
          sum[i][0] = _mm512_fmadd_ps(x, w0, sum[i][0]);
          if (vectors > 1) sum[i][1] = _mm512_fmadd_ps(x, w1, sum[i][1]);
        }
      }
    }
  }
  b->fetch = fetch;
  if (b->finish) {
    finish(rows, vectors, b->finish, sum);
    return;
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_storeu_ps(b->sums + i * b->step + j * DIRECT_LANES, sum[i][j]);
}

typedef void block_t(direct_block_t* b);
#define BLOCK(rows)                                                       \
  TARGET static void one_##rows(direct_block_t* b) { block(rows, 1, b); } \
  TARGET static void two_##rows(direct_block_t* b) { block(rows, 2, b); }
BLOCK(1)
BLOCK(2)
BLOCK(3)
BLOCK(4)
BLOCK(5)
BLOCK(6)
BLOCK(7)
BLOCK(8)
BLOCK(9)
BLOCK(10)
BLOCK(11)
BLOCK(12)
BLOCK(13)
BLOCK(14)

void cpu_direct_block_f32(direct_block_t* b) {
  static block_t* const blocks[2][DIRECT_ROWS] = {
      {one_1, one_2, one_3, one_4, one_5, one_6, one_7, one_8, one_9, one_10, one_11, one_12,
       one_13, one_14},
      {two_1, two_2, two_3, two_4, two_5, two_6, two_7, two_8, two_9, two_10, two_11, two_12,
       two_13, two_14}};
  blocks[b->vectors - 1][b->rows - 1](b);
}
