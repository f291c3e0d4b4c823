// The elementary functions of double, with the same bits on every machine: what the evaluator calls
// instead of the C library's, whose functions are others on another CPU (with and without FMA) and
// in another version.
//
// Values are made of + - * / and square roots alone, in an order that is fixed, without
// contraction: IEEE 754 leaves no choice. A first evaluation with some 10 bits more than double has
// decides nearly always how the value rounds; where it does not, one in double-double
// (base/double_double.h) does, whose error is below 2^-90 of the value (pow, exp2: 2^-80). So a
// result is the value rounded to nearest, but where the value lies nearer than that to the middle
// between two doubles: by chance one argument in 2^36 (2^26). Zeros, infinities, NaN, overflow and
// underflow are those of C's Annex F; no flag is promised, and the rounding mode is to nearest.
//
// sqrt, fma, fmod, remainder, ldexp, frexp and the roundings to whole numbers are exact or rounded
// correctly in every C library, and are called there.
#ifndef ASSAY_BASE_FUNCTIONS_H_
#define ASSAY_BASE_FUNCTIONS_H_

double assay_exp(double x);
double assay_exp2(double x);
double assay_expm1(double x);
double assay_log(double x);
double assay_log2(double x);
double assay_log10(double x);
double assay_log1p(double x);
double assay_pow(double x, double y);
double assay_sin(double x);
double assay_cos(double x);
double assay_tan(double x);
double assay_asin(double x);
double assay_acos(double x);
double assay_atan(double x);
double assay_sinh(double x);
double assay_cosh(double x);
double assay_tanh(double x);
double assay_asinh(double x);
double assay_acosh(double x);
double assay_atanh(double x);
double assay_erf(double x);
double assay_erfc(double x);
double assay_hypot(double x, double y);

#endif  // ASSAY_BASE_FUNCTIONS_H_
