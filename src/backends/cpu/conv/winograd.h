// Convolutions by Winograd's minimal filtering, in float32: a kernel and what runs it. 16-bit
// inputs are widened as tiles read them, and results rounded once.
//
// Tiles of the output are numbered over all samples. Some tiles make a block: their inputs are
// transformed, multiplied with the transformed weights product by product, and the sums are
// transformed back, all in the cache. What a tile gives depends on nothing but its own input: each
// sum over the channels is one chain of fused multiply-adds. A tile with numbers out of range is
// computed as a plain convolution, in one chain along rows, columns and channels.
#ifndef ASSAY_BACKENDS_CPU_CONV_WINOGRAD_H_
#define ASSAY_BACKENDS_CPU_CONV_WINOGRAD_H_

#include "backends/cpu/conv/winograd_tiles.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/pointwise/program.h"
#include "ops/conv/conv_winograd.h"

typedef struct cpu_winograd {
  assay_kernel_t base;
  int input;
  assay_type_t type;    // of the input
  int out, in, points;  // of F(out, 3)
  cpu_winograd_in_t* transform_in;
  cpu_winograd_out_t* transform_out;
  cpu_range_t range;
  int64_t samples, channels, outputs;  // channels in, and out
  int64_t height, width, out_height, out_width;
  int64_t top, left;                      // padding
  int64_t apart[2];                       // places of a tile: the dilations
  int64_t tiles_high, tiles_wide, tiles;  // all samples' tiles
  const float* weights;                   // [points][panels][channels][CPU_PANEL]
  const assay_tensor_t* model;            // [outputs, channels, 3, 3], as in the model
  float* bias;                            // [outputs, padded]; NULL: none
  float* zeros;                           // [channels]: what lies in the padding
  cpu_program_t* program;                 // NULL: none
  bool relu;                              // is all that it does
  int64_t block, columns;                 // tiles, and channels of the output, at a time
  bool by_columns;                        // threads share out the channels, not the tiles
  bool narrow;                            // products for vectors of 8
  bool far;                               // not all weights stay in the second cache
  int n_threads;                          // for which there is scratch memory
  int64_t inputs_step, sums_step;         // floats from one product to the next
  int64_t row_step;                       // from one tile's inputs to the next one's
  size_t inputs, thread_scratch;          // floats
} cpu_winograd_t;

assay_status_t cpu_winograd_run(assay_kernel_t* base, const void* const* in, void* const* out,
                                void* scratch);
// What vectors this build has for this CPU; SLOW: plain convolutions are faster.
typedef enum cpu_winograd_level {
  CPU_WINOGRAD_SLOW = 0,
  CPU_WINOGRAD_NARROW,  // of 8 (AVX2 and FMA)
  CPU_WINOGRAD_WIDE,    // of 16 (AVX-512)
} cpu_winograd_level_t;
cpu_winograd_level_t cpu_winograd_level(void);
// Fixes blocks and scratch memory.
void cpu_winograd_plan(cpu_winograd_t* k);

#endif  // ASSAY_BACKENDS_CPU_CONV_WINOGRAD_H_
