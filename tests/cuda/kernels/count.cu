// How often each of 64 numbers is there: by block in shared memory, then over all blocks.
#include "sample_args.h"

KERNEL(count, sample_args_t, 128) {
  DYNAMIC(uint32_t, counts);
  const float* x = GLOBAL(const float, a.x);
  uint32_t* z = GLOBAL(uint32_t, a.z);
  for (int i = THREAD; i < 64; i += THREADS) counts[i] = 0;
  SYNC();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.rows * a.columns; i += BLOCKS * THREADS)
    atomic_add_u32(&counts[bits_of(x[i]) >> 16 & 63], 1);
  SYNC();
  for (int i = THREAD; i < 64; i += THREADS) atomic_add_u32(&z[i], counts[i]);
}
