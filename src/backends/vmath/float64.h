// Functions of float32 evaluated in float64 lanes: within 0.51 ulp of float32, for all inputs.
// Included after one of the lanes_*.h. What is subnormal in float32 is not in float64, and a
// product of two float32 is exact there; so the one rounding that counts is the last one, at which
// subnormal results and overflow come out right by themselves. `odd` asks for rounding to odd
// instead: a result that is then rounded to a 16-bit format is rounded as if once (S. Boldo and
// G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
// odd, IEEE Trans. Comput. 57, 2008).
#ifndef ASSAY_BACKENDS_VMATH_FLOAT64_H_
#define ASSAY_BACKENDS_VMATH_FLOAT64_H_

// What kernels of GPUs say otherwise.
#ifndef VTABLE
#define VTABLE static const
#define VUNROLL _Pragma("GCC unroll 16")
#define HUGE_F __builtin_inff()
#define NAN_F __builtin_nanf("")
#endif

#include "backends/vmath/polynomials.h"

VFN vf finish(vd y, bool odd) {
  const vf near = f_of(y);
  if (!odd) return near;
  const vd back = d_of(near);
  const vw same = d_eq(back, y), one = d_eq(d_set(0), d_set(0));
  return f_to_odd(near, m_of(d_lt(d_abs(y), d_abs(back))), m_of(w_xor(same, one)));
}

// Horner's scheme; n is known when this is compiled.
VFN vd d_horner(vd x, const double* c, int n) {
  vd y = d_set(c[0]);
  VUNROLL
  for (int i = 1; i < n; i++) y = d_fma(y, x, d_set(c[i]));
  return y;
}
#define D_POLY(x, c) d_horner(x, c, (int)(sizeof(c) / sizeof *(c)))

VFN vd d_limited(vd x, double lo, double hi) {  // NaN stays
  return d_min(d_set(hi), d_max(d_set(lo), x));
}

// ---- exponentials -------------------------------------------------------------------------------

