// Attention in float32 of heads that are too wide for attention_fma.cu: a block takes QUERIES
// queries of a head and goes over the keys, KEYS at a time, as that one does, but a thread takes
// one key at a time, and sums lie in shared memory. What a query gives depends on nothing but
// sizes.
//
// Options: Q, K, V, Y: types; KEYS, a multiple of 8; TF32 1: queries, keys and values are rounded to
// tf32.
#include "attention.h"

#if TF32
#define FACTOR(x) round_tf32(x)
#else
#define FACTOR(x) (x)
#endif

#define QUERIES 16
#define SHARE 8  // threads of a query
#define N_THREADS (QUERIES * SHARE)

KERNEL(attention_wide, attention_args_t, N_THREADS) {
  DYNAMIC(float, memory);
  const int32_t wide = a.size > a.v_size ? a.size : a.v_size;
  float* queries = memory;                    // [QUERIES][size]
  float* rows = queries + QUERIES * a.size;   // keys or values: [KEYS][wide + 1]
  float* weights = rows + KEYS * (wide + 1);  // [QUERIES][KEYS]
  float* sums = weights + QUERIES * KEYS;     // [QUERIES][v_size]
  const ELEMENT(Q)* q = GLOBAL(const ELEMENT(Q), a.q.at);
  const ELEMENT(K)* k = GLOBAL(const ELEMENT(K), a.k.at);
  const ELEMENT(V)* v = GLOBAL(const ELEMENT(V), a.v.at);
  ELEMENT(Y)* y = GLOBAL(ELEMENT(Y), a.y.at);
  const uint32_t head = DIVIDED((uint32_t)BLOCK, a.tiles);
  const int32_t first = (int32_t)((uint32_t)BLOCK - head * a.tiles.size) * QUERIES;
  const int32_t end = first + QUERIES < a.q_len ? first + QUERIES : a.q_len;
  const int row = THREAD / SHARE, own = THREAD % SHARE;
  const int32_t query = first + row < a.q_len ? first + row : a.q_len - 1;
  const starts_t at = find_starts(&a, head);
  const query_t of_query = find_query(&a, &at, head, query);
  int32_t low, high;
  float m = NO_SCORE, sum = 0;
  seen_keys(&a, first, end, &low, &high);
  WAIT_FOR_INPUTS();
  for (int i = THREAD; i < QUERIES * a.size; i += N_THREADS) {
    const int32_t r = first + i / a.size, c = i % a.size;
    queries[i] = r < a.q_len ? FACTOR(LOAD(Q)(q, at.q + r * a.q.row + c * a.q.column)) : 0.0F;
  }
  for (int i = THREAD; i < QUERIES * a.v_size; i += N_THREADS) sums[i] = 0;
  for (int32_t key = low / KEYS * KEYS; key < high; key += KEYS) {
    SYNC();
    for (int i = THREAD; i < KEYS * a.size; i += N_THREADS) {
      const int32_t r = i / a.size, c = i % a.size;
      rows[r * (wide + 1) + c] =
          key + r < a.kv_len ? FACTOR(LOAD(K)(k, at.k + (key + r) * a.k.row + c * a.k.column)) : 0.0F;
    }
    SYNC();
    float top = m;  // of numbers: NaN makes the row's sum NaN
    for (int j = own; j < KEYS; j += SHARE) {
      float s = 0;
      for (int c = 0; c < a.size; c++)
        s = FMA(queries[row * a.size + c], rows[j * (wide + 1) + c], s);
      s = masked(&a, &of_query, key + j, s);
      weights[row * KEYS + j] = s;
      top = LARGER(top, s);
    }
    for (int lane = SHARE / 2; lane; lane /= 2) top = LARGER(top, shuffle_xor_f32(top, lane));
    float part = 0;
    for (int j = own; j < KEYS; j += SHARE) {
      const float w = weight(weights[row * KEYS + j], top);
      weights[row * KEYS + j] = w;
      part += w;
    }
    for (int lane = SHARE / 2; lane; lane /= 2) part += shuffle_xor_f32(part, lane);
    const float kept = weight(m, top);
    sum = FMA(sum, kept, part);
    m = top;
    SYNC();
    for (int i = THREAD; i < KEYS * a.v_size; i += N_THREADS) {
      const int32_t r = i / a.v_size, c = i % a.v_size;
      rows[r * (wide + 1) + c] =
          key + r < a.kv_len ? FACTOR(LOAD(V)(v, at.v + (key + r) * a.v.row + c * a.v.column)) : 0.0F;
    }
    SYNC();
    const int n = a.kv_len - key < KEYS ? a.kv_len - key : KEYS;
    for (int c = own; c < a.v_size; c += SHARE) {
      float s = sums[row * a.v_size + c] * kept;
      for (int j = 0; j < n; j++) s = FMA(weights[row * KEYS + j], rows[j * (wide + 1) + c], s);
      sums[row * a.v_size + c] = s;
    }
  }
  LAUNCH_NEXT();
  if (first + row >= a.q_len) return;
  const int64_t y_at = at.y + query * a.y.row;
  const float by = a.zero_unseen && sum == 0 ? 0.0F : 1 / sum;
  for (int c = own; c < a.v_size; c += SHARE)
    STORE(Y)(y, y_at + c * a.y.column, sums[row * a.v_size + c] * by);
}
