// Attention on tensor cores (mma.sync), fp16 or bf16: a warp takes 16 queries of a head, and the
// warps of a block share blocks of 64 keys, of which the next one is copied meanwhile. Scores and
// weights stay in registers; weights are rounded to the type where they are multiplied (T. Dao,
// FlashAttention-2, 2023). What a query gives does not depend on how many warps share a block, as
// long as values are finite: of keys that none of them sees, whole blocks are left out.
//
// Options: T: the type of all; SIZE, V_SIZE: those of heads up to multiples of 16, at most 128;
// WHOLE 1: they are such multiples; FAST 1: rows of keys and values lie in pieces of 16 bytes;
// Y_PAIRED 1: two columns of the result from an even one on lie at a multiple of 4 bytes; ONE_BLOCK
// 1: there are no more keys than a block has; WARPS: 1 to 4.
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
DEVICE void load_rows(const attention_side_t* s, const element_t* from, INDEX start, int32_t first,
                      int n, int32_t length, int32_t size, int width, element_t* to) {
  const INDEX row = (INDEX)s->row, column = (INDEX)s->column;
  (void)size, (void)column;
#if FAST
  // Of pieces that are not there nothing is read, wherever that would be.
  const int pieces = width / 8, rows = N_THREADS / pieces;  // that all threads take at once
  if (N_THREADS % pieces == 0 && n % rows == 0) {
    const int32_t r = THREAD / pieces, c = THREAD % pieces * 8;
    const element_t* at = from + (start + (first + r) * row + c);
    // Where columns end, no row has any.
    const int32_t left = WHOLE || c < size ? length - first - r : 0;
    to += r * (width + 8) + c;
    UNROLL
    for (int i = 0; i < n / rows; i++) {
      copy_16(to + i * rows * (width + 8), at, i * rows < left ? 16 : 0);
      at += rows * row;
    }
    return;
  }
  for (int i = THREAD; i < n * width / 8; i += N_THREADS) {
    const int32_t r = i / (width / 8), c = i % (width / 8) * 8;
    const bool inside = first + r < length && (WHOLE || c < size);
    copy_16(to + r * (width + 8) + c, from + (start + (first + r) * row + c), inside ? 16 : 0);
  }
#else
  for (int i = THREAD; i < n * width; i += N_THREADS) {
    const int32_t r = i / width, c = i % width;
    const bool inside = first + r < length && (WHOLE || c < size);
    to[r * (width + 8) + c] =
        inside ? from[start + (first + r) * row + c * column] : (element_t)0;
  }
#endif
}

// What a mask says of a thread's scores: of two queries, pairs of keys.
typedef struct said {
  uint32_t at[2][KEYS / 8][2];
} said_t;

// Masks that are read long before they are needed, as far as there are registers for it.
#define EARLY_MASKS ((SIZE) + (V_SIZE) > 128 ? 1 : 2)

// Of mask i and keys from a thread's first one on, of which so many are left.
DEVICE void read_mask(const query_t* rows, int i, int32_t key, int32_t left, said_t* out) {
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t step = !IS_ALONG_KEYS(i) ? 0 : KIND(i) ? sizeof(uint8_t) : sizeof(float);
    const uint8_t* bytes =
        (const uint8_t*)HELD(GLOBAL(const uint8_t, rows[h].masks[i]) + (INDEX)key * step);
    const uint32_t* words = (const uint32_t*)(const void*)bytes;
    const uint32_t one = IS_ALONG_KEYS(i) ? 0 : KIND(i) ? bytes[0] : words[0];
    UNROLL
    for (int j = 0; j < KEYS / 8; j++) {
      uint32_t* to = out->at[h][j];
      if (h == 1 && !IS_ALONG_QUERIES(i)) {
        to[0] = out->at[0][j][0], to[1] = out->at[0][j][1];
      } else if (!IS_ALONG_KEYS(i)) {
        to[0] = to[1] = one;
      } else if (!IS_PAIRED(i)) {
        UNROLL
        for (int r = 0; r < 2; r++) {
          const int at = j * 8 + r;
          to[r] = at >= left ? 0 : KIND(i) ? bytes[at] : words[at];
        }
      } else if (KIND(i)) {
        const uint32_t two = j * 8 < left ? *(const uint16_t*)(const void*)(bytes + j * 8) : 0;
        to[0] = two & 255, to[1] = two >> 8;
      } else {
        to[0] = to[1] = 0;
        if (j * 8 < left) READ_8(words + j * 8, to);
      }
    }
  }
}

#define STAGE (KEYS * (K_STEP + V_STEP))  // elements: keys, and behind them values
#define FEW_KEYS 16