// e^x = *s (1 + *m), *s a power of the eighth root of two, |x| <= 700; around x = 0 *m is x.
VFN void exp_parts(vd x, vd* s, vd* m) {
  const vd shift = d_set(0x1.8p49);  // adding it rounds to a multiple of 1 / 8
  const vd n = d_fma(x, d_set(0x1.71547652b82fep+0), shift), k = d_sub(n, shift);
  const vd r = d_fma(k, d_set(-0x1.62e42fefa39efp-1), x);
  *s = d_power(table_exp2, n, k);
  *m = d_fma(d_mul(r, r), D_POLY(r, poly_expm1), r);
}
VFN vd d_exp(vd x) {
  vd s, m;
  exp_parts(x, &s, &m);
  return d_fma(s, m, s);
}
VFN vd d_expm1(vd x) {
  vd s, m;
  exp_parts(x, &s, &m);
  return d_fma(s, m, d_sub(s, d_set(1)));
}
// x / (1 + e^-t); x and t of one sign, or of opposite ones. |t| is taken to be 2^-35 at least,
// which is nothing in float32, but keeps results off x / 2, which may lie between two subnormal
// numbers.
VFN vd d_gated(vd x, vd t) {
  const vd down = d_max(d_set(-300), d_sub(d_set(0), d_abs(t)));
  const vd e = d_exp(d_min(d_set(-0x1p-35), down));
  return d_div(d_select(d_lt(t, d_set(0)), d_mul(x, e), x), d_add(e, d_set(1)));
}
VFN vf v_exp64(vf x, bool odd) { return finish(d_exp(d_limited(d_of(x), -110, 90)), odd); }
VFN vf v_sigmoid64(vf x, bool odd) { return finish(d_gated(d_set(1), d_of(x)), odd); }
VFN vf v_tanh64(vf x, bool odd) {
  const vd t = d_of(x), e = d_expm1(d_min(d_set(60), d_abs(d_add(t, t))));
  return finish(d_copysign(d_div(e, d_add(e, d_set(2))), t), odd);
}
VFN vf v_sinh(vf x, bool odd) {
  const vd t = d_of(x), e = d_expm1(d_min(d_set(100), d_abs(t)));
  const vd y = d_add(e, d_div(e, d_add(e, d_set(1))));
  return finish(d_copysign(d_mul(y, d_set(0.5)), t), odd);
}
VFN vf v_cosh(vf x, bool odd) {
  const vd e = d_exp(d_min(d_set(100), d_abs(d_of(x))));
  return finish(d_mul(d_add(e, d_div(d_set(1), e)), d_set(0.5)), odd);
}
// The argument 0 is not a case of these: -0 stays. alpha is made smaller by what is nothing in
// float32, but keeps results off alpha x, which they are smaller than.
#define ALMOST 0x1.ffffffffffp-1
VFN vf v_elu(vf x, float alpha, bool odd) {
  const vd t = d_max(d_set(-110), d_of(x));
  return f_select(f_lt(x, f_set(0)), finish(d_mul(d_set(ALMOST * (double)alpha), d_expm1(t)), odd),
                  x);
}
VFN vf v_celu(vf x, float alpha, bool odd) {
  const vd a = d_set((double)alpha), t = d_limited(d_div(d_of(x), a), -110, 700);
  return f_select(f_lt(x, f_set(0)), finish(d_mul(d_set(ALMOST * (double)alpha), d_expm1(t)), odd),
                  x);
}
VFN vf v_selu(vf x, float alpha, float gamma, bool odd) {
  const vd t = d_of(x), g = d_set((double)gamma), a = d_set((double)alpha * (double)gamma * ALMOST);
  const vd down = d_mul(a, d_expm1(d_limited(t, -110, 1)));
  return finish(d_select(d_lt(t, d_set(0)), down, d_mul(g, t)), odd);
}
// x / (1 + e^(-alpha x)).
VFN vf v_swish64(vf x, float alpha, bool odd) {
  const vd t = d_of(x), a = d_set((double)alpha);
  if (alpha == 0) return finish(d_mul(t, d_set(0.5)), odd);
  const vd u = d_mul(a, t), y = d_gated(t, u);
  // Of infinity and e^-300 there is to be 0.
  return finish(d_select(d_lt(u, d_set(-300)), d_copysign(d_set(0), t), y), odd);
}
// x tanh(log(1 + e^x)), with n = e^x (e^x + 2): x n / (n + 2).
VFN vf v_mish(vf x, bool odd) {
  const vd t = d_max(d_set(-120), d_of(x)), e = d_exp(d_min(d_set(30), t));
  const vd n = d_fma(e, e, d_add(e, e));
  return finish(d_div(d_mul(t, n), d_add(n, d_set(2))), odd);
}
// x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
VFN vf v_gelu_tanh64(vf x, bool odd) {
  const vd t = d_max(d_set(-30), d_of(x)), s = d_mul(t, t);
  const vd factor = d_fma(s, d_set(0x1.2444f2a4d8b4bp-4), d_set(0x1.9884533d43651p+0));
  return finish(d_gated(t, d_mul(t, factor)), odd);
}

// ---- the normal distribution --------------------------------------------------------------------

// Phi(-b), 0 <= b <= 20, where the square is given: e^(-b^2 / 2) times a polynomial by v = 1 - u, u
// = 1 / (1 + 0.3 b). It is 1 / 2 for b = 0.
VFN vd d_tail(vd b, vd square, bool exact) {
  const vd u = d_div(d_set(1), d_fma(b, d_set(0.3), d_set(1))), v = d_sub(d_set(1), u);
  const vd p = exact ? D_POLY(v, poly_tail) : D_POLY(v, poly_tail_short);
  return d_mul(d_exp(d_mul(square, d_set(-0.5))), d_mul(u, d_fma(v, p, d_set(0.5))));
}
// |x| is taken to be 2^-35 at least, as in d_gated.
VFN vf v_gelu64(vf x, bool odd) {
  const vd t = d_max(d_set(-20), d_of(x)), b = d_limited(d_abs(t), 0x1p-35, 20);
  const vd tail = d_tail(b, d_mul(b, b), odd);
  return finish(d_mul(t, d_select(d_lt(t, d_set(0)), tail, d_sub(d_set(1), tail))), odd);
}
// erf(a) = 1 - 2 Phi(-sqrt(2) a).
VFN vf v_erf64(vf x, bool odd) {
  const vd t = d_of(x), a = d_min(d_set(6), d_abs(t)), s = d_mul(a, a);
  const vd b = d_mul(a, d_set(0x1.6a09e667f3bcdp+0)), tail = d_tail(b, d_add(s, s), true);
  const vd large = d_fma(tail, d_set(-2), d_set(1)), small = d_mul(a, D_POLY(s, poly_erf));
  return finish(d_copysign(d_select(d_lt(a, d_set(1)), small, large), t), odd);
}

