// Winograd's minimal filtering, F(m x m, 3 x 3): the transforms of one tile, for all channels.
//
// A tile of the output has m by m places, and is made of (m + 2) by (m + 2) places of the input.
// Source: A. Lavin and S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016; the
// matrices are those of ops/conv/winograd.h.
#ifndef ASSAY_BACKENDS_CPU_CONV_WINOGRAD_TILES_H_
#define ASSAY_BACKENDS_CPU_CONV_WINOGRAD_TILES_H_

#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/range.h"

// Transforms a tile of the input, whose numbers may be those of the range: product p of channel c
// lies at to[p * step + c]. from: where the channels of each place lie, row by row. False: a number
// is out of range, and the tile has to be computed otherwise.
typedef bool cpu_winograd_in_t(int64_t channels, const float* const* from, cpu_range_t r, float* to,
                               int64_t step);
// The way back, with what is added to each channel (NULL: nothing), limited from below to 0 if
// `relu` (NaN stays). to: where the channels of each place go, row by row; NULL: nowhere.
typedef void cpu_winograd_out_t(int64_t channels, const float* from, int64_t step,
                                const float* bias, bool relu, float* const* to);

cpu_winograd_in_t cpu_winograd_in_2, cpu_winograd_in_4;
cpu_winograd_out_t cpu_winograd_out_2, cpu_winograd_out_4;

#endif  // ASSAY_BACKENDS_CPU_CONV_WINOGRAD_TILES_H_
