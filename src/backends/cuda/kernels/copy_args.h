// Arguments of kernels that copy boxes of elements (backends/layers/box.h).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_COPY_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_COPY_ARGS_H_

#include "divisor_args.h"

enum { COPY_BOXES = 12, COPY_DIMS = 8 };

// Sizes and steps are those of words: elements, or several at once.
typedef struct copy_box {
  address_t from, to;  // of the first word; from 0: the value
  // The last `rank` of as many as the kernel is compiled for; those before are of 1.
  int64_t dims[COPY_DIMS], from_strides[COPY_DIMS], to_strides[COPY_DIMS];
  divisor_t divisors[COPY_DIMS];  // the same dimensions; unless kernels count in 64 bits
  int64_t size, first_block;      // words of it; the block from which on it is copied
} copy_box_t;

typedef struct copy_args {
  copy_box_t boxes[COPY_BOXES];
  int64_t n;
  uint32_t value[4];  // as often as it fits 16 bytes
} copy_args_t;

// A box whose last two dimensions are a matrix that is transposed.
typedef struct matrix_args {
  copy_box_t box;
  int64_t row_tiles, column_tiles, tiles;  // tiles: of all matrices
  divisor_t by_rows, by_columns;           // row_tiles and column_tiles
} matrix_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_COPY_ARGS_H_
