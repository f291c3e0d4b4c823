// Attention on tensor cores (mma.sync), of any type: a warp takes 16 queries of a head, and the
// warps of a block share blocks of keys, of which the next one is copied meanwhile. What a query
// gives does not depend on how many warps share a block, as long as values are finite: of keys that
// none of them sees, whole blocks are left out.
//
// Options besides those of attention_scores.h: SIZE: a head's terms up to a multiple of 16, at most
// 128; WHOLE 1: heads are such multiples; FAST 1: rows of keys and values lie in pieces of 16
// bytes; KEYS is 32 or 64; WARPS: 1 to 4; Q_STAYS 1: queries are read from shared memory for each
// block of keys, behind as many blocks of keys as there are, two at most; 0: they are kept in
// registers.
//
// Who includes this says PIECE, elements of 16 bytes, defines the four functions that are declared
// below, and calls attend from its kernel.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_WARPS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_WARPS_H_

// Masks that are read long before they are needed, as far as there are registers for it.
#define EARLY_MASKS ((SIZE) + (V_SIZE) > 128 ? 1 : 2)
#include "attention_scores.h"

#define N_THREADS (32 * WARPS)
#define QUERIES (16 * WARPS)
#define TERMS (2 * PIECE)      // of a product of matrices
#define K_STEP (SIZE + PIECE)  // between rows in shared memory: eight rows lie in different banks
#define V_STEP (V_SIZE + PIECE)

// Rows [first, first + n) of one side, of `size` elements, into rows of `width`, zeros around them.
DEVICE void load_rows(const attention_side_t* s, const element_t* from, INDEX start, int32_t first,
                      int n, int32_t length, int32_t size, int width, element_t* to) {
  const INDEX row = (INDEX)s->row, column = (INDEX)s->column;
  (void)size, (void)column;
#if FAST
  // Of pieces that are not there nothing is read, wherever that would be.
  const int pieces = width / PIECE, rows = N_THREADS / pieces;  // that all threads take at once
  if (N_THREADS % pieces == 0 && n % rows == 0) {
    const int32_t r = THREAD / pieces, c = THREAD % pieces * PIECE;
    const element_t* at = from + (start + (first + r) * row + c);
    // Where columns end, no row has any.
    const int32_t left = WHOLE || c < size ? length - first - r : 0;
    to += r * (width + PIECE) + c;
    UNROLL
    for (int i = 0; i < n / rows; i++) {
      copy_16(to + i * rows * (width + PIECE), at, i * rows < left ? 16 : 0);
      at += rows * row;
    }
    return;
  }
  for (int i = THREAD; i < n * width / PIECE; i += N_THREADS) {
    const int32_t r = i / (width / PIECE), c = i % (width / PIECE) * PIECE;
    const bool inside = first + r < length && (WHOLE || c < size);
    copy_16(to + r * (width + PIECE) + c, from + (start + (first + r) * row + c), inside ? 16 : 0);
  }
#else
  for (int i = THREAD; i < n * width; i += N_THREADS) {
    const int32_t r = i / width, c = i % width;
    const bool inside = first + r < length && (WHOLE || c < size);
    to[r * (width + PIECE) + c] =
        inside ? from[start + (first + r) * row + c * column] : (element_t)0;
  }
#endif
}

#define STAGE (KEYS * (K_STEP + V_STEP))  // elements: keys, and behind them values
#define FEW_KEYS 16

// Queries of a warp: its first row of them, and their words; Q_STAYS: these are not there.
typedef struct held_queries {
  const element_t* at;
  uint32_t words[SIZE / TERMS][4];
} held_queries_t;

// The queries of a warp for terms from i * TERMS on.
DEVICE void read_queries(const held_queries_t* q, int i, uint32_t* words) {
  load_matrices(words, q->at + (LANE % 16) * K_STEP + i * TERMS + LANE / 16 * PIECE);
}

// ---- what of it depends on the type -------------------------------------------------------------

// Four words of queries, as they are multiplied.
DEVICE void prepare_queries(uint32_t* words);
// Products with `n` keys, a constant, which lie at `keys`, as find_scores has them.
DEVICE void multiply_keys(const held_queries_t* q, int n, const element_t* keys, float (*s)[4]);
// Adds to t->sums the values at `values` by their weights, laid out as scores.
DEVICE void multiply_values(queries_t* t, int n, float (*weights)[4], const element_t* values);
// Writes the thread's part of a row of the result, of query h, times `by`.
DEVICE void put_row(const attention_args_t* a, const queries_t* t, int h, float by, element_t* y,
                    INDEX row);

