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

const assay_tactic_t cuda_tactic_attention_f16 = {
    .name = "attention_f16",
    .source = "assay",
    .variants = variants_f16,
    .make_variant = make_f16,
    .rounding =
        CUDA_ATTENTION_TENSOR_ROUNDING(ASSAY_FORMAT_FP16, CUDA_ATTENTION_EXP2_WEIGHT_ERROR)};
const assay_tactic_t cuda_tactic_attention_bf16 = {
    .name = "attention_bf16",
    .source = "assay",
    .variants = variants_bf16,
    .make_variant = make_bf16,
    .rounding =
        CUDA_ATTENTION_TENSOR_ROUNDING(ASSAY_FORMAT_BF16, CUDA_ATTENTION_EXP2_WEIGHT_ERROR)};
