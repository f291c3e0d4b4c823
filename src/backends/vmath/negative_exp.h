// The exponential that kernels of GPUs weigh scores of attention with, an element at a time.
// Included after lanes_plain.h, or lanes_one.h and what it needs.
#ifndef ASSAY_BACKENDS_VMATH_NEGATIVE_EXP_H_
#define ASSAY_BACKENDS_VMATH_NEGATIVE_EXP_H_

// e^x of x up to 0 within 1.5 ulp, 0 where that is no normal number: by e^r, |r| up to ln(2) / 2, a
// polynomial within 2^-28, times a power of 2. Without a table it takes half of what v_exp does.
VFN float exp_of_negative(float x) {
  const float shift = 0x1.8p23F;  // adding it rounds to a whole number
  const float k = f_fma(x, 0x1.715476p+0F, shift), n = k - shift;
  const float r = f_fma(n, 0x1.05c610p-29F, f_fma(n, -0x1.62e430p-1F, x));
  float q = f_fma(0x1.6a2434p-10F, r, 0x1.1239e2p-7F);
  q = f_fma(q, r, 0x1.5558f2p-5F);
  q = f_fma(q, r, 0x1.555492p-3F);
  q = f_fma(q, r, 0x1.fffffcp-2F);
  const float y = f_fma(q, r * r, r) + 1, power = f_from_bits((f_bits(k) << 23) + 0x3f800000u);
  return x < -0x1.5d589ep6F ? 0.0F : y * power;  // -126 ln(2)
}

#endif  // ASSAY_BACKENDS_VMATH_NEGATIVE_EXP_H_
