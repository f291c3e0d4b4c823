// Attention of layers of tf32 on tensor cores (kernels/attention/attention_tf32.cu).
#include "backends/cuda/attention/warps.h"

static const attention_warps_t of_tf32 = {
    "attention_tf32.cu", "attention_tf32", ASSAY_TYPE_FLOAT, "tensor", 2, false, " -DPARTS=1"};

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  *n = 0;
  return l->layer->format == ASSAY_FORMAT_TF32 ? cuda_attention_warps_variants(l, &of_tf32, out, n)
                                               : NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, const assay_variant_t* v,
                           assay_kernel_t** out) {
  return l->layer->format == ASSAY_FORMAT_TF32 ? cuda_attention_warps_make(l, &of_tf32, v, out)
                                               : NULL;
}

const assay_tactic_t cuda_tactic_attention_tf32 = {
    .name = "attention_tf32",
    .source = "assay",
    .variants = variants,
    .make_variant = make,
    .rounding = CUDA_ATTENTION_TENSOR_ROUNDING(ASSAY_FORMAT_TF32, 0)};
