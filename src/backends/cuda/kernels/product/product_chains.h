// How threads multiply steps of 32 terms by fused multiply-adds in float32: each sum is a few
// chains over its terms in ascending order (PRODUCT_CHAIN), whatever the tile is, and whoever makes
// them.
//
// A group of LOADERS threads, of which a thread is the LOADER-th, has a step in shared memory: rows
// of the left side of 128 bytes, whose pieces of four terms change places by the row, so that eight
// rows lie in different banks; so do columns of the weights, or, with TURNED 1, rows of 32 columns
// for each of 32 terms, which change places by the term, one such square after the other. That is
// how the copy engine writes lines of 128 bytes that it swizzles.
//
// Options: BM x BN, the tile; TM x TN, the part of a thread; GROUPS 1: all threads make all chains
// of the tile, one after the other; 4: each of four groups of threads makes one of them; JOINS 1:
// there are several chains.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_CHAINS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_CHAINS_H_

#define ACROSS (BN / TN)
#define DOWN (BM / TM)
#define LOADERS (DOWN * ACROSS)
#define LOADER (THREAD % LOADERS)
#define GROUP (THREAD / LOADERS)
#define MULTIPLIERS (GROUPS * LOADERS)  // threads of all groups
#define BK 32
#define PIECE 4

#include "product_sums.h"

#if GROUPS > 1 && !JOINS
#error "groups share chains out, and there is one"
#endif
#if TN % 4 || BN % 32
#error "no such tile"
#endif

// Registers for all that a thread of larger parts reads ahead.
#define TOGETHER_THREADS (TM * TN > 16 ? 256 : 384)
#define TOGETHER_BLOCKS (MULTIPLIERS < TOGETHER_THREADS ? TOGETHER_THREADS / MULTIPLIERS : 1)

// Where a piece of a row lies, and, turned, one of four columns of a term.
DEVICE int place(int row, int piece) { return row * BK + (piece ^ (row & 7)) * PIECE; }
DEVICE int wide_place(int term, int piece) {
  return piece / 8 * (BK * BK) + place(term, piece % 8);
}

// Lanes of a warp have 4 x 8 rows and columns, or 8 x 4 where the tile has no more across: as
// square as may be, since what several lanes read is read once. Of eight lanes that are served at
// once two have the same piece of the longer side.
#if ACROSS % 8 == 0 && DOWN % 4 == 0
#define LANES_ACROSS 8
#define LANE_ROW (LANE / 16 * 2 + LANE % 2)
#define LANE_COLUMN (LANE / 2 % 8)
#elif ACROSS % 4 == 0 && DOWN % 8 == 0
#define LANES_ACROSS 4
#define LANE_ROW (LANE / 2 % 8)
#define LANE_COLUMN (LANE / 16 * 2 + LANE % 2)
#else
#error "lanes do not share the tile out"
#endif
#define LANES_DOWN (WARP / LANES_ACROSS)
#define WARPS_ACROSS (ACROSS / LANES_ACROSS)

// What a thread multiplies: its first row and column; the others lie as far apart as the tile has
// threads, turned columns by fours. And where the first ones lie in a step, and by which places
// their pieces move. The compiler knows nothing of the numbers, or it would not leave constants
// that are added to them to the instructions that read.
typedef struct part {
  int row, column;
  int x_at, x_moved, w_at, w_moved;
} part_t;

DEVICE part_t find_part(void) {
  const int warp = LOADER / WARP;
  const int row = warp / WARPS_ACROSS * LANES_DOWN + LANE_ROW;
  const int across = warp % WARPS_ACROSS * LANES_ACROSS + LANE_COLUMN;
  const part_t p = {row,
                    across * (TURNED ? 4 : 1),
                    kept_s32(row * BK),
                    kept_s32(row & 7),
                    kept_s32(TURNED ? across / 8 * (BK * BK) : across * BK),
                    kept_s32(across & 7)};
  return p;
}
DEVICE int row_of(const part_t* p, int i) { return p->row + i * DOWN; }
DEVICE int column_of(const part_t* p, int j) {
  return p->column + (TURNED ? j / 4 * ACROSS * 4 + j % 4 : j * ACROSS);
}

// Four terms from k on of a thread's rows from the first-th one on, n of them, that lie so many
// apart: 4, where the thread's first one is below 4, or a multiple of 8.
DEVICE void read_rows(const float* tile, int at, int moved, int k, int first, int n, int apart,
                      float (*v)[4]) {
  UNROLL
  for (int i = 0; i < n; i++) {
    const int row = (first + i) * apart, piece = (k / PIECE ^ (row & 7)) ^ moved;
    read_four(tile + at + piece * PIECE + row * BK, v[i]);
  }
}

// Four terms from k on of a thread's columns from the j-th one on, four of them, by column.
DEVICE void read_columns(const float* w, const part_t* p, int k, int j, float (*v)[4]) {
#if TURNED
  const int further = j / 4 * ACROSS;
  UNROLL
  for (int r = 0; r < 4; r++) {
    const int piece = (further & 7) ^ ((k + r) & 7) ^ p->w_moved;
    float four[4];
    read_four(w + p->w_at + piece * PIECE + (further / 8 * (BK * BK) + (k + r) * BK), four);
    UNROLL
    for (int i = 0; i < 4; i++) v[i][r] = four[i];
  }
#else
  read_rows(w, p->w_at, p->w_moved, k, j, 4, ACROSS, v);
#endif
}

