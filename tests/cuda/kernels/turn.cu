// A matrix transposed, through tiles of shared memory.
#include "sample_args.h"

KERNEL(turn, sample_args_t, 256) {
  SHARED float tile[32][33];
  const float* x = GLOBAL(const float, a.x);
  float* z = GLOBAL(float, a.z);
  const int across = (a.columns + 31) / 32;
  const int top = (int)(BLOCK / across) * 32, left = (int)(BLOCK % across) * 32;
  for (int i = THREAD / 32; i < 32; i += THREADS / 32)
    if (top + i < a.rows && left + LANE < a.columns)
      tile[i][LANE] = x[(top + i) * a.columns + left + LANE];
  SYNC();
  for (int i = THREAD / 32; i < 32; i += THREADS / 32)
    if (left + i < a.columns && top + LANE < a.rows)
      z[(left + i) * a.rows + top + LANE] = tile[LANE][i];
}
