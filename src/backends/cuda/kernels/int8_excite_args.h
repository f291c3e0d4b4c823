// Arguments of the products of squeeze-excite blocks on 8-bit integers (int8/int8_excite.cu).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_EXCITE_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_EXCITE_ARGS_H_

#include "int8_args.h"

// A product of rows of bytes and constant weights: columns of terms, signed bytes, of which
// column_bytes are stored, a multiple of 16: behind the terms there are zeros.
typedef struct int8_excite_product {
  address_t w, start;  // start: int32 by column, 0: there are none
  int32_t terms, columns, column_bytes;
  int32_t min, max;  // between which bytes lie that it makes
  int8_end_args_t end;
} int8_excite_product_t;

typedef struct int8_excite_args {
  int8_excite_product_t first, second;
  int8_end_args_t end;  // with SCALES: of what is scaled
  address_t squeezed;   // rows of the first product
  address_t x, y;       // with SCALES: [rows, places, columns]; else y: [rows, columns]
  int32_t places;
  int32_t sums;           // of either product, in shared memory
  int32_t slice, slices;  // columns of a block, a multiple of 16; so many blocks have all of them
  int32_t part, parts;    // places of a block; so many blocks have all of them
} int8_excite_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_EXCITE_ARGS_H_
