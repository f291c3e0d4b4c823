// A node that multiplies with a constant, as rows times weights: MatMul, Gemm, Conv.
#ifndef ASSAY_DIAGNOSE_SOLVE_PRODUCTS_H_
#define ASSAY_DIAGNOSE_SOLVE_PRODUCTS_H_

#include "diagnose/solve/solve.h"

enum { ASSAY_PRODUCT_SPATIAL = 6 };

// A product as rows: y[row][column] = sum over t of x(row, t) * w(t, column) in each group.
typedef struct assay_product {
  int64_t rows, terms, columns, groups;
  double alpha;     // of Gemm
  bool transposed;  // of Gemm: weights lie as [columns][terms]
  bool left;        // of MatMul: weights times x
  bool conv;
  // Conv: sizes in the order of axes.
  int spatial;
  int64_t size[ASSAY_PRODUCT_SPATIAL], kernel[ASSAY_PRODUCT_SPATIAL], made[ASSAY_PRODUCT_SPATIAL];
  int64_t stride[ASSAY_PRODUCT_SPATIAL], dilation[ASSAY_PRODUCT_SPATIAL],
      pad[ASSAY_PRODUCT_SPATIAL];
  int64_t in_channels, out_channels, pixels, out_pixels;
} assay_product_t;

// Reads the node with input `input` as its weights. False: it is no such product.
bool assay_product_read(const assay_solve_t* s, assay_product_t* out);
// The terms of a row, for a group.
void assay_product_row(const assay_solve_t* s, const assay_product_t* p, int64_t row, int64_t group,
                       double* out);
// Where a row's column stands in the output, and a term's weight in the constant.
int64_t assay_product_place(const assay_product_t* p, int64_t row, int64_t group, int64_t column);
int64_t assay_product_weight(const assay_product_t* p, int64_t group, int64_t term, int64_t column);

// Directions of the weight of which the rows of one sample tell nothing.
typedef struct assay_null_space {
  assay_product_t p;
  int64_t n;          // directions of all groups, times columns
  int64_t* count;     // of each group
  double* direction;  // [groups][terms][terms]: the first `count` rows of each are of length 1
} assay_null_space_t;

// n = 0: there are none, or the node is no such product.
assay_status_t assay_null_space_create(const assay_solve_t* s,
                                       assay_null_space_t* out) ASSAY_MUST_USE;
void assay_null_space_deinit(assay_null_space_t* k);
// x = at + step times unknown j, in the elements that it moves.
void assay_null_space_move(const assay_null_space_t* k, assay_tensor_t* x, const assay_tensor_t* at,
                           int64_t j, double step);

#endif  // ASSAY_DIAGNOSE_SOLVE_PRODUCTS_H_
