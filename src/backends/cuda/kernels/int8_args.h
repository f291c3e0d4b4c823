// Arguments of layers on 8-bit integers (cuda/int8).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_ARGS_H_

#include "product_args.h"

enum { INT8_ARG_SOURCES = 12, INT8_ARG_STEPS = 20 };
enum { INT8_TOGETHER = 4 };  // elements that a thread reads and stores at once

// What the pointwise part reads: bytes or floats, of which element i of the output reads element
// i / block % outer * n + i / inner % n; floats, by channel; or a number.
typedef struct int8_source_args {
  address_t at;
  int64_t block, inner, n, outer;
  float zero, scale;
  double scalar;
} int8_source_args_t;

// A piece of the line of floats, in which a byte changes at one float, `from`, if at all: the first
// byte of `bytes` is that of floats before it, the second that of the others (cuda/int8/cells.h).
typedef struct int8_cell {
  float from;
  uint32_t bytes;
} int8_cell_t;

// What becomes of a sum: cuda/int8/end.h fills it.
typedef struct int8_end_args {
  address_t factor, shift;  // floats, by channel
  address_t real;           // with INT8_BOTH: where the float32 output goes
  int8_source_args_t sources[INT8_ARG_SOURCES];
  double p[INT8_ARG_STEPS][2];
  float low, high;  // limits of the float
  float scale;      // of the output
  int32_t whole_zero;
  // Where the scale has an inverse (INT8_INVERSE): that, and limits within which nothing of the
  // type is lost.
  float inverse, least, most;
  // With INT8_CELLS: so many cells; which one a float belongs to.
  address_t cells;
  float cell_step, cell_shift, cells_from, cells_to;
} int8_end_args_t;

// y = sums of (x - zero_x) (w - zero of w) + start. Channels are those of the product's bias.
typedef struct int8_product_args {
  product_args_t product;
  int8_end_args_t end;
  int32_t zero_x, zero_w;
  address_t zero_x_at;  // with ZERO_READ: a byte
  // int32 of element column + matrix * step; 0: none. due: what is taken off for each step of x's
  // zero point; zeros: those of the weights.
  address_t start, due, zeros;
  int32_t step;
} int8_product_args_t;

// Layers without a product.
typedef struct int8_pointwise_args {
  int8_end_args_t end;
  address_t x, y;  // x: what sums are, less its zero point; 0: there are none
  int64_t size, channels;
  int32_t zero_x;
} int8_pointwise_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_ARGS_H_
