// Products of few rows (8 at most) by the tensor cores' mma.sync: a warp makes 16 columns, whose
// weights four bring into shared memory before the rows are there. A column's terms are multiplied as
// product_mma.cu does it, so that sums have the same bits; columns take the side of 16, rows that of
// 8, which changes no product.
//
// Options besides those of product.h: IN f16 or bf16; PIECE: elements that are brought at once, 8, 2
// or 1, of which rows and weights are multiples; W_CONSTANT 1: no layer before this one writes the
// weights.
#include "product_args.h"

#define BM 8
#define BN 16
#define N_WARPS 4
#define N_THREADS (N_WARPS * WARP)

#include "few_rows.h"
#include "product_sums.h"

// Two elements that lie side by side.
DEVICE uint32_t two_at(const element_t* p) { return *(const uint32_t*)(const void*)p; }

KERNEL(product_few, product_args_t, N_THREADS) {
  DYNAMIC(element_t, bytes);  // 16 rows of weights, 8 of the left side
  SHARED float tile[BM * SUM_STEP];
  const int k = (int)a.k, pitch = (k + 15) / 16 * 16 + 8;  // eight rows lie in different banks
  const tile_t t = find_tile(&a, BM, BN);
  const element_t* x = GLOBAL(const element_t, a.x) + t.x + t.row * a.x_row;
  const element_t* w = GLOBAL(const element_t, a.w) + t.w + t.column * a.w_column;
  element_t *columns = bytes, *rows = bytes + BN * pitch;
  if (W_CONSTANT) load_rows(w, a.w_column, a.n - t.column, BN, k, pitch, PIECE, columns);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  if (!W_CONSTANT) load_rows(w, a.w_column, a.n - t.column, BN, k, pitch, PIECE, columns);
  load_rows(x, a.x_row, a.m - t.row, BM, k, pitch, PIECE, rows);
  COMMIT_COPIES();
  WAIT_COPIES(0);
  SYNC();
  const int g = LANE / 4, two = LANE % 4 * 2;
  float sums[4] = {0, 0, 0, 0};
  const int own = THREAD < WARP ? k + two : 0;  // one warp multiplies
  UNROLL_4
  for (int k0 = two; k0 < own; k0 += 16) {
    const element_t *column = columns + g * pitch + k0, *row = rows + g * pitch + k0;
    const uint32_t of_w[4] = {two_at(column), two_at(column + 8 * pitch), two_at(column + 8),
                              two_at(column + 8 * pitch + 8)};
    const uint32_t of_x[2] = {two_at(row), two_at(row + 8)};
    JOINED(MMA_, IN)(sums, of_w, of_x);
  }
  if (THREAD < WARP) UNROLL
  for (int i = 0; i < 4; i++) tile[(two + i % 2) * SUM_STEP + g + i / 2 * 8] = sums[i];
  SYNC();
  finish_tile(&a, &t, tile, THREAD);
}
