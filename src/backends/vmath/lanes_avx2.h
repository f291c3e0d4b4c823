// Lanes of the vector functions: a vector of AVX2 of float32, or two of float64. lanes_one.h says
// what each operation does.
#ifndef ASSAY_BACKENDS_VMATH_LANES_H_
#define ASSAY_BACKENDS_VMATH_LANES_H_

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/vmath/reduce.h"

#define VTARGET __attribute__((target("avx2,fma")))
#define VFN static inline VTARGET __attribute__((always_inline, unused))

enum { LANES = 8 };

typedef __m256 vf;
typedef struct vd {
  __m256d a, b;
} vd;
typedef __m256 vm;  // all bits of a lane, or none
typedef struct vw {
  __m256d a, b;
} vw;

#define F_INT(x) _mm256_castps_si256(x)
#define F_OF_INT(x) _mm256_castsi256_ps(x)
#define D_INT(x) _mm256_castpd_si256(x)
#define D_OF_INT(x) _mm256_castsi256_pd(x)
#define SET32(x) _mm256_set1_epi32((int)(x))
#define SET64(x) _mm256_set1_epi64x((long long)(x))

// ---- float32 ------------------------------------------------------------------------------------

VFN vf f_set(float x) { return _mm256_set1_ps(x); }
VFN vf f_load(const float* p) { return _mm256_loadu_ps(p); }
VFN void f_store(float* p, vf x) { _mm256_storeu_ps(p, x); }
VFN __m256i only_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(SET32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
VFN vf f_load_some(const float* p, int64_t n) { return _mm256_maskload_ps(p, only_lanes(n)); }
VFN void f_store_some(float* p, int64_t n, vf x) { _mm256_maskstore_ps(p, only_lanes(n), x); }
VFN vf f_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
VFN vf f_sqrt(vf a) { return _mm256_sqrt_ps(a); }
VFN vf f_abs(vf a) { return _mm256_andnot_ps(f_set(-0.0F), a); }
VFN vf f_negative(vf a) { return _mm256_or_ps(a, f_set(-0.0F)); }
VFN vf f_copysign(vf a, vf sign) {
  return _mm256_or_ps(f_abs(a), _mm256_and_ps(sign, f_set(-0.0F)));
}
VFN vf f_min(vf a, vf b) { return _mm256_min_ps(a, b); }
VFN vf f_max(vf a, vf b) { return _mm256_max_ps(a, b); }
VFN vm f_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
VFN vm f_le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
VFN vm f_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
VFN vm f_is_nan(vf a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
VFN vf f_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
VFN vm m_and(vm a, vm b) { return _mm256_and_ps(a, b); }
VFN vm m_or(vm a, vm b) { return _mm256_or_ps(a, b); }
VFN bool m_any(vm a) { return _mm256_movemask_ps(a) != 0; }
VFN vf f_scale(vf x, vf n) {
  const __m256i k = _mm256_srai_epi32(_mm256_sub_epi32(F_INT(n), SET32(0x49400000)), 4);
  const __m256i half = _mm256_srai_epi32(k, 1);
  const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, SET32(127)), 23);
  const __m256i rest = _mm256_sub_epi32(k, half);
  const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(rest, SET32(127)), 23);
  return _mm256_mul_ps(_mm256_mul_ps(x, F_OF_INT(a)), F_OF_INT(b));
}
VFN vf f_look_up(const float* t, vf n) {
  const vf low = _mm256_permutevar8x32_ps(f_load(t), F_INT(n));
  const vf high = _mm256_permutevar8x32_ps(f_load(t + 8), F_INT(n));
  return _mm256_blendv_ps(low, high, F_OF_INT(_mm256_slli_epi32(F_INT(n), 28)));
}
VFN vf f_look_up_32(const float* t, vf n) {
  const vf low = f_look_up(t, n), high = f_look_up(t + 16, n);
  return _mm256_blendv_ps(low, high, F_OF_INT(_mm256_slli_epi32(F_INT(n), 27)));
}
// All bits of a lane are -1.
VFN vf f_to_odd(vf x, vm down, vm odd) {
  const __m256i less = _mm256_add_epi32(F_INT(x), F_INT(down));
  return F_OF_INT(_mm256_or_si256(less, _mm256_and_si256(F_INT(odd), SET32(1))));
}
VFN vm f_near(vf x, uint32_t mask, uint32_t middle) {
  const __m256i low = _mm256_and_si256(F_INT(x), SET32(mask));
  const __m256i far = _mm256_abs_epi32(_mm256_sub_epi32(low, SET32(middle)));
  return F_OF_INT(_mm256_cmpgt_epi32(SET32(3), far));
}

// ---- float64 ------------------------------------------------------------------------------------

#define EACH1(name, operation) \
  VFN vd name(vd x) { return (vd){operation(x.a), operation(x.b)}; }
#define EACH2(name, operation) \
  VFN vd name(vd x, vd y) { return (vd){operation(x.a, y.a), operation(x.b, y.b)}; }
#define CHOICE(name, kind)                                                     \
  VFN vw name(vd x, vd y) {                                                    \
    return (vw){_mm256_cmp_pd(x.a, y.a, kind), _mm256_cmp_pd(x.b, y.b, kind)}; \
  }
