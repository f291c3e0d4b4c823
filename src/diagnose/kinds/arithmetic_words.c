// What arithmetics are called.
#include "diagnose/kinds/arithmetic.h"

// What single places are called: for programs, and after "computed".
typedef struct place_words {
  const char *bf16, *fp16, *fp8, *text_bf16, *text_fp16, *text_fp8;
} place_words_t;

static const place_words_t* words_of(const assay_golden_arithmetic_t* a) {
  static const place_words_t WORDS[] = {
      {"bf16 softmax outputs", "fp16 softmax outputs", "",
       "with softmax outputs multiplied in bf16", "with softmax outputs multiplied in fp16", ""},
      {"bf16 softmax inputs", "fp16 softmax inputs", "", "with softmax inputs in bf16",
       "with softmax inputs in fp16", ""},
      {"bf16 keys and values", "fp16 keys and values", "fp8 keys and values",
       "with keys and values in bf16", "with keys and values in fp16",
       "with keys and values in fp8"},
      {"bf16 activations", "fp16 activations", "", "with what products read but weights in bf16",
       "with what products read but weights in fp16", ""},
      {"bf16 normalizations", "fp16 normalizations", "", "with what normalizations give in bf16",
       "with what normalizations give in fp16", ""},
      {"bf16 inputs", "fp16 inputs", "", "with its inputs in bf16", "with its inputs in fp16", ""},
      {"bf16 tables", "fp16 tables", "", "with rows of its tables in bf16",
       "with rows of its tables in fp16", ""}};
  return a->scope < ASSAY_ARITHMETIC_SHARES ? NULL : &WORDS[a->scope - ASSAY_ARITHMETIC_SHARES];
}

const char* assay_golden_arithmetic_name(const assay_golden_arithmetic_t* a) {
  const bool bf16 = a->format == ASSAY_FORMAT_BF16;
  if (a->format == ASSAY_FORMAT_NONE) return "fp32";
  if (a->format == ASSAY_FORMAT_TF32) return "tf32";
  const place_words_t* place = words_of(a);
  if (place) return bf16 ? place->bf16 : a->format == ASSAY_FORMAT_FP16 ? place->fp16 : place->fp8;
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
  const place_words_t* place = words_of(a);
  if (place)
    return bf16                             ? place->text_bf16
           : a->format == ASSAY_FORMAT_FP16 ? place->text_fp16
                                            : place->text_fp8;
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
