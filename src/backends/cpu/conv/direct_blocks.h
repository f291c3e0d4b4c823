// Every number of places and vectors that a way makes at once, for files that have defined TARGET
// and the inline function block(rows, vectors, b): included once each, after these.
#ifndef ASSAY_BACKENDS_CPU_CONV_DIRECT_BLOCKS_H_
#define ASSAY_BACKENDS_CPU_CONV_DIRECT_BLOCKS_H_

#include "backends/cpu/conv/direct_kernel.h"

typedef void block_t(direct_block_t* b);
#define BLOCK(rows)                                                       \
  TARGET static void one_##rows(direct_block_t* b) { block(rows, 1, b); } \
  TARGET static void two_##rows(direct_block_t* b) { block(rows, 2, b); }
BLOCK(1)
BLOCK(2)
BLOCK(3)
BLOCK(4)
BLOCK(5)
BLOCK(6)
BLOCK(7)
BLOCK(8)
BLOCK(9)
BLOCK(10)
BLOCK(11)
BLOCK(12)
BLOCK(13)
BLOCK(14)

static void run_block(direct_block_t* b) {
  static block_t* const blocks[2][DIRECT_ROWS] = {
      {one_1, one_2, one_3, one_4, one_5, one_6, one_7, one_8, one_9, one_10, one_11, one_12,
       one_13, one_14},
      {two_1, two_2, two_3, two_4, two_5, two_6, two_7, two_8, two_9, two_10, two_11, two_12,
       two_13, two_14}};
  blocks[b->vectors - 1][b->rows - 1](b);
}

#endif  // ASSAY_BACKENDS_CPU_CONV_DIRECT_BLOCKS_H_
