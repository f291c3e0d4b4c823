// Matrices of elements of 16 bits in shared memory, as wgmma reads them: PTX ISA, "Asynchronous
// Warpgroup Level Matrix Multiply-Accumulate", "Shared Memory Matrix Layout" and "Matrix
// Descriptor Format".
//
// Lines of 128 bytes (or 64) lie one after the other; in the line at address a, the pieces of 16
// bytes change places: piece i lies where i ^ a / 128 % 8 would (of 64 bytes: i ^ a / 128 % 4). So
// eight lines, 1024 bytes (512), are a pattern, which begins at a multiple of its size. A line has
// terms of one row or column (in their order: "terms"), or columns of one term ("turned").
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_WGMMA_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_WGMMA_H_

#include "prelude.h"

#define WGMMA_LINE_128 1  // as the descriptor says it
#define WGMMA_LINE_64 2

// at: an address of shared memory. Steps are in bytes, multiples of 16: `across` from the columns
// of a line to those behind them (turned, where there are more than a line has), `down` from eight
// lines to the next eight: rows, or turned terms. Bits 0 to 13: at / 16, 16 to 29: across / 16, 32
// to 45: down / 16, 49 to 51: 0, since patterns begin at multiples of their size, 62 and 63: lines.
DEVICE uint64_t describe_matrix(uint32_t at, uint32_t across, uint32_t down, uint32_t lines) {
  return (uint64_t)(at >> 4 & 0x3fff) | (uint64_t)(across >> 4 & 0x3fff) << 16 |
         (uint64_t)(down >> 4 & 0x3fff) << 32 | (uint64_t)lines << 62;
}

// The same of a matrix that lies so many bytes further, a multiple of 16; both below 256 KB.
DEVICE uint64_t further(uint64_t matrix, uint32_t bytes) {
  return (matrix & ~(uint64_t)0xffffffff) | ((uint32_t)matrix + bytes / 16);
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_WGMMA_H_
