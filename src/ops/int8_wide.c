#include "ops/int8_wide.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define INLINE TARGET __attribute__((always_inline)) static inline

enum { LANES = 16 };

bool int8_has_wide(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

// ---- operands ----------------------------------------------------------------------------------

typedef enum form { SUMS, BYTES, FLOATS, NUMBER } form_t;

// Signed bytes are those of 128 more with the highest bit turned, and so are their zero points.
typedef struct source {
  const int8_wide_operand_t* o;
  __m512 zero, scale;
  __m128i turn;
} source_t;

INLINE source_t source_of(const int8_wide_operand_t* o) {
  return (source_t){.o = o,
                    .zero = _mm512_set1_ps(o->zero + (o->is_signed ? 128.0F : 0.0F)),
                    .scale = _mm512_set1_ps(o->scale),
                    .turn = _mm_set1_epi8((char)(o->is_signed ? -128 : 0))};
}

static form_t form_of(const int8_wide_operand_t* o) {
  return o->sums ? SUMS : o->bytes ? BYTES : o->floats ? FLOATS : NUMBER;
}

// No multiplication here is fused with what follows: each operation of int8.h rounds.
INLINE __m512 product(__m512 a, __m512 b) {
  return _mm512_mul_round_ps(a, b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE __m512 load(form_t form, const source_t* s, int64_t i, __mmask16 m) {
  const int8_wide_operand_t* o = s->o;
  if (form == SUMS) {
    const __m512 x = _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(m, o->sums + i));
    return _mm512_add_ps(product(x, _mm512_maskz_loadu_ps(m, o->factor + i)),
                         _mm512_maskz_loadu_ps(m, o->shift + i));
  }
  if (form == BYTES) {
    const __m128i x = _mm_xor_si128(_mm_maskz_loadu_epi8(m, o->bytes + i), s->turn);
    return product(_mm512_sub_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(x)), s->zero), s->scale);
  }
  return form == FLOATS ? _mm512_maskz_loadu_ps(m, o->floats + i) : _mm512_set1_ps(o->number);
}

INLINE __m512 combined(assay_int8_operation_t operation, __m512 a, __m512 b) {
  switch (operation) {
    case ASSAY_INT8_ADD:
      return _mm512_add_ps(a, b);
    case ASSAY_INT8_SUB:
      return _mm512_sub_ps(a, b);
    case ASSAY_INT8_SUB_FROM:
      return _mm512_sub_ps(b, a);
    default:
      return product(a, b);
  }
}

// ---- results -----------------------------------------------------------------------------------

typedef struct output {
  __m512 low, high, scale, inverse;
  __m512i zero;
  __m128i turn;
  bool quick;  // the inverse is a normal number, and so are products with it
} output_t;

INLINE __m512 within(__m512 x, __m512 low, __m512 high) {
  return _mm512_min_ps(high, _mm512_max_ps(low, x));  // NaN, the second operand, stays
}

INLINE __m512i rounded(__m512 v) {
  const __m512 most = _mm512_set1_ps(512);
  const __m512 x = within(v, _mm512_sub_ps(_mm512_setzero_ps(), most), most);
  return _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// By a multiplication, which is some times faster than a division. The product differs from the
// quotient by at most three half units of 2^-23 of it, so by less than 1e-4 within 512 steps: where
// it is not as near to the middle between two integers as that, both round to the same one. Beyond
// 512 steps all zero points leave the type.
INLINE __m128i quantized(__m512 y, const output_t* o) {
  const __m512 x = within(y, o->low, o->high), half = _mm512_set1_ps(0.4999F);
  __m512 v = product(x, o->inverse);
  __m512i k = rounded(v);
  const __m512 off = _mm512_abs_ps(_mm512_sub_ps(v, _mm512_cvtepi32_ps(k)));
  const __mmask16 beyond = _mm512_cmp_ps_mask(_mm512_abs_ps(v), _mm512_set1_ps(512), _CMP_NLT_UQ);
  const __mmask16 unsure = _kandn_mask16(beyond, _mm512_cmp_ps_mask(off, half, _CMP_NLE_UQ));
  if (!o->quick || unsure) {
    v = _mm512_div_ps(x, o->scale);
    k = rounded(v);
  }
  k = _mm512_max_epi32(_mm512_add_epi32(k, o->zero), _mm512_setzero_si512());
  __m128i q = _mm_xor_si128(_mm512_cvtusepi32_epi8(k), o->turn);
  // NaN becomes 0.
  return _mm_mask_mov_epi8(q, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), _mm_setzero_si128());
}

