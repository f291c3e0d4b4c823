// Windows of a convolution with two axes as the copy engine is asked for them, by steps of BK
// channels, of which a tap has whole numbers.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_WINDOWS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_WINDOWS_H_

#include "product.h"

// Where windows begin, and which step of which tap comes next.
typedef struct windows {
  int column, row, sample, channel, column_further, row_further;
} windows_t;

DEVICE windows_t find_windows(const product_args_t* a, const tile_t* t) {
  windows_t w;
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const uint32_t row = (uint32_t)t->row, line = row / (uint32_t)across->out;
  w.column = (int)(row - line * (uint32_t)across->out) * across->stride - across->pad;
  w.sample = (int)(line / (uint32_t)down->out);
  w.row = ((int)line - w.sample * down->out) * down->stride - down->pad;
  w.channel = w.column_further = w.row_further = 0;
  return w;
}

DEVICE void next_windows(const product_args_t* a, windows_t* w) {
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  w->channel += BK;
  if (w->channel < a->channels) return;
  w->channel = 0;
  w->column_further += across->dilation;
  if (w->column_further < across->kernel * across->dilation) return;
  w->column_further = 0;
  w->row_further += down->dilation;
}

// Goes on by so many terms, whole steps.
DEVICE void skip_windows(const product_args_t* a, int terms, windows_t* w) {
  const product_axis_t *down = &a->axes[PRODUCT_AXES - 2], *across = &a->axes[PRODUCT_AXES - 1];
  const int tap = terms / a->channels;
  w->channel = terms - tap * a->channels;
  w->column_further = tap % across->kernel * across->dilation;
  w->row_further = tap / across->kernel * down->dilation;
}

// The places from the first window's on, as many as the map says.
DEVICE void ask_for_windows(const tensor_map_t* x, const windows_t* w, uint32_t to, uint32_t full) {
  bulk_windows(to, x, w->channel, w->column, w->row, w->sample, w->column_further, w->row_further,
               full);
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_WINDOWS_H_
