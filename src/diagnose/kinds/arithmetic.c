// Arithmetics other than float32, and what values look like that were computed in them.
#include "diagnose/kinds/arithmetic.h"

#include <math.h>
#include <string.h>

#include "eval/evaluator.h"

// The commonest first. TF32: NVIDIA A100 Tensor Core GPU Architecture, 2020; tensor cores cut what
// they read to ten bits behind the point, libraries round it before: cuBLAS 13 on an H200 to the
// nearest, ties to even, and it computes products with a vector in float32 (arithmetic_find.c tries
// that, too). XLA's default precision
// on TPUs is products of bfloat16 operands, and three of them for each where more is asked for
// ("high"). Source: G. Henry, P. T. P. Tang, A. Heinecke, Leveraging the bfloat16 artificial
// intelligence datatype for higher-precision computations, 2019.
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
    {.format = ASSAY_FORMAT_BF16,
     .scope = ASSAY_ARITHMETIC_WEIGHTS,
     .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_FP16,
     .scope = ASSAY_ARITHMETIC_WEIGHTS,
     .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_BF16,
     .scope = ASSAY_ARITHMETIC_CONSTANTS,
     .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_FP16,
     .scope = ASSAY_ARITHMETIC_CONSTANTS,
     .products = ASSAY_PRODUCTS_ANY},
    {.format = ASSAY_FORMAT_BF16, .products = ASSAY_PRODUCTS_ANY, .parts = 2},
    {.format = ASSAY_FORMAT_BF16, .products = ASSAY_PRODUCTS_ANY, .parts = 2, .truncates = true},
    {.format = ASSAY_FORMAT_NONE}};

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

assay_status_t assay_golden_arithmetic_large_part(const assay_golden_arithmetic_t* a,
                                                  const assay_node_t* n, size_t i,
                                                  assay_tensor_t** t) {
  return to_format(a, a->truncates, place_of(n, i), t);
}

// x + by y.
static assay_status_t sum_of(assay_tensor_t* x, double by, assay_tensor_t* y,
                             assay_tensor_t** out) {
  assay_tensor_t *a = NULL, *b = NULL, *sum = NULL;
  ASSAY_TRY(assay_tensor_widen(x, &a));
  assay_status_t st = assay_tensor_widen(y, &b);
  if (!st) st = assay_tensor_copy(a, &sum);
  for (int64_t i = 0; !st && i < sum->size; i++) assay_f64(sum)[i] += by * assay_f64(b)[i];
  assay_tensor_release(a);
  assay_tensor_release(b);
  if (!st) *out = sum;
  return st;
}

// A number as the sum of two of the format: what the first one leaves is rounded, too. That is a
// little less than half a step of the first one even where it was rounded up to that: which the
// large part is can be told from the sum.
static assay_status_t to_parts(const assay_golden_arithmetic_t* a, const assay_node_t* n, size_t i,
                               assay_tensor_t** t) {
  static const double LESS = 1 - 0x1p-30;
  assay_tensor_t *small = NULL, *sum = NULL;
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || (*t)->type != ASSAY_TYPE_FLOAT) return NULL;
  assay_tensor_t* large = assay_tensor_retain(*t);
  assay_status_t st = assay_golden_arithmetic_large_part(a, n, i, &large);
  if (!st) st = sum_of(*t, -1, large, &small);
  if (!st) st = to_format(a, a->truncates, place_of(n, i + n->n_inputs), &small);
  if (!st) st = sum_of(large, LESS, small, &sum);
  assay_tensor_release(large);
  assay_tensor_release(small);
  if (st) return st;
  assay_tensor_release(*t);
  *t = sum;
  return NULL;
}

static assay_status_t round_constants(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                                      size_t n_in, assay_tensor_t** in) {
  for (size_t i = 0; i < n_in && i < n->n_inputs; i++)
    if (n->inputs[i] && assay_value_constant(n->inputs[i]))
      ASSAY_TRY(to_format(a, a->truncates, place_of(n, i), &in[i]));
  return NULL;
}

static assay_status_t round_places(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                                   size_t n_in, assay_tensor_t** in) {
  for (size_t i = 0; i < n_in && i < n->n_inputs; i++)
    if (assay_golden_arithmetic_is_place(a, n, i))
      ASSAY_TRY(to_format(a, a->truncates, place_of(n, i), &in[i]));
  return NULL;
}

// How many inputs of a node are rounded; 0: none.
static size_t rounded_inputs(const assay_golden_arithmetic_t* a, const assay_node_t* n, size_t n_in,
                             assay_tensor_t* const* in) {
  if (a->scope == ASSAY_ARITHMETIC_ALL) return n_in;
  if (!(assay_golden_arithmetic_products(n) & a->products) ||
      (a->spares_vectors && assay_golden_arithmetic_is_by_vector(n, n_in, in)))
    return 0;
  const bool no_bias =
      a->scope == ASSAY_ARITHMETIC_OPERANDS || a->scope == ASSAY_ARITHMETIC_WEIGHTS;
  const size_t operands = assay_golden_arithmetic_operands(n);
  return (no_bias || a->spares_biases) && operands < n_in ? operands : n_in;
}

assay_status_t assay_golden_arithmetic_round_inputs(const assay_golden_arithmetic_t* a,
                                                    const assay_node_t* n, size_t n_in,
                                                    assay_tensor_t** in) {
  if (a->format == ASSAY_FORMAT_NONE) return NULL;
  if (a->scope == ASSAY_ARITHMETIC_CONSTANTS) return round_constants(a, n, n_in, in);
  if (a->scope >= ASSAY_ARITHMETIC_SHARES) return round_places(a, n, n_in, in);
  const size_t some = rounded_inputs(a, n, n_in, in);
  for (size_t i = 0; i < some; i++) {
    if (a->scope == ASSAY_ARITHMETIC_WEIGHTS &&
        !(i < n->n_inputs && assay_golden_arithmetic_is_weight(n->inputs[i])))
      continue;
    ASSAY_TRY(a->parts > 1 ? to_parts(a, n, i, &in[i])
                           : to_format(a, a->truncates, place_of(n, i), &in[i]));
  }
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