#define CHOICE2(name, operation) \
  VFN vw name(vw x, vw y) { return (vw){operation(x.a, y.a), operation(x.b, y.b)}; }
#define ROUNDED(name, how) \
  VFN vd name(vd x) { return (vd){_mm256_round_pd(x.a, how), _mm256_round_pd(x.b, how)}; }

VFN vd d_set(double x) { return (vd){_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
VFN vd d_of(vf x) {
  return (vd){_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
              _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}
VFN vf f_of(vd x) { return _mm256_set_m128(_mm256_cvtpd_ps(x.b), _mm256_cvtpd_ps(x.a)); }
EACH2(d_add, _mm256_add_pd)
EACH2(d_sub, _mm256_sub_pd)
EACH2(d_mul, _mm256_mul_pd)
EACH2(d_div, _mm256_div_pd)
EACH2(d_min, _mm256_min_pd)
EACH2(d_max, _mm256_max_pd)
EACH1(d_sqrt, _mm256_sqrt_pd)
CHOICE(d_lt, _CMP_LT_OQ)
CHOICE(d_eq, _CMP_EQ_OQ)
CHOICE2(w_and, _mm256_and_pd)
CHOICE2(w_or, _mm256_or_pd)
CHOICE2(w_xor, _mm256_xor_pd)
ROUNDED(d_round, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
ROUNDED(d_truncate, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)

VFN vd d_fma(vd x, vd y, vd z) {
  return (vd){_mm256_fmadd_pd(x.a, y.a, z.a), _mm256_fmadd_pd(x.b, y.b, z.b)};
}
VFN __m256d abs_half(__m256d x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }
EACH1(d_abs, abs_half)
VFN __m256d copysign_half(__m256d x, __m256d sign) {
  return _mm256_or_pd(abs_half(x), _mm256_and_pd(sign, _mm256_set1_pd(-0.0)));
}
EACH2(d_copysign, copysign_half)
VFN vd d_select(vw m, vd x, vd y) {
  return (vd){_mm256_blendv_pd(y.a, x.a, m.a), _mm256_blendv_pd(y.b, x.b, m.b)};
}
VFN vw w_of(vm m) {
  const __m256i x = F_INT(m);
  return (vw){D_OF_INT(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(x))),
              D_OF_INT(_mm256_cvtepi32_epi64(_mm256_extracti128_si256(x, 1)))};
}
// The lower half of each lane of both, in order.
VFN vm m_of(vw m) {
  const __m256 x = _mm256_shuffle_ps(_mm256_castpd_ps(m.a), _mm256_castpd_ps(m.b), 0x88);
  return F_OF_INT(_mm256_permute4x64_epi64(F_INT(x), 0xd8));
}
VFN __m256d power_half(const double* t, __m256d n) {
  const __m256i i = _mm256_and_si256(D_INT(n), SET64(7)), k = _mm256_slli_epi64(D_INT(n), 49);
  const __m256i power = _mm256_and_si256(k, SET64(0xfff0000000000000u));
  return D_OF_INT(_mm256_add_epi64(D_INT(_mm256_i64gather_pd(t, i, 8)), power));
}
VFN vd d_power(const double* t, vd n, vd k) {
  (void)k;
  return (vd){power_half(t, n.a), power_half(t, n.b)};
}
VFN __m256d two_to_half(__m256d n) {
  return D_OF_INT(_mm256_add_epi64(_mm256_slli_epi64(D_INT(n), 52), SET64(0x3ff0000000000000)));
}
EACH1(d_two_to, two_to_half)
VFN __m256d odd_half(__m256d n) {
  const __m256i one = SET64(1);
  return D_OF_INT(_mm256_cmpeq_epi64(_mm256_and_si256(D_INT(n), one), one));
}
VFN vw d_is_odd(vd n) { return (vw){odd_half(n.a), odd_half(n.b)}; }
VFN __m256d flip_half(__m256d x, __m256d n) {
  const __m256i sign = _mm256_slli_epi64(_mm256_and_si256(D_INT(n), SET64(2)), 62);
  return D_OF_INT(_mm256_xor_si256(D_INT(x), sign));
}
EACH2(d_flip, flip_half)
VFN __m256d split_half(__m256d x, __m256d* m) {
  const __m256i t = _mm256_sub_epi64(D_INT(x), SET64(0x3fe6a09e667f3bcd));
  *m = D_OF_INT(_mm256_sub_epi64(D_INT(x), _mm256_and_si256(t, SET64(0xfff0000000000000u))));
  const __m256i k = _mm256_srli_epi64(_mm256_add_epi64(t, SET64((uint64_t)1024 << 52)), 52);
  return _mm256_sub_pd(D_OF_INT(_mm256_or_si256(k, SET64(0x4330000000000000))),
                       _mm256_set1_pd(0x1p52 + 1024));
}
VFN vd d_split(vd x, vd* m) {
  const __m256d a = split_half(x.a, &m->a);
  return (vd){a, split_half(x.b, &m->b)};
}
VFN void d_store(double* p, vd x) {
  _mm256_storeu_pd(p, x.a);
  _mm256_storeu_pd(p + 4, x.b);
}
VFN vd d_load(const double* p) { return (vd){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }

#undef EACH1
#undef EACH2
#undef CHOICE
#undef CHOICE2
#undef ROUNDED
#endif  // ASSAY_BACKENDS_VMATH_LANES_H_