// ---- blocks of keys -----------------------------------------------------------------------------

// Takes `n` keys of a block, a constant: all, or FEW_KEYS where no more are left.
DEVICE void take_keys(const attention_args_t* a, const held_queries_t* q, queries_t* t, int n,
                      int32_t key, bool next, const element_t* keys) {
  float s[KEYS / 8][4];
  const int32_t own = own_key(key);
  multiply_keys(q, n, keys, s);
  find_scores(a, t, n, key, own, next, s);
  weigh(a, t, n, s);
  multiply_values(t, n, s, keys + KEYS * K_STEP);
  if (n == KEYS) return;
  // Keys that are not there have weights and values of 0, which make +0 of -0.
  UNROLL
  for (int i = 0; i < V_SIZE / 8; i++) UNROLL
  for (int r = 0; r < 4; r++) t->sums[i][r] += 0.0F;
}

// stages: of keys and values, in shared memory, and where queries lie at first, in the second one
// or behind all.
DEVICE void attend(const attention_args_t* a, element_t* stages) {
  const element_t* q = GLOBAL(const element_t, a->q.at);
  const element_t* k = GLOBAL(const element_t, a->k.at);
  const element_t* v = GLOBAL(const element_t, a->v.at);
  element_t* y = GLOBAL(element_t, a->y.at);
  uint32_t head, tile;
  find_tile(a, &head, &tile);
  const int32_t first = (int32_t)tile * QUERIES;
  const int32_t end = first + QUERIES < a->q_len ? first + QUERIES : a->q_len;
  const int own = THREAD / WARP * 16;
  queries_t t;
  held_queries_t own_q;
  int32_t low, high;
  seen_keys(a, first, end, &low, &high);
  const starts_t at = find_starts(a, head);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  element_t* queries = stages + (Q_STAYS && !ONE_BLOCK ? 2 : 1) * STAGE;
  own_q.at = queries + own * K_STEP;
  load_rows(&a->q, q, at.q, first, QUERIES, a->q_len, a->size, SIZE, queries);
  COMMIT_COPIES();
  int32_t key = ONE_BLOCK ? 0 : low / KEYS * KEYS;
  load_rows(&a->k, k, at.k, key, KEYS, a->kv_len, a->size, SIZE, stages);
  load_rows(&a->v, v, at.v, key, KEYS, a->kv_len, a->v_size, V_SIZE, stages + KEYS * K_STEP);
  COMMIT_COPIES();
  begin_queries(a, &at, head, first + own, &t);
  read_early_masks(a, &t, key);
#if !Q_STAYS
  WAIT_COPIES(1);
  SYNC();
  UNROLL
  for (int i = 0; i < SIZE / TERMS; i++) {
    read_queries(&own_q, i, own_q.words[i]);
    prepare_queries(own_q.words[i]);
  }
#endif
  begin_sums(&t);
  for (int now = 0; key < high; key += KEYS, now = 1 - now) {
    const element_t* keys = stages + now * STAGE;
    const bool next = !ONE_BLOCK && key + KEYS < high;
    WAIT_COPIES(0);
    SYNC();
    if (next) {
      element_t* to = stages + (1 - now) * STAGE;
      load_rows(&a->k, k, at.k, key + KEYS, KEYS, a->kv_len, a->size, SIZE, to);
      load_rows(&a->v, v, at.v, key + KEYS, KEYS, a->kv_len, a->v_size, V_SIZE, to + KEYS * K_STEP);
    }
    COMMIT_COPIES();
    if (first + own < a->q_len) {  // a warp with queries
      if (a->kv_len - key > FEW_KEYS)
        take_keys(a, &own_q, &t, KEYS, key, next, keys);
      else
        take_keys(a, &own_q, &t, FEW_KEYS, key, false, keys);
    }
    if (ONE_BLOCK) break;
  }
  WAIT_COPIES(0);
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = first + own + LANE / 4 + h * 8;
    const float by = find_factor(a, &t, h);
    if (query < a->q_len) put_row(a, &t, h, by, y, at.y + query * (INDEX)a->y.row);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_WARPS_H_
