// What vector functions do lane by lane, because it is rare.
#ifndef ASSAY_BACKENDS_VMATH_REDUCE_H_
#define ASSAY_BACKENDS_VMATH_REDUCE_H_

// Where |x[i]| >= 2^28: x[i] = k pi / 2 + rest[i] with k mod 4 + 0x1.8p52 in turns[i], |rest[i]| at
// most about pi / 4. NaN for infinity and NaN.
void vmath_reduce(const float* x, int n, double* rest, double* turns);

// Where x[i] / y[i] has more than 28 bits: z[i] = fmodf(x[i], y[i]).
void vmath_remainder(const float* x, const float* y, int n, float* z);

#endif  // ASSAY_BACKENDS_VMATH_REDUCE_H_
