// Rows of int8_norm.h by AVX512-VNNI, with the bits of int8_norm.c.
#include "backends/cpu/int8/int8_block.h"
#include "backends/cpu/int8/int8_norm.h"

bool int8_norm_has_wide(void) { return int8_has_vnni(); }

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define INLINE TARGET __attribute__((always_inline)) static inline

enum { LANES = 16, NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

INLINE __mmask16 first_lanes(int64_t n) {
  return n >= LANES ? (__mmask16)0xffff : (__mmask16)((1U << n) - 1);
}

INLINE __m512 within(__m512 v, __m512 low, __m512 high) {
  return _mm512_min_ps(_mm512_max_ps(v, low), high);
}

INLINE __m512 rounded(__m512 v) { return _mm512_roundscale_ps(v, NEAREST); }

INLINE __m512i numbers(bool is_signed, __m128i bytes) {
  return is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

// ---- sums ---------------------------------------------------------------------------------------

// Sum and sum of squares of a row's bytes as unsigned ones. u u is u (u - 128) + 128 u.
TARGET static void sums_of(const int8_norm_t* k, const uint8_t* x, int32_t* sum, int32_t* squares) {
  const __m512i turned = _mm512_set1_epi8((char)-128), ones = _mm512_set1_epi8(1);
  const bool is_signed = k->x_type == ASSAY_TYPE_INT8;
  __m512i s = _mm512_setzero_si512(), q = s;
  for (int64_t c = 0; c < k->size; c += 64) {
    const int64_t n = k->size - c;
    const __mmask64 m = n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
    __m512i u = _mm512_maskz_loadu_epi8(m, x + c);
    if (is_signed) u = _mm512_xor_si512(u, _mm512_maskz_mov_epi8(m, turned));
    s = _mm512_dpbusd_epi32(s, u, ones);
    q = _mm512_dpbusd_epi32(q, u, _mm512_xor_si512(u, turned));
  }
  *sum = _mm512_reduce_add_epi32(s);
  *squares = _mm512_reduce_add_epi32(q) + 128 * *sum;
}

// ---- what rows make of their sums ---------------------------------------------------------------

typedef struct rows {
  float factor[INT8_NORM_ROWS], shift[INT8_NORM_ROWS];
  int32_t sum[INT8_NORM_ROWS], squares[INT8_NORM_ROWS];
  bool odd;  // some of them are
} rows_t;

// The bytes that a quantizer makes, as integers by which tables are read.
INLINE __m512i keys_of(const assay_norm_step_t* s, __m512 x) {
  const bool is_signed = s->type == ASSAY_TYPE_INT8;
  const float min = is_signed ? -128 : 0, max = is_signed ? 127 : 255;
  const __m512 low = _mm512_set1_ps(min - s->zero), high = _mm512_set1_ps(max - s->zero);
  const __m512 steps = within(_mm512_div_ps(x, _mm512_set1_ps(s->scale)), low, high);
  const __m512i q =
      _mm512_add_epi32(_mm512_cvt_roundps_epi32(steps, NEAREST), _mm512_set1_epi32((int)s->zero));
  return _mm512_and_si512(q, _mm512_set1_epi32(255));
}

INLINE __m512i all_keys(const int8_norm_t* k, __m512 variance) {
  if (k->of_variance.is_there) return keys_of(&k->of_variance, variance);
  const __m512 sum = _mm512_add_ps(variance, _mm512_set1_ps(k->epsilon));
  return k->of_sum.is_there ? keys_of(&k->of_sum, sum) : keys_of(&k->of_root, _mm512_sqrt_ps(sum));
}

INLINE __m256 half_of_variances(const int8_norm_t* k, __m512d sum, __m512d squares) {
  const __m512d n = _mm512_set1_pd((double)k->size);
  const __m512d exact = _mm512_sub_pd(_mm512_mul_round_pd(n, squares, NEAREST),
                                      _mm512_mul_round_pd(sum, sum, NEAREST));
  return _mm512_cvtpd_ps(_mm512_mul_pd(exact, _mm512_set1_pd(k->variance_scale)));
}

INLINE __m256 half_of_shifts(const int8_norm_t* k, __m512d sum, __m256i keys) {
  const double zero = (double)k->x_zero + (k->x_type == ASSAY_TYPE_INT8 ? 128 : 0);
  const __m512d apart = _mm512_sub_pd(sum, _mm512_set1_pd((double)k->size * zero));
  const __m512d mean = _mm512_mul_pd(apart, _mm512_set1_pd(k->mean_scale));
  const __m512d unit = _mm512_i32gather_pd(keys, k->unit, 8);
  return _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_sub_pd(_mm512_setzero_pd(), mean), unit));
}

