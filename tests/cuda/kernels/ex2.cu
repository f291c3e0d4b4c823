// Powers of 2 by EXP2_STEPS, of multiples of 2^-13 from one on, downwards.
#include "prelude.h"

typedef struct ex2_args {
  address_t powers;  // float[BLOCKS * THREADS]
  int32_t first;     // steps
} ex2_args_t;

KERNEL(ex2, ex2_args_t, 256) {
  const int32_t i = (int32_t)(BLOCK * THREADS) + THREAD;
  WAIT_FOR_INPUTS();
  GLOBAL(float, a.powers)[i] = EXP2_STEPS((float)(a.first - i) * 0x1p-13F);
}
