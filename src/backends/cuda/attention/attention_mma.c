// Attention of 16-bit floats on tensor cores (kernels/attention/attention_mma.cu).
#include "backends/cuda/attention/warps.h"

static const attention_warps_t of_f16 = {
    "attention_mma.cu", "attention_mma", ASSAY_TYPE_FLOAT16, "tensor", 1, true, ""};
static const attention_warps_t of_bf16 = {
    "attention_mma.cu", "attention_mma", ASSAY_TYPE_BFLOAT16, "tensor", 1, true, ""};

static assay_status_t variants_f16(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  return cuda_attention_warps_variants(l, &of_f16, out, n);
}

static assay_status_t variants_bf16(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  return cuda_attention_warps_variants(l, &of_bf16, out, n);
}

static assay_status_t make_f16(const assay_sized_layer_t* l, const assay_variant_t* v,
                               assay_kernel_t** out) {
  return cuda_attention_warps_make(l, &of_f16, v, out);
}

static assay_status_t make_bf16(const assay_sized_layer_t* l, const assay_variant_t* v,
                                assay_kernel_t** out) {
  return cuda_attention_warps_make(l, &of_bf16, v, out);
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
#define WEIGHT_ERROR 0x1.6ap-15

const assay_tactic_t cuda_tactic_attention_f16 = {
    .name = "attention_f16",
    .source = "assay",
    .variants = variants_f16,
    .make_variant = make_f16,
    .rounding = CUDA_ATTENTION_TENSOR_ROUNDING(ASSAY_FORMAT_FP16, WEIGHT_ERROR)};
const assay_tactic_t cuda_tactic_attention_bf16 = {
    .name = "attention_bf16",
    .source = "assay",
    .variants = variants_bf16,
    .make_variant = make_bf16,
    .rounding = CUDA_ATTENTION_TENSOR_ROUNDING(ASSAY_FORMAT_BF16, WEIGHT_ERROR)};
