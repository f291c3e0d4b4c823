// Rows in memory, and how threads share them out (kernels/rows/rows.h).
#ifndef ASSAY_BACKENDS_CUDA_ROWS_GEOMETRY_H_
#define ASSAY_BACKENDS_CUDA_ROWS_GEOMETRY_H_

#include "backends/cuda/kernels/rows_args.h"
#include "backends/cuda/tactic.h"
#include "base/str.h"

// A dimension of the input. Rows follow each other along some, terms of a row along the others.
typedef struct cuda_row_dim {
  int64_t size;
  bool is_term;
  int64_t to;  // the step between rows in the output
} cuda_row_dim_t;

// How a kernel of rows is compiled and launched.
typedef struct cuda_rows {
  rows_geometry_t geometry;
  int dims;                // of terms
  int across;              // as ACROSS; 0: the innermost dimension is one of terms
  int span, keep, vector;  // as SPAN, KEEP and VEC
  cuda_grid_t grid;
} cuda_rows_t;

// Which dimensions a tensor of this layout has from the outermost to the innermost in memory.
void cuda_memory_order(int rank, assay_layout_t layout, int* order);

// Dimensions from the outermost to the innermost of a packed tensor, at most ROWS_RANK, none empty.
// bytes: of an element; keeps: threads may keep their row's elements in registers. The order of
// sums follows from the dimensions of terms, and from the steps between rows. False: the rows are
// too long, or too many.
bool cuda_rows_make(const cuda_own_t* own, const cuda_row_dim_t* dims, int n, int bytes, bool keeps,
                    cuda_rows_t* out);
// "-DACROSS=0 -DSPAN=128 ...".
void cuda_rows_print(const cuda_rows_t* r, assay_str_t* out);

#endif  // ASSAY_BACKENDS_CUDA_ROWS_GEOMETRY_H_
