// Arguments of the kernel that copies a box by tiles (kernels/data/copy_tiles.cu).
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_TILES_ARGS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_TILES_ARGS_H_

#include "divisor_args.h"

enum { TILE_DIMS = 8, TILE_WORDS = 4096 };

// A tile's dimensions from the innermost on as one of the tensors has them, and its steps.
typedef struct tile_side {
  uint32_t dims[TILE_DIMS], factors[TILE_DIMS];  // factors: DIVIDED_SHORT
  int64_t strides[TILE_DIMS];
} tile_side_t;

// Sizes and steps are those of words.
typedef struct tiles_args {
  address_t from, to;          // of the first word
  tile_side_t in, out;         // in the tile, words are in the order of `out`
  int32_t places[TILE_DIMS];   // steps in the tile of the dimensions of `in`
  divisor_t outer[TILE_DIMS];  // tiles side by side along the box's dimensions, innermost first
  int64_t from_steps[TILE_DIMS], to_steps[TILE_DIMS];  // between these
  int32_t n_outer;
  uint32_t tiles, words;  // how many there are; what one has
} tiles_args_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_TILES_ARGS_H_
