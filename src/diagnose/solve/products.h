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

#endif  // ASSAY_DIAGNOSE_SOLVE_PRODUCTS_H_
