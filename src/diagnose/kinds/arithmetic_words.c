// What arithmetics are called.
#include "diagnose/kinds/arithmetic.h"

const char* assay_golden_arithmetic_name(const assay_golden_arithmetic_t* a) {
  const bool bf16 = a->format == ASSAY_FORMAT_BF16;
  if (a->format == ASSAY_FORMAT_NONE) return "fp32";
  if (a->format == ASSAY_FORMAT_TF32) return "tf32";
  if (a->addends) return bf16 ? "bf16 sums" : "fp16 sums";
  if (a->scope == ASSAY_ARITHMETIC_ALL) return bf16 ? "bf16" : "fp16";
  if (a->scope == ASSAY_ARITHMETIC_WEIGHTS) return bf16 ? "bf16 weights" : "fp16 weights";
  if (a->scope == ASSAY_ARITHMETIC_CONSTANTS) return bf16 ? "bf16 constants" : "fp16 constants";
  if (a->parts > 1) return bf16 ? "bf16x3 products" : "fp16x3 products";
  return bf16 ? "bf16 products" : "fp16 products";
}

static bool is_part(const assay_golden_arithmetic_t* a, unsigned kinds) {
  return a->products && !(a->products & ~kinds);
}

const char* assay_golden_arithmetic_text(const assay_golden_arithmetic_t* a) {
  static const unsigned MATRICES = ASSAY_PRODUCTS_MATRIX | ASSAY_PRODUCTS_COMPUTED;
  const bool bf16 = a->format == ASSAY_FORMAT_BF16;
  if (a->format == ASSAY_FORMAT_TF32)
    return a->products == ASSAY_PRODUCTS_CONVOLUTION ? "with convolutions in TF32"
           : is_part(a, MATRICES)                    ? "with matrix products in TF32"
                                                     : "with its products in TF32";
  if (a->addends)
    return bf16 ? "with its products in bf16, added up in bf16, too"
                : "with its products in fp16, added up in fp16, too";
  if (a->scope == ASSAY_ARITHMETIC_ALL) return bf16 ? "wholly in bf16" : "wholly in fp16";
  if (a->scope == ASSAY_ARITHMETIC_WEIGHTS)
    return bf16 ? "with its weights in bf16" : "with its weights in fp16";
  if (a->scope == ASSAY_ARITHMETIC_CONSTANTS)
    return bf16 ? "with all of its constants in bf16" : "with all of its constants in fp16";
  if (a->parts > 1)
    return bf16 ? "with each product as three products in bf16"
                : "with each product as three products in fp16";
  return bf16 ? "with its products in bf16" : "with its products in fp16";
}
