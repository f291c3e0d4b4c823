// Constant matrices of weights that a model stores as integer codes of 4 or 8 bits with scales:
// what MatMulNBits multiplies by, and DequantizeLinear of a constant in front of MatMul or Gemm.
#ifndef ASSAY_OPS_QUANT_CODED_MATRIX_H_
#define ASSAY_OPS_QUANT_CODED_MATRIX_H_

#include "ops/op.h"

// Smaller blocks have nearly as many bytes of scales as float32 weights have.
enum { ASSAY_CODED_MIN_BLOCK = 16 };

// y[..., n] = x[..., k] w + bias with w[i, j] = (code - zero) * scale, each operation rounded.
// Code (i, j) is number i * k_step + j * n_step of those that lie packed in `codes`, the first of
// two in a byte's low half. Scale and zero of it have the places (i / block, j).
typedef struct assay_coded_matrix {
  const assay_value_t *x, *codes, *scales;
  const assay_value_t* zeros;  // NULL: all are no_zero
  const assay_value_t* bias;   // [n]; NULL: none
  int64_t k, n, k_step, n_step;
  int64_t block, blocks;  // of k: weights in a block, blocks
  int64_t scale_block_step, scale_n_step;
  int64_t zero_block_step, zero_n_step;
  int bits;
  bool is_signed;
  bool packed_zeros;  // zeros lie as the codes do; else they are elements of their tensor
  int no_zero;
} assay_coded_matrix_t;

// Whether a node is MatMulNBits of this form: 4 or 8 bits, everything but A constant, no g_idx.
bool assay_coded_is_nbits(const assay_node_t* n, assay_coded_matrix_t* out);
// Whether `product` (MatMul or Gemm) multiplies by what `dequantizer` makes of constants, through
// `transpose` (NULL: directly), with a scale for all, for each column, or for each block of a
// column.
bool assay_coded_is_dequantized(const assay_node_t* dequantizer, const assay_node_t* transpose,
                                const assay_node_t* product, assay_coded_matrix_t* out);
// The first nodes of a layer that are one of both: how many; 0 if they are not. A layer's further
// nodes do something to each element of the product.
size_t assay_coded_read(const assay_node_t* const* nodes, size_t n, assay_coded_matrix_t* out);

// Code i, and integer zero point i where they are packed, as the model means it.
int assay_coded_at(const assay_coded_matrix_t* m, const uint8_t* packed, int64_t i);

#endif  // ASSAY_OPS_QUANT_CODED_MATRIX_H_
