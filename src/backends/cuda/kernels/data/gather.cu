// Rows of a table by their numbers, which are of the type INDEX (int32_t, int64_t), as words of BITS
// bits. What an index out of the table would give is 0: the host says so (cuda/data/gather.c).
#include "block_words.h"
#include "gather_args.h"

KERNEL(gather, gather_args_t, 256) {
  const uint32_t zeros[4] = {0, 0, 0, 0};
  const word_t* x = GLOBAL(const word_t, a.data);
  const INDEX* indices = GLOBAL(const INDEX, a.indices);
  word_t* y = GLOBAL(word_t, a.out);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.words; i += BLOCKS * THREADS) {
    const int64_t row = i / a.slice, outer = row / a.n;
    int64_t at = (int64_t)indices[row - outer * a.n];
    if (at < 0) at += a.size;
    const bool there = at >= 0 && at < a.size;
    const int64_t from = (outer * a.size + at) * a.slice + (i - row * a.slice);
    put_word(y + i, there ? word_at(x + from) : word_of(zeros));
  }
}
