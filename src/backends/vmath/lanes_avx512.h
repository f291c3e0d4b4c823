// Lanes of the vector functions: a vector of AVX-512 of float32, or two of float64. lanes_one.h
// says what each operation does.
#ifndef ASSAY_BACKENDS_VMATH_LANES_H_
#define ASSAY_BACKENDS_VMATH_LANES_H_

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/vmath/reduce.h"

#define VTARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define VFN static inline VTARGET __attribute__((always_inline, unused))

enum { LANES = 16 };

typedef __m512 vf;
typedef struct vd {
  __m512d a, b;
} vd;
typedef __mmask16 vm;
typedef struct vw {
  __mmask8 a, b;
} vw;

#define F_INT(x) _mm512_castps_si512(x)
#define F_OF_INT(x) _mm512_castsi512_ps(x)
#define D_INT(x) _mm512_castpd_si512(x)
#define D_OF_INT(x) _mm512_castsi512_pd(x)
#define SET32(x) _mm512_set1_epi32((int)(x))
#define SET64(x) _mm512_set1_epi64((long long)(x))

// ---- float32 ------------------------------------------------------------------------------------

VFN vf f_set(float x) { return _mm512_set1_ps(x); }
VFN vf f_load(const float* p) { return _mm512_loadu_ps(p); }
VFN void f_store(float* p, vf x) { _mm512_storeu_ps(p, x); }
VFN vm only_lanes(int64_t n) { return (vm)((1u << n) - 1); }
VFN vf f_load_some(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(only_lanes(n), p); }
VFN void f_store_some(float* p, int64_t n, vf x) { _mm512_mask_storeu_ps(p, only_lanes(n), x); }
VFN vf f_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
VFN vf f_sqrt(vf a) { return _mm512_sqrt_ps(a); }
VFN vf f_abs(vf a) { return F_OF_INT(_mm512_and_epi32(F_INT(a), SET32(0x7fffffff))); }
VFN vf f_negative(vf a) { return _mm512_or_ps(a, f_set(-0.0F)); }
VFN vf f_copysign(vf a, vf sign) {
  enum { FIRST_THEN_BITS_OF_SECOND = 0xd8 };  // third ? second : first
  return F_OF_INT(_mm512_ternarylogic_epi32(F_INT(a), F_INT(sign), SET32(0x80000000u),
                                            FIRST_THEN_BITS_OF_SECOND));
}
VFN vf f_min(vf a, vf b) { return _mm512_min_ps(a, b); }
VFN vf f_max(vf a, vf b) { return _mm512_max_ps(a, b); }
VFN vm f_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VFN vm f_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
VFN vm f_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
VFN vm f_is_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
VFN vf f_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
VFN vm m_and(vm a, vm b) { return (vm)(a & b); }
VFN vm m_or(vm a, vm b) { return (vm)(a | b); }
VFN bool m_any(vm a) { return a != 0; }
VFN vf f_scale(vf x, vf n) { return _mm512_scalef_ps(x, _mm512_sub_ps(n, f_set(0x1.8p19F))); }
VFN vf f_look_up(const float* t, vf n) { return _mm512_permutexvar_ps(F_INT(n), f_load(t)); }
VFN vf f_look_up_32(const float* t, vf n) {
  return _mm512_permutex2var_ps(f_load(t), F_INT(n), f_load(t + 16));
}
VFN vf f_to_odd(vf x, vm down, vm odd) {
  const __m512i one = SET32(1), less = _mm512_mask_sub_epi32(F_INT(x), down, F_INT(x), one);
  return F_OF_INT(_mm512_mask_or_epi32(less, odd, less, one));
}
VFN vm f_near(vf x, uint32_t mask, uint32_t middle) {
  const __m512i low = _mm512_and_epi32(F_INT(x), SET32(mask));
  return _mm512_cmple_epu32_mask(_mm512_sub_epi32(low, SET32(middle - 2)), SET32(4));
}

// ---- float64 ------------------------------------------------------------------------------------

#define EACH1(name, operation) \
  VFN vd name(vd x) { return (vd){operation(x.a), operation(x.b)}; }
#define EACH2(name, operation) \
  VFN vd name(vd x, vd y) { return (vd){operation(x.a, y.a), operation(x.b, y.b)}; }
#define CHOICE(name, kind)                                                               \
  VFN vw name(vd x, vd y) {                                                              \
    return (vw){_mm512_cmp_pd_mask(x.a, y.a, kind), _mm512_cmp_pd_mask(x.b, y.b, kind)}; \
  }
#define ROUNDED(name, how) \
  VFN vd name(vd x) { return (vd){_mm512_roundscale_pd(x.a, how), _mm512_roundscale_pd(x.b, how)}; }

