// Depthwise convolutions of 16-bit values by strips (kernels/product/depthwise_strips.cu), as
// variants of direct_conv.c, whose bits they have.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_STRIPS_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_STRIPS_H_

#include "backends/cuda/product/product.h"

// Strips that fit a convolution which was read by cuda_product_read_direct; the first of them is
// number 0.
enum { CUDA_STRIPS = 8 };

// Microseconds; 0: strips of this number do not fit.
double cuda_strips_predict(const cuda_own_t* own, const cuda_product_t* p, int number);

// Their name as a variant.
void cuda_strips_name(int number, char to[ASSAY_VARIANT_BYTES]);

// options: those that all kernels of direct_conv.c have; more are appended. *out stays NULL where
// the strips do not fit.
assay_status_t cuda_strips_make(const assay_sized_layer_t* l, const cuda_product_t* p, int number,
                                assay_str_t* options, assay_kernel_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_STRIPS_H_
