// Arguments of programs of pointwise nodes: cuda/pointwise/program.h fills them.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PROGRAM_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PROGRAM_ARGS_H_

#include "quantizer_args.h"

enum { PROGRAM_STREAMS = 16, PROGRAM_DIMS = 8 };

// Row and column of an element are those of the output's memory; rows are [dims[0], ...] without
// the last dimension, which is the column's.
typedef struct program_args {
  address_t streams[PROGRAM_STREAMS];
  int64_t strides[PROGRAM_STREAMS][PROGRAM_DIMS];
  int64_t dims[PROGRAM_DIMS];
  int64_t columns;
  float scalars[PROGRAM_STREAMS];  // streams of one constant
  // Of streams whose rows are moved: tables of so many int32_t, which come again.
  address_t rows[PROGRAM_STREAMS];
  int32_t periods[PROGRAM_STREAMS];
} program_args_t;

typedef struct chain_args {
  program_args_t program;
  address_t out;
  int64_t size;
  quantizer_args_t quantizer;  // QUANTIZED
} chain_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PROGRAM_ARGS_H_
