// Attention in float32 by fused multiply-adds: a block takes QUERIES queries of a head and goes
// over the keys, KEYS at a time, with maxima that grow and sums that are scaled down to them (M.
// Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018). ACROSS threads share
// ROWS queries: each has the scores of every ACROSS-th key, and sums of some columns of the values,
// in registers; weights change hands through shared memory, where only the threads of a warp meet.
//
// Order of sums: a score is one chain over the columns of the head in ascending order. A column of
// the result is one over all keys in ascending order, scaled down before each KEYS of them. Of a
// query's weights a thread adds those of its own keys up, scaled down likewise, and the threads
// add theirs up in pairs at the end. So what a query gives depends neither on the batch nor on how
// many queries share a block, as long as values are finite: of keys that none of them sees, whole
// blocks are left out.
//
// Options: Q, K, V, Y: types; SIZE: columns of queries and keys, up to a multiple of 4; values have
// ACROSS * WIDTH * PARTS columns at most: WIDTH, 1, 2 or 4, that a thread has side by side, PARTS
// such pieces; ROWS; FAST 1: float32 whose rows lie in pieces of 16 bytes; Y_FAST 1: WIDTH columns
// of the result from a multiple of that on lie at a multiple of their bytes; TF32 1: queries, keys
// and values are rounded to tf32.
#include "attention.h"
#include "vectors.h"

#if TF32
#define FACTOR(x) round_tf32(x)
#else
#define FACTOR(x) (x)
#endif

#define KEYS 64
#define FEW_KEYS 16
#define ACROSS 16
#define WARPS 4
#define N_THREADS (WARPS * WARP)
#define DOWN (WARP / ACROSS)  // queries of a warp that are side by side
#define QUERIES (WARPS * DOWN * ROWS)
#define PIECE 4  // elements of 16 bytes
#define OF_KEYS (KEYS / ACROSS)
#define COLUMNS (WIDTH * PARTS)
// Between rows in shared memory: an odd number of pieces, so that eight rows of queries or keys lie
// in different banks.
#define STEP ((SIZE / PIECE | 1) * PIECE)
#define V_STEP (ACROSS * COLUMNS)
#define W_STEP (KEYS + PIECE)
// As many blocks as find room in a multiprocessor with heads of 64 columns; what needs more
// registers gets them.
#define BLOCKS_AT_ONCE (ROWS * COLUMNS > 32 || MASKS > 1 || WINDOWED ? 1 : 3)

// What a thread has of its queries. m: the largest score so far; sum: of its own keys' weights.
typedef struct part {
  query_t of[ROWS];
  float m[ROWS], sum[ROWS], columns[ROWS][COLUMNS];
} part_t;

// Of the head that the thread is in.
DEVICE int row_of(int i) { return (THREAD / WARP * ROWS + i) * DOWN + LANE / ACROSS; }
DEVICE int key_of(int j) { return j * ACROSS + LANE % ACROSS; }
DEVICE int column_of(int p) { return (p * ACROSS + LANE % ACROSS) * WIDTH; }

// ---- loading ------------------------------------------------------------------------------------

// Rows of one side, which lie at `at` and of which `length` are there, to `n` rows of `width`
// columns, `step` apart, zeros around them.
#if FAST
DEVICE void load_rows(const attention_side_t* s, const float* at, int32_t length, int32_t size,
                      int n, int width, int step, float* to) {
  const INDEX row = (INDEX)s->row;
  const int pieces = width / PIECE, rows = N_THREADS / pieces;  // that all threads take at once
  if (N_THREADS % pieces == 0 && n % rows == 0) {
    const int32_t r = THREAD / pieces, c = THREAD % pieces * PIECE;
    // Where columns end, no row has any. Of pieces that are not there nothing is read.
    const int32_t left = c < size ? length - r : 0;
    at += r * row + c;
    to += r * step + c;
    UNROLL
    for (int i = 0; i < n / rows; i++) {
      copy_16(to + i * rows * step, at, i * rows < left ? 16 : 0);
      at += rows * row;
    }
    return;
  }
  for (int i = THREAD; i < n * pieces; i += N_THREADS) {
    const int32_t r = i / pieces, c = i % pieces * PIECE;
    copy_16(to + r * step + c, at + (r * row + c), r < length && c < size ? 16 : 0);
  }
}
#define LOAD_ROWS(type, side, at, length, size, n, width, step, to) \
  load_rows(side, at, length, size, n, width, step, to)
#else
// Element by element, as float32.
#define LOAD_ROWS(type, side, at, length, size, n, width, step, to)                      \
  for (int i = THREAD; i < (n) * (width); i += N_THREADS) {                              \
    const int32_t r = i / (width), c = i % (width);                                      \
    (to)[r * (step) + c] =                                                               \
        r < (length) && c < (size)                                                       \
            ? FACTOR(LOAD(type)(at, r * (INDEX)(side)->row + c * (INDEX)(side)->column)) \
            : 0.0F;                                                                      \
  }
