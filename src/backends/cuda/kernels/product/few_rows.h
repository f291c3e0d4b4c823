// Rows that are brought into shared memory for products of few rows. N_WARPS: of the block.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_FEW_ROWS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_FEW_ROWS_H_

#include "elements.h"

typedef ELEMENT(IN) element_t;
#define MMA_f16 mma_f16
#define MMA_bf16 mma_bf16

// Elements [i, i + piece) of a row, zeros behind its k terms; piece: 8, 2 or 1, a constant, of
// which i, k and steps between rows are multiples. Those of 8 have arrived behind WAIT_COPIES.
DEVICE void load_piece(const element_t* from, int64_t row, int64_t step, int i, int k, int piece,
                       element_t* place) {
  const bool inside = i < k;
  const element_t* p = from + (inside ? row * step + i : 0);
  if (piece == 8)
    copy_16(place, p, inside ? 16 : 0);
  else if (piece == 2)
    *(uint32_t*)(void*)place = inside ? *(const uint32_t*)(const void*)p : 0;
  else
    *place = inside ? *p : (element_t)0;
}

// Of `all` rows of k terms the first n into rows of `pitch`, with zeros up to whole steps; what is
// made of the others is not stored. A warp brings a row.
DEVICE void load_rows(const element_t* from, int64_t step, int64_t n, int all, int k, int pitch,
                      int piece, element_t* to) {
  const int pieces = (k + 15) / 16 * 16 / piece;  // whole steps
  const int rows = n < all ? (int)n : all;
  for (int row = THREAD / WARP; row < rows; row += N_WARPS)
    for (int i = LANE; i < pieces; i += WARP)
      load_piece(from, row, step, i * piece, k, piece, to + row * pitch + i * piece);
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_FEW_ROWS_H_
