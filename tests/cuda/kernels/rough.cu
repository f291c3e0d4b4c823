// Rough and fine forms of a function (kernels/rough.h) beside what its results round to: counts inputs that
// a form settles otherwise than as the function does; those near 0 that it leaves open; and
// all near 0.
//
// Options: USE half or bf16; FINE 0 or 1, the form; FUNCTION; TO_16: how floats become 16 bits.
#include "elements.h"
#include "rough.h"
#include "vmath.h"

typedef struct rough_args {
  address_t counts;      // uint32_t[3]
  uint32_t first, step;  // bits of the first input, and from one to the next
  float parameter;
} rough_args_t;

KERNEL(rough, rough_args_t, 256) {
  uint32_t* counts = GLOBAL(uint32_t, a.counts);
  const uint64_t i = (uint64_t)BLOCK * THREADS + (uint32_t)THREAD;
  const float x = float_of(a.first + (uint32_t)i * a.step), p[2] = {a.parameter, 0};
  float least;
#if FINE
  float slack;
  const double middle = JOINED(USE, JOINED(_fine_, FUNCTION))(x, 0, p, &slack);
  const uint16_t most = TO_16(fine_ends(middle, slack, &least));
  const bool unknown = slack >= 1;
#else
  const uint16_t most = TO_16(JOINED(USE, JOINED(_rough_, FUNCTION))(x, 0, p, &least));
  const bool unknown = false;
#endif
  const bool open = unknown || ((most ^ TO_16(least)) & 0x7fff);
  const bool near = x > -4 && x < 4 && (x > 0.01F || x < -0.01F);
  if (near) (void)atomic_add_u32(counts + 2, 1);
  if (near && open) (void)atomic_add_u32(counts + 1, 1);
  if (open) return;
  const uint16_t want = TO_16(JOINED(USE, JOINED(_, FUNCTION))(x, 0, p));
  if (want != most) (void)atomic_add_u32(counts, 1);
}
