// Arithmetics other than float32, and what values look like that were computed in them.
#include "diagnose/kinds/arithmetic.h"

#include <string.h>

#include "eval/evaluator.h"

// The commonest first. TF32: NVIDIA A100 Tensor Core GPU Architecture, 2020; tensor cores cut what
// they read to ten bits behind the point, libraries round it before: cuBLAS 13 on an H200 to the
// nearest, ties to even, and it computes products with a vector in float32. XLA's default precision
// on TPUs is products of bfloat16 operands.
const assay_golden_arithmetic_t assay_golden_arithmetics[] = {
    {ASSAY_FORMAT_TF32, false, ASSAY_ARITHMETIC_OPERANDS, ASSAY_PRODUCTS_ANY, false, 0},
    {ASSAY_FORMAT_TF32, false, ASSAY_ARITHMETIC_OPERANDS, ASSAY_PRODUCTS_ANY, true, 0},
    {ASSAY_FORMAT_TF32, true, ASSAY_ARITHMETIC_OPERANDS, ASSAY_PRODUCTS_ANY, false, 0},
    {ASSAY_FORMAT_BF16, false, ASSAY_ARITHMETIC_OPERANDS, ASSAY_PRODUCTS_ANY, false, 0},
    {ASSAY_FORMAT_FP16, false, ASSAY_ARITHMETIC_PRODUCTS, ASSAY_PRODUCTS_ANY, false, 0},
    {ASSAY_FORMAT_BF16, false, ASSAY_ARITHMETIC_PRODUCTS, ASSAY_PRODUCTS_ANY, false, 0},
    {ASSAY_FORMAT_FP16, false, ASSAY_ARITHMETIC_ALL, ASSAY_PRODUCTS_ANY, false, 0},
    {ASSAY_FORMAT_BF16, false, ASSAY_ARITHMETIC_ALL, ASSAY_PRODUCTS_ANY, false, 0},
    {ASSAY_FORMAT_NONE, false, ASSAY_ARITHMETIC_OPERANDS, 0, false, 0}};

typedef struct product {
  const char* op_type;
  unsigned kind;
  size_t n_operands;  // the first inputs; a bias after them is added in float32
} product_t;

static const product_t PRODUCTS[] = {
    {"Conv", ASSAY_PRODUCTS_CUDNN, 2},          {"FusedConv", ASSAY_PRODUCTS_CUDNN, 2},
    {"ConvTranspose", ASSAY_PRODUCTS_CUDNN, 2}, {"DeformConv", ASSAY_PRODUCTS_CUDNN, 2},
    {"LSTM", ASSAY_PRODUCTS_CUDNN, 3},          {"GRU", ASSAY_PRODUCTS_CUDNN, 3},
    {"RNN", ASSAY_PRODUCTS_CUDNN, 3},           {"MatMul", ASSAY_PRODUCTS_MATRIX, 2},
    {"FusedMatMul", ASSAY_PRODUCTS_MATRIX, 2},  {"Gemm", ASSAY_PRODUCTS_MATRIX, 2},
    {"FusedGemm", ASSAY_PRODUCTS_MATRIX, 2},    {"Einsum", ASSAY_PRODUCTS_MATRIX, SIZE_MAX},
    {"Attention", ASSAY_PRODUCTS_MATRIX, 3},    {"MultiHeadAttention", ASSAY_PRODUCTS_MATRIX, 3}};

static const product_t* product_of(const assay_node_t* n) {
  const product_t* end = PRODUCTS + sizeof PRODUCTS / sizeof *PRODUCTS;
  for (const product_t* p = PRODUCTS; p < end; p++)
    if (strcmp(n->op_type, p->op_type) == 0) return p;
  return NULL;
}

unsigned assay_golden_arithmetic_products(const assay_node_t* n) {
  const product_t* p = product_of(n);
  return p ? p->kind : 0;
}

// ---- rounding ----------------------------------------------------------------------------------

// A number in [0, 1) of an element and a draw.
static double chance(int64_t i, uint64_t draw) {
  uint64_t x = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15U + draw * 0xd1342543de82ef95U;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93U;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93U;
  return (double)(x >> 11) * 0x1p-53;
}

static double cut(assay_format_t format, double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= UINT64_MAX << (53 - assay_format_info(format)->precision);
  memcpy(&x, &bits, sizeof bits);
  return x;
}

// Cuts, or rounds by chance.
static assay_status_t round_otherwise(assay_format_t format, uint64_t draw, assay_tensor_t** t) {
  assay_tensor_t *wide = NULL, *rounded = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create((*t)->type, wide->rank, wide->dims, &rounded);
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const double x = assay_f64(wide)[i];
    assay_f64(rounded)[i] =
        draw ? assay_format_round_stochastic(format, x, chance(i, draw)) : cut(format, x);
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = rounded;
  return NULL;
}

