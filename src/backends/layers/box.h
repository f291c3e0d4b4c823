// Boxes of elements that are copied between tensors with any strides: what layers that move
// elements are made of.
#ifndef ASSAY_BACKENDS_LAYERS_BOX_H_
#define ASSAY_BACKENDS_LAYERS_BOX_H_

#include "exec/kernel.h"

enum { BOX_RANK = 2 * ASSAY_KERNEL_RANK };

// For all i of dims: element to_at + sum(i * to_strides) of the output becomes element
// from_at + sum(i * from_strides) of the input. Strides of `from` may be negative or 0.
typedef struct box {
  int from;  // input of the layer; -1: a value
  int to;    // output
  int rank;
  int64_t dims[BOX_RANK], from_strides[BOX_RANK], to_strides[BOX_RANK];
  int64_t from_at, to_at;
} box_t;

// Brings a box into the order in which it is copied; once, before it is run: dimensions by falling
// strides of the output, neighbours joined, two at least; where the input runs along another one
// than the output, the two come last. Boxes without elements may be left out, and so may those of
// which box_is_empty is true.
void box_prepare(box_t* box);
bool box_is_empty(const box_t* box);
// Whether a prepared box is a matrix that is transposed: the input runs along its last dimension
// but one, the output along the last one.
bool box_is_matrix(const box_t* box);

// The steps in memory by dimension, of a tensor in a layout.
void box_layout_strides(int rank, const int64_t* dims, assay_layout_t layout, int64_t* strides);

#endif  // ASSAY_BACKENDS_LAYERS_BOX_H_
