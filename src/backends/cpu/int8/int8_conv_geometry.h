// Geometry of int8 contractions, and what is due to their sums for the zero point of x.
#ifndef ASSAY_BACKENDS_CPU_INT8_INT8_CONV_GEOMETRY_H_
#define ASSAY_BACKENDS_CPU_INT8_INT8_CONV_GEOMETRY_H_

#include "backends/cpu/int8/int8_kernel.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"

// Reads the convolution; false: its sizes do not fit the layer's output.
assay_status_t int8_conv_read(const int8_job_t* j, assay_conv_t* out, bool* out_fits);
// Sums of the weights over the taps that lie inside the image, by channel, for all kinds of places;
// nothing where x has no zero point.
assay_status_t int8_conv_taps(int8_kernel_t* k, const int8_job_t* j, const assay_conv_t* s);

// The same for transposed convolutions. What is due for the zero point of x is taken off where
// products are added up: places differ in the kernel positions that reach them.
assay_status_t int8_transposed_read(const int8_job_t* j, assay_conv_transpose_t* out,
                                    bool* out_fits);

// y[batch][m, n] = x[batch][m, k] * w[batch or one][k, n].
typedef struct int8_product {
  int64_t batch, m, n, k;
  bool shared;   // one matrix of weights for all
  bool swapped;  // weights lie as [n, k]
} int8_product_t;

bool int8_product_read(const int8_job_t* j, int8_product_t* out);
// Sums of the weights' columns. False: weights differ within the batch.
assay_status_t int8_product_taps(int8_kernel_t* k, const int8_job_t* j, const int8_product_t* p,
                                 bool* out_ok);

#endif  // ASSAY_BACKENDS_CPU_INT8_INT8_CONV_GEOMETRY_H_
