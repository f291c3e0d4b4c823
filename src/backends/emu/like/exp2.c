// Powers of 2 as one instruction of an H200 gives them: what a step below or above 1 is off by is
// in a table, and whole numbers change the exponent alone.
#include "backends/emu/like/exp2.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { ROW = 96, MOST = 2 };  // letters; ulps

static const char deltas[][ROW + 1] = {
#include "backends/emu/like/exp2_deltas.inc"
};

// Those of steps below 1 come first.
static int delta_of(int step) {
  const int letter = step / 2, two = deltas[letter / ROW][letter % ROW] - 'A';
  return (step % 2 ? two % (2 * MOST + 1) : two / (2 * MOST + 1)) - MOST;
}

float emu_exp2(float x) {
  if (isnan(x)) return x;
  if (x < -126) return 0;
  // x = whole +- step / EMU_EXP2_STEPS: the instruction takes exponents below 0 by another way than
  // others. Of the power of a step that is the nearest float32 for any float64 that is within an
  // ulp (make_ex2_table.py).
  const bool above = x > 0;
  const int whole = (int)(above ? floorf(x) : ceilf(x));
  const int step = (int)(fabsf(x - (float)whole) * EMU_EXP2_STEPS);
  const float nearest = (float)exp2((above ? step : -step) / (double)EMU_EXP2_STEPS);
  const int delta = delta_of(above ? EMU_EXP2_STEPS + step : step);
  return ldexpf(nearest + (float)delta * (above ? 0x1p-23F : 0x1p-24F), whole);
}
