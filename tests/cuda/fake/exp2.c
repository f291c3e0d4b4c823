// The powers of 2 of an H200's ex2.approx.ftz.f32, of exponents that are multiples of 2^-13: what
// was measured there, in ulps from the nearest float32 (backends/emu/like/exp2_deltas.inc).
#include <math.h>

#include "internal.h"

enum { STEPS = 8192, PER_ROW = 192 };
static const char letters[][PER_ROW / 2 + 1] = {
#include "backends/emu/like/exp2_deltas.inc"
};
static float powers[STEPS];  // of 2^(i / STEPS), from 1 to below 2

__attribute__((constructor)) static void make_powers(void) {
  for (int i = 0; i < STEPS; i++) {
    const int below = (STEPS - i) % STEPS;  // of the next whole number
    const int pair = letters[below / PER_ROW][below % PER_ROW / 2] - 'A';
    const int ulps = (below % 2 ? pair % 5 : pair / 5) - 2;
    powers[i] = (float)exp2((double)i / STEPS) + (float)ulps * 0x1p-23F;
  }
}

float lane_power_of_steps(fake_lane_t* lane, float x, int line) {
  if (isnan(x)) return x;
  if (x < -126) return 0;
  const float at = x * STEPS;
  if (at != floorf(at) || x > 16)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: EXP2_STEPS of %a, no multiple of 2^-13 up to 16",
              line, (double)x);
  const int step = (int)at, part = step & (STEPS - 1);
  return ldexpf(powers[part], (step - part) / STEPS);
}
