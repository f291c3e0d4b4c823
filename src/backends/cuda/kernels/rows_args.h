// Arguments of kernels over rows: softmax, normalizations, reductions.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ROWS_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ROWS_ARGS_H_

#include "quantizer_args.h"

enum { ROWS_RANK = 8 };

// A row is what goes into one sum. Its terms lie in memory along dimensions [0, n) of `term`; rows
// follow each other along those of `row`; the last dimension is the innermost. Steps are in
// elements.
typedef struct rows_geometry {
  int64_t rows;
  int32_t terms, n_row;  // how many dimensions of terms there are, the kernel is compiled for
  int64_t row[ROWS_RANK], row_from[ROWS_RANK], row_to[ROWS_RANK];  // to: in the output
  int64_t term[ROWS_RANK], term_from[ROWS_RANK];
} rows_geometry_t;

// Softmax and normalizations: the output lies as the input does, but for the places of rows that
// are moved. 0: that operand is left out.
typedef struct rows_args {
  rows_geometry_t g;
  address_t x, y;
  address_t skip, skip_bias, sum;  // SkipLayerNormalization: added before; the sum as an output
  int64_t skip_rows;               // of `skip`, which come again
  address_t scale, bias;
  // Element e of row r has parameter (r % groups * channels + (e / run or e % channels)) / shared,
  // or the only one.
  int64_t groups;
  int32_t channels, run, shared;
  address_t mean, inverse;  // statistics as outputs
  // MOVED: the row of the output by row, so many int32_t, which come again.
  address_t places;
  int32_t period;
  float epsilon;
  quantizer_args_t quantizer;  // QUANTIZED
} rows_args_t;

// Reductions.
typedef struct reduce_args {
  rows_geometry_t g;
  address_t x, y;
  int64_t whole_count;         // of a mean's terms
  float count;                 // the same
  int32_t part, parts;         // terms that a block takes; parts 1: all
  quantizer_args_t quantizer;  // QUANTIZED; y 0: it alone reads the floats
} reduce_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ROWS_ARGS_H_
