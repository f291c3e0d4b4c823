// Pointwise nodes on 8-bit integers: layers without a product.
//
// Options: READS: what f is made of: 0: there is no f; 1: x less its zero point, scaled by channel;
// 2: x, a float. X_TYPE: of its elements.
#include "program.h"

KERNEL(int8_pointwise, int8_pointwise_args_t, 256) {
  WAIT_FOR_INPUTS();
#if READS
  const X_TYPE* x = GLOBAL(const X_TYPE, a.x);
#endif
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS) {
    const index_t at = (index_t)i, channel = at % (index_t)a.channels;
#if READS == 2
    const float f = x[at];
#elif READS
    const float f = int8_result(&a.end, (int32_t)x[at] - a.zero_x, channel);
#else
    const float f = 0;
#endif
    int8_store(&a.end, a.y, at, int8_value(f, at, channel, &a.end));
  }
}
