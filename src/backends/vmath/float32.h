// Functions that networks spend their time in, evaluated in float32 lanes with at most 1 ulp (those
// that are called short: 2.5); their twins in float64 (float64.h) serve 16-bit results. Included
// after one of the lanes_*.h.
#ifndef ASSAY_BACKENDS_VMATH_FLOAT32_H_
#define ASSAY_BACKENDS_VMATH_FLOAT32_H_

#include "backends/vmath/float64.h"

VFN vf f_horner(vf x, const float* c, int n) {
  vf y = f_set(c[0]);
  VUNROLL
  for (int i = 1; i < n; i++) y = f_fma(y, x, f_set(c[i]));
  return y;
}
#define F_POLY(x, c) f_horner(x, c, (int)(sizeof(c) / sizeof *(c)))

// In float64 where lanes are open, which few are.
#define OPEN_IN_FLOAT64(y, open, in_float64) (m_any(open) ? f_select(open, in_float64, y) : (y))

// x = k ln(2) + what is returned, which is at most ln(2) / 32; *n is k, a multiple of 1 / 16, as
// f_scale takes it. ln(2) is taken off in two parts (W. J. Cody and W. Waite, Software manual for
// the elementary functions, 1980).
VFN vf exp32_reduce(vf x, vf* n) {
  const vf shift = f_set(0x1.8p19F);  // adding it rounds to a multiple of 1 / 16
  *n = f_fma(x, f_set(0x1.715476p+0F), shift);
  const vf k = *n - shift;
  return f_fma(k, f_set(0x1.05c610p-29F), f_fma(k, f_set(-0x1.62e430p-1F), x));
}
// e^r 2^n as a sum of *high and what is returned, both times 2^(the whole number below n): *high is
// one of 16 powers of 2, the rest under 0.03 of it.
VFN vf exp32_finish(vf r, vf n, vf* high) {
  *high = f_look_up(table32_exp2, n);
  const vf m = f_fma(F_POLY(r, poly32_exp), r * r, r);
  return f_fma(*high, m, f_look_up(table32_exp2_low, n));
}
VFN vf exp32_parts(vf x, vf* n, vf* high) {
  const vf r = exp32_reduce(x, n);
  return exp32_finish(r, *n, high);
}

VFN vf v_exp(vf x) {
  vf n, high;
  const vf low = exp32_parts(f_min(f_set(89), f_max(f_set(-104), x)), &n, &high);
  return f_scale(high + low, n);
}

// (t + dt) / (d + dd) for d from 1 to 2^30: the quotient corrected by its own remainder.
VFN vf f_quotient(vf t, vf dt, vf d, vf dd) {
  const vf inverse = f_set(1) / d, q = t * inverse;
  return f_fma(f_fma(f_set(0) - q, dd, f_fma(f_set(0) - q, d, t) + dt), inverse, q);
}

// 1 / (1 + e), e = e^-|x|, or, below 0, e times that, where e is kept as a sum of two and scaled at
// the end: the tail goes on into the subnormals.
VFN vf v_sigmoid(vf x) {
  vf n, high;
  const vf one = f_set(1), zero = f_set(0);
  const vf low = exp32_parts(f_max(f_set(-104), f_negative(x)), &n, &high);
  const vf e = f_scale(high + low, n), d = e + one, rest = e - (d - one);
  const vm down = f_lt(x, zero);
  const vf y = f_quotient(f_select(down, high, one), f_select(down, low, zero), d, rest);
  return f_scale(y, f_select(down, n, f_set(0x1.8p19F)));
}

// x / (1 + e^-t), t = alpha x, alpha > 0: the quotient of x, or of x e^t where t is negative, by 1
// + e^-|t|, and what is left of the products. Where t > 30 it is x; below -170 0 for all these
// alpha.
VFN vf v_swish32(vf x, float alpha) {
  vf n, high;
  const vf one = f_set(1), zero = f_set(0), a = f_set(alpha);
  const vf y = f_max(f_set(-170 / alpha), x), t = a * y;
  const vm down = f_lt(t, zero);
  vf r = exp32_reduce(f_negative(t), &n);
  if (alpha != 1) {
    const vf left = f_fma(a, y, zero - t);
    r = r + f_select(down, left, zero - left);
  }
  const vf low = exp32_finish(r, n, &high);
  const vf e = f_scale(high + low, n), d = e + one, rest = e - (d - one);
  const vf top = y * high, under = f_fma(y, low, f_fma(y, high, zero - top));
  const vf q = f_quotient(f_select(down, top, y), f_select(down, under, zero), d, rest);
  const vf scaled = f_scale(q, f_select(down, n, f_set(0x1.8p19F)));
  return f_copysign(f_select(f_lt(f_set(30), t), x, scaled), x);
}
VFN bool in_swish32(float alpha) { return alpha >= 1.0F / 16 && alpha <= 16; }
VFN vf v_swish(vf x, float alpha) {
  return in_swish32(alpha) ? v_swish32(x, alpha) : v_swish64(x, alpha, false);
}

// The same within 2.5 ulp: the divisor times 2^-64, so that it stays finite for as long as the
// quotient is not a zero.
VFN vf short_swish32(vf x, float alpha) {
  vf n, high;
  const vf a = f_set(-alpha), y = f_max(f_set(-170 / alpha), x), min = f_set(-104);
  const vf t = f_max(min, a * y);
  vf r = exp32_reduce(t, &n);
  if (alpha != 1) r = r + f_select(f_lt(min, t), f_fma(a, y, f_set(0) - t), f_set(0));
  const vf low = exp32_finish(r, n, &high);
  const vf e = f_scale(high + low, n - f_set(64));
  return f_select(f_lt(t, f_set(-30)), x, y / (e + f_set(0x1p-64F)) * f_set(0x1p-64F));
}
VFN vf v_short_swish(vf x, float alpha) {
  return in_swish32(alpha) ? short_swish32(x, alpha) : v_swish64(x, alpha, false);
}

