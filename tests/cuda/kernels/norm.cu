// A row a block: what is left of the mean, over the deviation.
#include "sample_args.h"

KERNEL(norm, sample_args_t, 256) {
  SHARED float parts[2][8];
  const float* x = GLOBAL(const float, a.x) + BLOCK * a.columns;
  float* z = GLOBAL(float, a.z) + BLOCK * a.columns;
  float sum = 0, squares = 0;
  WAIT_FOR_INPUTS();
  for (int i = THREAD; i < a.columns; i += THREADS) {
    sum += x[i];
    squares += x[i] * x[i];
  }
  for (int m = 16; m; m /= 2) {
    sum += shuffle_xor_f32(sum, m);
    squares += shuffle_xor_f32(squares, m);
  }
  if (LANE == 0) {
    parts[0][THREAD / WARP] = sum;
    parts[1][THREAD / WARP] = squares;
  }
  SYNC();
  sum = squares = 0;
  for (int w = 0; w < THREADS / WARP; w++) {
    sum += parts[0][w];
    squares += parts[1][w];
  }
  const float mean = sum / (float)a.columns;
  const float scale = 1.0f / SQRT(squares / (float)a.columns - mean * mean + 1e-5f);
  for (int i = THREAD; i < a.columns; i += THREADS) z[i] = (x[i] - mean) * scale;
}
