// ScatterElements and ScatterND without a reduction: of updates of the same slice the last one
// stays. Words of BITS bits; indices of the type INDEX. Each slice has an owner: 1 + the last
// update that names it.
#include "block_words.h"
#include "places.h"

KERNEL(scatter_clear, scatter_args_t, 256) {
  uint32_t* owners = GLOBAL(uint32_t, a.owners);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.places.count; i += BLOCKS * THREADS)
    owners[i] = 0;
}

KERNEL(scatter_claim, scatter_args_t, 256) {
  uint32_t* owners = GLOBAL(uint32_t, a.owners);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.places.n; i += BLOCKS * THREADS) {
    const int64_t at = slice_of_place(&a.places, i);
    if (at >= 0) atomic_max_u32(&owners[at], (uint32_t)i + 1);
  }
}

KERNEL(scatter_put, scatter_args_t, 256) {
  const uint32_t* owners = GLOBAL(const uint32_t, a.owners);
  const word_t* x = GLOBAL(const word_t, a.data);
  const word_t* updates = GLOBAL(const word_t, a.updates);
  word_t* y = GLOBAL(word_t, a.out);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.places.count * a.slice; i += BLOCKS * THREADS) {
    const int64_t owner = owners[i / a.slice];
    put_word(y + i,
             owner ? word_at(updates + (owner - 1) * a.slice + i % a.slice) : word_at(x + i));
  }
}
