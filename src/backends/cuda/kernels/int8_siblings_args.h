// Arguments of several products on 8-bit integers of one left side.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_SIBLINGS_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_SIBLINGS_ARGS_H_

#include "int8_args.h"

enum { INT8_SIBLINGS = 6 };

// One of them: its weights, what goes with its columns, and its end, which is that of
// int8_end_args_t with one scalar.
typedef struct int8_sibling {
  tensor_map_t w;
  address_t y, factor, shift;
  address_t start;  // as of int8_product_args_t
  int64_t columns;
  double scalar;
  uint32_t first_block;
  int32_t whole_zero;
  float low, high, scale, inverse, least, most;
} int8_sibling_t;

// Rows and terms are those of all.
typedef struct int8_siblings_args {
  tensor_map_t x;
  int8_sibling_t of[INT8_SIBLINGS];
  int64_t rows, terms;
} int8_siblings_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_SIBLINGS_ARGS_H_
