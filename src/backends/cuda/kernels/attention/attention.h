// What the kernels of attention have in common: where heads begin, and what becomes of a score.
//
// Options: BATCH: dimensions of the batch; INDEX: int32_t or int64_t, which counts elements of any
// operand; CAP 1: scores have one; WINDOWED 1: queries see some keys only; GROUPED 1: places of
// queries begin anew after a period; MASKS: how many. Of masks, a digit in base 16 or a bit for
// each: KINDS 0: floats that are added, 1: bytes, where 0 the score is `fill`, 2: where not 0;
// ALONG_KEYS: keys lie side by side, else one element is for all; ALONG_QUERIES: queries have their
// own rows, else one is for all of a head; PAIRED: two keys from an even one on lie at a multiple
// of their size. WALKED 1: the batch does not divide masks into dimensions, which they count alone.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_

#include "attention_args.h"
#include "elements.h"
#include "vmath.h"

// Weights below the normal numbers are nothing beside a row's largest one, which is 1: 0.
#define NO_SCORE (-POSITIVE_INFINITY)

#define KIND(mask) (KINDS >> 4 * (mask)&15)
#define IS_ALONG_KEYS(mask) (ALONG_KEYS >> (mask)&1)
#define IS_ALONG_QUERIES(mask) (ALONG_QUERIES >> (mask)&1)
#define IS_PAIRED(mask) (PAIRED >> (mask)&1)

// Where a head begins in each side, and in each mask.
typedef struct starts {
  INDEX q, k, v, y, masks[MASKS + 1];
} starts_t;

DEVICE starts_t find_starts(const attention_args_t* a, uint32_t head) {
  starts_t s;
  s.q = (INDEX)a->q.start;
  s.k = (INDEX)a->k.start;
  s.v = (INDEX)a->v.start;
  s.y = (INDEX)a->y.start;
  UNROLL
  for (int i = 0; i <= MASKS; i++) s.masks[i] = 0;
  UNROLL
  for (int d = BATCH - 1; d >= 0; d--) {
    const uint32_t rest = d ? DIVIDED(head, a->batch[d]) : 0;
    const INDEX i = (INDEX)(head - rest * a->batch[d].size);
    head = rest;
    s.q += i * (INDEX)a->q.batch[d];
    s.k += i * (INDEX)a->k.batch[d];
    s.v += i * (INDEX)a->v.batch[d];
    s.y += i * (INDEX)a->y.batch[d];
    UNROLL
    for (int m = 0; m < MASKS && !WALKED; m++) s.masks[m] += i * (INDEX)a->masks[m].strides[d];
  }
  return s;
}

// What of masks and windows is a query's: each mask's row, and the keys that it sees.
typedef struct query {
  address_t masks[MASKS + 1];
  int32_t low, high;
} query_t;

// at: its place in the head, which begins at `starts`.
DEVICE query_t find_query(const attention_args_t* a, const starts_t* starts, uint32_t head,
                          int32_t at) {
  query_t q;
  const uint32_t group = GROUPED ? DIVIDED((uint32_t)at, a->period) : 0;
  const int32_t own = at - (int32_t)(group * a->period.size);
  q.low = 0;
  q.high = a->kv_len;
  q.masks[MASKS] = 0;
  (void)starts, (void)head, (void)own;
  UNROLL
  for (int i = 0; i < MASKS; i++) {
    const attention_args_mask_t* m = &a->masks[i];
    int64_t place;
#if WALKED
    int64_t left = (int64_t)head * a->q_len + at;
    place = 0;
    for (int d = m->rank - 1; d >= 0; d--) place += take_digit(&left, m->dims[d]) * m->strides[d];
#else
    INDEX row = starts->masks[i];
    if (IS_ALONG_QUERIES(i)) row += own * (INDEX)m->row;
    if (IS_ALONG_QUERIES(i) && GROUPED) row += (INDEX)group * (INDEX)m->group;
    place = row;
#endif
    q.masks[i] = m->at + (address_t)place * (KIND(i) ? sizeof(uint8_t) : sizeof(float));
  }
#if WINDOWED
  if (own - a->left > q.low) q.low = own - a->left;
  if (own + a->right + 1 < q.high) q.high = own + a->right + 1;
#endif
  return q;
}

// Whether a query sees keys [key, end).
DEVICE bool sees_all(const query_t* q, int32_t key, int32_t end) {
  return key >= q->low && end <= q->high;
}

DEVICE float scaled(const attention_args_t* a, float s) {
  s *= a->scale;
#if CAP
  s = v_tanh(s / a->cap) * a->cap;
#endif
  return s;
}

// A score behind mask i: said: what lies there for its query and key, a byte or the bits of a
// float.
DEVICE float told(const attention_args_t* a, int i, uint32_t said, float s) {
  (void)a;
  if (KIND(i) == 0) return s + float_of(said);
  return (said != 0) == (KIND(i) == 1) ? s : a->masks[i].fill;
}

// A score behind its scale, cap and masks; -infinity where the query does not see the key.
DEVICE float masked(const attention_args_t* a, const query_t* q, int32_t key, float s) {
  // What is not seen is read as well, where there is memory: behind a branch each, reads would wait
  // for each other.
  const int32_t place = key < a->kv_len ? key : a->kv_len - 1;
  (void)place;
  s = scaled(a, s);
  UNROLL
  for (int i = 0; i < MASKS; i++) {
    const int32_t at = IS_ALONG_KEYS(i) ? place : 0;
    const uint32_t said = KIND(i) ? GLOBAL(const uint8_t, q->masks[i])[at]
                                  : bits_of(GLOBAL(const float, q->masks[i])[at]);
    s = told(a, i, said, s);
  }
  return sees_all(q, key, key + 1) ? s : NO_SCORE;
}

// exp(s - m), where m is the largest score so far; 0 where there is none yet.
DEVICE float weight(float s, float m) { return exp_of_negative(s - (m == NO_SCORE ? 0.0F : m)); }

// Blocks of keys that any query of [first, end) sees: from *low on, before *high.
DEVICE void seen_keys(const attention_args_t* a, int32_t first, int32_t end, int32_t* low,
                      int32_t* high) {
  *low = 0;
  *high = a->kv_len;
#if WINDOWED
  const uint32_t group = DIVIDED((uint32_t)first, a->period);
  if (group != DIVIDED((uint32_t)end - 1, a->period)) return;
  const int32_t before = (int32_t)(group * a->period.size);
  const int32_t from = first - before - a->left, to = end - 1 - before + a->right + 1;
  if (from > 0) *low = from < a->kv_len ? from : a->kv_len - 1;
  if (to < *high) *high = to < 1 ? 1 : to;
#else
  (void)first, (void)end;
#endif
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_ATTENTION_H_