// Small ones by x + x^3 p(x^2), others by 1 - 2 / (e^(2|x|) + 1).
VFN vf v_tanh(vf x) {
  const vf a = f_abs(x), s = a * a, one = f_set(1);
  vf n, high;
  const vf low = exp32_parts(f_min(f_set(20), a + a), &n, &high);
  const vf large = f_fma(f_set(-2), one / (f_scale(high + low, n) + one), one);
  const vf small = f_fma(a * s, F_POLY(s, poly32_tanh), a);
  return f_copysign(f_select(f_lt(a, f_set(0.875F)), small, large), x);
}

// Small ones by x + x p(x^2), others by 1 - exp(q(|x|)), q the logarithm of erfc, whose last sum
// keeps what it loses.
VFN vf v_erf(vf x) {
  enum { TERMS = sizeof poly32_erfc / sizeof *poly32_erfc };
  const vf a = f_min(f_set(4), f_abs(x)), s = a * a, one = f_set(1);
  const vf h = f_horner(a, poly32_erfc, TERMS - 1), last = f_set(poly32_erfc[TERMS - 1]);
  const vf q = f_fma(a, h, last), rest = f_fma(a, h, f_set(0) - q) + last;
  vf n, high;
  const vf r = exp32_reduce(q, &n) + rest, low = exp32_finish(r, n, &high);
  const vf large = one - f_scale(high + low, n), small = f_fma(F_POLY(s, poly32_erf), a, a);
  return f_copysign(f_select(f_lt(a, f_set(0.90625F)), small, large), x);
}

// b f(b) for b = |x|, f by one of 32 polynomials around 0, 1 / 4, ..., 31 / 4, whose value there is
// a sum of two; then x minus that, or, below 0, that itself.
VFN vf gelu_by_pieces(vf x, const float (*t)[32]) {
  enum { VALUE, LOST, HIGHEST, TERMS = 9 };
  const vf shift = f_set(0x1.8p21F);  // adding it rounds to a multiple of 1 / 4
  const vf b = f_min(f_set(7.75F), f_abs(x)), n = b + shift, d = b - (n - shift);
  const vf value = f_look_up_32(t[VALUE], n);
  vf p = f_look_up_32(t[HIGHEST], n);
  VUNROLL
  for (int i = HIGHEST + 1; i < TERMS; i++) p = f_fma(p, d, f_look_up_32(t[i], n));
  p = f_fma(p, d, f_look_up_32(t[LOST], n));
  const vf top = b * value, y = top + f_fma(b, p, f_fma(b, value, f_set(0) - top));
  return f_copysign(f_select(f_lt(f_set(0), x), x - y, y), x);
}
// Right but far below 0, where float64 is needed.
VFN vf short_gelu32(vf x, vm* far) {
  *far = f_lt(x, f_set(-5));
  return gelu_by_pieces(x, pieces32_gelu);
}
VFN vf short_gelu_tanh32(vf x, vm* far) {
  *far = f_lt(x, f_set(-4));
  return gelu_by_pieces(x, pieces32_gelu_tanh);
}
VFN vf v_short_gelu(vf x) {
  vm far;
  const vf y = short_gelu32(x, &far);
  return OPEN_IN_FLOAT64(y, far, v_gelu64(x, false));
}
VFN vf v_short_gelu_tanh(vf x) {
  vm far;
  const vf y = short_gelu_tanh32(x, &far);
  return OPEN_IN_FLOAT64(y, far, v_gelu_tanh64(x, false));
}

VFN vf v_hard_sigmoid(vf x, float alpha, float beta) {
  return f_min(f_set(1), f_max(f_set(0), f_fma(f_set(alpha), x, f_set(beta))));
}

// x times what HardSigmoid gives with 1/6, as float32 has it, and 1/2: -3 and all below it give -0.
// Within 1.5 ulp.
VFN vf v_short_hard_swish(vf x) {
  const vf h = f_fma(f_set(0x1.555556p-3F), x, f_set(0.5F));
  return f_max(f_set(-3), x) * f_min(f_set(1), f_max(f_set(0), h));
}

// x / (1 + |x|).
VFN vf v_softsign(vf x) {
  const vf a = f_min(f_set(0x1p30F), f_abs(x)), one = f_set(1), d = a + one;
  const vf larger = f_max(a, one), smaller = f_min(a, one);
  return f_copysign(f_quotient(a, f_set(0), d, smaller - (d - larger)), x);
}

// A float32 within 2.5 ulp rounds to 16 bits as the function's value does, unless it lies beside
// the middle of two neighbours: then by float64 (A. Ziv, Fast evaluation of elementary mathematical
// functions with correctly rounded last bit, ACM TOMS 17, 1991).
VFN vm half_is_open(vf y) {
  return m_or(f_near(y, 0x1fff, 0x1000), f_lt(f_abs(y), f_set(0x1p-14F)));
}
VFN vm bf16_is_open(vf y) { return f_near(y, 0xffff, 0x8000); }

#endif  // ASSAY_BACKENDS_VMATH_FLOAT32_H_
