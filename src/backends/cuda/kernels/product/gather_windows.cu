// Windows of a convolution of few channels as rows of a matrix, of elements of 16 bits: terms in the
// order (down, across, channel), zeros behind them and where a window leaves the image. Of a row of
// the image a window has neighbours only, so that a term costs a comparison and no division.
#include "gather_windows_args.h"
#include "elements.h"

#define PIECE 8

KERNEL(gather_windows, gather_windows_args_t, 256) {
  const uint16_t* x = GLOBAL(const uint16_t, a.x);
  uint16_t* y = GLOBAL(uint16_t, a.y);
  const int32_t of_row = a.across.kernel * a.channels, width = a.across.in * a.channels;
  const int64_t pieces = a.pitch / PIECE, all = a.rows * pieces;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  for (int64_t i = BLOCK * THREADS + THREAD; i < all; i += BLOCKS * THREADS) {
    int64_t row = i;
    const int32_t k = (int32_t)take_digit(&row, pieces) * PIECE;
    int64_t line = row;
    const int32_t column = (int32_t)take_digit(&line, a.across.out);
    int64_t sample = line;
    int32_t h = (int32_t)take_digit(&sample, a.down.out) * a.down.stride - a.down.pad;
    const int32_t w = (column * a.across.stride - a.across.pad) * a.channels;
    const uint16_t* image = x + sample * a.x_sample;
    int32_t tap = k / of_row, j = k - tap * of_row;
    uint32_t words[PIECE / 2] = {0};
    h += tap;
    UNROLL
    for (int e = 0; e < PIECE; e++) {
      const bool inside = k + e < a.terms && (uint32_t)h < (uint32_t)a.down.in &&
                          (uint32_t)(w + j) < (uint32_t)width;
      const uint32_t element = inside ? image[(int64_t)h * width + w + j] : 0;
      words[e / 2] |= element << e % 2 * 16;
      j++;
      h += j == of_row;
      j = j == of_row ? 0 : j;
    }
    WRITE_16(y + row * a.pitch + k, words);
  }
}
