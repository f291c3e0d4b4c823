// Sliding windows over spatial axes: what convolutions and poolings share.
//
// An axis of size `in`, padded by pads[0] before and pads[1] after, is covered by windows of
// `kernel` positions that are `dilation` apart; window o starts at o * stride - pads[0].
#ifndef ASSAY_OPS_CONV_WINDOW_H_
#define ASSAY_OPS_CONV_WINDOW_H_

#include "ops/op.h"

typedef enum assay_auto_pad {
  ASSAY_AUTO_PAD_NOTSET = 0,
  ASSAY_AUTO_PAD_SAME_UPPER,
  ASSAY_AUTO_PAD_SAME_LOWER,
  ASSAY_AUTO_PAD_VALID,
} assay_auto_pad_t;

typedef struct assay_window_axis {
  int64_t kernel;  // 0: not known (inference only)
  int64_t stride, dilation;
  int64_t pads[2];
  int64_t in, out;  // set by assay_window_fit
} assay_window_axis_t;

typedef struct assay_window {
  int rank;  // spatial axes
  assay_auto_pad_t auto_pad;
  bool ceil_mode;
  assay_window_axis_t axis[ASSAY_MAX_RANK];
} assay_window_t;

// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode of a node and checks them.
//   kernel  `rank` sizes of the weights' kernel, 0 where not known; NULL: kernel_shape is required
assay_status_t assay_window_read(const assay_node_t* node, int rank, const int64_t* kernel,
                                 assay_window_t* out) ASSAY_MUST_USE;

// Reads a list attribute of n values from `min` to 2^31 - 1; all `otherwise` if it is not set.
assay_status_t assay_window_list(const assay_node_t* node, const char* name, int n, int64_t min,
                                 int64_t otherwise, int64_t* out) ASSAY_MUST_USE;

// Sets in, out and, for auto_pad SAME, the pads. An error if the windows do not fit.
assay_status_t assay_window_fit(const assay_node_t* node, assay_window_t* w,
                                const int64_t* in) ASSAY_MUST_USE;

// The size of output axis i for an input of size `in`.
const assay_dim_t* assay_window_infer(assay_dims_t* dims, const assay_window_t* w, int i,
                                      const assay_dim_t* in);
// The spatial axes of *shape (from axis 2 on) go through the window; error as in fit.
assay_status_t assay_window_infer_shape(assay_infer_t* c, const assay_window_t* w,
                                        const assay_shape_t* in,
                                        assay_shape_t* shape) ASSAY_MUST_USE;

// Elements of one channel of the input and output: products over the axes.
int64_t assay_window_in_size(const assay_window_t* w);
int64_t assay_window_out_size(const assay_window_t* w);

// The windows whose position k lies inside the input: [*out_first, *out_end) of the axis' outputs.
static inline void assay_window_range(const assay_window_axis_t* a, int64_t k, int64_t* out_first,
                                      int64_t* out_end) {
  const int64_t at = k * a->dilation - a->pads[0];  // input index of window 0's position k
  int64_t first = at < 0 ? (-at + a->stride - 1) / a->stride : 0;
  int64_t end = a->in - 1 - at < 0 ? 0 : (a->in - 1 - at) / a->stride + 1;
  if (end > a->out) end = a->out;
  *out_first = first < end ? first : end;
  *out_end = end;
}

// Pairs of a window and of a position of the kernel that lie inside the input.
static inline int64_t assay_window_taps(const assay_window_axis_t* a) {
  int64_t taps = 0, first, end;
  for (int64_t k = 0; k < a->kernel; k++) {
    assay_window_range(a, k, &first, &end);
    taps += end - first;
  }
  return taps;
}

// The positions of window o that lie inside the input: [*out_first, *out_end) of the kernel.
static inline void assay_window_positions(const assay_window_axis_t* a, int64_t o,
                                          int64_t* out_first, int64_t* out_end) {
  const int64_t start = o * a->stride - a->pads[0];
  int64_t first = start < 0 ? (-start + a->dilation - 1) / a->dilation : 0;
  int64_t end = a->in - 1 - start < 0 ? 0 : (a->in - 1 - start) / a->dilation + 1;
  if (end > a->kernel) end = a->kernel;
  *out_first = first < end ? first : end;
  *out_end = end;
}

// The most positions of the kernel, in all windows, that can meet at one place.
int64_t assay_window_overlap(const assay_window_axis_t* a);

// Walks over the rows (lines along the last axis) of the input that one row of the output covers,
// in the kernel's row-major order; rows in the padding are skipped.
typedef struct assay_window_rows {
  const assay_window_t* w;
  int64_t first[ASSAY_MAX_RANK], end[ASSAY_MAX_RANK], k[ASSAY_MAX_RANK], start[ASSAY_MAX_RANK];
  int64_t in_row;      // number of the input's row
  int64_t kernel_row;  // number of the kernel's row
} assay_window_rows_t;

// Starts at the first row; false if there is none. out_row is the number of the output's row.
bool assay_window_rows_begin(assay_window_rows_t* r, const assay_window_t* w, int64_t out_row);
bool assay_window_rows_next(assay_window_rows_t* r);

#endif  // ASSAY_OPS_CONV_WINDOW_H_