VFN vd d_set(double x) { return (vd){_mm512_set1_pd(x), _mm512_set1_pd(x)}; }
VFN vd d_of(vf x) {
  return (vd){_mm512_cvtps_pd(_mm512_castps512_ps256(x)),
              _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))};
}
VFN vf f_of(vd x) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(x.a)), _mm512_cvtpd_ps(x.b), 1);
}
EACH2(d_add, _mm512_add_pd)
EACH2(d_sub, _mm512_sub_pd)
EACH2(d_mul, _mm512_mul_pd)
EACH2(d_div, _mm512_div_pd)
EACH2(d_min, _mm512_min_pd)
EACH2(d_max, _mm512_max_pd)
EACH1(d_sqrt, _mm512_sqrt_pd)
CHOICE(d_lt, _CMP_LT_OQ)
CHOICE(d_eq, _CMP_EQ_OQ)
ROUNDED(d_round, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
ROUNDED(d_truncate, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)

VFN vd d_fma(vd x, vd y, vd z) {
  return (vd){_mm512_fmadd_pd(x.a, y.a, z.a), _mm512_fmadd_pd(x.b, y.b, z.b)};
}
VFN __m512d abs_half(__m512d x) { return D_OF_INT(_mm512_and_epi64(D_INT(x), SET64(INT64_MAX))); }
EACH1(d_abs, abs_half)
VFN __m512d copysign_half(__m512d x, __m512d sign) {
  enum { FIRST_THEN_BITS_OF_SECOND = 0xd8 };
  return D_OF_INT(_mm512_ternarylogic_epi64(D_INT(x), D_INT(sign), SET64(INT64_MIN),
                                            FIRST_THEN_BITS_OF_SECOND));
}
EACH2(d_copysign, copysign_half)
VFN vd d_select(vw m, vd x, vd y) {
  return (vd){_mm512_mask_blend_pd(m.a, y.a, x.a), _mm512_mask_blend_pd(m.b, y.b, x.b)};
}
VFN vw w_of(vm m) { return (vw){(__mmask8)m, (__mmask8)(m >> 8)}; }
VFN vm m_of(vw m) { return _mm512_kunpackb(m.b, m.a); }
VFN vw w_and(vw x, vw y) { return (vw){(__mmask8)(x.a & y.a), (__mmask8)(x.b & y.b)}; }
VFN vw w_or(vw x, vw y) { return (vw){(__mmask8)(x.a | y.a), (__mmask8)(x.b | y.b)}; }
VFN vw w_xor(vw x, vw y) { return (vw){(__mmask8)(x.a ^ y.a), (__mmask8)(x.b ^ y.b)}; }
VFN vd d_power(const double* t, vd n, vd k) {
  const __m512d table = _mm512_loadu_pd(t);
  return (vd){_mm512_scalef_pd(_mm512_permutexvar_pd(D_INT(n.a), table), k.a),
              _mm512_scalef_pd(_mm512_permutexvar_pd(D_INT(n.b), table), k.b)};
}
VFN __m512d two_to_half(__m512d n) {
  return D_OF_INT(_mm512_add_epi64(_mm512_slli_epi64(D_INT(n), 52), SET64(0x3ff0000000000000)));
}
EACH1(d_two_to, two_to_half)
VFN vw d_is_odd(vd n) {
  return (vw){_mm512_test_epi64_mask(D_INT(n.a), SET64(1)),
              _mm512_test_epi64_mask(D_INT(n.b), SET64(1))};
}
VFN __m512d flip_half(__m512d x, __m512d n) {
  const __m512i sign = _mm512_slli_epi64(_mm512_and_epi64(D_INT(n), SET64(2)), 62);
  return D_OF_INT(_mm512_xor_epi64(D_INT(x), sign));
}
EACH2(d_flip, flip_half)
VFN __m512d split_half(__m512d x, __m512d* m) {
  const __m512i t = _mm512_sub_epi64(D_INT(x), SET64(0x3fe6a09e667f3bcd));
  *m = D_OF_INT(_mm512_sub_epi64(D_INT(x), _mm512_and_epi64(t, SET64(0xfff0000000000000u))));
  return _mm512_cvtepi64_pd(_mm512_srai_epi64(t, 52));
}
VFN vd d_split(vd x, vd* m) {
  const __m512d a = split_half(x.a, &m->a);
  return (vd){a, split_half(x.b, &m->b)};
}
VFN void d_store(double* p, vd x) {
  _mm512_storeu_pd(p, x.a);
  _mm512_storeu_pd(p + 8, x.b);
}
VFN vd d_load(const double* p) { return (vd){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)}; }

#undef EACH1
#undef EACH2
#undef CHOICE
#undef ROUNDED
#endif  // ASSAY_BACKENDS_VMATH_LANES_H_
