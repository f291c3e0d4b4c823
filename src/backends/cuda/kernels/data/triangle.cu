// Trilu: triangles of matrices, elements of BITS bits. EyeLike: a diagonal of the value ONE.
#include "block_words.h"
#include "patterns_args.h"

KERNEL(triangle, triangle_args_t, 256) {
  const uint32_t zeros[4] = {0, 0, 0, 0};
  const word_t* x = GLOBAL(const word_t, a.x);
  word_t* y = GLOBAL(word_t, a.y);
  WAIT_FOR_INPUTS();
  const int64_t given = a.k ? GLOBAL(const int64_t, a.k)[0] : a.diagonal;
  // Beyond the corners nothing changes, and nothing overflows.
  const int64_t k = given > a.columns ? a.columns : given < -a.rows ? -a.rows : given;
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS) {
    const int64_t right = i % a.columns - i / a.columns % a.rows;
    const bool stays = a.upper ? right >= k : right <= k;
    put_word(y + i, stays ? word_at(x + i) : word_of(zeros));
  }
}

KERNEL(diagonal, triangle_args_t, 256) {
  const uint32_t zeros[4] = {0, 0, 0, 0}, one[4] = {(uint32_t)(ONE), (uint32_t)(ONE >> 32), 0, 0};
  word_t* y = GLOBAL(word_t, a.y);
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < a.size; i += BLOCKS * THREADS)
    put_word(y + i, word_of(i % a.columns - i / a.columns == a.diagonal ? one : zeros));
}
