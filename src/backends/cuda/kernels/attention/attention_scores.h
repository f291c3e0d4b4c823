// What becomes of scores of 16 queries of a warp, which lie as tensor cores give them: masks, what
// queries see, and weights, which stay in registers (T. Dao, FlashAttention-2, 2023).
//
// Options: T: the type of all; V_SIZE: a head's values up to a multiple of 16, at most 128; KEYS:
// of a block; ONE_BLOCK 1: there are no more keys than a block has; EXP2 1: weights are those of
// exp2_weights.h; FOLDED 1, of these: scores are their products only, whose scale is in
// a->exponent.
//
// Who includes this may say EARLY_MASKS: so many masks are read before their scores are there.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_SCORES_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_SCORES_H_

#include "attention.h"
#include "exp2_weights.h"

typedef ELEMENT(T) element_t;

// What a mask says of a thread's scores: of two queries, pairs of keys.
typedef struct said {
  uint32_t at[2][KEYS / 8][2];
} said_t;

// A lone mask is added to products while these are scaled. Where a window is one, too, it may have
// been a mask, which must not make a difference.
#define ADDS_SCALED (EXP2 && MASKS == 1 && KINDS == 0 && !WINDOWED && !CAP)

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

// What a thread has of its warp's queries, two rows of them. m: the largest score so far. sum: of
// weights; with EXP2, of its own keys.
typedef struct queries {
  float sums[V_SIZE / 8][4], sum[2];
#if EXP2
  reference_t m[2];
#else
  float m[2];
#endif
  query_t rows[2];
  said_t said[MASKS + 1];  // of the block of keys that comes next
} queries_t;

// Of queries from `first` on, whose head has number `head` and begins at `at`.
DEVICE void begin_queries(const attention_args_t* a, const starts_t* at, uint32_t head,
                          int32_t first, queries_t* t) {
  UNROLL
  for (int h = 0; h < 2; h++) {
    const int32_t query = first + LANE / 4 + h * 8;
    t->rows[h] = find_query(a, at, head, query < a->q_len ? query : a->q_len - 1);
#if EXP2
    t->m[h] = no_reference();
#else
    t->m[h] = NO_SCORE;
#endif
    t->sum[h] = 0;
  }
}

// Late, where no registers are needed for what comes before the first block of keys any more.
DEVICE void begin_sums(queries_t* t) {
  UNROLL
  for (int i = 0; i < V_SIZE / 8; i++) UNROLL
  for (int r = 0; r < 4; r++) t->sums[i][r] = 0;
}

DEVICE void read_early_masks(const attention_args_t* a, queries_t* t, int32_t key) {
  const int32_t own = key + LANE % 4 * 2;
  (void)own;
  UNROLL
  for (int i = 0; i < MASKS && i < EARLY_MASKS; i++)
    read_mask(t->rows, i, own, a->kv_len - own, &t->said[i]);
}

// A thread's first one of keys from `key` on.
DEVICE int32_t own_key(int32_t key) { return key + LANE % 4 * 2; }

// Products with `n` keys from `key` on, a constant, become scores. s[j]: of keys own + j * 8 and
// the one behind it, for the thread's first query, then for the second; own: own_key of `key`,
// which is worked out before the products. next: another block of keys follows.
DEVICE void find_scores(const attention_args_t* a, queries_t* t, int n, int32_t key, int32_t own,
                        bool next, float (*s)[4]) {
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

// The head and the tile of queries that the block has.
DEVICE void find_tile(const attention_args_t* a, uint32_t* head, uint32_t* tile) {
  *head = DIVIDED((uint32_t)BLOCK, a->tiles);
  *tile = (uint32_t)BLOCK - *head * a->tiles.size;
  if (WINDOWED && a->last_first) {
    *tile = DIVIDED((uint32_t)BLOCK, a->heads);
    *head = (uint32_t)BLOCK - *tile * a->heads.size;
    *tile = a->tiles.size - 1 - *tile;
  }
}

// What sums of query h are multiplied by in the end.
DEVICE float find_factor(const attention_args_t* a, const queries_t* t, int h) {
  float all = t->sum[h];
#if EXP2
  all += shuffle_xor_f32(all, 1);
  all += shuffle_xor_f32(all, 2);
#endif
  return a->zero_unseen && all == 0 ? 0.0F : 1 / all;
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_SCORES_H_
