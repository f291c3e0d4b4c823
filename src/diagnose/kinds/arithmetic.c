// Arithmetics other than float32, and what values look like that were computed in them.
#include "diagnose/kinds/arithmetic.h"

#include <math.h>
#include <string.h>

#include "eval/evaluator.h"

// The commonest first. TF32: NVIDIA A100 Tensor Core GPU Architecture, 2020; tensor cores cut what
// they read to ten bits behind the point, libraries round it before: cuBLAS 13 on an H200 to the
// nearest, ties to even, and it computes products with a vector in float32 (arithmetic_find.c tries
// that, too). XLA's default precision
// on TPUs is products of bfloat16 operands.
const assay_golden_arithmetic_t assay_golden_arithmetics[] = {
    {.format = ASSAY_FORMAT_TF32, .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_TF32, .products = ASSAY_PRODUCTS_ANY, .truncates = true},
    {.format = ASSAY_FORMAT_BF16, .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_FP16, .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_FP16,
     .scope = ASSAY_ARITHMETIC_PRODUCTS,
     .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_BF16,
     .scope = ASSAY_ARITHMETIC_PRODUCTS,
     .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_FP16,
     .scope = ASSAY_ARITHMETIC_AUTOCAST,
     .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_BF16,
     .scope = ASSAY_ARITHMETIC_AUTOCAST,
     .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_FP16, .scope = ASSAY_ARITHMETIC_ALL, .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_BF16, .scope = ASSAY_ARITHMETIC_ALL, .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_NONE}};

typedef struct product {
  const char* op_type;
  unsigned kind;
  size_t n_operands;  // the first inputs; a bias after them is added in float32
} product_t;

static const product_t PRODUCTS[] = {{"Conv", ASSAY_PRODUCTS_CONVOLUTION, 2},
                                     {"FusedConv", ASSAY_PRODUCTS_CONVOLUTION, 2},
                                     {"ConvTranspose", ASSAY_PRODUCTS_CONVOLUTION, 2},
                                     {"DeformConv", ASSAY_PRODUCTS_CONVOLUTION, 2},
                                     {"LSTM", ASSAY_PRODUCTS_RECURRENT, 3},
                                     {"GRU", ASSAY_PRODUCTS_RECURRENT, 3},
                                     {"RNN", ASSAY_PRODUCTS_RECURRENT, 3},
                                     {"MatMul", ASSAY_PRODUCTS_MATRIX, 2},
                                     {"FusedMatMul", ASSAY_PRODUCTS_MATRIX, 2},
                                     {"Gemm", ASSAY_PRODUCTS_MATRIX, 2},
                                     {"FusedGemm", ASSAY_PRODUCTS_MATRIX, 2},
                                     {"Einsum", ASSAY_PRODUCTS_MATRIX, SIZE_MAX},
                                     {"Attention", ASSAY_PRODUCTS_MATRIX, 3},
                                     {"MultiHeadAttention", ASSAY_PRODUCTS_MATRIX, 3}};

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

// A float16 value loses digits below 2^-14, and keeps its range above (tf32 has as many digits):
// golden that overflowed is no use to anybody, and what did not shows the same.
static double nearest(assay_format_t format, double x) {
  const double y = assay_format_round(format, x, ASSAY_OVERFLOW_IEEE);
  if (format != ASSAY_FORMAT_FP16 || isfinite(y)) return y;
  return assay_format_round(ASSAY_FORMAT_TF32, x, ASSAY_OVERFLOW_IEEE);
}

typedef struct rounding {
  assay_format_t format;
  bool truncates;
  uint64_t draw;
} rounding_t;

static double rounded(const rounding_t* by, double x, int64_t i) {
  const bool half = by->format == ASSAY_FORMAT_FP16;
  if (by->draw)
    return assay_format_round_stochastic(half ? ASSAY_FORMAT_TF32 : by->format, x,
                                         chance(i, by->draw));
  return by->truncates ? cut(by->format, x) : nearest(by->format, x);
}

// Cuts, rounds by chance, or to float16.
static assay_status_t round_otherwise(const rounding_t* by, assay_tensor_t** t) {
  assay_tensor_t *wide = NULL, *to = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create((*t)->type, wide->rank, wide->dims, &to);
  for (int64_t i = 0; !st && i < wide->size; i++)
    assay_f64(to)[i] = rounded(by, assay_f64(wide)[i], i);
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = to;
  return NULL;
}

static assay_status_t to_format(const assay_golden_arithmetic_t* a, bool truncates, uint64_t place,
                                assay_tensor_t** t) {
  assay_tensor_t* rounded = NULL;
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || (*t)->type != ASSAY_TYPE_FLOAT) return NULL;
  const rounding_t by = {a->format, truncates, a->draw ? a->draw * 0x9fb21c651e98df25U + place : 0};
  if (truncates || a->draw || a->format == ASSAY_FORMAT_FP16) return round_otherwise(&by, t);
  ASSAY_TRY(assay_round_tensor(*t, a->format, &rounded));
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
  const bool biases = a->scope != ASSAY_ARITHMETIC_OPERANDS && !a->spares_biases;
  const size_t operands = all || biases ? SIZE_MAX : p->n_operands;
  for (size_t i = 0; i < n_in && i < operands; i++)
    ASSAY_TRY(to_format(a, a->truncates, place_of(n, i), &in[i]));
  return NULL;
}

assay_status_t assay_golden_arithmetic_holds(const assay_golden_arithmetic_t* a, assay_tensor_t* t,
                                             bool* out) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  *out = true;
  for (int64_t i = 0; *out && i < wide->size; i++) {
    const double x = assay_f64(wide)[i];
    *out = !(x - nearest(a->format, x) != 0);  // and NaN
  }
  assay_tensor_release(wide);
  return NULL;
}

assay_status_t assay_golden_arithmetic_round_output(const assay_golden_arithmetic_t* a,
                                                    const assay_node_t* n, size_t i,
                                                    assay_tensor_t** t) {
  return to_format(a, false, place_of(n, n->n_inputs + i), t);
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
    return a->products == ASSAY_PRODUCTS_CONVOLUTION ? "with convolutions in TF32"
           : a->products == ASSAY_PRODUCTS_MATRIX    ? "with matrix products in TF32"
                                                     : "with its products in TF32";
  if (a->scope == ASSAY_ARITHMETIC_ALL) return bf16 ? "wholly in bf16" : "wholly in fp16";
  return bf16 ? "with its products in bf16" : "with its products in fp16";
}