// ---- logarithms ---------------------------------------------------------------------------------

// log((1 + s) / (1 - s)), |s| <= 0.172.
VFN vd d_log_ratio(vd s) {
  const vd z = d_mul(s, s);
  return d_fma(d_mul(s, z), D_POLY(z, poly_log), d_add(s, s));
}
VFN vd d_add_log2s(vd y, vd k) { return d_fma(k, d_set(0x1.62e42fefa39efp-1), y); }
// For normal x > 0.
VFN vd d_log(vd x) {
  vd m;
  const vd k = d_split(x, &m), one = d_set(1);
  return d_add_log2s(d_log_ratio(d_div(d_sub(m, one), d_add(m, one))), k);
}
// log(1 + w), w >= 0 and less than 2^1000.
VFN vd d_log1p(vd w) {
  vd m;
  const vd one = d_set(1), k = d_split(d_add(w, one), &m);
  const vd f = d_select(d_eq(k, d_set(0)), w, d_sub(m, one));
  return d_add_log2s(d_log_ratio(d_div(f, d_add(f, d_set(2)))), k);
}

VFN vf v_log(vf x, bool odd) {
  const vf y = finish(d_log(d_of(x)), odd), zero = f_set(0);
  const vf special =
      f_select(f_eq(x, zero), f_set(-HUGE_F), f_select(f_lt(x, zero), f_set(NAN_F), x));
  return f_select(m_and(f_lt(zero, x), f_lt(x, f_set(HUGE_F))), y, special);
}
// max(x, 0) + log(1 + e), e = e^-|x|; above sqrt(2) - 1 log(1 + e) = log(2) + log((1 + e) / 2).
VFN vf v_softplus(vf x, bool odd) {
  const vd t = d_of(x), e = d_exp(d_max(d_set(-110), d_sub(d_set(0), d_abs(t)))), zero = d_set(0);
  const vw large = d_lt(d_set(0x1.a827999fcef32p-2), e);
  const vd f = d_sub(e, d_select(large, d_set(1), zero));
  const vd d = d_add(e, d_select(large, d_set(3), d_set(2)));
  const vd part = d_add(d_max(zero, t), d_select(large, d_set(0x1.62e42fefa39efp-1), zero));
  return finish(d_add(d_log_ratio(d_div(f, d)), part), odd);
}
// sign(x) log(1 + w), w = |x| + x^2 / (1 + sqrt(1 + x^2)).
VFN vf v_asinh(vf x, bool odd) {
  const vd t = d_of(x), a = d_abs(t), s = d_mul(a, a), one = d_set(1);
  const vd w = d_add(a, d_div(s, d_add(one, d_sqrt(d_add(s, one)))));
  const vf y = finish(d_copysign(d_log1p(w), t), odd);
  return f_select(f_lt(f_abs(x), f_set(HUGE_F)), y, x);
}
// log(1 + w), w = t + sqrt(t (t + 2)), t = x - 1.
VFN vf v_acosh(vf x, bool odd) {
  const vd t = d_sub(d_of(x), d_set(1)), w = d_add(t, d_sqrt(d_mul(t, d_add(t, d_set(2)))));
  const vf y = finish(d_log1p(w), odd), one = f_set(1),
           limit = f_select(f_lt(x, one), f_set(NAN_F), x);
  return f_select(m_and(f_le(one, x), f_lt(x, f_set(HUGE_F))), y, limit);
}
// log((1 + x) / (1 - x)) / 2.
VFN vf v_atanh(vf x, bool odd) {
  vd m;
  const vd t = d_of(x), a = d_abs(t), one = d_set(1);
  const vd k = d_split(d_div(d_add(one, a), d_sub(one, a)), &m);
  const vw small = d_eq(k, d_set(0));
  const vd s = d_select(small, a, d_div(d_sub(m, one), d_add(m, one)));
  const vd y = d_mul(d_add_log2s(d_log_ratio(s), k), d_set(0.5));
  const vf inside = finish(d_copysign(y, t), odd), b = f_abs(x), limit = f_set(1);
  const vf edge = f_select(f_eq(b, limit), f_copysign(f_set(HUGE_F), x), f_set(NAN_F));
  return f_select(f_lt(b, limit), inside, edge);
}

