// What a layer that is Conv or ConvTranspose multiplies.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_READ_CONV_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_READ_CONV_H_

#include "backends/cuda/product/product.h"

// As cuda_product_read, of a layer whose input and types are read; direct: the weights lie as
// direct_conv.cu reads them.
assay_status_t cuda_conv_read(const assay_sized_layer_t* l, bool direct, cuda_product_t* p,
                              bool* ok) ASSAY_MUST_USE;

// Sizes of either kind of convolution; c, m: channels of all groups, cg, mg: of one.
typedef struct cuda_conv_sizes {
  int64_t n, c, m, group, cg, mg, kernel_size, in_size, out_size;
} cuda_conv_sizes_t;

// The sizes of a convolution of tensors of these types and shapes as a product, and its axes; *ok
// false: they do not fit together, or are too large.
assay_status_t cuda_conv_read_sizes(const assay_node_t* n, const assay_tensor_t* x,
                                    const assay_tensor_t* w, const assay_operand_t* y,
                                    cuda_product_t* p, cuda_conv_sizes_t* s,
                                    bool* ok) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_READ_CONV_H_
