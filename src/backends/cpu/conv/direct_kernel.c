// By products of pairs of bf16.
#include "backends/cpu/conv/direct_kernel.h"

#include "backends/cpu/pointwise/convert.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,prfchw")))
#define INLINE static inline TARGET __attribute__((always_inline))
// Vectors in arrays stay in registers only where the loops over them are gone.
#define UNROLL _Pragma("GCC unroll 14")

// `rows` and `vectors` are known when this is compiled: the sums stay in registers.
INLINE void block(const int rows, const int vectors, direct_block_t* b) {
  __m512 sum[DIRECT_ROWS][2];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
      b->start ? _mm512_loadu_ps(b->start + i * b->start_step + j * DIRECT_LANES)
               : _mm512_setzero_ps();
  const int64_t units = b->units;
  if (b->write_ahead)
    for (int i = 0; i < b->rows_ahead; i++)
      __builtin_prefetch(b->write_ahead + b->ahead[i] * b->element, 1);
  if (b->read_ahead)
    for (int i = 0; i < b->rows_ahead; i++)
      __builtin_prefetch(b->read_ahead + b->ahead[i] * b->element);
  const char* fetch = b->fetch;
  const int64_t every = fetch ? b->fetch_every : units;
  for (int t = 0; t < b->n_taps; t++) {
    const uint32_t* const* at = b->at + (ptrdiff_t)t * DIRECT_ROWS;
    const uint32_t* panel = b->panel + b->taps[t] * units * DIRECT_PANEL;
    const uint32_t* row[DIRECT_ROWS];
    UNROLL for (int i = 0; i < rows; i++) row[i] = at[i];
    for (int64_t u = 0; u < units;) {
      const int64_t end = units - u > every ? u + every : units;
      if (fetch) {
        __builtin_prefetch(fetch, 0, 2);
        __builtin_prefetch(fetch + 64, 0, 2);
        fetch += 128;
      }
      for (; u < end; u++, panel += DIRECT_PANEL) {
        const __m512bh w0 = (__m512bh)_mm512_loadu_si512(panel);
        const __m512bh w1 = vectors > 1 ? (__m512bh)_mm512_loadu_si512(panel + DIRECT_LANES) : w0;
        UNROLL for (int i = 0; i < rows; i++) {
          const __m512bh x = (__m512bh)_mm512_set1_epi32((int)row[i][u]);
          sum[i][0] = _mm512_dpbf16_ps(sum[i][0], x, w0);
          if (vectors > 1) sum[i][1] = _mm512_dpbf16_ps(sum[i][1], x, w1);
        }
      }
    }
  }
  b->fetch = fetch;
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_storeu_ps(b->sums + i * b->step + j * DIRECT_LANES, sum[i][j]);
}

#include "backends/cpu/conv/direct_blocks.h"

// ---- after the sums ---------------------------------------------------------------------------

INLINE __m512 widened(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

// As cpu_to_bf16, for what the CPU's own conversion takes for zeros.
INLINE __m256i to_bf16(__m512 x) {
  const __m512i b = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
  const __m512i y = _mm512_add_epi32(_mm512_add_epi32(b, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(
      _mm512_srli_epi32(_mm512_mask_or_epi32(y, nan, b, _mm512_set1_epi32(0x00400000)), 16));
}

INLINE __m512 finished(__m512 x, const bool adds, __m256i add, const bool relu) {
  if (adds) x = _mm512_add_ps(x, widened(add));
  const __mmask16 stays = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLT_UQ);
  return relu ? _mm512_maskz_mov_ps(stays, x) : x;
}

INLINE void finish(const direct_finish_t* f, const bool whole, const bool adds, const bool relu) {
  enum { SUBNORMAL = 0x20 };
  const __mmask32 mask = whole ? 0xffffffff : (__mmask32)((1ull << f->columns) - 1);
  for (int64_t i = 0; i < f->rows; i++) {
    const float* sums = f->sums + i * DIRECT_PANEL;
    uint16_t* out = (uint16_t*)f->out + f->at[i];
    __m512i add = _mm512_setzero_si512();
    if (adds)
      add = whole ? _mm512_loadu_si512((const uint16_t*)f->add + f->at[i])
                  : _mm512_maskz_loadu_epi16(mask, (const uint16_t*)f->add + f->at[i]);
    const __m512 low = finished(_mm512_loadu_ps(sums), adds, _mm512_castsi512_si256(add), relu);
    const __m512 high = finished(_mm512_loadu_ps(sums + DIRECT_LANES), adds,
                                 _mm512_extracti64x4_epi64(add, 1), relu);
    __m512i y = (__m512i)_mm512_cvtne2ps_pbh(high, low);
    if (__builtin_expect(
            _mm512_fpclass_ps_mask(low, SUBNORMAL) | _mm512_fpclass_ps_mask(high, SUBNORMAL), 0))
      y = _mm512_inserti64x4(_mm512_castsi256_si512(to_bf16(low)), to_bf16(high), 1);
    if (whole)
      _mm512_storeu_si512(out, y);
    else
      _mm512_mask_storeu_epi16(out, mask, y);
  }
}

TARGET static void run_finish(const direct_finish_t* f) {
  const int kind = (f->columns == DIRECT_PANEL) * 4 + (f->add != NULL) * 2 + f->relu;
  switch (kind) {
    case 0:
      finish(f, false, false, false);
      break;
    case 1:
      finish(f, false, false, true);
      break;
    case 2:
      finish(f, false, true, false);
      break;
    case 3:
      finish(f, false, true, true);
      break;
    case 4:
      finish(f, true, false, false);
      break;
    case 5:
      finish(f, true, false, true);
      break;
    case 6:
      finish(f, true, true, false);
      break;
    default:
      finish(f, true, true, true);
      break;
  }
}

const direct_way_t cpu_direct_pairs = {.pairs = true, .block = run_block, .finish = run_finish};
#else
const direct_way_t cpu_direct_pairs = {0};
#endif
