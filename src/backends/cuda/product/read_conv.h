// What a layer that is Conv or ConvTranspose multiplies.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_READ_CONV_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_READ_CONV_H_

#include "backends/cuda/product/product.h"

// As cuda_product_read, of a layer whose input and types are read; direct: the weights lie as
// direct_conv.cu reads them.
assay_status_t cuda_conv_read(const assay_sized_layer_t* l, bool direct, cuda_product_t* p,
                              bool* ok) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_READ_CONV_H_
