// Direct convolutions: what making them (direct_conv.c), the order of their places
// (direct_places.c), widening (direct_widen.c) and running them (direct_run.c) share.
//
// Products whose rows are places of the output, read where they lie in the input, channels last,
// tap by tap; what the layer does to its sums is done while they are in the first cache. Elements
// are pairs of bf16 where the CPU multiplies those, and float32 otherwise: of 16-bit inputs some
// blocks of places at a time are widened, which is exact, into memory that stays in the second
// cache.
//
// Every sum is one chain of multiply-adds, whatever the threads are. A tap that lies in the padding
// for all places that are made at once is left out. Places are made together with those that have
// the same taps in the padding; which those are follows from the sizes of a sample.
#ifndef ASSAY_BACKENDS_CPU_CONV_DIRECT_CONV_H_
#define ASSAY_BACKENDS_CPU_CONV_DIRECT_CONV_H_

#include "backends/cpu/conv/direct_kernel.h"
#include "backends/cpu/pointwise/program.h"

enum {
  DIRECT_TAPS = 64,  // more are for others
  DIRECT_OUTSIDE = -1,
};

// Where, in units, a window's taps lie along some axes: [out][kernel], DIRECT_OUTSIDE in the
// padding.
typedef struct direct_axis {
  int64_t out, kernel;
  int64_t* at;
} direct_axis_t;

// What a block reads: units of a sample, from the first one to the one after the last.
typedef struct direct_reach {
  int64_t first, end;
  int taps;
} direct_reach_t;

typedef struct direct {
  assay_kernel_t base;
  int input;
  assay_type_t type;  // of the input and the weights
  const direct_way_t* way;
  bool widens;  // floats of the input to float32
  // Without padding, strides and other taps, all samples are one.
  bool joined, skips;
  direct_axis_t across, along;      // all spatial axes but the last one; the last one
  int64_t samples, places, blocks;  // blocks of places of a sample
  int32_t* order;                   // of a sample's places; NULL: as they come
  int32_t* first;                   // [blocks + 1], of `order`
  direct_reach_t* reach;            // [blocks]; NULL: nothing is widened, or all samples are one
  int64_t* done;                    // [blocks + 1]: what there was to do before
  int64_t in_sample, units, taps, made;
  int64_t row;  // places of one, where it works by rows
  // Panels of channels of the output; how many stay in the cache, while so many blocks go by.
  int64_t panels, chunk, batch;
  int64_t cached;  // bytes of weights that stay
  size_t wide;     // units of the memory into which a thread widens; 0: it does not
  // Taps of one panel that stay in the cache, where not all do; sums of so many blocks wait
  // meanwhile. 0: all do.
  int64_t some_taps, waiting;
  int max_parts;
  size_t thread_scratch;    // floats
  const uint32_t* weights;  // in panels, in the store
  float* bias;              // [made, padded]; NULL: none
  uint32_t* zeros;          // of one place
  cpu_program_t* program;   // NULL: none
  bool simple, relu;        // what direct_finish_t does is all that the layer does
  int add;                  // the input that it adds; -1: none
} direct_t;

// ---- which places together (direct_places.c) ----------------------------------------------------

assay_status_t cpu_direct_order(direct_t* k) ASSAY_MUST_USE;
assay_status_t cpu_direct_find_reach(direct_t* k) ASSAY_MUST_USE;
// The block with which share `part` of `parts` begins, so that there is as much to do in each.
int64_t cpu_direct_block_of(const direct_t* k, int64_t part, int64_t parts);

// The places of a block, and where their elements begin in the output.
typedef struct direct_rows {
  int64_t from;  // units before the sample
  int n;
  int64_t place[DIRECT_ROWS], at[DIRECT_ROWS];
} direct_rows_t;
void cpu_direct_rows(const direct_t* k, int64_t block, direct_rows_t* r);

// The taps that meet the input at one of a block's places at least, and where the channels of each
// place lie under each of them: so many units after the sample's beginning, DIRECT_OUTSIDE in the
// padding. Gives how many taps there are.
int cpu_direct_taps(const direct_t* k, const direct_rows_t* rows, int32_t* taps,
                    int64_t (*at)[DIRECT_ROWS]);

// ---- widening (direct_widen.c) ------------------------------------------------------------------

// Blocks [first, last) whose input is widened at once: a range of the input as it lies, or, where
// that is less, what each tap of each place reads, one after the other.
typedef struct direct_piece {
  int64_t first, last;
  bool gathered;
  int64_t from, units;  // of the range
} direct_piece_t;
// The largest piece that begins with a block, and fits.
direct_piece_t cpu_direct_piece(const direct_t* k, int64_t block, int64_t last);
// What taps [tap, end) read in a piece comes to `wide`; of a range, all with the first tap.
void cpu_direct_widen(const direct_t* k, const void* in, const direct_piece_t* p, int64_t tap,
                      int64_t end, float* wide);
// Floats that no piece exceeds.
size_t cpu_direct_wide_capacity(const direct_t* k);

// ---- running (direct_run.c) ---------------------------------------------------------------------

assay_status_t cpu_direct_run(assay_kernel_t* base, const void* const* in, void* const* out,
                              void* scratch);

// By rows (assay_by_rows_t), where a place of the output reads no other one of the input.
void cpu_direct_run_rows(const assay_kernel_t* base, const void* const* in, void* const* out,
                         void* scratch, int64_t sample, int64_t row, int64_t end);

#endif  // ASSAY_BACKENDS_CPU_CONV_DIRECT_CONV_H_