INLINE __m512 joined(__m256 low, __m256 high) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

TARGET static void prepare(const int8_norm_t* k, rows_t* r) {
  const __m512i sum = _mm512_loadu_si512(r->sum), squares = _mm512_loadu_si512(r->squares);
  const __m512d s[2] = {_mm512_cvtepi32_pd(_mm512_castsi512_si256(sum)),
                        _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(sum, 1))};
  const __m512d q[2] = {_mm512_cvtepi32_pd(_mm512_castsi512_si256(squares)),
                        _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(squares, 1))};
  const __m512 variance =
      joined(half_of_variances(k, s[0], q[0]), half_of_variances(k, s[1], q[1]));
  const __m512i keys = all_keys(k, variance);
  const __m512 shift = joined(half_of_shifts(k, s[0], _mm512_castsi512_si256(keys)),
                              half_of_shifts(k, s[1], _mm512_extracti64x4_epi64(keys, 1)));
  const __m512 factor = _mm512_i32gather_ps(keys, k->factor, 4);
  _mm512_storeu_ps(r->factor, factor);
  _mm512_storeu_ps(r->shift, shift);
  // Of odd ones alone it is 0.
  r->odd = _mm512_cmp_ps_mask(factor, _mm512_setzero_ps(), _CMP_EQ_OQ) != 0;
}

// ---- rows ---------------------------------------------------------------------------------------

// n_stages is a constant where this is inlined.
INLINE void quotients(int n_stages, const int8_norm_t* k, const uint8_t* x, float factor,
                      float shift, uint8_t* y) {
  const assay_norm_step_t* last = n_stages ? &k->stages[n_stages - 1].step : &k->of_quotient;
  const bool is_signed = k->x_type == ASSAY_TYPE_INT8;
  const __m512i zero = _mm512_set1_epi32((int)k->x_zero), end = _mm512_set1_epi32((int)last->zero);
  const __m512 f = _mm512_set1_ps(factor), s = _mm512_set1_ps(shift);
  const __m512 low = _mm512_set1_ps(k->low), high = _mm512_set1_ps(k->high);
  for (int64_t c = 0; c < k->size; c += LANES) {
    const __mmask16 m = first_lanes(k->size - c);
    const __m512i bytes = numbers(is_signed, _mm_maskz_loadu_epi8(m, x + c));
    __m512 v = _mm512_cvtepi32_ps(_mm512_sub_epi32(bytes, zero));
    v = within(_mm512_fmadd_ps(v, f, s), low, high);
    for (int i = 0; i < n_stages; i++) {
      const int8_norm_stage_t* t = &k->stages[i];
      v = _mm512_fmadd_ps(rounded(v), _mm512_loadu_ps(t->factor + c),
                          _mm512_loadu_ps(t->shift + c));
      v = within(v, _mm512_set1_ps(t->low), _mm512_set1_ps(t->high));
    }
    const __m512i q = _mm512_add_epi32(_mm512_cvt_roundps_epi32(v, NEAREST), end);
    _mm_mask_storeu_epi8(y + c, m, _mm512_cvtepi32_epi8(q));
  }
}

