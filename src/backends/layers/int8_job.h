// What backends read of layers with a contraction on 8-bit integers (ops/quant/int8.h): operands,
// weights less their zero points, geometry, and how operands of the epilogue lie.
#ifndef ASSAY_BACKENDS_LAYERS_INT8_JOB_H_
#define ASSAY_BACKENDS_LAYERS_INT8_JOB_H_

#include "exec/kernel.h"
#include "ops/conv/conv.h"
#include "ops/conv/conv_transpose.h"
#include "ops/quant/int8.h"

// A contraction of a layer, as the tactics for sums see it.
typedef struct int8_job {
  const assay_sized_layer_t* l;
  const assay_int8_t* q;  // NULL: ConvInteger, MatMulInteger
  const assay_node_t* anchor;
  assay_arena_t* arena;          // of q if that was read here; goes over to the kernel
  const assay_operand_t *x, *w;  // w NULL: constant weights that the layer quantizes itself
  assay_type_t x_type, w_type;
  int64_t channels;
  // Constant weights less their zero points, in the order of ONNX; NULL: w is read in each run.
  int16_t* weights;
  int64_t n_weights;
  int rank;  // of the weights
  int64_t dims[ASSAY_KERNEL_RANK];
  int weight_axis;         // of the output channels
  bool fits_int8;          // all of `weights` do
  int32_t zero_x, zero_w;  // zero_w: of weights that are read
  int32_t* zeros_w;        // of ConvInteger and MatMulInteger, one for each column; NULL: zero_w
  int64_t n_zeros_w;
  int zero_input;  // zero_x is this input; -1
  assay_type_t zero_type;
} int8_job_t;

// Reads a layer with a contraction on 8-bit integers; false: it is none, or its sums may not fit
// into int32. Closed with int8_job_close.
assay_status_t int8_job_open(const assay_sized_layer_t* l, bool (*wants)(const int8_job_t* j),
                             int8_job_t* out, bool* out_is) ASSAY_MUST_USE;
void int8_job_close(int8_job_t* j);

bool int8_is(const assay_node_t* n, const char* op_type);  // of ai.onnx
bool int8_is_conv(const assay_node_t* n);                  // Conv, QLinearConv, ConvInteger
bool int8_is_product(const assay_node_t* n);               // MatMul, Gemm, QLinear-, -Integer

// ---- geometry -----------------------------------------------------------------------------------

// Reads the convolution; false: its sizes do not fit the layer's output.
assay_status_t int8_conv_read(const int8_job_t* j, assay_conv_t* out, bool* out_fits);
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

// ---- operands of the epilogue -------------------------------------------------------------------

// An operand of the pointwise part. Element i of the output reads element
// i / block % outer * n + i / inner % n of it.
typedef struct int8_stream {
  int input;  // of the layer; -1: none
  int64_t block, inner, n, outer;
  bool whole;  // element i reads element i
} int8_stream_t;

// How the operand of a source lies beside the output, both in this layout where they have rank 3 or
// more. False: in another way.
bool int8_stream_find(const assay_operand_t* o, const assay_operand_t* y, assay_layout_t layout,
                      int8_stream_t* out);

// Scale and zero point of QuantizeLinear or DequantizeLinear; false: they are not known, or more
// than one.
bool int8_quantizer_read(const assay_sized_layer_t* l, const assay_node_t* n, double* scale,
                         double* zero);

#endif  // ASSAY_BACKENDS_LAYERS_INT8_JOB_H_
