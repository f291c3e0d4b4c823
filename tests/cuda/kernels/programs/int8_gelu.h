// A text as cuda/int8/end_text.c prints it: a GELU and a residual that is broadcast.
#include "types.h"
typedef uint32_t index_t;
#define INT8_QUANTIZES 1
#define INT8_OUT int8_t
#define INT8_LOW -128.0F
#define INT8_HIGH 127.0F
#define INT8_HAS_STEPS
#include "int8_end.h"
DEVICE float int8_value(float f, index_t at, index_t channel, const int8_end_args_t* e) {
  (void)f, (void)at, (void)channel, (void)e;
  const float s0 = f;
  const double v0 = (double)s0;
  const float s1 = int8_unsigned(&e->sources[1], int8_place(&e->sources[1], at));
  const double v1 = (double)s1;
  const double v2 = int8_do_Gelu(v0, 0, e->p[0]);
  const double v3 = int8_do_Add(v2, v1, e->p[1]);
  return (float)v3;
}