// ---- powers -------------------------------------------------------------------------------------

// x^y by 2^(y log2(|x|)), with C's special values (C17 F.10.4.4).
VFN vf v_pow(vf x, vf y, bool odd) {
  vd m;
  const vd a = d_of(x), b = d_of(y), t = d_abs(a), one = d_set(1), zero = d_set(0);
  const vd k = d_split(t, &m), s = d_div(d_sub(m, one), d_add(m, one)), z = d_mul(s, s);
  vd l = d_fma(d_mul(s, z), D_POLY(z, poly_log2), d_mul(s, d_set(0x1.71547652b82fep+1)));
  const vd infinite = d_set((double)HUGE_F);
  l = d_select(d_lt(t, infinite), d_add(l, k), t);  // infinity and NaN
  l = d_select(d_eq(t, zero), d_set(-(double)HUGE_F), l);
  const vd e = d_limited(d_mul(b, l), -300, 300), shift = d_set(0x1.8p52), n = d_add(e, shift);
  const vd r = d_sub(e, d_sub(n, shift)), p = d_two_to(n);
  vd result = d_fma(p, d_mul(r, D_POLY(r, poly_exp2m1)), p);
  // Signs: negative x to odd whole powers; no other powers than whole ones, 0 and infinity apart.
  const vd half = d_mul(b, d_set(0.5));
  const vw whole = d_eq(d_round(b), b), even = d_eq(d_round(half), half);
  const vw none = d_lt(a, zero);
  result = d_select(even, result, d_select(whole, d_copysign(result, a), result));
  const vw bare = w_and(d_lt(t, infinite), none);
  result = d_select(bare, d_select(whole, result, d_set((double)NAN_F)), result);
  const vw is_one =
      w_or(d_eq(b, zero), w_or(d_eq(a, one), w_and(d_eq(t, one), d_eq(d_abs(b), infinite))));
  return finish(d_select(is_one, one, result), odd);
}

// ---- circles ------------------------------------------------------------------------------------

// x = n pi / 2 + r; n with 0x1.8p52 added. By Cody and Waite's two parts up to 2^28; above, lane by
// lane, by Payne and Hanek's (reduce.h).
VFN vd quadrant(vf x, vd* r) {
  const vd t = d_of(x), shift = d_set(0x1.8p52);
  vd n = d_fma(t, d_set(0x1.45f306dc9c883p-1), shift);
  const vd k = d_sub(n, shift);
  *r = d_fma(k, d_set(-0x1.1a62633145c07p-54), d_fma(k, d_set(-0x1.921fb54442d18p+0), t));
  if (m_any(f_le(f_set(0x1p28F), f_abs(x)))) {
    float from[LANES];
    double rest[LANES], turns[LANES];
    f_store(from, x);
    d_store(rest, *r);
    d_store(turns, n);
    vmath_reduce(from, LANES, rest, turns);
    *r = d_load(rest);
    n = d_load(turns);
  }
  return n;
}
VFN vd sine_of(vd r, vd z) { return d_fma(d_mul(r, z), D_POLY(z, poly_sin), r); }
VFN vd cosine_of(vd z) {
  return d_fma(d_mul(z, z), D_POLY(z, poly_cos), d_fma(z, d_set(-0.5), d_set(1)));
}
VFN vf v_sin(vf x, bool odd) {
  vd r;
  const vd n = quadrant(x, &r), z = d_mul(r, r);
  const vf y = finish(d_flip(d_select(d_is_odd(n), cosine_of(z), sine_of(r, z)), n), odd);
  return f_select(f_eq(x, f_set(0)), x, y);  // -0
}
VFN vf v_cos(vf x, bool odd) {
  vd r;
  const vd n = quadrant(x, &r), z = d_mul(r, r);
  const vd y = d_select(d_is_odd(n), sine_of(r, z), cosine_of(z));
  return finish(d_flip(y, d_add(n, d_select(d_is_odd(n), d_set(1), d_set(0)))), odd);
}
VFN vf v_tan(vf x, bool odd) {
  vd r;
  const vd n = quadrant(x, &r), z = d_mul(r, r), s = sine_of(r, z), c = cosine_of(z);
  const vw turned = d_is_odd(n);
  const vd top = d_select(turned, d_sub(d_set(0), c), s), bottom = d_select(turned, s, c);
  return f_select(f_eq(x, f_set(0)), x, finish(d_div(top, bottom), odd));
}

