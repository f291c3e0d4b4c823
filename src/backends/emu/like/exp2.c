// Powers of 2 as one instruction of an H200 gives them: what a step below 1 is off by is in a
// table, and whole numbers change the exponent alone.
#include "backends/emu/like/exp2.h"

#include <math.h>
#include <stdint.h>

enum { ROW = 96, MOST = 2 };  // letters; ulps

static const char deltas[][ROW + 1] = {
#include "backends/emu/like/exp2_deltas.inc"
};

static int delta_of(int step) {
  const int letter = step / 2, two = deltas[letter / ROW][letter % ROW] - 'A';
  return (step % 2 ? two % (2 * MOST + 1) : two / (2 * MOST + 1)) - MOST;
}

float emu_exp2(float x) {
  if (isnan(x)) return x;
  if (x < -126) return 0;
  // x = whole - step / EMU_EXP2_STEPS. Of 2^-step that is the nearest float32 for any float64 that
  // is within an ulp (make_ex2_table.py), and the ulp is that of numbers below 1.
  const int whole = (int)ceilf(x), step = (int)(((float)whole - x) * EMU_EXP2_STEPS);
  const float nearest = (float)exp2(-step / (double)EMU_EXP2_STEPS);
  return ldexpf(nearest + (float)delta_of(step) * 0x1p-24F, whole);
}
