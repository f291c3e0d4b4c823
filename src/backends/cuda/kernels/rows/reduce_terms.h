// What reductions of floats do to terms: each is put through OF (itself, magnitude, square), joined
// by JOIN (sum, product, larger, smaller), and the result put through END (itself, mean, root,
// logarithm).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_REDUCE_TERMS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_REDUCE_TERMS_H_

#include "elements.h"

#if defined LOG_SUM_EXP || defined LOGARITHM
#include "vmath.h"
#endif

DEVICE float itself(float x) { return x; }
DEVICE float magnitude(float x) { return float_of(bits_of(x) & 0x7fffffffu); }
DEVICE float square(float x) { return x * x; }

DEVICE float end_itself(float x, float count) { return (void)count, x; }
DEVICE float end_mean(float x, float count) { return x / count; }
DEVICE float end_root(float x, float count) { return (void)count, SQRT(x); }
#ifdef LOGARITHM
DEVICE float end_logarithm(float x, float count) { return (void)count, v_log(x, false); }
#endif

#define NEUTRAL(join) JOINED(neutral_, join)
#define neutral_sum 0
#define neutral_product 1
#define neutral_larger (-POSITIVE_INFINITY)
#define neutral_smaller POSITIVE_INFINITY

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_REDUCE_TERMS_H_
