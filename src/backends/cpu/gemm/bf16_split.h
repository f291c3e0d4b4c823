// Products and convolutions of float32 by products of bf16 parts (split_kernel.h): a kernel and
// what runs it.
//
// The output's lines (rows of a matrix, each of one place; rows of an image) are taken in blocks. A
// block's input is split, place by place, with zeros around it; rows of tiles are places that lie
// one after the other, those beside the image among them, which are dropped. What a place of the
// output gets depends on nothing but the places that its window sees: were one of those out of
// range, it is computed as a plain sum, in one chain along the kernel's places and the channels.
//
// Threads share out the blocks, and where these are few, the columns, too; each splits what it
// multiplies: to read what another has just written takes longer.
#ifndef ASSAY_BACKENDS_CPU_GEMM_BF16_SPLIT_H_
#define ASSAY_BACKENDS_CPU_GEMM_BF16_SPLIT_H_

#include "backends/cpu/gemm/bf16_split_kernel.h"
#include "backends/cpu/pointwise/program.h"

enum {
  CPU_BF16_SPLIT_MIN_CHANNELS = 16,    // ASSAY_SPLIT_LEAST_TERMS
  CPU_BF16_SPLIT_BLOCK_BYTES = 640000  // of a block's split input: a part of the second cache
};

// One axis of the places of an image.
typedef struct cpu_bf16_split_axis {
  int64_t in, out, kernel, stride, dilation, before;  // before: padding
  int64_t step;  // of the model's input, between two of these: 1, or the stride of one place
} cpu_bf16_split_axis_t;

typedef struct cpu_split {
  assay_kernel_t base;
  int input, parts;
  int64_t samples, channels, outputs;
  cpu_bf16_split_axis_t y, x;
  int64_t source_width, source_size;  // places of a line, of a sample, in the input's memory
  int64_t width;                      // places of a split line
  bool flat;                          // a block's lines are one run of places
  int64_t units;                      // of a place
  int64_t pitch;                      // bytes of a split place
  int64_t n_pieces;                   // places of the kernel
  int64_t* pieces;                    // how many bytes after a window's first place they lie
  cpu_range_t range;
  const uint16_t* weights;  // [panels][pieces][units], each as split_kernel.h says
  int64_t panel;            // numbers from one panel to the next
  const assay_tensor_t* model;
  int64_t column_step, channel_step, piece_step;  // of the model's weights
  float* bias;                                    // [outputs, padded]; NULL: none
  cpu_program_t* program;                         // NULL: none
  // How the work is shared out: by blocks, and columns of them.
  int64_t lines, blocks;  // of a block; of a sample
  int64_t columns;        // of a share
  int64_t wide;           // that are multiplied before what the layer does to them
  int n_threads;          // for which there is scratch memory
  size_t block_bytes, thread_bytes;
} cpu_bf16_split_t;

assay_status_t cpu_bf16_split_run(assay_kernel_t* base, const void* const* in, void* const* out,
                                  void* scratch);
// Fixes runs, blocks and scratch memory, for what is known of the layer.
assay_status_t cpu_bf16_split_plan(cpu_bf16_split_t* k);

#endif  // ASSAY_BACKENDS_CPU_GEMM_BF16_SPLIT_H_
