// Arguments of products with constant matrices of integer codes (coded.cu).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_CODED_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_CODED_ARGS_H_

#include "product_args.h"

// The weight of term k and column j is (code - zero) * scale, each operation rounded to float32;
// scale and zero have the place (k / block, j) of [blocks, n]. Codes of 8 bits lie as [k, n], those
// of 4 bits as words of 8 terms, the first one lowest, [k / 8, n].
typedef struct coded_args {
  product_args_t product;  // w: the codes
  address_t scales, zeros;
  address_t bias;  // what sums begin with, [n]; 0: zeros
  int64_t block;
} coded_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_CODED_ARGS_H_
