// By fused multiply-adds of float32, to which 16-bit inputs are widened.
#include <stddef.h>

#include "backends/cpu/conv/direct_kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma,prfchw")))
#define INLINE static inline TARGET __attribute__((always_inline))
// Vectors in arrays stay in registers only where the loops over them are gone.
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 14")
#endif

// ---- sums --------------------------------------------------------------------------------------

// direct_finish_t where the sums are still in registers, of outputs in float32.
INLINE void finish_sums(const int rows, const int vectors, const direct_finish_t* f,
                        __m512 sum[DIRECT_ROWS][2]) {
  const uint32_t mask = 0xffffffffu >> (DIRECT_PANEL - f->columns);
  if (f->add) {
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
        _mm512_add_ps(sum[i][j],
                      _mm512_maskz_loadu_ps((__mmask16)(mask >> j * DIRECT_LANES),
                                            (const float*)f->add + f->at[i] + j * DIRECT_LANES));
  }
  if (f->relu) {
    const __m512 zero = _mm512_setzero_ps();
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
        _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(sum[i][j], zero, _CMP_NLT_UQ), sum[i][j]);
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_mask_storeu_ps((float*)f->out + f->at[i] + j * DIRECT_LANES,
                            (__mmask16)(mask >> j * DIRECT_LANES), sum[i][j]);
}

// What is written and read next: two lines of each place where elements are of 4 bytes.
INLINE void bring_near(const int vectors, const direct_block_t* b) {
  const bool second = vectors > 1 && b->element > 2;
  for (int i = 0; i < b->rows_ahead; i++) {
    const int64_t at = b->ahead[i] * b->element;
    if (b->write_ahead) __builtin_prefetch(b->write_ahead + at, 1);
    if (b->write_ahead && second) __builtin_prefetch(b->write_ahead + at + 64, 1);
    if (b->read_ahead) __builtin_prefetch(b->read_ahead + at);
    if (b->read_ahead && second) __builtin_prefetch(b->read_ahead + at + 64);
  }
}

// `rows` and `vectors` are known when this is compiled: the sums stay in registers.
INLINE void block(const int rows, const int vectors, direct_block_t* b) {
  __m512 sum[DIRECT_ROWS][2];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
      b->start ? _mm512_loadu_ps(b->start + i * b->start_step + j * DIRECT_LANES)
               : _mm512_setzero_ps();
  const int64_t units = b->units;
  bring_near(vectors, b);
  const char* fetch = b->fetch;
  const int64_t every = fetch ? b->fetch_every : units;
  for (int t = 0; t < b->n_taps; t++) {
    const uint32_t* const* at = b->at + (ptrdiff_t)t * DIRECT_ROWS;
    const float* panel = (const float*)b->panel + b->taps[t] * units * DIRECT_PANEL;
    const float* row[DIRECT_ROWS];
    UNROLL for (int i = 0; i < rows; i++) row[i] = (const float*)at[i];
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
    finish_sums(rows, vectors, b->finish, sum);
    return;
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_storeu_ps(b->sums + i * b->step + j * DIRECT_LANES, sum[i][j]);
}

#include "backends/cpu/conv/direct_blocks.h"

// ---- after the sums ---------------------------------------------------------------------------

INLINE __m512 widened(assay_type_t type, __m256i x) {
  return type == ASSAY_TYPE_FLOAT16
             ? _mm512_cvtph_ps(x)
             : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

// The upper halves are cpu_to_bf16 of what is not a NaN.
INLINE __m512i rounded(__m512 x) {
  const __m512i b = _mm512_castps_si512(x), y = _mm512_add_epi32(b, _mm512_set1_epi32(0x7fff));
  const __mmask16 odd = _mm512_test_epi32_mask(b, _mm512_set1_epi32(0x10000));
  return _mm512_mask_add_epi32(y, odd, y, _mm512_set1_epi32(1));
}
INLINE __m512i with_nan(__m512 x, __m512i y) {
  return _mm512_mask_or_epi32(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_castps_si512(x),
                              _mm512_set1_epi32(0x00400000));
}

INLINE __m512i narrowed(assay_type_t type, __m512 low, __m512 high) {
  if (type == ASSAY_TYPE_FLOAT16)
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm512_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)),
        _mm512_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), 1);
  // The odd elements of both, one after the other.
  const __m512i upper = _mm512_add_epi16(
      _mm512_set1_epi32(0x00030001),
      _mm512_mullo_epi32(_mm512_set1_epi32(0x00040004),
                         _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)));
  __m512i x = rounded(low), y = rounded(high);
  if (__builtin_expect(_mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q), 0))
    x = with_nan(low, x), y = with_nan(high, y);
  return _mm512_permutex2var_epi16(x, upper, y);
}

