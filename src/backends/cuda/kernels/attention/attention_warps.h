// Attention on tensor cores (mma.sync), of any type: a warp takes 16 queries of a head, and the
// warps of a block share blocks of keys, of which the next one is copied meanwhile. Scores and
// weights stay in registers (T. Dao, FlashAttention-2, 2023). What a query gives does not depend on
// how many warps share a block, as long as values are finite: of keys that none of them sees, whole
// blocks are left out.
//
// Options: T: the type of all; SIZE, V_SIZE: those of heads up to multiples of 16, at most 128;
// WHOLE 1: they are such multiples; FAST 1: rows of keys and values lie in pieces of 16 bytes;
// KEYS: of a block, 32 or 64; ONE_BLOCK 1: there are no more keys than a block has; WARPS: 1 to 4;
// Q_STAYS 1: queries are read from shared memory for each block of keys, behind as many blocks of
// keys as there are, two at most; 0: they are kept in registers; EXP2 1: weights are those of
// exp2_weights.h; FOLDED 1, of these: scores are their products only, whose scale is in
// a->exponent.
//
// Who includes this says PIECE, elements of 16 bytes, defines the four functions that are declared
// below, and calls attend from its kernel.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_WARPS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_WARPS_H_

#include "attention.h"
#include "exp2_weights.h"

#define N_THREADS (32 * WARPS)
#define QUERIES (16 * WARPS)
#define TERMS (2 * PIECE)      // of a product of matrices
#define K_STEP (SIZE + PIECE)  // between rows in shared memory: eight rows lie in different banks
#define V_STEP (V_SIZE + PIECE)

typedef ELEMENT(T) element_t;

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

// What a mask says of a thread's scores: of two queries, pairs of keys.
typedef struct said {
  uint32_t at[2][KEYS / 8][2];
} said_t;

// A lone mask is added to products while these are scaled. Where a window is one, too, it may have
// been a mask, which must not make a difference.
#define ADDS_SCALED (EXP2 && MASKS == 1 && KINDS == 0 && !WINDOWED && !CAP)

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

// What a thread has of its warp's queries, two rows of them. m: the largest score so far. sum: of
// weights; with EXP2, of its own keys.
typedef struct queries {
  const element_t* q;              // its warp's first row of queries
  uint32_t of_q[SIZE / TERMS][4];  // Q_STAYS: not there
  float sums[V_SIZE / 8][4], sum[2];
#if EXP2
  reference_t m[2];
#else
  float m[2];
#endif
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

// The queries of a warp for terms from i * TERMS on.
DEVICE void read_queries(const queries_t* t, int i, uint32_t* words) {
  load_matrices(words, t->q + (LANE % 16) * K_STEP + i * TERMS + LANE / 16 * PIECE);
}

// ---- what of it depends on the type -------------------------------------------------------------

// Four words of queries, as they are multiplied.
DEVICE void prepare_queries(uint32_t* words);
// Products with `n` keys, a constant, which lie at `keys`; s[j]: of keys j * 8 + LANE % 4 * 2 and
// the one behind it, for the thread's first query, then for the second.
DEVICE void multiply_keys(const queries_t* t, int n, const element_t* keys, float (*s)[4]);
// Adds to t->sums the values at `values` by their weights, laid out as scores.
DEVICE void multiply_values(queries_t* t, int n, float (*weights)[4], const element_t* values);
// Writes the thread's part of a row of the result, of query h, times `by`.
DEVICE void put_row(const attention_args_t* a, const queries_t* t, int h, float by, element_t* y,
                    INDEX row);

// ---- blocks of keys -----------------------------------------------------------------------------

// The scores of `n` keys from `key` on, which lie at `keys`. next: another block of keys follows.
DEVICE void find_scores(const attention_args_t* a, queries_t* t, int n, int32_t key, bool next,
                        const element_t* keys, float (*s)[4]) {
  const int32_t own = key + LANE % 4 * 2;
  multiply_keys(t, n, keys, s);
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4 && !FOLDED && !ADDS_SCALED; r++) s[j][r] = scaled(a, s[j][r]);
  UNROLL
  for (int i = 0; i < MASKS; i++) {
    said_t* said = &t->said[i];
    if (i >= EARLY_MASKS) read_mask(t->rows, i, own, a->kv_len - own, said);
    UNROLL
    for (int j = 0; j < n / 8; j++) UNROLL
    for (int r = 0; r < 4; r++) {
      const uint32_t at = said->at[r / 2][j][r % 2];
      s[j][r] = ADDS_SCALED ? FMA(s[j][r], a->scale, float_of(at)) : told(a, i, at, s[j][r]);
    }
  }
  if (next) read_early_masks(a, t, key + KEYS);
  if (sees_all(&t->rows[0], key, key + n) && sees_all(&t->rows[1], key, key + n)) return;
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++)
    if (!sees_all(&t->rows[r / 2], own + j * 8 + r % 2, own + j * 8 + r % 2 + 1))
      s[j][r] = NO_SCORE;
}

#if EXP2
DEVICE void rescale(queries_t* t, const float* by) {
  UNROLL
  for (int h = 0; h < 2; h++) t->sum[h] *= by[h];
  UNROLL
  for (int i = 0; i < V_SIZE / 8; i++) UNROLL
  for (int r = 0; r < 4; r++) t->sums[i][r] *= by[r / 2];
}

