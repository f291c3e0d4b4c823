// Attention on tensor cores (mma.sync), fp16 or bf16: a warp takes 16 queries of a head, and the
// warps of a block share blocks of 64 keys, of which the next one is copied meanwhile. Scores and
// weights stay in registers; weights are rounded to the type where they are multiplied (T. Dao,
// FlashAttention-2, 2023). What a query gives does not depend on how many warps share a block, as
// long as values are finite: of keys that none of them sees, whole blocks are left out.
//
// Options: T: the type of all; SIZE, V_SIZE: those of heads up to multiples of 16, at most 128;
// FAST 1: rows of keys and values lie in pieces of 16 bytes; WARPS: 1 to 4.
#include "attention.h"

#define KEYS 64
#define N_THREADS (32 * WARPS)
#define QUERIES (16 * WARPS)
#define K_STEP (SIZE + 8)  // between rows in shared memory: eight rows lie in different banks
#define V_STEP (V_SIZE + 8)
#define MMA_f16 mma_f16
#define MMA_bf16 mma_bf16

typedef ELEMENT(T) element_t;

#define PAIR JOINED(two_, T)

// Rows [first, first + n) of one side, of `size` elements, into rows of `width`, zeros around them.
DEVICE void load_rows(const attention_side_t* s, const element_t* from, int64_t start,
                      int32_t first, int n, int32_t length, int32_t size, int width,
                      element_t* to) {
#if FAST
  const int pieces = width / 8, rows = N_THREADS / pieces;  // that all threads take at once
  if (N_THREADS % pieces == 0 && n % rows == 0) {
    const int32_t r = THREAD / pieces, c = THREAD % pieces * 8;
    const element_t* at = from + start + (int64_t)(first + r) * s->row + c;
    const int64_t step = rows * s->row;
    to += r * (width + 8) + c;
    UNROLL
    for (int i = 0; i < n / rows; i++) {
      const bool inside = first + r + i * rows < length && c < size;
      copy_16(to + i * rows * (width + 8), inside ? at : from, inside ? 16 : 0);
      at += step;
    }
    return;
  }
  for (int i = THREAD; i < n * width / 8; i += N_THREADS) {
    const int32_t r = i / (width / 8), c = i % (width / 8) * 8;
    const bool inside = first + r < length && c < size;
    copy_16(to + r * (width + 8) + c, from + (inside ? start + (first + r) * s->row + c : 0),
            inside ? 16 : 0);
  }
#else
  for (int i = THREAD; i < n * width; i += N_THREADS) {
    const int32_t r = i / width, c = i % width;
    const bool inside = first + r < length && c < size;
    to[r * (width + 8) + c] =
        inside ? from[start + (first + r) * s->row + c * s->column] : (element_t)0;
  }
#endif
}

#define STAGE (KEYS * (K_STEP + V_STEP))  // elements: keys, and behind them values

