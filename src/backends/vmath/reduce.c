// What vector functions do lane by lane, because it is rare.
#include "backends/vmath/reduce.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VONE static
#define VTABLE static const
#include "backends/vmath/reduce_one.h"

static double reduce(float x, double* turns) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return reduce_turns(bits, turns);
}

void vmath_reduce(const float* x, int n, double* rest, double* turns) {
  for (int i = 0; i < n; i++) {
    if (!(fabsf(x[i]) < INFINITY))
      rest[i] = (double)(x[i] - x[i]);
    else if (fabsf(x[i]) >= 0x1p28F)
      rest[i] = reduce(x[i], &turns[i]);
  }
}

void vmath_remainder(const float* x, const float* y, int n, float* z) {
  for (int i = 0; i < n; i++)
    if (fabs((double)x[i] / (double)y[i]) > 0x1p28) z[i] = fmodf(x[i], y[i]);
}
