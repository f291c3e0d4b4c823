// TensorRT's kinds of layers, as --trt-outputs-by-type names them.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_LAYER_TYPES_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_LAYER_TYPES_H_

#include "ir/ir.h"

// Whether a node becomes a layer of this type ("CONVOLUTION", in any case), or is of this operator.
bool pg_is_layer_type(const assay_node_t* n, const char* type);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_LAYER_TYPES_H_
