// Two products of few rows (8 at most) in one launch, the second of which multiplies what the first
// one made: the squeezed channels of a squeeze-excite block. Each block has some columns of the
// second product and makes all of the first one for itself, as blocks cannot wait for each other; the
// first block stores it, too. Weights and biases of both are on their way before the rows
// are there: those of the first one by parts, some terms of all columns.
//
// Sums are made as product_few.cu makes them, and what lies between is rounded as the first layer's
// output: both outputs have the bits of two launches.
//
// Options: IN, of all operands, f16 or bf16; FIRST_PIECE, SECOND_PIECE: PIECE of product_few.cu, of
// either product. The programs of both are in "program.h", that of the first as program_before.
#include "product_pair_args.h"

#define BM 8
#define BN 64
#define N_WARPS 16  // each has 16 columns of the first product at most
#define N_THREADS (N_WARPS * WARP)
#define BIAS_BEHIND

#include "few_rows.h"
#include "product_sums.h"

// Where operands lie in shared memory; rows of a pitch of whole steps and 8 elements, of which eight
// lie in different banks.
typedef struct places {
  element_t *parts, *rows;           // of the first product
  element_t *last_columns, *middle;  // of the second
  float *sums, *bias;                // of the first
  int part_pitch, part, pitch, last_pitch, sum_step;
} places_t;

DEVICE places_t find_places(const product_pair_args_t* a, element_t* bytes) {
  const int columns = ((int)a->first.n + 15) / 16 * 16;
  places_t p;
  p.part_pitch = a->part + 8;
  p.part = columns * p.part_pitch;
  p.pitch = ((int)a->first.k + 15) / 16 * 16 + 8;
  p.last_pitch = columns + 8;
  p.sum_step = columns + 8;
  p.parts = bytes;
  p.rows = p.parts + a->parts * p.part;
  p.last_columns = p.rows + BM * p.pitch;
  p.middle = p.last_columns + BN * p.last_pitch;
  p.sums = (float*)(void*)(p.middle + BM * p.last_pitch);
  p.bias = p.sums + BM * p.sum_step;
  return p;
}

// As load_piece, by way of registers.
DEVICE void fetch(const element_t* p, bool inside, int piece, uint32_t* words) {
  UNROLL
  for (int i = 0; i < 4; i++) words[i] = 0;
  if (!inside) return;
  if (piece == 8)
    READ_16(p, words);
  else
    words[0] = piece == 2 ? *(const uint32_t*)(const void*)p : *p;
}
DEVICE void put(element_t* place, int piece, const uint32_t* words) {
  if (piece == 8)
    WRITE_16(place, words);
  else if (piece == 2)
    *(uint32_t*)(void*)place = words[0];
  else
    *place = (element_t)words[0];
}

// As load_rows, at once: copies would arrive in order, behind all parts of the weights. So many
// threads, a constant, bring a row, four pieces each at a time.
DEVICE void load_now(const element_t* from, int64_t step, int rows, int k, int pitch, int piece,
                     int threads, element_t* to) {
  const int row = THREAD / threads, pieces = (k + 15) / 16 * 16 / piece;
  if (row >= rows) return;
  ROLLED
  for (int first = THREAD % threads; first < pieces; first += 4 * threads) {
    uint32_t words[4][4];
    UNROLL
    for (int j = 0; j < 4; j++) {
      const int i = (first + j * threads) * piece;
      fetch(from + (i < k ? row * step + i : 0), i < k, piece, words[j]);
    }
    UNROLL
    for (int j = 0; j < 4; j++) {
      const int i = first + j * threads;
      if (i < pieces) put(to + row * pitch + i * piece, piece, words[j]);
    }
  }
}

// Part `number` of the first product's weights, one group of copies, also where no terms are left.
DEVICE void load_part(const product_pair_args_t* a, const places_t* p, int number) {
  const product_args_t* first = &a->first;
  const int at = number * a->part, left = (int)first->k - at;
  if (left > 0)
    load_rows(GLOBAL(const element_t, first->w) + at, first->w_column, first->n, (int)first->n,
              left < a->part ? left : a->part, p->part_pitch, FIRST_PIECE,
              p->parts + number * p->part);
  COMMIT_COPIES();
}