INLINE void all_rows(int n_stages, const int8_norm_t* k, const uint8_t* x, int64_t rows,
                     const rows_t* r, uint8_t* y) {
  for (int64_t i = 0; i < rows; i++)
    quotients(n_stages, k, x + i * k->size, r->factor[i], r->shift[i], y + i * k->size);
}

TARGET static void plain_rows(const int8_norm_t* k, const uint8_t* x, int64_t rows, const rows_t* r,
                              uint8_t* y) {
  switch (k->n_stages) {
    case 0:
      all_rows(0, k, x, rows, r, y);
      break;
    case 1:
      all_rows(1, k, x, rows, r, y);
      break;
    case 2:
      all_rows(2, k, x, rows, r, y);
      break;
    default:
      all_rows(ASSAY_QUANTIZED_NORM_STAGES, k, x, rows, r, y);
  }
}

// Rows that are divided by no positive number, and channels that no fused operation serves.
static void mend(const int8_norm_t* k, const uint8_t* x, int64_t rows, const rows_t* r,
                 uint8_t* y) {
  for (int64_t i = 0; i < rows; i++, x += k->size, y += k->size) {
    const int8_norm_row_t row = int8_norm_row_of(k, r->sum[i], r->squares[i]);
    for (int64_t c = 0; row.odd && c < k->size; c++) y[c] = int8_norm_exactly(k, &row, x[c], c, 0);
    for (int64_t j = 0; !row.odd && j < k->n_odd_channels; j++) {
      const int64_t c = k->odd_channels[j];
      y[c] = int8_norm_exactly(k, &row, x[c], c, 1);
    }
  }
}

void int8_norm_rows_wide(const int8_norm_t* k, const uint8_t* x, int64_t rows, uint8_t* y) {
  rows_t r = {.odd = false};
  for (int64_t i = 0; i < rows; i += INT8_NORM_ROWS) {
    const int64_t n = rows - i < INT8_NORM_ROWS ? rows - i : INT8_NORM_ROWS;
    const uint8_t* from = x + i * k->size;
    for (int64_t j = 0; j < n; j++) sums_of(k, from + j * k->size, &r.sum[j], &r.squares[j]);
    prepare(k, &r);
    plain_rows(k, from, n, &r, y + i * k->size);
    if (r.odd || k->n_odd_channels) mend(k, from, n, &r, y + i * k->size);
  }
}

TARGET bool int8_norm_gives_wide(const int8_norm_stage_t* s, float factor, float shift,
                                 const uint8_t want[256]) {
  const bool is_signed = s->before.type == ASSAY_TYPE_INT8;
  const __m512 low = _mm512_set1_ps(s->low), high = _mm512_set1_ps(s->high);
  const __m512i zero = _mm512_set1_epi32((int)s->before.zero);
  const __m512i end = _mm512_set1_epi32((int)s->step.zero);
  __m512i x = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (int i = 0; i < 256; i += LANES, x = _mm512_add_epi32(x, _mm512_set1_epi32(LANES))) {
    const __m512i number = numbers(is_signed, _mm512_cvtepi32_epi8(x));
    const __m512 v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(number, zero)),
                                     _mm512_set1_ps(factor), _mm512_set1_ps(shift));
    const __m512i q =
        _mm512_add_epi32(_mm512_cvt_roundps_epi32(within(v, low, high), NEAREST), end);
    const __m128i bytes = _mm_loadu_si128((const __m128i*)(const void*)(want + i));
    if (_mm_cmpneq_epi8_mask(_mm512_cvtepi32_epi8(q), bytes)) return false;
  }
  return true;
}
#else
void int8_norm_rows_wide(const int8_norm_t* k, const uint8_t* x, int64_t rows, uint8_t* y) {
  (void)k, (void)x, (void)rows, (void)y;
}
bool int8_norm_gives_wide(const int8_norm_stage_t* s, float factor, float shift,
                          const uint8_t want[256]) {
  (void)s, (void)factor, (void)shift, (void)want;
  return false;
}
#endif