LARGE_KERNEL(attention_mma, attention_args_t, N_THREADS) {
  DYNAMIC(element_t, stages);  // two
  const element_t* q = GLOBAL(const element_t, a.q.at);
  const element_t* k = GLOBAL(const element_t, a.k.at);
  const element_t* v = GLOBAL(const element_t, a.v.at);
  element_t* y = GLOBAL(element_t, a.y.at);
  const uint32_t tiles = (uint32_t)(a.q_len + QUERIES - 1) / QUERIES;
  const uint32_t head = (uint32_t)BLOCK / tiles;
  const int32_t first = (int32_t)((uint32_t)BLOCK - head * tiles) * QUERIES;
  const int32_t end = first + QUERIES < a.q_len ? first + QUERIES : a.q_len;
  const int g = LANE / 4, two = LANE % 4 * 2, own = THREAD / WARP * 16;
  uint32_t of_q[SIZE / 16][4];
  float sums[V_SIZE / 8][4];
  float m[2] = {NO_SCORE, NO_SCORE}, sum[2] = {0, 0};
  query_t rows[2];
  int32_t low, high;
  seen_keys(&a, first, end, &low, &high);
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = first + own + g + h * 8;
    rows[h] = find_query(&a, head, query < a.q_len ? query : a.q_len - 1);
  }
  const starts_t at = find_starts(&a, head);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  // Queries lie where the second block of keys will.
  load_rows(&a.q, q, at.q, first, QUERIES, a.q_len, a.size, SIZE,
            stages + STAGE);
  COMMIT_COPIES();
  int32_t key = low / KEYS * KEYS;
  load_rows(&a.k, k, at.k, key, KEYS, a.kv_len, a.size, SIZE, stages);
  load_rows(&a.v, v, at.v, key, KEYS, a.kv_len, a.v_size, V_SIZE, stages + KEYS * K_STEP);
  COMMIT_COPIES();
  WAIT_COPIES(1);
  SYNC();
  UNROLL
  for (int i = 0; i < SIZE / 16; i++)
    load_matrices(of_q[i],
                  stages + STAGE + (own + LANE % 16) * K_STEP + i * 16 + LANE / 16 * 8);
  UNROLL
  for (int i = 0; i < V_SIZE / 8; i++) UNROLL
  for (int r = 0; r < 4; r++) sums[i][r] = 0;
  for (int now = 0; key < high; key += KEYS, now = 1 - now) {
    const element_t* keys = stages + now * STAGE;
    const element_t* values = keys + KEYS * K_STEP;
    WAIT_COPIES(0);
    SYNC();
    if (key + KEYS < high) {
      element_t* to = stages + (1 - now) * STAGE;
      load_rows(&a.k, k, at.k, key + KEYS, KEYS, a.kv_len, a.size, SIZE, to);
      load_rows(&a.v, v, at.v, key + KEYS, KEYS, a.kv_len, a.v_size, V_SIZE, to + KEYS * K_STEP);
    }
    COMMIT_COPIES();
    float s[KEYS / 8][4];
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) UNROLL
    for (int r = 0; r < 4; r++) s[j][r] = 0;
    UNROLL
    for (int i = 0; i < SIZE / 16; i++) UNROLL
    for (int j = 0; j < KEYS / 8; j += 2) {
      uint32_t of_k[4];
      load_matrices(of_k,
                    keys + (j * 8 + LANE % 8 + LANE / 16 * 8) * K_STEP + i * 16 + LANE / 8 % 2 * 8);
      JOINED(MMA_, T)(s[j], of_q[i], of_k);
      JOINED(MMA_, T)(s[j + 1], of_q[i], of_k + 2);
    }
    // The same for all lanes where the block lies within what all queries see.
    const bool all = sees_all(&rows[0], key, key + KEYS) && sees_all(&rows[1], key, key + KEYS);
    float top[2] = {m[0], m[1]};
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) UNROLL
    for (int r = 0; r < 4; r++) {
      s[j][r] = masked(&a, &rows[r / 2], key + j * 8 + two + r % 2, all, s[j][r]);
      top[r / 2] = larger(top[r / 2], s[j][r]);
    }
    float kept[2], part[2] = {0, 0};
    UNROLL
    for (int h = 0; h < 2; h++) {
      top[h] = larger(top[h], shuffle_xor_f32(top[h], 1));
      top[h] = larger(top[h], shuffle_xor_f32(top[h], 2));
      kept[h] = weight(m[h], top[h]);
      m[h] = top[h];
    }
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) UNROLL
    for (int r = 0; r < 4; r++) {
      s[j][r] = weight(s[j][r], top[r / 2]);
      part[r / 2] += s[j][r];
    }
    UNROLL
    for (int h = 0; h < 2; h++) {
      part[h] += shuffle_xor_f32(part[h], 1);
      part[h] += shuffle_xor_f32(part[h], 2);
      sum[h] = FMA(sum[h], kept[h], part[h]);
    }
    UNROLL
    for (int i = 0; i < V_SIZE / 8; i++) UNROLL
    for (int r = 0; r < 4; r++) sums[i][r] *= kept[r / 2];
    UNROLL
    for (int j = 0; j < KEYS / 16; j++) {
      const uint32_t of_w[4] = {PAIR(s[2 * j][0], s[2 * j][1]), PAIR(s[2 * j][2], s[2 * j][3]),
                                PAIR(s[2 * j + 1][0], s[2 * j + 1][1]),
                                PAIR(s[2 * j + 1][2], s[2 * j + 1][3])};
      UNROLL
      for (int i = 0; i < V_SIZE / 8; i += 2) {
        uint32_t of_v[4];
        load_matrices_transposed(
            of_v, values + (j * 16 + LANE % 8 + LANE / 8 % 2 * 8) * V_STEP + i * 8 + LANE / 16 * 8);
        JOINED(MMA_, T)(sums[i], of_w, of_v);
        JOINED(MMA_, T)(sums[i + 1], of_w, of_v + 2);
      }
    }
  }
  WAIT_COPIES(0);
  const bool in_pairs = a.y.column == 1 && (at.y | a.y.row | a.v_size | (int64_t)(a.y.at / 2)) % 2 == 0;
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = first + own + g + h * 8;
    const float all = sum[h], by = a.zero_unseen && all == 0 ? 0.0F : 1 / all;
    if (query >= a.q_len) continue;
    element_t* row = y + at.y + query * a.y.row;
    UNROLL
    for (int i = 0; i < V_SIZE / 8; i++) {
      const int32_t column = i * 8 + two;
      const float low = sums[i][2 * h] * by, high = sums[i][2 * h + 1] * by;
      if (in_pairs && column < a.v_size) {
        *(uint32_t*)(void*)(row + column) = PAIR(low, high);
        continue;
      }
      if (column < a.v_size) STORE(T)(row, column * a.y.column, low);
      if (column + 1 < a.v_size) STORE(T)(row, (column + 1) * a.y.column, high);
    }
  }
}