INLINE void load_pair(assay_type_t type, const void* from, int64_t at, __mmask32 mask,
                      __m512* out) {
  if (type == ASSAY_TYPE_FLOAT) {
    out[0] = _mm512_maskz_loadu_ps((__mmask16)mask, (const float*)from + at);
    out[1] = _mm512_maskz_loadu_ps((__mmask16)(mask >> DIRECT_LANES),
                                   (const float*)from + at + DIRECT_LANES);
    return;
  }
  const __m512i x = _mm512_maskz_loadu_epi16(mask, (const uint16_t*)from + at);
  out[0] = widened(type, _mm512_castsi512_si256(x));
  out[1] = widened(type, _mm512_extracti64x4_epi64(x, 1));
}

INLINE void store_pair(assay_type_t type, const __m512* x, void* to, int64_t at, __mmask32 mask) {
  if (type == ASSAY_TYPE_FLOAT) {
    _mm512_mask_storeu_ps((float*)to + at, (__mmask16)mask, x[0]);
    _mm512_mask_storeu_ps((float*)to + at + DIRECT_LANES, (__mmask16)(mask >> DIRECT_LANES), x[1]);
    return;
  }
  _mm512_mask_storeu_epi16((uint16_t*)to + at, mask, narrowed(type, x[0], x[1]));
}

// All but f are constants where this is inlined.
INLINE void finish(assay_type_t type, const bool adds, const bool relu, const direct_finish_t* f) {
  const __mmask32 mask = 0xffffffffu >> (DIRECT_PANEL - f->columns);
  for (int64_t i = 0; i < f->rows; i++) {
    const float* sums = f->sums + i * DIRECT_PANEL;
    __m512 x[2] = {_mm512_loadu_ps(sums), _mm512_loadu_ps(sums + DIRECT_LANES)}, add[2];
    if (adds) {
      load_pair(type, f->add, f->at[i], mask, add);
      x[0] = _mm512_add_ps(x[0], add[0]);
      x[1] = _mm512_add_ps(x[1], add[1]);
    }
    if (relu) {  // the second operand where one is NaN, or both are zeros
      x[0] = _mm512_max_ps(_mm512_setzero_ps(), x[0]);
      x[1] = _mm512_max_ps(_mm512_setzero_ps(), x[1]);
    }
    store_pair(type, x, f->out, f->at[i], mask);
  }
}

typedef void finish_t(const direct_finish_t* f);
#define FINISH(name, type)                                                                \
  TARGET static void name(const direct_finish_t* f) { finish(type, false, false, f); }    \
  TARGET static void name##_r(const direct_finish_t* f) { finish(type, false, true, f); } \
  TARGET static void name##_a(const direct_finish_t* f) { finish(type, true, false, f); } \
  TARGET static void name##_ar(const direct_finish_t* f) { finish(type, true, true, f); }
FINISH(to_float, ASSAY_TYPE_FLOAT)
FINISH(to_fp16, ASSAY_TYPE_FLOAT16)
FINISH(to_bf16, ASSAY_TYPE_BFLOAT16)

static void run_finish(const direct_finish_t* f) {
  static finish_t* const all[3][2][2] = {{{to_float, to_float_r}, {to_float_a, to_float_ar}},
                                         {{to_fp16, to_fp16_r}, {to_fp16_a, to_fp16_ar}},
                                         {{to_bf16, to_bf16_r}, {to_bf16_a, to_bf16_ar}}};
  const int type = f->type == ASSAY_TYPE_FLOAT ? 0 : f->type == ASSAY_TYPE_FLOAT16 ? 1 : 2;
  all[type][f->add != NULL][f->relu](f);
}

// ---- widening -----------------------------------------------------------------------------------

INLINE void widen(assay_type_t type, const uint16_t* from, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + DIRECT_LANES <= n; i += DIRECT_LANES)
    _mm512_storeu_ps(to + i,
                     widened(type, _mm256_loadu_si256((const __m256i*)(const void*)(from + i))));
  if (i == n) return;
  const __mmask16 mask = (__mmask16)((1u << (n - i)) - 1);
  _mm512_mask_storeu_ps(to + i, mask, widened(type, _mm256_maskz_loadu_epi16(mask, from + i)));
}

TARGET static void run_widen(assay_type_t type, const uint16_t* from, int64_t n, float* to) {
  if (type == ASSAY_TYPE_FLOAT16)
    widen(ASSAY_TYPE_FLOAT16, from, n, to);
  else
    widen(ASSAY_TYPE_BFLOAT16, from, n, to);
}

const direct_way_t cpu_direct_floats = {
    .block = run_block, .finish = run_finish, .finishes = true, .widen = run_widen};
#else
const direct_way_t cpu_direct_floats = {0};
#endif
