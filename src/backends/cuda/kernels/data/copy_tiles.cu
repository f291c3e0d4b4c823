// A box that both tensors run along in other dimensions (channel shuffles, DepthToSpace), by tiles:
// they are read as the input lies, FROM words of BITS bits at once, and written as the output lies,
// TO words at once.
//
// A tile has RANK dimensions. In shared memory its words are in the order of the output. A thread
// reads READS vectors of a tile and writes WRITES, the same of each tile: where these lie it finds
// out once. FULL: that is all of a tile's words, for each thread, so that all loads are under way
// before the first is waited for.
#include "block_words.h"
#include "tiles_args.h"

enum { TILE_THREADS = 256, WORD_BYTES = BITS / 8 };

// The byte in shared memory of a word of the tile. Pieces of 16 bytes change places within 128, by
// the numbers of these, so that columns of a tile lie in many banks.
DEVICE int byte_of(int place) {
  const int byte = place * WORD_BYTES;
  return byte ^ (((byte >> 7) ^ (byte >> 10)) & 7) << 4;
}

DEVICE uint32_t digit_of(uint32_t* number, divisor_t base) {
  const uint32_t all = *number, rest = DIVIDED(all, base);
  *number = rest;
  return all - rest * base.size;
}

// Digit d of a number, of which those before it have been taken off.
DEVICE uint32_t tile_digit(const tile_side_t* s, int d, uint32_t* number) {
  const uint32_t all = *number;
  if (d == RANK - 1) return all;
  const uint32_t rest = DIVIDED_SHORT(all, s->factors[d]);
  *number = rest;
  return all - rest * s->dims[d];
}

// The place of word i of a tile, in the order of this side, in its tensor.
DEVICE int64_t side_place(const tile_side_t* s, uint32_t i) {
  int64_t at = 0;
  UNROLL for (int d = 0; d < RANK; d++) at += tile_digit(s, d, &i) * s->strides[d];
  return at;
}

// The place in the tile of word i in the order of the input.
DEVICE int tile_place(const tiles_args_t* a, uint32_t i) {
  int at = 0;
  UNROLL for (int d = 0; d < RANK; d++) at += (int)tile_digit(&a->in, d, &i) * a->places[d];
  return at;
}

// Where tile t begins in both tensors.
DEVICE void tile_begin(const tiles_args_t* a, uint32_t t, int64_t* from, int64_t* to) {
  *from = *to = 0;
  ROLLED for (int d = 0; d < a->n_outer; d++) {
    const uint32_t i = digit_of(&t, a->outer[d]);
    *from += i * a->from_steps[d];
    *to += i * a->to_steps[d];
  }
}

// So many bytes, which lie at a multiple of them.
DEVICE void read_bytes(int bytes, const void* p, uint32_t* words) {
  if (bytes == 16)
    READ_16(p, words);
  else if (bytes == 8)
    READ_8(p, words);
  else
    words[0] = bytes == 4   ? *(const uint32_t*)p
               : bytes == 2 ? *(const uint16_t*)p
                            : *(const uint8_t*)p;
}
DEVICE void write_bytes(int bytes, void* p, const uint32_t* words) {
  if (bytes == 16)
    WRITE_16(p, words);
  else if (bytes == 8)
    WRITE_8(p, words);
  else if (bytes == 4)
    *(uint32_t*)p = words[0];
  else if (bytes == 2)
    *(uint16_t*)p = (uint16_t)words[0];
  else
    *(uint8_t*)p = (uint8_t)words[0];
}
DEVICE word_t nth_word(const uint32_t* words, int i) {
  if (WORD_BYTES == 8) return (word_t)(words[2 * i % 4] | (uint64_t)words[(2 * i + 1) % 4] << 32);
  return (word_t)(words[i * WORD_BYTES / 4] >> (i * BITS % 32));
}

KERNEL(copy_tiles, tiles_args_t, TILE_THREADS) {
  DYNAMIC(char, tile);
  const word_t* x = GLOBAL(const word_t, a.from);
  word_t* y = GLOBAL(word_t, a.to);
  int64_t from[READS], to[WRITES];
  int put[READS][FROM], take[WRITES];
  UNROLL for (int k = 0; k < READS; k++) {
    const uint32_t i = (uint32_t)(k * TILE_THREADS + THREAD) * FROM;
    from[k] = kept_s64(i < a.words ? side_place(&a.in, i) : 0);
    UNROLL for (int j = 0; j < FROM; j++) put[k][j] = kept_s32(byte_of(tile_place(&a, i + (uint32_t)j)));
  }
  UNROLL for (int k = 0; k < WRITES; k++) {
    const uint32_t i = (uint32_t)(k * TILE_THREADS + THREAD) * TO;
    to[k] = kept_s64(side_place(&a.out, i));
    take[k] = kept_s32(byte_of((int)i));
  }
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  ROLLED for (uint32_t t = (uint32_t)BLOCK; t < a.tiles; t += (uint32_t)BLOCKS) {
    uint32_t words[READS][4];
    int64_t from_begin, to_begin;
    tile_begin(&a, t, &from_begin, &to_begin);
    // What is behind the tile's end is read from its beginning: no load is under a condition.
    UNROLL for (int k = 0; k < READS; k++)
        read_bytes(FROM * WORD_BYTES, x + from_begin + from[k], words[k]);
    UNROLL for (int k = 0; k < READS; k++)
        if (FULL || (uint32_t)(k * TILE_THREADS + THREAD) * FROM < a.words) UNROLL
    for (int j = 0; j < FROM; j++) *(word_t*)(tile + put[k][j]) = nth_word(words[k], j);
    SYNC();
    UNROLL for (int k = 0; k < WRITES; k++)
        if (FULL || (uint32_t)(k * TILE_THREADS + THREAD) * TO < a.words) {
      uint32_t piece[4];
      read_bytes(TO * WORD_BYTES, tile + take[k], piece);
      write_bytes(TO * WORD_BYTES, y + to_begin + to[k], piece);
    }
    SYNC();
  }
}