// What a thread has of its warp's queries, two rows of them. m: the largest score so far.
typedef struct queries {
  uint32_t of_q[SIZE / 16][4];
  float sums[V_SIZE / 8][4], m[2], sum[2];
  query_t rows[2];
  said_t said[MASKS + 1];  // of the block of keys that comes next
} queries_t;

DEVICE void read_early_masks(const attention_args_t* a, queries_t* t, int32_t key) {
  const int32_t own = key + LANE % 4 * 2;
  (void)own;
  UNROLL
  for (int i = 0; i < MASKS && i < EARLY_MASKS; i++)
    read_mask(t->rows, i, own, a->kv_len - own, &t->said[i]);
}

// The scores of `n` keys from `key` on, which lie at `keys`. next: another block of keys follows.
DEVICE void find_scores(const attention_args_t* a, queries_t* t, int n, int32_t key, bool next,
                        const element_t* keys, float (*s)[4]) {
  const int32_t own = key + LANE % 4 * 2;
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) s[j][r] = 0;
  UNROLL
  for (int i = 0; i < SIZE / 16; i++) UNROLL
  for (int j = 0; j < n / 8; j += 2) {
    uint32_t of_k[4];
    load_matrices(of_k,
                  keys + (j * 8 + LANE % 8 + LANE / 16 * 8) * K_STEP + i * 16 + LANE / 8 % 2 * 8);
    JOINED(MMA_, T)(s[j], t->of_q[i], of_k);
    JOINED(MMA_, T)(s[j + 1], t->of_q[i], of_k + 2);
  }
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) s[j][r] = scaled(a, s[j][r]);
  UNROLL
  for (int i = 0; i < MASKS; i++) {
    said_t* said = &t->said[i];
    if (i >= EARLY_MASKS) read_mask(t->rows, i, own, a->kv_len - own, said);
    UNROLL
    for (int j = 0; j < n / 8; j++) UNROLL
    for (int r = 0; r < 4; r++) s[j][r] = told(a, i, said->at[r / 2][j][r % 2], s[j][r]);
  }
  if (next) read_early_masks(a, t, key + KEYS);
  if (sees_all(&t->rows[0], key, key + n) && sees_all(&t->rows[1], key, key + n)) return;
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++)
    if (!sees_all(&t->rows[r / 2], own + j * 8 + r % 2, own + j * 8 + r % 2 + 1))
      s[j][r] = NO_SCORE;
}

// Scores become weights; what was summed up before shrinks as the largest score grows.
DEVICE void weigh(queries_t* t, int n, float (*s)[4]) {
  float top[2] = {t->m[0], t->m[1]};
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) top[r / 2] = LARGER(top[r / 2], s[j][r]);
  float kept[2] = {0, 0}, part[2] = {0, 0};
  UNROLL
  for (int h = 0; h < 2; h++) {
    top[h] = LARGER(top[h], shuffle_xor_f32(top[h], 1));
    top[h] = LARGER(top[h], shuffle_xor_f32(top[h], 2));
    if (!ONE_BLOCK) kept[h] = weight(t->m[h], top[h]);
    t->m[h] = top[h];
  }
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) {
    s[j][r] = weight(s[j][r], top[r / 2]);
    part[r / 2] += s[j][r];
  }
  UNROLL
  for (int h = 0; h < 2; h++) {
    part[h] += shuffle_xor_f32(part[h], 1);
    part[h] += shuffle_xor_f32(part[h], 2);
    t->sum[h] = ONE_BLOCK ? part[h] : FMA(t->sum[h], kept[h], part[h]);
  }
  UNROLL
  for (int i = 0; i < V_SIZE / 8 && !ONE_BLOCK; i++) UNROLL
  for (int r = 0; r < 4; r++) t->sums[i][r] *= kept[r / 2];
}

// Takes `n` keys of a block, a constant: all, or FEW_KEYS where no more are left.
DEVICE void take_keys(const attention_args_t* a, queries_t* t, int n, int32_t key, bool next,
                      const element_t* keys) {
  const element_t* values = keys + KEYS * K_STEP;
  float s[KEYS / 8][4];
  find_scores(a, t, n, key, next, keys, s);
  weigh(t, n, s);
  UNROLL
  for (int j = 0; j < n / 16; j++) {
    const uint32_t of_w[4] = {PAIR(s[2 * j][0], s[2 * j][1]), PAIR(s[2 * j][2], s[2 * j][3]),
                              PAIR(s[2 * j + 1][0], s[2 * j + 1][1]),
                              PAIR(s[2 * j + 1][2], s[2 * j + 1][3])};
    UNROLL
    for (int i = 0; i < V_SIZE / 8; i += 2) {
      uint32_t of_v[4];
      load_matrices_transposed(
          of_v, values + (j * 16 + LANE % 8 + LANE / 8 % 2 * 8) * V_STEP + i * 8 + LANE / 16 * 8);
      JOINED(MMA_, T)(t->sums[i], of_w, of_v);
      JOINED(MMA_, T)(t->sums[i + 1], of_w, of_v + 2);
    }
  }
  if (n == KEYS) return;
  // Keys that are not there have weights and values of 0, which make +0 of -0.
  UNROLL
  for (int i = 0; i < V_SIZE / 8; i++) UNROLL
  for (int r = 0; r < 4; r++) t->sums[i][r] += 0.0F;
}

