// Windows of a convolution of few channels as rows of a matrix, of elements of so many BITS, 32, 16
// or 8: terms in the order (down, across, channel), behind them and where a window leaves the image
// what is said to be there. A block takes some windows of a line: what they read of the image, most
// of it several times, it brings into shared memory once, and puts rows together there.
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

// The image's elements from (h, w) on, w counted in elements.
DEVICE void bring_image(const gather_windows_args_t* a, uint32_t sample, int32_t h, int32_t w,
                        gathered_t* image) {
  const gathered_t* x = GLOBAL(const gathered_t, a->x) + (int64_t)sample * a->x_sample;
  const int32_t width = a->across.in * a->channels;
  const uint32_t all = (uint32_t)a->down.kernel * a->line.size;
  UNROLL_4
  for (uint32_t i = (uint32_t)THREAD; i < all; i += (uint32_t)THREADS) {
    const uint32_t row = DIVIDED(i, a->line);
    const int32_t y = h + (int32_t)row, j = w + (int32_t)(i - row * a->line.size);
    const bool inside = (uint32_t)y < (uint32_t)a->down.in && (uint32_t)j < (uint32_t)width;
    image[i] = (gathered_t)(inside ? x[(int64_t)y * width + j] : a->outside);
  }
}

// A piece of 16 bytes of a window's row, of terms from k on.
DEVICE void put_piece(const gather_windows_args_t* a, const gathered_t* window, int32_t k,
                      gathered_t* to) {
  const int32_t of_row = (int32_t)a->terms_of_row.size;
  const int32_t tap = (int32_t)DIVIDED((uint32_t)k, a->terms_of_row);
  const int32_t further = (int32_t)a->line.size - of_row;
  int32_t at = k + tap * further, left = (tap + 1) * of_row - k;
  uint32_t words[4] = {0};
  UNROLL
  for (int e = 0; e < PIECE; e++) {
    const uint32_t element = k + e < a->terms ? window[at] : a->outside;
    words[e / OF_WORD] |= element << e % OF_WORD * BITS;
    const bool last = --left == 0;
    at += last ? further + 1 : 1;
    left = last ? of_row : left;
  }
  STORE_16(to, words);
}

KERNEL(gather_windows, gather_windows_args_t, 256) {
  DYNAMIC(gathered_t, image);
  const uint32_t line = DIVIDED((uint32_t)BLOCK, a.parts), sample = DIVIDED(line, a.lines);
  const int32_t first = (int32_t)(((uint32_t)BLOCK - line * a.parts.size) * a.windows.size);
  const int32_t h = (int32_t)(line - sample * a.lines.size) * a.down.stride - a.down.pad;
  const int32_t w = (first * a.across.stride - a.across.pad) * a.channels;
  const int32_t step = a.across.stride * a.channels;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  bring_image(&a, sample, h, w, image);
  SYNC();
  gathered_t* y = GLOBAL(gathered_t, a.y);
  const int64_t row = (int64_t)line * a.across.out + first;
  // Two threads put pieces that lie side by side, and the next two those of the next window.
  const uint32_t all = (uint32_t)(a.pieces + 1) / 2 * a.windows.size * 2;
  for (uint32_t i = (uint32_t)THREAD; i < all; i += (uint32_t)THREADS) {
    const uint32_t pair = DIVIDED(i / 2, a.windows);
    const int32_t window = (int32_t)(i / 2 - pair * a.windows.size);
    const int32_t piece = (int32_t)(2 * pair + i % 2);
    if (first + window < a.across.out && piece < a.pieces)
      put_piece(&a, image + window * step, piece * PIECE,
                y + ((row + window) * a.pieces + piece) * PIECE);
  }
}
