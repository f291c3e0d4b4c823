// One lane of the vector functions: what each operation does is defined here, and the headers for
// vectors do the same to the bit. Included by lanes_plain.h, and by kernels of GPUs, after what
// differs between these: bits of numbers, and operations that are not C's operators.
#ifndef ASSAY_BACKENDS_VMATH_LANES_ONE_H_
#define ASSAY_BACKENDS_VMATH_LANES_ONE_H_

enum { LANES = 1 };

typedef float vf;   // LANES of float32
typedef double vd;  // LANES of float64
typedef bool vm;    // a choice for each lane of vf
typedef bool vw;    // the same for vd

#define SIGNLESS ((uint64_t)0x7fffffffffffffff)

// ---- float32; + - * / are C's operators ---------------------------------------------------------

VFN vf f_set(float x) { return x; }
VFN vf f_load(const float* p) { return *p; }
VFN void f_store(float* p, vf x) { *p = x; }
// The first n lanes, n < LANES; others are 0, or are not written.
VFN vf f_load_some(const float* p, int64_t n) { return n > 0 ? *p : 0; }
VFN void f_store_some(float* p, int64_t n, vf x) {
  if (n > 0) *p = x;
}
VFN vf f_abs(vf a) { return f_from_bits(f_bits(a) & 0x7fffffff); }
VFN vf f_copysign(vf a, vf sign) {
  return f_from_bits((f_bits(a) & 0x7fffffff) | (f_bits(sign) & 0x80000000));
}
VFN vf f_negative(vf a) { return f_from_bits(f_bits(a) | 0x80000000); }  // -|a|
// b where either is NaN, and where both are zero.
VFN vf f_min(vf a, vf b) { return a < b ? a : b; }
VFN vf f_max(vf a, vf b) { return a > b ? a : b; }
VFN vm f_lt(vf a, vf b) { return a < b; }
VFN vm f_le(vf a, vf b) { return a <= b; }
VFN vm f_eq(vf a, vf b) { return a == b; }
VFN vm f_is_nan(vf a) { return a != a; }
VFN vf f_select(vm m, vf a, vf b) { return m ? a : b; }
VFN vm m_and(vm a, vm b) { return a && b; }
VFN vm m_or(vm a, vm b) { return a || b; }
VFN bool m_any(vm a) { return a; }
// n is a multiple of 1 / 16 between -252 and 252, given with 0x1.8p19 added. x * 2^(the whole
// number below n) rounded once, x of a magnitude near 1; and t[i] for the rest i / 16.
VFN vf f_scale(vf x, vf n) {
  const int32_t k = (int32_t)(f_bits(n) - 0x49400000u) >> 4, half = k >> 1;
  const vf a = f_from_bits((uint32_t)(half + 127) << 23);
  const vf b = f_from_bits((uint32_t)(k - half + 127) << 23);
  return x * a * b;
}
VFN vf f_look_up(const float* t, vf n) { return t[f_bits(n) & 15]; }
VFN vf f_look_up_32(const float* t, vf n) { return t[f_bits(n) & 31]; }
// Bits towards zero by one where `down`, then the last bit set where `odd`.
VFN vf f_to_odd(vf x, vm down, vm odd) { return f_from_bits((f_bits(x) - down) | odd); }
// Where bits of x and of the mask, as an integer, lie at most 2 from `middle`.
VFN vm f_near(vf x, uint32_t mask, uint32_t middle) {
  return (f_bits(x) & mask) - (middle - 2) <= 4;
}

// ---- float64 ------------------------------------------------------------------------------------

VFN vd d_set(double x) { return x; }
VFN vd d_of(vf x) { return (double)x; }
VFN vf f_of(vd x) { return (float)x; }  // rounds to the nearest, ties to even
VFN vd d_add(vd a, vd b) { return a + b; }
VFN vd d_sub(vd a, vd b) { return a - b; }
VFN vd d_mul(vd a, vd b) { return a * b; }
VFN vd d_div(vd a, vd b) { return a / b; }
VFN vd d_abs(vd a) { return d_from_bits(d_bits(a) & SIGNLESS); }
VFN vd d_copysign(vd a, vd sign) {
  return d_from_bits((d_bits(a) & SIGNLESS) | (d_bits(sign) & ~SIGNLESS));
}
VFN vd d_min(vd a, vd b) { return a < b ? a : b; }
VFN vd d_max(vd a, vd b) { return a > b ? a : b; }
VFN vw d_lt(vd a, vd b) { return a < b; }
VFN vw d_eq(vd a, vd b) { return a == b; }
VFN vd d_select(vw m, vd a, vd b) { return m ? a : b; }
VFN vw w_of(vm m) { return m; }
VFN vm m_of(vw m) { return m; }
VFN vw w_and(vw a, vw b) { return a && b; }
VFN vw w_or(vw a, vw b) { return a || b; }
VFN vw w_xor(vw a, vw b) { return a != b; }
// n is a multiple of 1 / 8, given as such and with 0x1.8p49 added: t[i] for i / 8, what is over the
// whole number below n, times 2 to that number; normal.
VFN vd d_power(const double* t, vd n, vd k) {
  (void)k;
  return d_from_bits(d_bits(t[d_bits(n) & 7]) + (d_bits(n) << 49 & 0xfff0000000000000u));
}
// 2^n in the range of normal numbers; n is given with 0x1.8p52 added.
VFN vd d_two_to(vd n) { return d_from_bits((d_bits(n) << 52) + 0x3ff0000000000000u); }
// Bit 0 of a whole number with 0x1.8p52 added, as a choice; and bit 1, as the sign of x.
VFN vw d_is_odd(vd n) { return d_bits(n) & 1; }
VFN vd d_flip(vd x, vd n) { return d_from_bits(d_bits(x) ^ (d_bits(n) & 2) << 62); }
// The k for which a normal x > 0 is 2^k times a number from sqrt(1/2) to sqrt(2), which is *m.
VFN vd d_split(vd x, vd* m) {
  const uint64_t t = d_bits(x) - 0x3fe6a09e667f3bcdu;
  *m = d_from_bits(d_bits(x) - (t & 0xfff0000000000000u));
  const uint64_t k = (t + ((uint64_t)1024 << 52)) >> 52;
  return d_from_bits(k | 0x4330000000000000u) - (0x1p52 + 1024);
}
VFN void d_store(double* p, vd x) { *p = x; }
VFN vd d_load(const double* p) { return *p; }

#endif  // ASSAY_BACKENDS_VMATH_LANES_ONE_H_