// What no layer before this one writes; the tile's bias goes behind its sums.
DEVICE void load_constants(const product_pair_args_t* a, const places_t* p, int64_t column,
                           float* tile) {
  const product_args_t *first = &a->first, *second = &a->second;
  const int left = second->n - column < BN ? (int)(second->n - column) : BN;
  ROLLED
  for (int i = 0; i < a->parts; i++) load_part(a, p, i);
  load_now(GLOBAL(const element_t, second->w) + column * second->w_column, second->w_column, left,
           (int)second->k, p->last_pitch, SECOND_PIECE, N_THREADS / BN, p->last_columns);
  for (int i = THREAD; i < BN; i += N_THREADS)
    tile[BM * SUM_STEP + i] =
        second->bias && i < left ? GLOBAL(const float, second->bias)[column + i] : 0;
  if (first->bias)
    for (int i = THREAD; i < first->n; i += N_THREADS)
      p->bias[i] = GLOBAL(const float, first->bias)[i];
}

// All but the last `left` groups of copies have arrived.
DEVICE void wait_for_part(int left) {
  if (left >= 3)
    WAIT_COPIES(3);
  else if (left == 2)
    WAIT_COPIES(2);
  else if (left == 1)
    WAIT_COPIES(1);
  else
    WAIT_COPIES(0);
}

// Of 16 columns of 8 rows, of k terms: columns take the side of 16, as in product_few.cu. Operands
// of the next two steps are on their way while two are multiplied.
DEVICE void multiply(const element_t* columns, int pitch, const element_t* rows, int row_pitch,
                     int k, float* sums) {
  const element_t* column = columns + LANE % 16 * pitch + LANE / 16 * 8;
  const element_t* row = rows + LANE % 8 * row_pitch + LANE / 8 * 8;
  const int steps = (k + 15) / 16;
  uint32_t w[8], x[4], w_next[8], x_next[4];
  if (steps > 1) {
    load_matrices(w, column);
    load_matrices(w + 4, column + 16);
    load_matrices(x, row);
    UNROLL_4
    for (int i = 1; i < steps / 2; i++) {
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
    JOINED(MMA_, IN)(sums, w, x);
    JOINED(MMA_, IN)(sums, w + 4, x + 2);
    column += 32;
    row += 32;
  }
  if (steps % 2) {
    load_matrices(w, column);
    load_matrices(x, row);  // of which the second half, of no step, lies behind the row
    JOINED(MMA_, IN)(sums, w, x);
  }
}

// Sums of a lane where rows of `step` floats lie side by side.
DEVICE void put_lane(const float* sums, int step, float* to) {
  const int g = LANE / 4, two = LANE % 4 * 2;
  UNROLL
  for (int i = 0; i < 4; i++) to[(two + i % 2) * step + g + i / 2 * 8] = sums[i];
}

// The sums of the first product: of a warp's columns, part by part.
DEVICE void multiply_first(const product_pair_args_t* a, const places_t* p) {
  const int k = (int)a->first.k, parts = (k + a->part - 1) / a->part, column = THREAD / WARP * 16;
  const bool own = column < a->first.n;
  float sums[4] = {0, 0, 0, 0};
  ROLLED
  for (int i = 0; i < parts; i++) {
    const int at = i * a->part, left = k - at < a->part ? k - at : a->part;
    wait_for_part(a->parts - 1 - i);
    SYNC();
    if (own)
      multiply(p->parts + i * p->part + column * p->part_pitch, p->part_pitch, p->rows + at,
               p->pitch, left, sums);
  }
  if (own) put_lane(sums, p->sum_step, p->sums + column);
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
  load_now(GLOBAL(const element_t, a.first.x), a.first.x_row, (int)a.first.m, (int)a.first.k, p.pitch,
           FIRST_PIECE, N_THREADS / BM, p.rows);
  multiply_first(&a, &p);
  SYNC();
  finish_first(&a.first, &p);
  SYNC();
  if (THREAD / WARP < BN / 16) {
    const int column = THREAD / WARP * 16;
    float sums[4] = {0, 0, 0, 0};
    multiply(p.last_columns + column * p.last_pitch, p.last_pitch, p.middle, p.last_pitch,
             (int)a.second.k, sums);
    put_lane(sums, SUM_STEP, tile + column);
  }
  SYNC();
  finish_tile(&a.second, &t, tile, THREAD);
}
