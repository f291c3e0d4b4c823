// What Slice and Split take of a tensor.
#ifndef ASSAY_BACKENDS_LAYERS_SLICE_H_
#define ASSAY_BACKENDS_LAYERS_SLICE_H_

#include "exec/kernel.h"

// Element i of a dimension is first + i * step of the tensor's.
typedef struct layer_slice {
  int64_t first[ASSAY_KERNEL_RANK], step[ASSAY_KERNEL_RANK], dims[ASSAY_KERNEL_RANK];
} layer_slice_t;

// Of a tensor with these dimensions by a Slice; false: its numbers are not known before the run.
bool layer_slice_read(const assay_sized_layer_t* l, const assay_node_t* slice, int rank,
                      const int64_t* dims, layer_slice_t* out);
// By each output of a Split; out: room for as many. False: not known, or no such parts.
bool layer_split_read(const assay_sized_layer_t* l, const assay_node_t* split, int rank,
                      const int64_t* dims, layer_slice_t* out);

#endif  // ASSAY_BACKENDS_LAYERS_SLICE_H_