// A whole step. Columns are taken by fours, so that registers suffice to read ahead.
DEVICE void multiply(const float* x, const float* w, const part_t* p, float (*sums)[TN]) {
  UNROLL
  for (int k = 0; k < BK; k += 4) {
    float u[TM][4];
    read_rows(x, p->x_at, p->x_moved, k, 0, TM, DOWN, u);
    UNROLL
    for (int j = 0; j < TN; j += 4) {
      float v[4][4];
      read_columns(w, p, k, j, v);
      UNROLL
      for (int r = 0; r < 4; r++) UNROLL
      for (int i = 0; i < TM; i++) UNROLL
      for (int c = 0; c < 4; c++) sums[i][j + c] = FMA(u[i][r], v[c][r], sums[i][j + c]);
    }
  }
}

DEVICE float weight_at(const float* w, int k, int column) {
  return TURNED ? w[wide_place(k, column / PIECE) + column % PIECE]
                : w[place(column, k / PIECE) + k % PIECE];
}

// The first `left` terms of the last one. Zeros behind them are not added: a sum may be -0.
DEVICE void multiply_some(const float* x, const float* w, const part_t* p, int left,
                          float (*sums)[TN]) {
  ROLLED
  for (int k = 0; k < left; k++) {
    float v[TN];
    UNROLL
    for (int j = 0; j < TN; j++) v[j] = weight_at(w, k, column_of(p, j));
    UNROLL
    for (int i = 0; i < TM; i++) {
      const float u = x[place(row_of(p, i), k / PIECE) + k % PIECE];
      UNROLL
      for (int j = 0; j < TN; j++) sums[i][j] = FMA(u, v[j], sums[i][j]);
    }
  }
}

DEVICE void clear(float (*sums)[TN]) {
  UNROLL
  for (int i = 0; i < TM; i++) UNROLL
  for (int j = 0; j < TN; j++) sums[i][j] = 0;
}

// ---- chains -------------------------------------------------------------------------------------

// A group's terms: all, or those of its chain, which may be none; and steps of the longest one.
typedef struct chains {
  int64_t chain, first, end;
  int steps;
} chains_t;

DEVICE chains_t find_chains(int64_t k, int group) {
  chains_t c;
  c.chain = JOINS ? PRODUCT_CHAIN(k) : k;
  c.first = GROUPS > 1 ? group * c.chain : 0;
  c.end = GROUPS > 1 && c.first + c.chain < k ? c.first + c.chain : k;
  c.steps = (int)(((GROUPS > 1 ? c.chain : k) + BK - 1) / BK);
  return c;
}

#if GROUPS == 1 && JOINS
// What a thread's chains so far have come to waits in shared memory, by fours, each thread's beside
// its neighbour's.
#define WAITING_FLOATS (BM * BN)
DEVICE float* waiting(float* all, int i) { return all + (i / 4 * MULTIPLIERS + THREAD) * 4; }

DEVICE void add_waiting(float* all, float (*sums)[TN]) {
  UNROLL
  for (int i = 0; i < TM * TN; i += 4) {
    float before[4];
    read_four(waiting(all, i), before);
    UNROLL
    for (int j = 0; j < 4; j++) sums[(i + j) / TN][(i + j) % TN] += before[j];
  }
}

// At the end of a chain that is not the last one.
DEVICE void begin_chain(float* all, bool is_first, float (*sums)[TN]) {
  if (!is_first) add_waiting(all, sums);
  UNROLL
  for (int i = 0; i < TM * TN; i += 4) {
    uint32_t words[4];
    UNROLL
    for (int j = 0; j < 4; j++) words[j] = bits_of(sums[(i + j) / TN][(i + j) % TN]);
    WRITE_16(waiting(all, i), words);
  }
  clear(sums);
}
#endif

// A group's sums into shared memory, where each group has a tile.
#define TILE_FLOATS (BM * SUM_STEP)
DEVICE void put_all(float* tiles, const part_t* p, float (*sums)[TN]) {
  float* tile = tiles + GROUP * TILE_FLOATS;
  UNROLL
  for (int i = 0; i < TM; i++) {
    float* row = tile + row_of(p, i) * SUM_STEP;
    UNROLL
    for (int j = 0; j < TN; j += 4) {
#if TURNED
      uint32_t words[4];
      UNROLL
      for (int c = 0; c < 4; c++) words[c] = bits_of(sums[i][j + c]);
      WRITE_16(row + column_of(p, j), words);
#else
      UNROLL
      for (int c = 0; c < 4; c++) row[column_of(p, j + c)] = sums[i][j + c];
#endif
    }
  }
}

// Behind it and SYNC: those of groups that have terms are added up in the first tile. MULTIPLIERS
// threads take part.
#if GROUPS > 1
DEVICE void join_groups(float* tiles, int64_t k) {
  const int n = (int)((k + PRODUCT_CHAIN(k) - 1) / PRODUCT_CHAIN(k));
  for (int i = THREAD * 4; i < BM * BN; i += MULTIPLIERS * 4) {
    float* to = tiles + i / BN * SUM_STEP + i % BN;
    float sums[4], next[4];
    uint32_t words[4];
    read_four(to, sums);
    ROLLED
    for (int g = 1; g < n; g++) {
      read_four(to + g * TILE_FLOATS, next);
      UNROLL
      for (int j = 0; j < 4; j++) sums[j] += next[j];
    }
    UNROLL
    for (int j = 0; j < 4; j++) words[j] = bits_of(sums[j]);
    WRITE_16(to, words);
  }
}
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_CHAINS_H_
