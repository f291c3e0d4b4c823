// Windows of a convolution of few channels as rows of a matrix, of elements of so many BITS, 32, 16 or 8:
// terms in the order (down, across, channel), behind them and where a window leaves the image what is
// said to be there. Of a row of the image a window has neighbours only, so that a term costs a
// comparison and no division.
#include "gather_windows_args.h"
#include "elements.h"

#if BITS == 8
typedef uint8_t gathered_t;
#elif BITS == 32
typedef uint32_t gathered_t;
#else
typedef uint16_t gathered_t;
#endif
#define PIECE (128 / BITS)
#define OF_WORD (32 / BITS)

KERNEL(gather_windows, gather_windows_args_t, 256) {
  const gathered_t* x = GLOBAL(const gathered_t, a.x);
  gathered_t* y = GLOBAL(gathered_t, a.y);
  const int32_t of_row = a.across.kernel * a.channels, width = a.across.in * a.channels;
  const uint32_t all = (uint32_t)a.rows * a.pieces.size;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (uint32_t i = (uint32_t)BLOCK * (uint32_t)THREADS + (uint32_t)THREAD; i < all;
       i += (uint32_t)BLOCKS * (uint32_t)THREADS) {
    const uint32_t row = DIVIDED(i, a.pieces), line = DIVIDED(row, a.columns);
    const uint32_t sample = DIVIDED(line, a.lines);
    const int32_t k = (int32_t)(i - row * a.pieces.size) * PIECE;
    const int32_t column = (int32_t)(row - line * a.columns.size);
    const int32_t tap = (int32_t)DIVIDED((uint32_t)k, a.terms_of_row);
    int32_t h = (int32_t)(line - sample * a.lines.size) * a.down.stride - a.down.pad + tap;
    int32_t j = k - tap * of_row;
    const int32_t w = (column * a.across.stride - a.across.pad) * a.channels;
    // Where the window's row of the image begins, from which terms are counted.
    const gathered_t* from = x + (int64_t)sample * a.x_sample + (int64_t)h * width + w;
    uint32_t words[4] = {0};
    UNROLL
    for (int e = 0; e < PIECE; e++) {
      const bool inside = k + e < a.terms && (uint32_t)h < (uint32_t)a.down.in &&
                          (uint32_t)(w + j) < (uint32_t)width;
      const uint32_t element = inside ? from[j] : a.outside;
      words[e / OF_WORD] |= element << e % OF_WORD * BITS;
      const bool last = ++j == of_row;
      h += last;
      from += last ? width : 0;
      j = last ? 0 : j;
    }
    STORE_16(y + (int64_t)i * PIECE, words);
  }
}
