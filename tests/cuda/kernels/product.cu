// z[rows, columns] = x[rows, depth] y[depth, columns] of fp16; a block of 4 warps makes 32 x 32.
#include "sample_args.h"

#define PITCH 40  // elements of a row of 32 in shared memory: eight rows in different banks

DEVICE void load(const sample_args_t* a, f16_t* to, int step, int top, int left) {
  const f16_t* x = GLOBAL(const f16_t, a->x);
  const f16_t* y = GLOBAL(const f16_t, a->y);
  const int row = THREAD / 4, piece = THREAD % 4 * 8, k = step * 32;
  const bool inside = top + row < a->rows;
  copy_16(to + row * PITCH + piece, inside ? x + (top + row) * a->depth + k + piece : x,
          inside ? 16 : 0);
  copy_16(to + (32 + row) * PITCH + piece, y + (k + row) * a->columns + left + piece, 16);
}

KERNEL(product, sample_args_t, 128) {
  DYNAMIC(f16_t, tiles);
  float* z = GLOBAL(float, a.z);
  const int across = a.columns / 32, steps = a.depth / 32;
  const int top = (int)(BLOCK / across) * 32, left = (int)(BLOCK % across) * 32;
  const int warp = THREAD / WARP, down = warp / 2 * 16, right = warp % 2 * 16;
  float sums[2][4] = {{0}};
  load(&a, tiles, 0, top, left);
  COMMIT_COPIES();
  for (int step = 0; step < steps; step++) {
    const f16_t* now = tiles + step % 2 * 64 * PITCH;
    if (step + 1 < steps) load(&a, tiles + (step + 1) % 2 * 64 * PITCH, step + 1, top, left);
    COMMIT_COPIES();
    WAIT_COPIES(1);
    SYNC();
    for (int k = 0; k < 32; k += 16) {
      uint32_t u[4], v[4];
      load_matrices(u, now + (down + LANE % 16) * PITCH + k + LANE / 16 * 8);
      load_matrices_transposed(v, now + (32 + k + LANE % 16) * PITCH + right + LANE / 16 * 8);
      mma_f16(sums[0], u, v);
      mma_f16(sums[1], u, v + 2);
    }
    SYNC();
  }
  for (int j = 0; j < 2; j++)
    for (int r = 0; r < 4; r++) {
      const int row = top + down + LANE / 4 + r / 2 * 8;
      const int column = left + right + j * 8 + LANE % 4 * 2 + r % 2;
      if (row < a.rows) z[row * a.columns + column] = sums[j][r];
    }
}