INLINE void run(form_t a_form, form_t b_form, const int8_wide_t* w, int64_t n, void* out) {
  const source_t a = source_of(&w->a), b = source_of(&w->b);
  const bool is_signed = w->type == ASSAY_TYPE_INT8, floats = w->type == ASSAY_TYPE_FLOAT;
  const output_t o = {.low = _mm512_set1_ps(w->low),
                      .high = _mm512_set1_ps(w->high),
                      .scale = _mm512_set1_ps(w->scale),
                      .inverse = _mm512_set1_ps(1 / w->scale),
                      .zero = _mm512_set1_epi32((int)w->zero + (is_signed ? 128 : 0)),
                      .turn = _mm_set1_epi8((char)(is_signed ? -128 : 0)),
                      .quick = w->scale > 0x1p-100F && w->scale < 0x1p100F};
  for (int64_t i = 0; i < n; i += LANES) {
    const __mmask16 m = n - i < LANES ? (__mmask16)((1U << (n - i)) - 1) : (__mmask16)0xffff;
    __m512 y = load(a_form, &a, i, m);
    if (w->has_b) y = combined(w->operation, y, load(b_form, &b, i, m));
    if (floats)
      _mm512_mask_storeu_ps((float*)out + i, m, within(y, o.low, o.high));
    else
      _mm_mask_storeu_epi8((uint8_t*)out + i, m, quantized(y, &o));
  }
}

#define FORM(name, a, b) \
  TARGET static void name(const int8_wide_t* w, int64_t n, void* out) { run(a, b, w, n, out); }
FORM(sums_bytes, SUMS, BYTES)
FORM(sums_floats, SUMS, FLOATS)
FORM(sums_number, SUMS, NUMBER)
FORM(bytes_bytes, BYTES, BYTES)
FORM(bytes_floats, BYTES, FLOATS)
FORM(bytes_number, BYTES, NUMBER)
FORM(floats_bytes, FLOATS, BYTES)
FORM(floats_floats, FLOATS, FLOATS)
FORM(floats_number, FLOATS, NUMBER)

void int8_wide_run(const int8_wide_t* w, int64_t n, void* out) {
  typedef void run_t(const int8_wide_t* w, int64_t n, void* out);
  static run_t* const runs[3][3] = {{sums_bytes, sums_floats, sums_number},
                                    {bytes_bytes, bytes_floats, bytes_number},
                                    {floats_bytes, floats_floats, floats_number}};
  runs[form_of(&w->a)][form_of(&w->b) - BYTES](w, n, out);
}

// ---- tables ------------------------------------------------------------------------------------

bool int8_has_wide_table(void) { return int8_has_wide() && __builtin_cpu_supports("avx512vbmi"); }

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) void int8_wide_table(
    const uint8_t table[256], const uint8_t* x, int64_t n, uint8_t* out) {
  const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
  const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
  for (int64_t i = 0; i < n; i += 64) {
    const __mmask64 m = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
    const __m512i at = _mm512_maskz_loadu_epi8(m, x + i);
    const __m512i lower = _mm512_permutex2var_epi8(t0, at, t1);
    const __m512i upper = _mm512_permutex2var_epi8(t2, at, t3);
    _mm512_mask_storeu_epi8(out + i, m,
                            _mm512_mask_mov_epi8(lower, _mm512_movepi8_mask(at), upper));
  }
}
#else
bool int8_has_wide(void) { return false; }
void int8_wide_run(const int8_wide_t* w, int64_t n, void* out) { (void)w, (void)n, (void)out; }
bool int8_has_wide_table(void) { return false; }
void int8_wide_table(const uint8_t table[256], const uint8_t* x, int64_t n, uint8_t* out) {
  for (int64_t i = 0; i < n; i++) out[i] = table[x[i]];
}
#endif
