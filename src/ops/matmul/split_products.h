// Sums of products of float32 numbers, made of products of bf16 parts: x = h + m + l, parts of 8
// bits each, h = bf16(x), m = bf16(x - h), l = x - h - m. Of the products of parts either three are
// added up (m h, h h, h m; l is not made), or six (l h, m h, m m, h m, h h, h l).
//
// Products of parts are exact; sums are float32's. 32 terms make a unit: for one product of parts
// the even and the odd ones are two chains, whose sum is added to the whole. What is left out is at
// most 3 2^-16 of a term's magnitude, or 2 2^-24 and a little. Beside long chains sums are short:
// 6 roundings on the way for 32 terms.
// Sources: G. Henry, P. T. P. Tang, A. Heinecke, Leveraging the bfloat16 artificial intelligence
// datatype for higher-precision computations, ARITH 2019; the errors of sums as in bound.h.
#ifndef ASSAY_OPS_MATMUL_SPLIT_PRODUCTS_H_
#define ASSAY_OPS_MATMUL_SPLIT_PRODUCTS_H_

#include "ops/bound.h"
#include "ops/sum_account.h"

enum {
  ASSAY_SPLIT_UNIT = 32,
  ASSAY_SPLIT_MIN_TERMS = 16,  // of a piece of a sum that begins with a unit of its own
  ASSAY_SPLIT_PRODUCTS = 6     // of parts, at most
};

// 2 for three products, 3 for six; 0: another algorithm.
int assay_split_parts(assay_algorithm_t algorithm);
// Of n terms, in pieces of ASSAY_SPLIT_LEAST_TERMS at least, on the longest way.
double assay_split_roundings(double n);
// What is left out of a term, relative to its magnitude.
double assay_split_left_out(assay_algorithm_t algorithm);

// Of `columns` sums of n terms; weight i of column j is w[j * column_step + i * step].
typedef struct assay_split_weights {
  const float* w;
  int64_t columns, n, column_step, step;
} assay_split_weights_t;
// What the model says of products with these weights, in their worst column.
assay_status_t assay_split_judge(assay_algorithm_t algorithm, const assay_split_weights_t* w,
                                 assay_sum_account_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_MATMUL_SPLIT_PRODUCTS_H_
