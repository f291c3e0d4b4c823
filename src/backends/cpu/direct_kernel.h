// The inner part of direct convolutions (direct_conv.c): sums of some places of the output and some
// channels, and the commonest things that layers do to them.
//
// Every sum is one chain along the taps and, within a tap, the channels, whatever the number of
// places and channels made at once is.
#ifndef ASSAY_BACKENDS_CPU_DIRECT_KERNEL_H_
#define ASSAY_BACKENDS_CPU_DIRECT_KERNEL_H_

#include <stdbool.h>
#include <stdint.h>

#include "formats/format.h"

enum {
  DIRECT_ROWS = 14,   // places at once
  DIRECT_PANEL = 32,  // channels at once
  DIRECT_LANES = 16,
};

// Elements are bf16, two channels in a unit of 4 bytes. Taps that meet the input at one place at
// least, in order; of each, where the channels of each place begin.
typedef struct direct_block {
  int rows, vectors;  // vectors of DIRECT_LANES channels: 1 or 2
  int n_taps;
  const int32_t* taps;
  const uint32_t* const* at;  // [n_taps][DIRECT_ROWS]
  int64_t units;              // of a place
  const uint32_t* panel;      // [all taps][units][DIRECT_PANEL]
  const float* start;         // [DIRECT_PANEL]; NULL: zeros
  float* sums;
  int64_t step;
  // Brought near meanwhile. What is read and written next: elements of this size, so many places
  // on from these addresses (NULL: nothing).
  const char *read_ahead, *write_ahead;
  const int64_t* ahead;  // [rows_ahead]
  int rows_ahead;
  int64_t element;
  // Weights: two lines after each so many units (NULL: none); moved on.
  const char* fetch;
  int64_t fetch_every;
  // Float32 only: what is done to the sums while they are in registers; NULL: they go to `sums`.
  const struct direct_finish* finish;
} direct_block_t;
void cpu_direct_block(direct_block_t* b);
void cpu_direct_block_f32(direct_block_t* b);

// out = sums, plus `add`, limited from below to 0, rounded.
typedef struct direct_finish {
  int64_t rows, columns;  // up to DIRECT_PANEL
  const float* sums;      // rows lie DIRECT_PANEL apart
  const void* add;    // bf16; NULL: nothing
  bool relu;              // NaN stays
  void* out;          // bf16
  const int64_t* at;      // [rows]: elements from `add` and `out` on
} direct_finish_t;
void cpu_direct_finish(const direct_finish_t* f);

#endif  // ASSAY_BACKENDS_CPU_DIRECT_KERNEL_H_
