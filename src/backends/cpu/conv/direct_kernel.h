// The inner part of direct convolutions (direct_conv.h): sums of some places of the output and some
// channels, and the commonest things that layers do to them.
//
// Every sum is one chain along the taps and, within a tap, the channels, whatever the number of
// places and channels made at once is.
#ifndef ASSAY_BACKENDS_CPU_CONV_DIRECT_KERNEL_H_
#define ASSAY_BACKENDS_CPU_CONV_DIRECT_KERNEL_H_

#include <stdbool.h>
#include <stdint.h>

#include "formats/format.h"

enum {
  DIRECT_ROWS = 14,   // places at once
  DIRECT_PANEL = 32,  // channels at once
  DIRECT_LANES = 16,
};

// Elements are units of 4 bytes: two channels in bf16, or one in float32. Taps that meet the input
// at one place at least, in order; of each, where the channels of each place begin.
typedef struct direct_block {
  int rows, vectors;  // vectors of DIRECT_LANES channels: 1 or 2
  int n_taps;
  const int32_t* taps;
  const uint32_t* const* at;  // [n_taps][DIRECT_ROWS]
  int64_t units;              // of a place
  const uint32_t* panel;      // [all taps][units][DIRECT_PANEL]
  const float* start;         // rows of DIRECT_PANEL, so many floats apart; NULL: zeros
  int64_t start_step;
  float* sums;
  int64_t step;
  // What is done to the sums while they are in registers: they go nowhere else. NULL: nothing; ways
  // that do not say `finishes` have to be given none.
  const struct direct_finish* finish;
  // Brought near meanwhile. What is read and written next: elements of this size, so many places
  // on from these addresses (NULL: nothing).
  const char *read_ahead, *write_ahead;
  const int64_t* ahead;  // [rows_ahead]
  int rows_ahead;
  int64_t element;
  // Weights: two lines after each so many units (NULL: none); moved on.
  const char* fetch;
  int64_t fetch_every;
} direct_block_t;

// out = sums, plus `add`, limited from below to 0, rounded.
typedef struct direct_finish {
  int64_t rows, columns;  // up to DIRECT_PANEL
  const float* sums;      // rows lie DIRECT_PANEL apart
  assay_type_t type;      // of `add` and `out`
  const void* add;        // NULL: nothing
  bool relu;              // NaN stays
  void* out;
  const int64_t* at;  // [rows]: elements from `add` and `out` on
} direct_finish_t;

// How units are multiplied.
typedef struct direct_way {
  bool pairs;  // of bf16; else float32
  void (*block)(direct_block_t* b);
  void (*finish)(const direct_finish_t* f);  // NULL: that is left to programs
  bool finishes;                             // `block` does it, too, where outputs are float32
  // n elements of float16 or bfloat16, as float32. NULL with pairs.
  void (*widen)(assay_type_t type, const uint16_t* from, int64_t n, float* to);
} direct_way_t;
extern const direct_way_t cpu_direct_pairs;          // AVX512_BF16; writes bf16
extern const direct_way_t cpu_direct_floats;         // AVX-512; writes any float type
extern const direct_way_t cpu_direct_floats_narrow;  // AVX2 and FMA

// Those that convolutions of this type are fastest with on this CPU (machine.c); NULL: others are
// faster.
const direct_way_t* cpu_direct_way(assay_type_t type);

#endif  // ASSAY_BACKENDS_CPU_CONV_DIRECT_KERNEL_H_
