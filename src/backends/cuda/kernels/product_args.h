// Arguments of products of matrices and of convolutions as such products.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_ARGS_H_

#include "norm_args.h"
#include "program_args.h"

enum { PRODUCT_DIMS = 6, PRODUCT_AXES = 3 };

// With GATE the output's columns come of two halves of the product's, of which so many of one and
// as many of the other take turns; of what is over of a half there are zeros in weights. y_row:
// columns of the output.
enum { PRODUCT_GATED = 16 };

// An axis of a convolution (ops/conv/window.h): window o begins at o * stride - pad.
typedef struct product_axis {
  int32_t in, out, kernel, stride, dilation, pad;
} product_axis_t;

// Terms of a chain of multiply-adds in float32, where a sum has k of them: four chains, whole steps
// of 32 terms each but the last one, whose sums are added up in ascending order, so that some
// groups of threads may share a sum out; one chain where there are few. It follows from k alone: a
// tile, a batch, and who multiplies has no influence on bits.
#define PRODUCT_CHAIN(k) ((k) < 256 ? (k) : ((k) + 127) / 128 * 32)

// Of shared memory, for a list of what functions leave open (product_sums.h).
#define PRODUCT_OPEN_BYTES 4096

// y[i] = x[i] w[i] + bias for each of some matrices: m rows, n columns, sums of k terms. Steps are
// in elements.
typedef struct product_args {
  address_t x, w, y;
  address_t bias;  // of float32: element column + matrix * bias_step; 0: none
  int64_t m, n, k, matrices;
  int64_t x_row, x_k, w_k, w_column, y_row;
  // Matrix i is taken apart by these dimensions, the last one fastest.
  int64_t dims[PRODUCT_DIMS], x_step[PRODUCT_DIMS], w_step[PRODUCT_DIMS], y_step[PRODUCT_DIMS];
  int32_t n_dims;
  int32_t bias_step;
  // With CONV a row is a place of the output, and a term (tap, channel): x lies channels last.
  int32_t channels;  // of a group
  int64_t x_sample;  // step of a sample
  int64_t x_place;   // and of a place of the input
  product_axis_t axes[PRODUCT_AXES];
  program_args_t program;  // with EPILOGUE
  // With SCALED: rows of k elements by which the left side's are multiplied, which so many of its
  // rows share; and how many elements are kept of them for 64 of its rows, at most.
  address_t scale;
  int32_t scale_rows, scale_step;
  norm_args_t norm;  // of product_norm.cu
} product_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_ARGS_H_
