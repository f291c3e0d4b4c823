// The error model of sums of products of parts: what a column of weights adds to the account
// (split_products.c, which says where it comes from).
#ifndef ASSAY_OPS_MATMUL_SPLIT_ACCOUNT_H_
#define ASSAY_OPS_MATMUL_SPLIT_ACCOUNT_H_

#include "ops/matmul/split_products.h"

// A sum of some terms x w.
typedef struct assay_split_partial {
  double sum, square;  // of the weights
} assay_split_partial_t;

// Of such a sum; inputs have mean zero (kind 0) or one sign (1), and mean square 1.
double assay_split_mean_square(int kind, assay_split_partial_t p);

// A column: what it adds to the account.
typedef struct assay_split_column {
  double own[2], plain[2];  // variances, by kind, in units of u^2 / 3
  double size, square;      // sums of |w| and w^2
  bool splits;              // its weights are in range
} assay_split_column_t;

void assay_split_add_up(const assay_split_weights_t* w, const assay_split_column_t* columns,
                        assay_sum_account_t* out);

#endif  // ASSAY_OPS_MATMUL_SPLIT_ACCOUNT_H_