#endif

// ---- a block of keys ----------------------------------------------------------------------------

// Products of the thread's queries with its keys, of which it takes so many, a constant.
DEVICE void multiply_keys(int of_keys, const float* queries, const float* keys,
                          float (*s)[OF_KEYS]) {
  UNROLL
  for (int i = 0; i < ROWS; i++) UNROLL
  for (int j = 0; j < of_keys; j++) s[i][j] = 0;
  UNROLL_4
  for (int c = 0; c < SIZE; c += PIECE) {
    float q[ROWS][PIECE], k[OF_KEYS][PIECE];
    UNROLL
    for (int j = 0; j < of_keys; j++) load_4_f32(keys + key_of(j) * STEP, c, k[j]);
    UNROLL
    for (int i = 0; i < ROWS; i++) load_4_f32(queries + row_of(i) * STEP, c, q[i]);
    UNROLL
    for (int t = 0; t < PIECE; t++) UNROLL
    for (int i = 0; i < ROWS; i++) UNROLL
    for (int j = 0; j < of_keys; j++) s[i][j] = FMA(q[i][t], k[j][t], s[i][j]);
  }
}

// The largest one of a query's, which its threads have.
DEVICE float largest(float x) {
  UNROLL
  for (int lane = ACROSS / 2; lane; lane /= 2) x = LARGER(x, shuffle_xor_f32(x, lane));
  return x;
}

// Products become scores of keys from `key` on: of all queries first, so that reads of masks do not
// wait for each other.
DEVICE void find_scores(const attention_args_t* a, const part_t* t, int of_keys, int32_t key,
                        float (*s)[OF_KEYS]) {
  UNROLL
  for (int i = 0; i < ROWS; i++) UNROLL
  for (int j = 0; j < of_keys; j++) s[i][j] = masked(a, &t->of[i], key + key_of(j), s[i][j]);
}

// Scores become weights; what was summed up before shrinks as the largest score grows.
DEVICE void weigh(part_t* t, int of_keys, float (*s)[OF_KEYS]) {
  float top[ROWS];  // of numbers: NaN makes the row's sum NaN
  UNROLL
  for (int i = 0; i < ROWS; i++) {
    top[i] = t->m[i];
    UNROLL
    for (int j = 0; j < of_keys; j++) top[i] = LARGER(top[i], s[i][j]);
    top[i] = largest(top[i]);
  }
  UNROLL
  for (int i = 0; i < ROWS; i++) {
    const float kept = weight(t->m[i], top[i]);
    float sum = 0;
    t->m[i] = top[i];
    UNROLL
    for (int j = 0; j < of_keys; j++) {
      s[i][j] = weight(s[i][j], top[i]);
      sum += s[i][j];
    }
    t->sum[i] = FMA(t->sum[i], kept, sum);
    UNROLL
    for (int c = 0; c < COLUMNS; c++) t->columns[i][c] *= kept;
  }
}

// Adds the values of n keys, a constant, by their weights.
DEVICE void multiply_values(part_t* t, int n, const float* weights, const float* values) {
  UNROLL_4
  for (int k = 0; k < n; k += PIECE) {
    float w[ROWS][PIECE];
    UNROLL
    for (int i = 0; i < ROWS; i++) load_4_f32(weights + row_of(i) * W_STEP, k, w[i]);
    UNROLL
    for (int p = 0; p < PARTS; p++) UNROLL
    for (int r = 0; r < PIECE; r++) {
      float v[WIDTH];
      LOAD_N(WIDTH, f32)(values + column_of(p), (k + r) * V_STEP, v);
      UNROLL
      for (int i = 0; i < ROWS; i++) UNROLL
      for (int c = 0; c < WIDTH; c++) {
        float* sum = &t->columns[i][p * WIDTH + c];
        *sum = FMA(w[i][r], v[c], *sum);
      }
    }
  }
}

// Weights of n keys, a constant, from `key` on: all of a block, or FEW_KEYS where no more are left.
DEVICE void take_keys(const attention_args_t* a, part_t* t, int n, int32_t key,
                      const float* queries, const float* keys, float* weights) {
  float s[ROWS][OF_KEYS];
  multiply_keys(n / ACROSS, queries, keys, s);
  find_scores(a, t, n / ACROSS, key, s);
  weigh(t, n / ACROSS, s);
  UNROLL
  for (int i = 0; i < ROWS; i++) UNROLL
  for (int j = 0; j < n / ACROSS; j++) weights[row_of(i) * W_STEP + key_of(j)] = s[i][j];
  SYNC_WARP();
}

// ---- the result ---------------------------------------------------------------------------------

