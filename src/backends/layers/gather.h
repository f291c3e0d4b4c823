// Gather: rows of a table by their numbers.
#ifndef ASSAY_BACKENDS_LAYERS_GATHER_H_
#define ASSAY_BACKENDS_LAYERS_GATHER_H_

#include "exec/kernel.h"

typedef struct layer_gather {
  const assay_node_t* node;
  int data, indices, axis;  // inputs of the layer; the axis
  assay_type_t index_type;  // int32 or int64
  int64_t outer, size, n;   // before the axis; of the axis, and of the indices
  size_t slice;             // bytes
} layer_gather_t;

// Reads a layer, and says in `kernel` what it reads and writes. False: the layer is none.
bool layer_gather_read(const assay_sized_layer_t* l, assay_kernel_t* kernel, layer_gather_t* out);

// Index i, counted from the beginning; it may be out of the axis.
int64_t layer_gather_index(const layer_gather_t* g, const void* indices, int64_t i);
// Whether all of them are there. Errors: INVALID_ARGUMENT, with the first that is not.
assay_status_t layer_gather_check(const layer_gather_t* g, const void* indices) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_LAYERS_GATHER_H_
