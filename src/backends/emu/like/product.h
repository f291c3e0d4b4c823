// Layers that multiply matrices or convolve: which terms make a sum, in the order of our GPU
// kernels. A convolution is a product whose rows are places of the output, and whose terms are
// positions of the kernel and, for each of these, channels of the group.
#ifndef ASSAY_BACKENDS_EMU_LIKE_PRODUCT_H_
#define ASSAY_BACKENDS_EMU_LIKE_PRODUCT_H_

#include "backends/emu/like/operands.h"
#include "backends/emu/like/tensor_core.h"
#include "ops/conv/window.h"

typedef struct emu_product emu_product_t;
struct emu_product {
  emu_arithmetic_t arithmetic;
  assay_layout_t layout;      // of the output's memory
  int64_t matrices, m, n, k;  // of each matrix
  int64_t y_row;              // between rows of the output
  const float *x, *w, *bias;  // bias: one a column of all matrices; NULL: none
  int64_t bias_step;          // from one matrix to the next; one_bias: the same for all columns
  bool one_bias;
  bool ends;  // the program behind it begins with the node's own end: factors, an addend
  // Row i of a matrix's left side, and column j of its right side, of k terms.
  void (*row)(const emu_product_t* p, int64_t matrix, int64_t i, float* to);
  void (*column)(const emu_product_t* p, int64_t matrix, int64_t j, float* to);
  // Products of matrices: steps between matrices, rows, terms and columns.
  int n_dims;
  int64_t dims[ASSAY_KERNEL_RANK], x_step[ASSAY_KERNEL_RANK], w_step[ASSAY_KERNEL_RANK];
  int64_t x_row, x_k, w_k, w_column;
  // Convolutions.
  assay_window_t window;
  bool transposed;
  int64_t channels, group_channels;  // read: of all groups, of one
  int64_t in_size, taps;
};

// *ok false: the layer is no product, or one that no kernel of ours takes.
assay_status_t emu_product_read(emu_operands_t* o, const emu_gpu_t* gpu, emu_product_t* p,
                                bool* ok) ASSAY_MUST_USE;
// conv.c
assay_status_t emu_conv_read(emu_operands_t* o, const emu_gpu_t* gpu, emu_product_t* p,
                             bool* ok) ASSAY_MUST_USE;
// All sums with their biases, in the order of the output's memory.
assay_status_t emu_product_run(const emu_product_t* p, float* y) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_EMU_LIKE_PRODUCT_H_
