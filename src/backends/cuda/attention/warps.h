// Attention on tensor cores (kernels/attention/attention_warps.h): what the tactics of it have in
// common.
#ifndef ASSAY_BACKENDS_CUDA_ATTENTION_WARPS_H_
#define ASSAY_BACKENDS_CUDA_ATTENTION_WARPS_H_

#include "backends/cuda/attention/attention.h"

// A kernel of it.
typedef struct attention_warps {
  const char *file, *kernel;
  assay_type_t type;     // of all operands
  const char* numerics;  // of its variants (exec/kernel.h)
  double work;           // of a block of keys, beside that of 16 bits
  bool stays;            // queries stay in shared memory
  const char* options;   // besides those that all have
} attention_warps_t;

// *ok: whether a layer is one for this kernel.
assay_status_t cuda_attention_warps_read(const assay_sized_layer_t* l, const attention_warps_t* w,
                                         attention_layer_t* out, bool* ok) ASSAY_MUST_USE;
// How many warps share keys. *out_n 0: the layer is none for this kernel.
assay_status_t cuda_attention_warps_variants(const assay_sized_layer_t* l,
                                             const attention_warps_t* w, assay_variant_t* out,
                                             size_t* out_n) ASSAY_MUST_USE;
assay_status_t cuda_attention_warps_make(const assay_sized_layer_t* l, const attention_warps_t* w,
                                         const assay_variant_t* v,
                                         assay_kernel_t** out) ASSAY_MUST_USE;

// Weights are rounded to a format where they are multiplied, and off by a share `error` before
// that; for sums see product_mma.c.
#define CUDA_ATTENTION_TENSOR_ROUNDING(format, error)                                              \
  {                                                                                                \
    .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .truncates = true,             \
    .fma = true, .by_definition = true, .flushes = true, .function_ulps = 4, .operands = (format), \
    .weight_error = (error)                                                                        \
  }

// Of weights by powers of 2 (kernels/attention/exp2_weights.h): an exponent is off by half a step,
// 2^-14, which makes a share of 2^-14 ln(2) (1 + 2^-15), and its power by 2 ulp, 2^-22 at most:
// 2^-14.5 with room for 2^-18. Of exponents that is all that scores' own errors do not cover:
// - near 0, s c - r is rounded once, and c is log2(e) within 2^-24: as argument_limits has it;
// - far from 0, the difference of scores is rounded, to u |s - m|, and r is off from m c by u |m c|
//   at most, or by 2^-14 where that is from 896 to 1024. It is once: that references change is
//   exact behind it, and the last one's r is the same for all keys. A key that has a weight in the
//   end is within 134 steps of 1 of m and of the largest score, so that u (|s| + |max|), which
//   stands there for exponents to base 2, is more: of 896, u (888 + 762) and u 1024.
// Others' weights (exp_of_negative) are off by less.
#define CUDA_ATTENTION_EXP2_WEIGHT_ERROR 0x1.6ap-15

#endif  // ASSAY_BACKENDS_CUDA_ATTENTION_WARPS_H_
