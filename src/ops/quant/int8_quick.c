// A shorter way to the bytes of int8 layers (int8.h), for CPUs with AVX-512.
#include "ops/quant/int8_quick.h"

#include <math.h>

#include "ops/quant/int8_wide.h"

bool int8_quick_slack(double halves, double max, float* out_sure) {
  const double slack = halves * 0x1p-24;
  *out_sure = (float)(0.5 - slack);
  return slack < 0x1p-7 && max < 0x1p30;
}

// Whether 1 / scale, and what is multiplied by it, are normal numbers.
static bool is_usual(float scale) { return scale > 0x1p-100F && scale < 0x1p100F; }

static uint8_t byte_of(float limit, const assay_int8_t* q, uint8_t turn) {
  uint8_t b;
  assay_int8_quantize(&limit, 1, q->scale, q->zero, q->type, &b);
  return b ^ turn;
}

// In half units of the last place, with |sum * factor + shift| = w <= 512 steps, p the product and
// s the shift: the definition rounds p once and w twice; here the factor (so p), shift and zero
// point, and the result are rounded once each: 2 p + 2 w + (s + 255) + (w + 255), and p <= w + s.
bool int8_quick_numbers(const assay_int8_t* q, int64_t n, float* factor, float* shift,
                        int8_quick_t* out) {
  const uint8_t turn = q->type == ASSAY_TYPE_INT8 ? 128 : 0;
  double max_factor = 0, max_shift = 0;
  if (!q->simple || q->other >= 0 || !q->quantizes || q->sources[0].kind != ASSAY_INT8_RESULT ||
      q->scales_x || !is_usual(q->scale) || n < 1)
    return false;
  for (int64_t i = 0; i < n; i++) {
    const int64_t c = q->n_factor > 1 ? i : 0;
    const double f = (double)q->factor[c] / (double)q->scale;
    const double s = (double)q->shift[c] / (double)q->scale;
    factor[i] = (float)f;
    shift[i] = (float)(s + (double)q->zero + turn);
    max_factor = fmax(max_factor, fabs(f));
    max_shift = fmax(max_shift, fabs(s));
  }
  *out = (int8_quick_t){.factor = factor,
                        .shift = shift,
                        .min = byte_of(q->low, q, turn),
                        .max = byte_of(q->high, q, turn),
                        .turn = turn};
  return int8_quick_slack(3200 + 3.2 * max_shift, max_factor * 0x1p31 + max_shift + 512,
                          &out->sure);
}

bool int8_quick_make(const assay_int8_t* q, int64_t n, float* factor, float* shift,
                     int8_quick_t* out) {
  return int8_has_wide() && int8_quick_numbers(q, n, factor, shift, out);
}

#if defined(__x86_64__)
enum { LANES = 16, PIECE = 4 * LANES };

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

// What a run of pieces shares.
typedef struct numbers {
  __m512 sure;
  __m512i min, max, turn;
} numbers_t;

INT8_QUICK_INLINE numbers_t numbers_of(const int8_quick_t* q) {
  return (numbers_t){.sure = _mm512_set1_ps(q->sure),
                     .min = _mm512_set1_epi8((char)q->min),
                     .max = _mm512_set1_epi8((char)q->max),
                     .turn = _mm512_set1_epi8((char)q->turn)};
}

INT8_QUICK_INLINE __m512 in_steps(bool whole, const int8_quick_t* q, const int32_t* sums,
                                  int64_t at, int64_t n, int j) {
  const int64_t i = at + j * LANES, left = n - j * LANES;
  const __mmask16 m =
      whole || left >= LANES ? 0xffff : (__mmask16)(left > 0 ? (1U << left) - 1 : 0);
  const __m512i x =
      whole ? _mm512_loadu_si512(sums + j * LANES) : _mm512_maskz_loadu_epi32(m, sums + j * LANES);
  const __m512 f = whole ? _mm512_loadu_ps(q->factor + i) : _mm512_maskz_loadu_ps(m, q->factor + i);
  const __m512 s = whole ? _mm512_loadu_ps(q->shift + i) : _mm512_maskz_loadu_ps(m, q->shift + i);
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(x), f, s);
}

// n <= PIECE sums of channels from `at` on; `whole`: n is PIECE.
INT8_QUICK_INLINE bool piece(bool whole, const int8_quick_t* q, const numbers_t* c,
                             const int32_t* sums, int64_t at, int64_t n, uint8_t* out) {
  const __m512 v[4] = {in_steps(whole, q, sums, at, n, 0), in_steps(whole, q, sums, at, n, 1),
                       in_steps(whole, q, sums, at, n, 2), in_steps(whole, q, sums, at, n, 3)};
  __m512i bytes;
  if (!int8_quick_bytes(v, c->sure, &bytes)) return false;
  bytes = _mm512_min_epu8(_mm512_max_epu8(bytes, c->min), c->max);
  bytes = _mm512_xor_si512(bytes, c->turn);
  if (whole)
    _mm512_storeu_si512(out, bytes);
  else
    _mm512_mask_storeu_epi8(out, ((__mmask64)1 << n) - 1, bytes);
  return true;
}

TARGET int64_t int8_quick_run(const int8_quick_t* q, const int32_t* sums, int64_t n, void* out) {
  const numbers_t c = numbers_of(q);
  uint8_t* to = out;
  int64_t i = 0;
  for (; n - i >= PIECE; i += PIECE)
    if (!piece(true, q, &c, sums + i, i, PIECE, to + i)) return i;
  if (i < n && piece(false, q, &c, sums + i, i, n - i, to + i)) i = n;
  return i;
}

TARGET uint32_t int8_quick_rows(const int8_quick_t* q, const int32_t* sums, int64_t step, int rows,
                                int64_t n, uint8_t* out, int64_t out_step) {
  const numbers_t c = numbers_of(q);
  uint32_t unsure = 0;
  for (int r = 0; r < rows; r++, sums += step, out += out_step) {
    const bool sure =
        n == PIECE ? piece(true, q, &c, sums, 0, n, out) : piece(false, q, &c, sums, 0, n, out);
    unsure |= (uint32_t)!sure << r;
  }
  return unsure;
}
#else
int64_t int8_quick_run(const int8_quick_t* q, const int32_t* sums, int64_t n, void* out) {
  return (void)q, (void)sums, (void)n, (void)out, 0;
}
uint32_t int8_quick_rows(const int8_quick_t* q, const int32_t* sums, int64_t step, int rows,
                         int64_t n, uint8_t* out, int64_t out_step) {
  (void)q, (void)sums, (void)step, (void)n, (void)out, (void)out_step;
  return (uint32_t)(((uint64_t)1 << rows) - 1);
}
#endif