DEVICE void put_row(const attention_args_t* a, const float* columns, float by, ELEMENT(Y) * y,
                    INDEX row) {
  UNROLL
  for (int p = 0; p < PARTS; p++) {
    float all[WIDTH];
    UNROLL
    for (int c = 0; c < WIDTH; c++) all[c] = columns[p * WIDTH + c] * by;
#if Y_FAST
    if (column_of(p) < a->v_size) STORE_N(WIDTH, Y)(y, row + column_of(p), all);
#else
    UNROLL
    for (int c = 0; c < WIDTH; c++)
      if (column_of(p) + c < a->v_size)
        STORE(Y)(y, row + (column_of(p) + c) * (INDEX)a->y.column, all[c]);
#endif
  }
}

DEVICE void put_rows(const attention_args_t* a, const part_t* t, int32_t first, ELEMENT(Y) * y,
                     INDEX start) {
  UNROLL
  for (int i = 0; i < ROWS; i++) {
    float sum = t->sum[i];
    UNROLL
    for (int lane = ACROSS / 2; lane; lane /= 2) sum += shuffle_xor_f32(sum, lane);
    const int32_t query = first + row_of(i);
    const float by = a->zero_unseen && sum == 0 ? 0.0F : 1 / sum;
    if (query < a->q_len) put_row(a, t->columns[i], by, y, start + query * (INDEX)a->y.row);
  }
}

KERNEL_OF_BLOCKS(attention_fma, attention_args_t, N_THREADS, BLOCKS_AT_ONCE) {
  DYNAMIC(float, queries);                  // [QUERIES][STEP]
  float* keys = queries + QUERIES * STEP;   // [KEYS][STEP]
  float* values = keys + KEYS * STEP;       // [KEYS][V_STEP]
  float* weights = values + KEYS * V_STEP;  // [QUERIES][W_STEP]
  const uint32_t head = DIVIDED((uint32_t)BLOCK, a.tiles);
  const int32_t first = (int32_t)((uint32_t)BLOCK - head * a.tiles.size) * QUERIES;
  const int32_t end = first + QUERIES < a.q_len ? first + QUERIES : a.q_len;
  const bool works = first + THREAD / WARP * (DOWN * ROWS) < a.q_len;  // a warp with queries
  part_t t;
  int32_t low, high;
  seen_keys(&a, first, end, &low, &high);
  const starts_t at = find_starts(&a, head);
  const ELEMENT(Q)* q = GLOBAL(const ELEMENT(Q), a.q.at) + (at.q + first * (INDEX)a.q.row);
  const ELEMENT(K)* k = GLOBAL(const ELEMENT(K), a.k.at) + at.k;
  const ELEMENT(V)* v = GLOBAL(const ELEMENT(V), a.v.at) + at.v;
  int32_t key = low / KEYS * KEYS;
  UNROLL
  for (int i = 0; i < ROWS; i++) {
    const int32_t query = first + row_of(i);
    t.of[i] = find_query(&a, &at, head, query < a.q_len ? query : a.q_len - 1);
    t.m[i] = NO_SCORE;
    t.sum[i] = 0;
    UNROLL
    for (int c = 0; c < COLUMNS; c++) t.columns[i][c] = 0;
  }
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  LOAD_ROWS(Q, &a.q, q, a.q_len - first, a.size, QUERIES, SIZE, STEP, queries);
  LOAD_ROWS(K, &a.k, k + key * (INDEX)a.k.row, a.kv_len - key, a.size, KEYS, SIZE, STEP, keys);
  COMMIT_COPIES();
  // Values come while keys are multiplied, and the next keys while values are.
  for (; key < high; key += KEYS) {
    const bool few = a.kv_len - key <= FEW_KEYS;
    WAIT_COPIES(0);
    SYNC();
    LOAD_ROWS(V, &a.v, v + key * (INDEX)a.v.row, a.kv_len - key, a.v_size, KEYS, V_STEP, V_STEP,
              values);
    COMMIT_COPIES();
    if (works && few) take_keys(&a, &t, FEW_KEYS, key, queries, keys, weights);
    if (works && !few) take_keys(&a, &t, KEYS, key, queries, keys, weights);
    WAIT_COPIES(0);
    SYNC();
    const int32_t next = key + KEYS;
    if (next < high)
      LOAD_ROWS(K, &a.k, k + next * (INDEX)a.k.row, a.kv_len - next, a.size, KEYS, SIZE, STEP,
                keys);
    COMMIT_COPIES();
    if (works && few) multiply_values(&t, FEW_KEYS, weights, values);
    if (works && !few) multiply_values(&t, KEYS, weights, values);
  }
  WAIT_COPIES(0);
  if (works) put_rows(&a, &t, first, GLOBAL(ELEMENT(Y), a.y.at), at.y);
}
