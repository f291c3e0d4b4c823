// RotaryEmbedding: pairs of channels are rotated by angles whose cosines and sines a cache holds for
// each position; each product is rounded, then their sum. Other channels stay.
//
// Options: T, C, TO: types of the input, the caches and the output; INTERLEAVED 1: pairs are
// neighbours, 0: half the channels lie between them; POSITIONS 0: row i of the caches is token i's,
// 1: each token has a number of one, 2: the first token of each sample has. Numbers out of the caches
// are the host's to find (cuda/attention/rotary.c): here they are position 0.
#include "elements.h"
#include "rotary_args.h"

DEVICE int64_t position_of(const rotary_args_t* a, int64_t token) {
#if POSITIONS
  const int64_t* ids = GLOBAL(const int64_t, a->ids);
  const int64_t at = POSITIONS == 2 ? ids[0] + token % a->length : ids[token];
  return at >= 0 && at < a->positions ? at : 0;
#else
  (void)a;
  return token;
#endif
}

KERNEL(rotary, rotary_args_t, 256) {
  const ELEMENT(T)* x = GLOBAL(const ELEMENT(T), a.x);
  const ELEMENT(C)* cosines = GLOBAL(const ELEMENT(C), a.cosines);
  const ELEMENT(C)* sines = GLOBAL(const ELEMENT(C), a.sines);
  ELEMENT(TO)* y = GLOBAL(ELEMENT(TO), a.y);
  const int64_t units = a.size - a.half;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.n; i += BLOCKS * THREADS) {
    const int64_t unit = i % units, head = i / units % a.heads, token = i / units / a.heads;
    const int64_t sample = token / a.length, row = token % a.length;
    const int64_t at = sample * a.batch_step + head * a.head_step + row * a.row_step;
    if (unit >= a.half) {
      const int64_t channel = at + a.half + unit;
      STORE(TO)(y, channel, LOAD(T)(x, channel));
      continue;
    }
    const int64_t cached = position_of(&a, token) * a.half + unit;
    const int64_t first = at + (INTERLEAVED ? 2 * unit : unit);
    const int64_t other = INTERLEAVED ? first + 1 : first + a.half;
    const float c = LOAD(C)(cosines, cached), s = LOAD(C)(sines, cached);
    const float u = LOAD(T)(x, first), v = LOAD(T)(x, other);
    STORE(TO)(y, first, c * u - s * v);
    STORE(TO)(y, other, s * u + c * v);
  }
}