// top: the largest one of the thread's own scores. Rows whose scores outgrow what they refer to
// refer to the largest of all, each on its own: that a warp has none of them changes no bits.
DEVICE void raise_references(const attention_args_t* a, queries_t* t, float* top) {
  bool any = false;
  UNROLL
  for (int h = 0; h < 2; h++) any |= outgrows(&t->m[h], top[h], a->growth);
  if (!ONE_BLOCK && !any_lane(any)) return;
  float kept[2] = {1, 1};
  UNROLL
  for (int h = 0; h < 2; h++) {
    top[h] = LARGER(top[h], shuffle_xor_f32(top[h], 1));
    top[h] = LARGER(top[h], shuffle_xor_f32(top[h], 2));
    if (outgrows(&t->m[h], top[h], a->growth)) kept[h] = refer_to(&t->m[h], top[h], a->exponent);
  }
  if (!ONE_BLOCK) rescale(t, kept);
}

// Scores become weights.
DEVICE void weigh(const attention_args_t* a, queries_t* t, int n, float (*s)[4]) {
  float four[4] = {s[0][0], s[0][1], s[0][2], s[0][3]}, shift[2], part[2] = {0, 0};
  UNROLL
  for (int j = 1; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) four[r] = LARGER(four[r], s[j][r]);
  float top[2] = {LARGER(four[0], four[1]), LARGER(four[2], four[3])};
  raise_references(a, t, top);
  UNROLL
  for (int h = 0; h < 2; h++) {
    shift[h] = shift_of(&t->m[h]);
    if (is_far(&t->m[h])) UNROLL
    for (int j = 0; j < n / 8; j++) UNROLL
    for (int r = 2 * h; r < 2 * h + 2; r++) s[j][r] -= t->m[h].score;
  }
  UNROLL
  for (int j = 0; j < n / 8; j++) UNROLL
  for (int r = 0; r < 4; r++) {
    s[j][r] = weight_of(s[j][r], a->exponent, shift[r / 2]);
    part[r / 2] += s[j][r];
  }
  UNROLL
  for (int h = 0; h < 2; h++) t->sum[h] += part[h];
}
#else
// Scores become weights; what was summed up before shrinks as the largest score grows.
DEVICE void weigh(const attention_args_t* a, queries_t* t, int n, float (*s)[4]) {
  float top[2] = {t->m[0], t->m[1]};
  (void)a;
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
#endif

// Takes `n` keys of a block, a constant: all, or FEW_KEYS where no more are left.
DEVICE void take_keys(const attention_args_t* a, queries_t* t, int n, int32_t key, bool next,
                      const element_t* keys) {
  float s[KEYS / 8][4];
  find_scores(a, t, n, key, next, keys, s);
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
  uint32_t head = DIVIDED((uint32_t)BLOCK, a->tiles), tile = (uint32_t)BLOCK - head * a->tiles.size;
  if (WINDOWED && a->last_first) {
    tile = DIVIDED((uint32_t)BLOCK, a->heads);
    head = (uint32_t)BLOCK - tile * a->heads.size;
    tile = a->tiles.size - 1 - tile;
  }
  const int32_t first = (int32_t)tile * QUERIES;
  const int32_t end = first + QUERIES < a->q_len ? first + QUERIES : a->q_len;
  const int own = THREAD / WARP * 16;
  queries_t t;
  int32_t low, high;
  seen_keys(a, first, end, &low, &high);
  const starts_t at = find_starts(a, head);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  element_t* queries = stages + (Q_STAYS && !ONE_BLOCK ? 2 : 1) * STAGE;
  t.q = queries + own * K_STEP;
  load_rows(&a->q, q, at.q, first, QUERIES, a->q_len, a->size, SIZE, queries);
  COMMIT_COPIES();
  int32_t key = ONE_BLOCK ? 0 : low / KEYS * KEYS;
  load_rows(&a->k, k, at.k, key, KEYS, a->kv_len, a->size, SIZE, stages);
  load_rows(&a->v, v, at.v, key, KEYS, a->kv_len, a->v_size, V_SIZE, stages + KEYS * K_STEP);
  COMMIT_COPIES();
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = first + own + LANE / 4 + h * 8;
    t.rows[h] = find_query(a, &at, head, query < a->q_len ? query : a->q_len - 1);
#if EXP2
    t.m[h] = no_reference();
#else
    t.m[h] = NO_SCORE;
#endif
    t.sum[h] = 0;
  }
  read_early_masks(a, &t, key);
#if !Q_STAYS
  WAIT_COPIES(1);
  SYNC();
  UNROLL
  for (int i = 0; i < SIZE / TERMS; i++) {
    read_queries(&t, i, t.of_q[i]);
    prepare_queries(t.of_q[i]);
  }
#endif
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
      load_rows(&a->k, k, at.k, key + KEYS, KEYS, a->kv_len, a->size, SIZE, to);
      load_rows(&a->v, v, at.v, key + KEYS, KEYS, a->kv_len, a->v_size, V_SIZE, to + KEYS * K_STEP);
    }
    COMMIT_COPIES();
    if (first + own < a->q_len) {  // a warp with queries
      if (a->kv_len - key > FEW_KEYS)
        take_keys(a, &t, KEYS, key, next, keys);
      else
        take_keys(a, &t, FEW_KEYS, key, false, keys);
    }
    if (ONE_BLOCK) break;
  }
  WAIT_COPIES(0);
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = first + own + LANE / 4 + h * 8;
#if EXP2
    t.sum[h] += shuffle_xor_f32(t.sum[h], 1);
    t.sum[h] += shuffle_xor_f32(t.sum[h], 2);
#endif
    const float all = t.sum[h], by = a->zero_unseen && all == 0 ? 0.0F : 1 / all;
    if (query < a->q_len) put_row(a, &t, h, by, y, at.y + query * (INDEX)a->y.row);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_WARPS_H_
