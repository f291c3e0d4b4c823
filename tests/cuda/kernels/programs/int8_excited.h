// A text as cuda/int8/int8_excite.c prints it: HardSigmoid of the second product.
#include "types.h"
typedef uint32_t index_t;
#define INT8_QUANTIZES 1
#define INT8_BOTH 0
#define INT8_OUT int8_t
#define INT8_SIGNED 1
#define INT8_INVERSE 1
#define INT8_HAS_STEPS
#include "int8_end.h"
DEVICE float int8_hidden(float s0, const int8_end_args_t* e) {
  (void)e;
  return s0;
}
DEVICE float int8_gate(float s0, const int8_end_args_t* e) {
  (void)e;
  const double v0 = (double)s0;
  const double v1 = int8_do_HardSigmoid(v0, 0, e->p[0]);
  return (float)v1;
}
