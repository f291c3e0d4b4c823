// Layers that only give an input another shape: Reshape, Flatten, Squeeze, Unsqueeze, Identity and
// Dropout in inference. Nothing is moved.
#ifndef ASSAY_BACKENDS_LAYERS_VIEWS_H_
#define ASSAY_BACKENDS_LAYERS_VIEWS_H_

#include "exec/kernel.h"

// What a kernel reads and writes, in place. False: the layer is none of these.
bool layer_view_read(const assay_sized_layer_t* l, assay_kernel_t* k);

#endif  // ASSAY_BACKENDS_LAYERS_VIEWS_H_