// A float16 value keeps its digits and loses its range (tf32 has as many): golden that overflowed
// is no use to anybody, and what did not shows the same.
static assay_status_t to_format(const assay_golden_arithmetic_t* a, bool truncates, uint64_t place,
                                assay_tensor_t** t) {
  assay_tensor_t* rounded = NULL;
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || (*t)->type != ASSAY_TYPE_FLOAT) return NULL;
  const assay_format_t f = a->format == ASSAY_FORMAT_FP16 ? ASSAY_FORMAT_TF32 : a->format;
  if (truncates || a->draw)
    return round_otherwise(f, a->draw ? a->draw * 0x9fb21c651e98df25U + place : 0, t);
  ASSAY_TRY(assay_round_tensor(*t, f, &rounded));
  assay_tensor_release(*t);
  *t = rounded;
  return NULL;
}

static uint64_t place_of(const assay_node_t* n, size_t i) {
  return ((uint64_t)n->id << 16) + (uint64_t)i + 1;
}

static bool is_turned(const assay_node_t* n, const char* attribute) {
  return strcmp(n->op_type, "Gemm") == 0 && assay_attr_i64(n, attribute, 0) != 0;
}

// Whether a product's result has one row or one column; a batch by one matrix counts as rows.
static bool is_by_vector(const assay_node_t* n, size_t n_in, assay_tensor_t* const* in) {
  const bool gemm = strcmp(n->op_type, "Gemm") == 0;
  if ((!gemm && strcmp(n->op_type, "MatMul") != 0) || n_in < 2 || !in[0] || !in[1]) return false;
  const assay_tensor_t *a = in[0], *b = in[1];
  if (a->kind != ASSAY_KIND_TENSOR || b->kind != ASSAY_KIND_TENSOR || a->rank < 1 || b->rank < 1)
    return false;
  const int64_t inner = a->dims[is_turned(n, "transA") ? 0 : a->rank - 1];
  const int64_t columns = b->rank < 2 ? 1 : b->dims[is_turned(n, "transB") ? 0 : b->rank - 1];
  const int64_t rows = a->rank < 2   ? 1
                       : b->rank > 2 ? a->dims[a->rank - 2]
                       : inner       ? a->size / inner
                                     : 0;
  return rows == 1 || columns == 1;
}

assay_status_t assay_golden_arithmetic_round_inputs(const assay_golden_arithmetic_t* a,
                                                    const assay_node_t* n, size_t n_in,
                                                    assay_tensor_t** in) {
  if (a->format == ASSAY_FORMAT_NONE) return NULL;
  const bool all = a->scope == ASSAY_ARITHMETIC_ALL;
  const product_t* p = product_of(n);
  if (!all && (!p || !(p->kind & a->products))) return NULL;
  if (a->spares_vectors && is_by_vector(n, n_in, in)) return NULL;
  const size_t operands = a->scope == ASSAY_ARITHMETIC_OPERANDS ? p->n_operands : SIZE_MAX;
  for (size_t i = 0; i < n_in && i < operands; i++)
    ASSAY_TRY(to_format(a, a->truncates, place_of(n, i), &in[i]));
  return NULL;
}

assay_status_t assay_golden_arithmetic_round_outputs(const assay_golden_arithmetic_t* a,
                                                     const assay_node_t* n, size_t n_out,
                                                     assay_tensor_t** out) {
  if (a->format == ASSAY_FORMAT_NONE || a->scope == ASSAY_ARITHMETIC_OPERANDS) return NULL;
  if (a->scope == ASSAY_ARITHMETIC_PRODUCTS && !(assay_golden_arithmetic_products(n) & a->products))
    return NULL;
  for (size_t i = 0; i < n_out; i++)
    ASSAY_TRY(to_format(a, false, place_of(n, n->n_inputs + i), &out[i]));
  return NULL;
}

// ---- words -------------------------------------------------------------------------------------

const char* assay_golden_arithmetic_name(const assay_golden_arithmetic_t* a) {
  const bool bf16 = a->format == ASSAY_FORMAT_BF16;
  if (a->format == ASSAY_FORMAT_NONE) return "fp32";
  if (a->format == ASSAY_FORMAT_TF32) return "tf32";
  if (a->scope == ASSAY_ARITHMETIC_ALL) return bf16 ? "bf16" : "fp16";
  return bf16 ? "bf16 products" : "fp16 products";
}

const char* assay_golden_arithmetic_text(const assay_golden_arithmetic_t* a) {
  const bool bf16 = a->format == ASSAY_FORMAT_BF16;
  if (a->format == ASSAY_FORMAT_TF32)
    return a->products == ASSAY_PRODUCTS_CUDNN    ? "with convolutions in TF32"
           : a->products == ASSAY_PRODUCTS_MATRIX ? "with matrix products in TF32"
                                                  : "with its products in TF32";
  if (a->scope == ASSAY_ARITHMETIC_ALL) return bf16 ? "wholly in bf16" : "wholly in fp16";
  return bf16 ? "with its products in bf16" : "with its products in fp16";
}