LARGE_KERNEL(attention_mma, attention_args_t, N_THREADS) {
  DYNAMIC(element_t, stages);  // two
  const element_t* q = GLOBAL(const element_t, a.q.at);
  const element_t* k = GLOBAL(const element_t, a.k.at);
  const element_t* v = GLOBAL(const element_t, a.v.at);
  element_t* y = GLOBAL(element_t, a.y.at);
  const uint32_t head = DIVIDED((uint32_t)BLOCK, a.tiles);
  const int32_t first = (int32_t)((uint32_t)BLOCK - head * a.tiles.size) * QUERIES;
  const int32_t end = first + QUERIES < a.q_len ? first + QUERIES : a.q_len;
  const int g = LANE / 4, two = LANE % 4 * 2, own = THREAD / WARP * 16;
  queries_t t;
  int32_t low, high;
  seen_keys(&a, first, end, &low, &high);
  const starts_t at = find_starts(&a, head);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  // Queries lie where the second block of keys will.
  load_rows(&a.q, q, at.q, first, QUERIES, a.q_len, a.size, SIZE, stages + STAGE);
  COMMIT_COPIES();
  int32_t key = ONE_BLOCK ? 0 : low / KEYS * KEYS;
  load_rows(&a.k, k, at.k, key, KEYS, a.kv_len, a.size, SIZE, stages);
  load_rows(&a.v, v, at.v, key, KEYS, a.kv_len, a.v_size, V_SIZE, stages + KEYS * K_STEP);
  COMMIT_COPIES();
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = first + own + g + h * 8;
    t.rows[h] = find_query(&a, &at, head, query < a.q_len ? query : a.q_len - 1);
    t.m[h] = NO_SCORE;
    t.sum[h] = 0;
  }
  read_early_masks(&a, &t, key);
  WAIT_COPIES(1);
  SYNC();
  UNROLL
  for (int i = 0; i < SIZE / 16; i++)
    load_matrices(t.of_q[i],
                  stages + STAGE + (own + LANE % 16) * K_STEP + i * 16 + LANE / 16 * 8);
  UNROLL
  for (int i = 0; i < V_SIZE / 8; i++) UNROLL
  for (int r = 0; r < 4; r++) t.sums[i][r] = 0;
  for (int now = 0; key < high; key += KEYS, now = 1 - now) {
    const element_t* keys = stages + now * STAGE;
    const bool next = !ONE_BLOCK && key + KEYS < high;
    WAIT_COPIES(0);
    SYNC();
    if (next) {
      element_t* to = stages + (1 - now) * STAGE;
      load_rows(&a.k, k, at.k, key + KEYS, KEYS, a.kv_len, a.size, SIZE, to);
      load_rows(&a.v, v, at.v, key + KEYS, KEYS, a.kv_len, a.v_size, V_SIZE, to + KEYS * K_STEP);
    }
    COMMIT_COPIES();
    if (first + own < a.q_len) {  // a warp with queries
      if (a.kv_len - key > FEW_KEYS)
        take_keys(&a, &t, KEYS, key, next, keys);
      else
        take_keys(&a, &t, FEW_KEYS, key, false, keys);
    }
    if (ONE_BLOCK) break;
  }
  WAIT_COPIES(0);
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = first + own + g + h * 8;
    const float all = t.sum[h], by = a.zero_unseen && all == 0 ? 0.0F : 1 / all;
    if (query >= a.q_len) continue;
    const INDEX row = at.y + query * (INDEX)a.y.row;
    UNROLL
    for (int i = 0; i < V_SIZE / 8; i++) {
      const int32_t column = i * 8 + two;
      const float low = t.sums[i][2 * h] * by, high = t.sums[i][2 * h + 1] * by;
#if Y_PAIRED
      if (WHOLE || column < a.v_size) *(uint32_t*)(void*)(y + (row + column)) = PAIR(low, high);
#else
      if (WHOLE || column < a.v_size) STORE(T)(y, row + column * (INDEX)a.y.column, low);
      if (WHOLE || column + 1 < a.v_size) STORE(T)(y, row + (column + 1) * (INDEX)a.y.column, high);
#endif
    }
  }
}