// asin(|x|) where that is at most pi / 6, else pi / 2 - that = 2 asin(sqrt((1 - |x|) / 2)).
VFN vd asin_part(vd a, vw* far) {
  const vd half = d_set(0.5);
  *far = d_lt(half, a);
  const vd z = d_select(*far, d_fma(a, d_set(-0.5), half), d_mul(a, a));
  const vd t = d_select(*far, d_sqrt(z), a), y = d_fma(d_mul(t, z), D_POLY(z, poly_asin), t);
  return d_select(*far, d_add(y, y), y);
}
#define HALF_PI 0x1.921fb54442d18p+0
VFN vf v_asin(vf x, bool odd) {
  vw far;
  const vd t = d_of(x), y = asin_part(d_abs(t), &far);
  const vf inside = finish(d_copysign(d_select(far, d_sub(d_set(HALF_PI), y), y), t), odd);
  return f_select(f_le(f_abs(x), f_set(1)), inside, f_set(NAN_F));
}
VFN vf v_acos(vf x, bool odd) {
  vw far;
  const vd t = d_of(x), y = asin_part(d_abs(t), &far);
  const vd up = d_select(far, y, d_sub(d_set(HALF_PI), y));  // for |x|
  const vd down = d_sub(d_set(2 * HALF_PI), up);
  return finish(d_select(d_lt(t, d_set(0)), down, up), odd);
}
VFN vf v_atan(vf x, bool odd) {
  const vd t = d_of(x), a = d_abs(t), one = d_set(1);
  const vw far = d_lt(one, a);
  const vd s = d_select(far, d_div(one, a), a), z = d_mul(s, s);
  const vd y = d_fma(d_mul(s, z), D_POLY(z, poly_atan), s);
  return finish(d_copysign(d_select(far, d_sub(d_set(HALF_PI), y), y), t), odd);
}

// ---- rational ones ------------------------------------------------------------------------------

VFN vf v_softsign64(vf x, bool odd) {
  const vd t = d_of(x), a = d_min(d_set(0x1p60), d_abs(t));
  return finish(d_copysign(d_div(a, d_add(a, d_set(1))), t), odd);
}

VFN vf v_hard_sigmoid64(vf x, float alpha, float beta, bool odd) {
  const vd y = d_fma(d_set((double)alpha), d_of(x), d_set((double)beta));
  return finish(d_min(d_set(1), d_max(d_set(0), y)), odd);
}
VFN vf v_cube(vf x, bool odd) {
  const vd t = d_of(x);
  return finish(d_mul(d_mul(t, t), t), odd);
}
// Source: the function body of HardSwish 14, whose alpha = 1 / 6 is a float32.
VFN vf v_hard_swish64(vf x, bool odd) {
  const vd t = d_of(x), zero = d_set(0), three = d_set(3);
  const vd h = d_min(d_set(1), d_max(zero, d_fma(t, d_set(0x1.555556p-3), d_set(0.5))));
  const vd y = d_select(d_lt(t, three), d_mul(t, h), t);
  return finish(d_select(d_lt(d_set(-3), t), y, d_select(d_lt(t, three), d_set(-0.0), t)), odd);
}
// The remainder of x / y with the sign of x, exact: while the quotient has at most 28 bits, no
// rounding of it reaches the next whole number.
VFN vf v_fmod(vf x, vf y) {
  const vd a = d_of(x), b = d_of(y), q = d_truncate(d_div(a, b));
  const vf r = f_of(d_copysign(d_fma(d_sub(d_set(0), q), b, a), a)), infinite = f_set(HUGE_F);
  const vm whole = m_and(f_lt(f_abs(x), infinite), f_eq(f_abs(y), infinite));
  vf result = f_select(whole, x, r);
  if (m_any(m_of(d_lt(d_set(0x1p28), d_abs(q))))) {
    float u[LANES], v[LANES], w[LANES];
    f_store(u, x);
    f_store(v, y);
    f_store(w, result);
    vmath_remainder(u, v, LANES, w);
    result = f_load(w);
  }
  return result;
}

#endif  // ASSAY_BACKENDS_VMATH_FLOAT64_H_
