// The epilogue of simple int8 layers (int8.h) by AVX-512, and tables of bytes.
#include "ops/quant/int8_wide.h"

#include "ops/quant/int8_quick.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define INLINE TARGET __attribute__((always_inline)) static inline

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 4")
#endif

enum { LANES = 16 };

bool int8_has_wide(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

// ---- operands ----------------------------------------------------------------------------------

typedef enum form { SUMS, BYTES, FLOATS, NUMBER } form_t;

typedef struct source {
  const int8_wide_operand_t* o;
  __m512i zero;
  __m512 scale, number;
} source_t;

INLINE source_t source_of(const int8_wide_operand_t* o) {
  return (source_t){.o = o,
                    .zero = _mm512_set1_epi32((int)o->zero),
                    .scale = _mm512_set1_ps(o->scale),
                    .number = _mm512_set1_ps(o->number)};
}

static form_t form_of(const int8_wide_operand_t* o) {
  return o->sums ? SUMS : o->bytes ? BYTES : o->floats ? FLOATS : NUMBER;
}

// No multiplication here is fused with what follows: each operation of int8.h rounds.
INLINE __m512 product(__m512 a, __m512 b) {
  return _mm512_mul_round_ps(a, b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// `whole`: all 16 of them are there; else those of the mask.
INLINE __m512 load_floats(bool whole, const float* x, __mmask16 m) {
  return whole ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(m, x);
}

INLINE __m512 load(form_t form, bool whole, const source_t* s, int64_t i, __mmask16 m) {
  const int8_wide_operand_t* o = s->o;
  if (form == SUMS) {
    const __m512i x =
        whole ? _mm512_loadu_si512(o->sums + i) : _mm512_maskz_loadu_epi32(m, o->sums + i);
    return _mm512_add_ps(product(_mm512_cvtepi32_ps(x), load_floats(whole, o->factor + i, m)),
                         load_floats(whole, o->shift + i, m));
  }
  if (form == BYTES) {
    const __m128i x = whole ? _mm_loadu_si128((const __m128i*)(const void*)(o->bytes + i))
                            : _mm_maskz_loadu_epi8(m, o->bytes + i);
    const __m512i wide = o->is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x);
    return product(_mm512_cvtepi32_ps(_mm512_sub_epi32(wide, s->zero)), s->scale);
  }
  return form == FLOATS ? load_floats(whole, o->floats + i, m) : s->number;
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

// Signed bytes are those of 128 more with the highest bit turned: all but the last step is about
// unsigned ones.
typedef struct output {
  __m512 low, high, scale, inverse;
  __m512i zero, min, max;  // bytes that the limits become
  __m512i turn;
  bool limits, quick;  // quick: the inverse is a normal number, and so are products with it
} output_t;

INLINE __m512 within(__m512 x, __m512 low, __m512 high) {
  return _mm512_min_ps(high, _mm512_max_ps(low, x));  // NaN, the second operand, stays
}

INLINE __m512i integer(__m512 v) {
  return _mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// By a division. NaN becomes 0.
INLINE __m512i exactly(__m512 x, const output_t* o, bool is_signed) {
  const __m512 max = _mm512_set1_ps(512), min = _mm512_set1_ps(-512);
  const __m512 v = within(_mm512_div_ps(within(x, o->low, o->high), o->scale), min, max);
  const __m512i k = _mm512_add_epi32(integer(v), o->zero);
  return _mm512_mask_mov_epi32(k, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q),
                               _mm512_set1_epi32(is_signed ? 128 : 0));
}

// Without the limits. By a multiplication, which is some times faster than a division. The product
// differs from the quotient by at most three half units of 2^-23 of it, so by less than 1e-4 within
// 512 steps: where it is not as near to the middle between two integers as that, both round to the
// same one. Beyond 512 steps all zero points leave the type; what is below all integers becomes the
// least one. *unsure: where it is as near, or NaN.
INLINE __m512i guessed(__m512 x, const output_t* o, __mmask16* unsure) {
  const __m512 v = _mm512_min_ps(_mm512_set1_ps(512), product(x, o->inverse));
  const __m512i k = integer(v);
  const __m512 off = _mm512_abs_ps(_mm512_sub_ps(v, _mm512_cvtepi32_ps(k)));
  *unsure = _mm512_cmp_ps_mask(off, _mm512_set1_ps(0.4999F), _CMP_NLE_UQ);
  return _mm512_add_epi32(k, o->zero);
}

// Limits before and after are the same: neither step changes the order of two numbers.
INLINE __m512i quantized(const __m512 y[4], const output_t* o, bool is_signed) {
  __m512i k[4];
  __mmask16 unsure[4];
  UNROLL for (int j = 0; j < 4; j++) k[j] = guessed(y[j], o, &unsure[j]);
  __m512i q = _mm512_min_epu8(_mm512_max_epu8(int8_packed(k), o->min), o->max);
  if (!o->quick || (unsure[0] | unsure[1] | unsure[2] | unsure[3])) {
    UNROLL for (int j = 0; j < 4; j++) k[j] = exactly(y[j], o, is_signed);
    q = int8_packed(k);
  }
  return _mm512_xor_si512(q, o->turn);
}

INLINE __m512i byte_of(float limit, const output_t* o) {
  const __m512i x = exactly(_mm512_set1_ps(limit), o, false);
  const __m512i k[4] = {x, x, x, x};
  return int8_packed(k);
}

// ---- the shorter way of two quantized operands (int8_quick.h) -----------------------------------

// Sums and differences are a * of_a + b * of_b + shift, of the bytes themselves; products of what
// they are above their zero points, which are exact, times of_a.
typedef struct short_way {
  bool is_there;
  __m512 of_a, of_b, shift, sure;
} short_way_t;

// In half units of the last place, for operands of at most p and r steps of the output and results
// of at most 512: the definition rounds p, r and, twice, the result; here both factors, what b and
// the shift are together, and twice the result, zero points taken in, are rounded. Products: the
// definition rounds four times, the factor and the result are here.
INLINE short_way_t short_way_of(const int8_wide_t* w, int turn) {
  const double scale = (double)w->scale, zero = (double)w->zero + turn;
  const bool usual = w->scale > 0x1p-100F && w->scale < 0x1p100F;
  float sure = 0;
  double a = (double)w->a.scale / scale, b = (double)w->b.scale / scale, shift = zero;
  short_way_t s = {.is_there = false};
  if (w->operation == ASSAY_INT8_MUL) {
    a *= (double)w->b.scale;
    b = 0;
    s.is_there = usual && int8_quick_slack(4000, a * 0x1p16 + 512, &sure);
  } else {
    const double both = 255 * (a + b);
    if (w->operation == ASSAY_INT8_SUB) b = -b;
    if (w->operation == ASSAY_INT8_SUB_FROM) a = -a;
    shift -= a * (double)w->a.zero + b * (double)w->b.zero;
    s.is_there = usual && int8_quick_slack(5 * both + 2500, both + fabs(shift), &sure);
  }
  s.of_a = _mm512_set1_ps((float)a);
  s.of_b = _mm512_set1_ps((float)b);
  s.shift = _mm512_set1_ps((float)shift);
  s.sure = _mm512_set1_ps(sure);
  return s;
}

INLINE __m512i byte_lanes(const source_t* s, int64_t i) {
  const __m128i x = _mm_loadu_si128((const __m128i*)(const void*)(s->o->bytes + i));
  return s->o->is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x);
}

// Elements [i, i + 64). False: not all are sure.
INLINE bool short_piece(const short_way_t* s, const int8_wide_t* w, const source_t* a,
                        const source_t* b, const output_t* o, int64_t i, void* out) {
  __m512 v[4];
  __m512i q;
  for (int j = 0; j < 4; j++) {
    const __m512i x = byte_lanes(a, i + j * LANES), y = byte_lanes(b, i + j * LANES);
    if (w->operation == ASSAY_INT8_MUL) {
      const __m512 c = _mm512_cvtepi32_ps(_mm512_sub_epi32(x, a->zero));
      const __m512 d = _mm512_cvtepi32_ps(_mm512_sub_epi32(y, b->zero));
      v[j] = _mm512_fmadd_ps(_mm512_mul_ps(c, d), s->of_a, s->shift);
    } else {
      v[j] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(x), s->of_a,
                             _mm512_fmadd_ps(_mm512_cvtepi32_ps(y), s->of_b, s->shift));
    }
  }
  if (!int8_quick_bytes(v, s->sure, &q)) return false;
  q = _mm512_min_epu8(_mm512_max_epu8(q, o->min), o->max);
  _mm512_storeu_si512((uint8_t*)out + i, _mm512_xor_si512(q, o->turn));
  return true;
}

// ---- all ---------------------------------------------------------------------------------------

// Elements [i, i + 64), or, where they are not whole, the first n of them.
INLINE void piece(form_t a_form, form_t b_form, bool whole, const int8_wide_t* w, const source_t* a,
                  const source_t* b, const output_t* o, int64_t i, int64_t n, void* out) {
  __m512 y[4];
  __mmask16 m[4];
  UNROLL for (int j = 0; j < 4; j++) {
    const int64_t at = i + j * LANES, left = n - j * LANES;
    m[j] =
        whole || left >= LANES ? (__mmask16)0xffff : (__mmask16)(left > 0 ? (1U << left) - 1 : 0);
    y[j] = load(a_form, whole, a, at, m[j]);
    if (w->has_b) y[j] = combined(w->operation, y[j], load(b_form, whole, b, at, m[j]));
  }
  if (w->type == ASSAY_TYPE_FLOAT) {
    UNROLL for (int j = 0; j < 4; j++) {
      if (o->limits) y[j] = within(y[j], o->low, o->high);
      _mm512_mask_storeu_ps((float*)out + i + j * LANES, m[j], y[j]);
    }
    return;
  }
  const __m512i q = quantized(y, o, w->type == ASSAY_TYPE_INT8);
  if (whole)
    _mm512_storeu_si512((uint8_t*)out + i, q);
  else
    _mm512_mask_storeu_epi8((uint8_t*)out + i, ((__mmask64)1 << n) - 1, q);
}

INLINE void run(form_t a_form, form_t b_form, const int8_wide_t* w, int64_t n, void* out) {
  const source_t a = source_of(&w->a), b = source_of(&w->b);
  const bool is_signed = w->type == ASSAY_TYPE_INT8;
  output_t o = {.low = _mm512_set1_ps(w->low),
                .high = _mm512_set1_ps(w->high),
                .scale = _mm512_set1_ps(w->scale),
                .inverse = _mm512_set1_ps(1 / w->scale),
                .zero = _mm512_set1_epi32((int)w->zero + (is_signed ? 128 : 0)),
                .turn = _mm512_set1_epi8((char)(is_signed ? -128 : 0)),
                .limits = w->low > -INFINITY ||
                          w->high<INFINITY, .quick = w->scale> 0x1p-100F && w->scale < 0x1p100F};
  o.min = byte_of(w->low, &o);
  o.max = byte_of(w->high, &o);
  const bool shorter = a_form == BYTES && b_form == BYTES && w->type != ASSAY_TYPE_FLOAT;
  const short_way_t way =
      shorter ? short_way_of(w, is_signed ? 128 : 0) : (short_way_t){.is_there = false};
  int64_t i = 0;
  for (; n - i >= 4 * LANES; i += 4 * LANES)
    if (!(shorter && way.is_there && short_piece(&way, w, &a, &b, &o, i, out)))
      piece(a_form, b_form, true, w, &a, &b, &o, i, 4 * LANES, out);
  if (i < n) piece(a_form, b_form, false, w, &a, &b, &o, i, n - i, out);
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
