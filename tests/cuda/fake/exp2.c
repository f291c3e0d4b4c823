// The powers of 2 of an H200's ex2.approx.ftz.f32, of exponents that are multiples of 2^-13: what
// was measured there, in ulps from the nearest float32 (backends/emu/like/exp2_deltas.inc).
#include <math.h>

#include "internal.h"

enum { STEPS = 8192, PER_ROW = 192 };
static const char letters[][PER_ROW / 2 + 1] = {
#include "backends/emu/like/exp2_deltas.inc"
};
static float below[STEPS], above[STEPS];  // of 2^(-i / STEPS) and 2^(i / STEPS)

static int ulps_of(int i) {
  const int pair = letters[i / PER_ROW][i % PER_ROW / 2] - 'A';
  return (i % 2 ? pair % 5 : pair / 5) - 2;
}

__attribute__((constructor)) static void make_powers(void) {
  for (int i = 0; i < STEPS; i++) {
    const double x = (double)i / STEPS;
    below[i] = (float)exp2(-x) + (float)ulps_of(i) * 0x1p-24F;
    above[i] = (float)exp2(x) + (float)ulps_of(STEPS + i) * 0x1p-23F;
  }
}

float lane_power_of_steps(fake_lane_t* lane, float x, int line) {
  if (isnan(x)) return x;
  if (x < -126) return 0;
  const float at = x * STEPS;
  if (at != floorf(at) || x > 16)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: EXP2_STEPS of %a, no multiple of 2^-13 up to 16",
              line, (double)x);
  const int step = (int)at, whole = step / STEPS, part = step - whole * STEPS;
  return ldexpf(part < 0 ? below[-part] : above[part], whole);
}
