// The two products of a squeeze-excite block on 8-bit integers in one launch, and what the second
// one's results scale: each of the layers takes little longer than a launch.
//
// A block has a row of both products, some columns of the second one, and some places of what these
// scale. It makes all of the first product for its row, as blocks cannot wait for each other. Sums
// are exact, and what becomes of them is as int8_end.h says: each number has the bits that the
// layers by themselves give it.
//
// Tensor cores multiply 16 columns of weights, their rows, by the only column that the row of
// bytes is. The terms of two instructions change places so that a lane reads 16 bytes at once; the
// order of exact sums is free.
//
// Options: FIRST, SECOND: mma of the two products; SCALES 1: elements of type X, with FLOATS 1
// float, are multiplied by the second product's results, VEC channels at once, 4 or 1; 0: these are
// what is stored. "program.h" has int8_hidden and int8_gate, what becomes of results.
#include "program.h"
#include "int8_excite_args.h"

#define WARPS 8
#define N_THREADS (WARPS * WARP)
#define CHUNK 64  // terms that a warp takes at once
#define AHEAD 4   // chunks on their way
#define PIECES 4  // of what is scaled

// As int8_excite.c counts them.
DEVICE int32_t up_to(int32_t n, int32_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
// Shares of terms, where a product has fewer tiles of columns than the block has warps.
DEVICE int32_t shares_of(int32_t tiles) { return tiles < WARPS ? WARPS / tiles : 1; }

// 16 bytes of two columns from term k on; what is not there is 0.
DEVICE void read_weights(const int8_excite_product_t* p, int32_t column, int32_t k, uint32_t* low,
                         uint32_t* high) {
  const uint8_t* from = GLOBAL(const uint8_t, p->w) + (int64_t)column * p->column_bytes + k;
  UNROLL
  for (int i = 0; i < 4; i++) low[i] = high[i] = 0;
  if (k >= p->column_bytes) return;
  if (column < p->columns) READ_16(from, low);
  if (column + 8 < p->columns) READ_16(from + 8 * (int64_t)p->column_bytes, high);
}

// 16 bytes of shared memory.
DEVICE void read_bytes(const uint8_t* from, uint32_t* words) {
  UNROLL
  for (int i = 0; i < 4; i++) words[i] = ((const uint32_t*)(const void*)from)[i];
}

// Sums of `tiles` times 16 columns from `first` on, by share, of the row x, in shared memory, of
// whole chunks with zeros behind its terms. sums: [shares][tiles * 16].
#define MULTIPLY(name, MMA)                                                                        \
  DEVICE void name(const int8_excite_product_t* p, const uint8_t* x, int32_t first, int32_t tiles, \
                   int32_t* sums) {                                                                \
    const int32_t shares = shares_of(tiles), chunks = (p->terms + CHUNK - 1) / CHUNK;              \
    ROLLED                                                                                         \
    for (int32_t i = THREAD / WARP; i < tiles * shares; i += WARPS) {                              \
      const int32_t tile = i % tiles, share = i / tiles;                                           \
      int32_t sum[4] = {0, 0, 0, 0};                                                               \
      ROLLED                                                                                       \
      for (int32_t c = share; c < chunks; c += AHEAD * shares) {                                   \
        uint32_t low[AHEAD][4], high[AHEAD][4];                                                    \
        UNROLL                                                                                     \
        for (int j = 0; j < AHEAD; j++)                                                            \
          read_weights(p, first + tile * 16 + LANE / 4, (c + j * shares) * CHUNK + LANE % 4 * 16,  \
                       low[j], high[j]);                                                           \
        UNROLL                                                                                     \
        for (int j = 0; j < AHEAD; j++) {                                                          \
          uint32_t v[4] = {0, 0, 0, 0};                                                            \
          if (LANE < 4 && c + j * shares < chunks)                                                 \
            read_bytes(x + (c + j * shares) * CHUNK + LANE * 16, v);                               \
          UNROLL                                                                                   \
          for (int h = 0; h < 4; h += 2) {                                                         \
            const uint32_t u[4] = {low[j][h], high[j][h], low[j][h + 1], high[j][h + 1]};          \
            MMA(sum, u, v + h);                                                                    \
          }                                                                                        \
        }                                                                                          \
      }                                                                                            \
      if (LANE % 4 == 0) {                                                                         \
        int32_t* to = sums + share * tiles * 16 + tile * 16 + LANE / 4;                            \
        to[0] = sum[0];                                                                            \
        to[8] = sum[2];                                                                            \
      }                                                                                            \
    }                                                                                              \
  }
MULTIPLY(multiply_first, FIRST)
MULTIPLY(multiply_second, SECOND)

// fl32(sum) * factor + shift of a column, which lies `at` in the sums of all shares.
DEVICE float result_of(const int8_excite_product_t* p, const int32_t* sums, int32_t tiles,
                       int32_t at, int32_t column) {
  uint32_t sum = p->start ? GLOBAL(const uint32_t, p->start)[column] : 0;
  ROLLED
  for (int32_t s = 0; s < shares_of(tiles); s++) sum += (uint32_t)sums[s * tiles * 16 + at];
  return int8_result(&p->end, (int32_t)sum, (index_t)column);
}

DEVICE void load_row(const uint8_t* from, int32_t terms, uint8_t* to) {
  for (int32_t i = THREAD; i < up_to(terms, CHUNK); i += N_THREADS) to[i] = i < terms ? from[i] : 0;
}

// ---- what is scaled -----------------------------------------------------------------------------

#if SCALES
#if FLOATS
DEVICE float scaled(const int8_end_args_t* e, float x, float gate) { return (void)e, x * gate; }
#else
DEVICE float scaled(const int8_end_args_t* e, X x, float gate) {
  return int8_of(&e->sources[0], x) * gate;
}
#endif

#if VEC == 4
typedef struct piece {
#if FLOATS
  uint32_t words[4];
#else
  uint32_t words[1];
#endif
} piece_t;

DEVICE void read_piece(const int8_excite_args_t* a, index_t at, piece_t* p) {
#if FLOATS
  int8_reals(a->x, at, p->words);
#else
  p->words[0] = int8_word(a->x, at);
#endif
}

DEVICE void make_piece(const int8_excite_args_t* a, index_t at, const piece_t* p,
                       const float* gates) {
  float made[4];
  UNROLL
  for (int i = 0; i < 4; i++)
#if FLOATS
    made[i] = scaled(&a->end, float_of(p->words[i]), gates[i]);
#else
    made[i] = scaled(&a->end, (X)(p->words[0] >> (8 * i) & 255), gates[i]);
#endif
  if (a->y % 4 == 0) {
    int8_store_all(&a->end, a->y, at, made);
    return;
  }
  UNROLL
  for (int i = 0; i < 4; i++) int8_store(&a->end, a->y, at + (index_t)i, made[i]);
}
#else
typedef X piece_t;
DEVICE void read_piece(const int8_excite_args_t* a, index_t at, piece_t* p) {
  *p = GLOBAL(const X, a->x)[at];
}
DEVICE void make_piece(const int8_excite_args_t* a, index_t at, const piece_t* p,
                       const float* gates) {
  int8_store(&a->end, a->y, at, scaled(&a->end, *p, gates[0]));
}
#endif

// Columns [first, first + n) of places [begin, end) of a row.
DEVICE void scale(const int8_excite_args_t* a, int32_t row, int32_t first, int32_t n, int32_t begin,
                  int32_t end, const float* gates) {
  const int32_t across = n / VEC, all = (end - begin) * across;
  ROLLED
  for (int32_t i = THREAD; i < all; i += PIECES * N_THREADS) {
    piece_t p[PIECES];
    index_t at[PIECES];
    UNROLL
    for (int k = 0; k < PIECES; k++) {
      const int32_t j = i + k * N_THREADS < all ? i + k * N_THREADS : i;
      at[k] = (index_t)((row * a->places + begin + j / across) * a->second.columns + first +
                        j % across * VEC);
      read_piece(a, at[k], &p[k]);
    }
    UNROLL
    for (int k = 0; k < PIECES; k++)
      if (i + k * N_THREADS < all)
        make_piece(a, at[k], &p[k], gates + (i + k * N_THREADS) % across * VEC);
  }
}
#endif

KERNEL(int8_excite, int8_excite_args_t, N_THREADS) {
  DYNAMIC(uint8_t, row);  // then what the first product makes of it
  uint8_t* hidden = row + up_to(a.first.terms, CHUNK);
  int32_t* sums = (int32_t*)(void*)(hidden + up_to(a.second.terms, CHUNK));
#if SCALES
  float* gates = (float*)(void*)(sums + a.sums);
#endif
  const int32_t block = (int32_t)BLOCK, share = block % (a.slices * a.parts);
  const int32_t at = block / (a.slices * a.parts), first = share % a.slices * a.slice;
  const int32_t left = a.second.columns - first, n = left < a.slice ? left : a.slice;
  const int32_t tiles = up_to(a.first.columns, 16) / 16, gate_tiles = up_to(n, 16) / 16;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  load_row(GLOBAL(const uint8_t, a.squeezed) + (int64_t)at * a.first.terms, a.first.terms, row);
  SYNC();
  multiply_first(&a.first, row, 0, tiles, sums);
  SYNC();
  for (int32_t i = THREAD; i < up_to(a.second.terms, CHUNK); i += N_THREADS) {
    int32_t k = 0;
    if (i < a.first.columns) {
      const float f = result_of(&a.first, sums, tiles, i, i);
      const int32_t step = int8_steps(&a.first.end, int8_hidden(f, &a.first.end));
      k = step < a.first.min ? a.first.min : step > a.first.max ? a.first.max : step;
    }
    hidden[i] = (uint8_t)k;
  }
  SYNC();
  multiply_second(&a.second, hidden, first, gate_tiles, sums);
  SYNC();
  for (int32_t i = THREAD; i < n; i += N_THREADS) {
    const float f = result_of(&a.second, sums, gate_tiles, i, first + i);
    const float gate = int8_gate(f, &a.second.end);
#if SCALES
    gates[i] = int8_within(gate, a.second.end.low, a.second.end.high);
#else
    int8_store(&a.second.end, a.y, (index_t)(at * a.second.columns + first + i), gate);
#endif
  }
#if SCALES
  SYNC();
  const int32_t begin = share / a.slices * a.part;
  scale(&a, at, first, n, begin, begin + a.part < a.places ? begin + a.part : a.places, gates);
#endif
}
