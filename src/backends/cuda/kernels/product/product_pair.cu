// Two products of few rows (8 at most) in one launch, the second of which multiplies what the first
// one made: the squeezed channels of a squeeze-excite block. Each block has some columns of the
// second product and makes all of the first one for itself, which takes no longer than to wait for
// others; the first block stores it, too. Weights and biases of both are on their way before the rows
// are there.
//
// Sums are made as product_few.cu makes them, and what lies between is rounded as the first layer's
// output: both outputs have the bits of two launches.
//
// Options: IN, of all operands, f16 or bf16; FIRST_PIECE, SECOND_PIECE: PIECE of product_few.cu, of
// either product. The programs of both are in "program.h", that of the first as program_before.
#include "product_pair_args.h"

#define BM 8
#define BN 64
#define N_WARPS 8
#define N_THREADS (N_WARPS * WARP)
#define BIAS_BEHIND

#include "few_rows.h"
#include "product_sums.h"

// Where operands lie in shared memory; rows of a pitch of whole steps and 8 elements, of which eight
// lie in different banks.
typedef struct places {
  element_t *columns, *rows;         // of the first product
  element_t *last_columns, *middle;  // of the second
  float *sums, *bias;                // of the first
  int pitch, last_pitch, sum_step;
} places_t;

// Operands that are read and not multiplied (multiply) may lie behind the rows, in what comes next.
DEVICE places_t find_places(const product_pair_args_t* a, element_t* bytes) {
  const int columns = ((int)a->first.n + 15) / 16 * 16;
  places_t p;
  p.pitch = ((int)a->first.k + 15) / 16 * 16 + 8;
  p.last_pitch = columns + 8;
  p.sum_step = columns + 8;
  p.columns = bytes;
  p.rows = p.columns + columns * p.pitch;
  p.last_columns = p.rows + BM * p.pitch;
  p.middle = p.last_columns + BN * p.last_pitch;
  p.sums = (float*)(void*)(p.middle + BM * p.last_pitch);
  p.bias = p.sums + BM * p.sum_step;
  return p;
}

// As load_rows, where rows are short: by all threads at once.
DEVICE void load_short_rows(const element_t* from, int64_t step, int rows, int k, int pitch,
                            element_t* to) {
  const int pieces = (k + 15) / 16 * 16 / SECOND_PIECE;
  UNROLL_4
  for (int i = THREAD; i < rows * pieces; i += N_THREADS) {
    const int row = i / pieces, at = (i - row * pieces) * SECOND_PIECE;
    load_piece(from, row, step, at, k, SECOND_PIECE, to + row * pitch + at);
  }
}

// What no layer before this one writes; the tile's bias goes behind its sums.
DEVICE void load_constants(const product_pair_args_t* a, const places_t* p, int64_t column,
                           float* tile) {
  const product_args_t *first = &a->first, *second = &a->second;
  const int left = second->n - column < BN ? (int)(second->n - column) : BN;
  load_rows(GLOBAL(const element_t, first->w), first->w_column, first->n, (int)first->n,
            (int)first->k, p->pitch, FIRST_PIECE, p->columns);
  COMMIT_COPIES();
  load_short_rows(GLOBAL(const element_t, second->w) + column * second->w_column, second->w_column,
                  left, (int)second->k, p->last_pitch, p->last_columns);
  COMMIT_COPIES();
  for (int i = THREAD; i < BN; i += N_THREADS)
    tile[BM * SUM_STEP + i] =
        second->bias && i < left ? GLOBAL(const float, second->bias)[column + i] : 0;
  if (first->bias)
    for (int i = THREAD; i < first->n; i += N_THREADS)
      p->bias[i] = GLOBAL(const float, first->bias)[i];
}

// 16 columns of 8 rows, of k terms: columns take the side of 16, as in product_few.cu. Operands of
// the next two steps are on their way while two are multiplied; those behind the last step are
// whatever lies there, and multiplied by none.
DEVICE void multiply(const element_t* columns, const element_t* rows, int pitch, int k,
                     float* sums) {
  const element_t* column = columns + LANE % 16 * pitch + LANE / 16 * 8;
  const element_t* row = rows + LANE % 8 * pitch + LANE / 8 * 8;
  const int steps = (k + 15) / 16;
  uint32_t w[8], x[4], w_next[8], x_next[4];
  load_matrices(w, column);
  load_matrices(w + 4, column + 16);
  load_matrices(x, row);
  UNROLL_4
  for (int i = 0; i < steps / 2; i++) {
    column += 32;
    row += 32;
    load_matrices(w_next, column);
    load_matrices(w_next + 4, column + 16);
    load_matrices(x_next, row);
    JOINED(MMA_, IN)(sums, w, x);
    JOINED(MMA_, IN)(sums, w + 4, x + 2);
    UNROLL
    for (int j = 0; j < 4; j++) x[j] = x_next[j];
    UNROLL
    for (int j = 0; j < 8; j++) w[j] = w_next[j];
  }
  if (steps % 2) JOINED(MMA_, IN)(sums, w, x);
}

// Sums of a lane where rows of `step` floats lie side by side.
DEVICE void put_lane(const float* sums, int step, float* to) {
  const int g = LANE / 4, two = LANE % 4 * 2;
  UNROLL
  for (int i = 0; i < 4; i++) to[(two + i % 2) * step + g + i / 2 * 8] = sums[i];
}

// What the first layer makes of its sums, zeros up to whole steps behind each row.
DEVICE void finish_first(const product_args_t* a, const places_t* p) {
  const int n = (int)a->n, whole = (n + 15) / 16 * 16;
  ROLLED
  for (int i = THREAD; i < (int)a->m * whole; i += N_THREADS) {
    const int row = i / whole, column = i - row * whole;
    element_t made = 0;
    if (column < n) {
      float sum = p->sums[row * p->sum_step + column];
      if (a->bias) sum += p->bias[column];
      made = TO_WORD(IN)(program_before(sum, (index_t)row, (index_t)column, &a->program));
      if (BLOCK == 0) GLOBAL(element_t, a->y)[row * a->y_row + column] = made;
    }
    p->middle[row * p->last_pitch + column] = made;
  }
}

KERNEL(product_pair, product_pair_args_t, N_THREADS) {
  DYNAMIC(element_t, bytes);
  SHARED float tile[(BM + 1) * SUM_STEP];
  const places_t p = find_places(&a, bytes);
  const tile_t t = {0, BLOCK * BN, 0, 0, 0, 0};
  load_constants(&a, &p, t.column, tile);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  load_rows(GLOBAL(const element_t, a.first.x), a.first.x_row, a.first.m, BM, (int)a.first.k,
            p.pitch, FIRST_PIECE, p.rows);
  COMMIT_COPIES();
  WAIT_COPIES(0);
  SYNC();
  ROLLED
  for (int column = THREAD / WARP * 16; column < a.first.n; column += N_WARPS * 16) {
    float sums[4] = {0, 0, 0, 0};
    multiply(p.columns + column * p.pitch, p.rows, p.pitch, (int)a.first.k, sums);
    put_lane(sums, p.sum_step, p.sums + column);
  }
  SYNC();
  finish_first(&a.first, &p);
  SYNC();
  if (THREAD / WARP < BN / 16) {
    const int column = THREAD / WARP * 16;
    float sums[4] = {0, 0, 0, 0};
    multiply(p.last_columns + column * p.last_pitch, p.middle, p.last_pitch, (int)a.second.k,
             sums);
    put_lane(sums, SUM_STEP, tile + column);
  }
  SYNC();
  finish_tile(&a.second, &t, tile, THREAD);
}
