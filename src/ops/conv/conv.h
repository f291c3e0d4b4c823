// Convolutions as products of matrices: what the files conv*.c share.
//
// Per sample and group, with K = channels in the group x kernel positions and P = output positions:
//   y[mg, P] = w[mg, K] * panel[K, P]
// where row (channel, position) of the panel holds the input element that this kernel position
// meets at each output position: 0 in the padding ("im2col"). The panel is made tile by tile.
//
// Order of the sums (c->arith F32 and NARROW): s = 0, then s = fma(w, x, s) over the channels of
// the group and, within a channel, the kernel positions in row-major order, padding as exact
// zeros; the bias is added last. F64: as the BLAS does it, in tiles that depend on shapes only.
#ifndef ASSAY_OPS_CONV_CONV_H_
#define ASSAY_OPS_CONV_CONV_H_

#include "ops/conv/window.h"

typedef struct assay_conv {
  int64_t n, c, m, group;     // batch, channels in and out, groups
  int64_t cg, mg;             // channels in and out of a group
  int64_t kernel_size;        // kernel positions
  int64_t in_size, out_size;  // elements of one channel
  assay_window_t w;
} assay_conv_t;

// Reads and checks attributes and shapes: x [n, c, in...], w [m, c / group, kernel...].
//   bias  NULL: none
//   channels_last  x is [n, in..., c]
assay_status_t assay_conv_read(const assay_node_t* node, const assay_tensor_t* x,
                               const assay_tensor_t* w, const assay_tensor_t* bias,
                               bool channels_last, assay_conv_t* out) ASSAY_MUST_USE;
// The same for inference: sets output 0. bias_input SIZE_MAX: none.
assay_status_t assay_conv_infer(assay_infer_t* c, size_t x_input, size_t w_input, size_t bias_input,
                                bool channels_last, assay_type_t elem) ASSAY_MUST_USE;

// How a panel is made: rows [k0, k1) and columns [t0, t1) for sample n and group g, row-major into
// out. May be called from several threads at once.
typedef struct assay_conv_panel assay_conv_panel_t;
struct assay_conv_panel {
  const assay_conv_t* conv;
  const double* x;
  void (*fill)(const assay_conv_panel_t* p, int64_t n, int64_t g, int64_t k0, int64_t k1,
               int64_t t0, int64_t t1, double* out);
  const void* user;
};

// y[n, m, out...] from x[n, c, in...] and w[m, cg, kernel...]; bias NULL or m elements.
assay_status_t assay_conv_run(const assay_eval_t* c, const assay_conv_t* s, const double* x,
                              const double* w, const double* bias, double* y) ASSAY_MUST_USE;
// The same with a panel of one's own.
assay_status_t assay_conv_product(const assay_eval_t* c, const assay_conv_panel_t* panel,
                                  const double* w, const double* bias, double* y) ASSAY_MUST_USE;

// dst[n][j][i] = src[n][i][j] for i < rows, j < cols: channels first to last and back.
void assay_conv_swap(int64_t n, int64_t rows, int64_t cols, const double* src, double* dst);

// 2 * multiplications of a convolution, and the bias.
double assay_conv_flops(const assay_conv_t* s, bool bias);
// The cost of a node whose inputs x, w and bias stand at these places.
void assay_conv_cost(const assay_eval_t* c, size_t x, size_t w, size_t bias, bool channels_last,
                     assay_cost_t* out);

#endif  // ASSAY_OPS_CONV_CONV_H_
