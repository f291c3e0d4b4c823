// What a reducing node makes of which dimensions: for reductions of floats and of whole numbers.
#ifndef ASSAY_BACKENDS_CUDA_ROWS_REDUCED_H_
#define ASSAY_BACKENDS_CUDA_ROWS_REDUCED_H_

#include "backends/cuda/rows/geometry.h"

typedef struct cuda_reduced {
  int x;  // the input
  assay_layout_t from, to;
  cuda_row_dim_t dims[ASSAY_KERNEL_RANK];
  int rank;
  int64_t terms;
} cuda_reduced_t;

// The dimensions of an input of which those that are marked are reduced to one. False: the output
// has another shape.
bool cuda_reduced_dims(const assay_sized_layer_t* l, const assay_operand_t* x, const bool* reduced,
                       cuda_reduced_t* out);
// The axes of a Reduce* node, or of a pooling over all places; false: they are not known.
bool cuda_reduced_axes(const assay_sized_layer_t* l, const assay_node_t* n, int rank,
                       bool* reduced);

#endif  // ASSAY_BACKENDS_CUDA_ROWS_REDUCED_H_
