// Products of ranges, for operators whose inner one is a product of ai.onnx.
#ifndef ASSAY_RANGES_PRODUCTS_H_
#define ASSAY_RANGES_PRODUCTS_H_

#include "ranges/range.h"

typedef struct assay_range_product {
  const assay_node_t* node;
  const assay_range_t* in;   // integers are taken as the real numbers they are
  size_t n_in, a, b, added;  // the factors, and what is added; SIZE_MAX: nothing
} assay_range_product_t;

// Both ends without the engine's rounding, in tensors of the caller's, and the sums of the terms'
// magnitudes. NULLs: nothing is known.
assay_status_t assay_range_product(assay_range_node_t* c, const assay_range_product_t* p,
                                   assay_range_t* out,
                                   assay_tensor_t** out_magnitude) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_PRODUCTS_H_
