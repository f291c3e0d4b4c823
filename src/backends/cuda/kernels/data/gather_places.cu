// GatherElements and GatherND: slices of the data that indices of the type INDEX name, as words of
// BITS bits. What an index out of the data would give is 0.
#include "block_words.h"
#include "places.h"

KERNEL(gather_places, gather_places_args_t, 256) {
  const uint32_t zeros[4] = {0, 0, 0, 0};
  const word_t* x = GLOBAL(const word_t, a.data);
  word_t* y = GLOBAL(word_t, a.out);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.places.n * a.slice; i += BLOCKS * THREADS) {
    const int64_t from = slice_of_place(&a.places, i / a.slice);
    put_word(y + i, from < 0 ? word_of(zeros) : word_at(x + from * a.slice + i % a.slice));
  }
}
