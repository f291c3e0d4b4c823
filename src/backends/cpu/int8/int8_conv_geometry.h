// Geometry of int8 contractions, and what is due to their sums for the zero point of x.
#ifndef ASSAY_BACKENDS_CPU_INT8_INT8_CONV_GEOMETRY_H_
#define ASSAY_BACKENDS_CPU_INT8_INT8_CONV_GEOMETRY_H_

#include "backends/cpu/int8/int8_kernel.h"

// Sums of the weights over the taps that lie inside the image, by channel, for all kinds of places;
// nothing where x has no zero point.
assay_status_t int8_conv_taps(int8_kernel_t* k, const int8_job_t* j, const assay_conv_t* s);

// Sums of the weights' columns. False: weights differ within the batch.
assay_status_t int8_product_taps(int8_kernel_t* k, const int8_job_t* j, const int8_product_t* p,
                                 bool* out_ok);

#endif  // ASSAY_BACKENDS_CPU_INT8_INT8_CONV_GEOMETRY_H_
