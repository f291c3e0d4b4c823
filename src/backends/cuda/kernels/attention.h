// What the kernels of attention have in common: where heads begin, and what becomes of a score.
//
// Options: CAP 1: scores have one; WINDOWED 1: queries see some keys only; MASKS: how many.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_H_

#include "attention_args.h"
#include "elements.h"
#include "vmath.h"

// Weights below the normal numbers are nothing beside a row's largest one, which is 1: 0.
#define NO_SCORE (-POSITIVE_INFINITY)

// Where a head begins in each side.
typedef struct starts {
  int64_t q, k, v, y;
} starts_t;
DEVICE starts_t find_starts(const attention_args_t* a, int64_t head) {
  starts_t s = {a->q.start, a->k.start, a->v.start, a->y.start};
  for (int d = a->n_batch - 1; d >= 0; d--) {
    const int64_t i = take_digit(&head, a->batch[d]);
    s.q += i * a->q.batch[d];
    s.k += i * a->k.batch[d];
    s.v += i * a->v.batch[d];
    s.y += i * a->y.batch[d];
  }
  return s;
}

// What of masks and windows is a query's: each mask's row, and the keys that it sees.
typedef struct query {
  address_t masks[MASKS + 1];
  int32_t low, high;
} query_t;

DEVICE query_t find_query(const attention_args_t* a, int64_t head, int32_t at) {
  query_t q;
  q.low = 0;
  q.high = a->kv_len;
  q.masks[MASKS] = 0;
  for (int i = 0; i < MASKS; i++) {
    const attention_args_mask_t* m = &a->masks[i];
    int64_t left = head * a->q_len + at, row = 0;
    for (int d = m->rank - 1; d >= 0; d--) row += take_digit(&left, m->dims[d]) * m->strides[d];
    q.masks[i] = m->at + (address_t)row * (m->kind ? sizeof(uint8_t) : sizeof(float));
  }
#if WINDOWED
  const int32_t own = at % a->period;
  if (own - a->left > q.low) q.low = own - a->left;
  if (own + a->right + 1 < q.high) q.high = own + a->right + 1;
#endif
  return q;
}

// Whether a query sees keys [key, end).
DEVICE bool sees_all(const query_t* q, int32_t key, int32_t end) {
  return key >= q->low && end <= q->high;
}

// A score behind its scale, cap and masks; -infinity where the query does not see the key. all: it
// sees the whole block, which the caller has asked.
DEVICE float masked(const attention_args_t* a, const query_t* q, int32_t key, bool all, float s) {
  // What is not seen is read as well, where there is memory: behind a branch each, reads would wait
  // for each other.
  const bool seen = all || (key >= q->low && key < q->high);
  const int32_t place = key < a->kv_len ? key : a->kv_len - 1;
  s *= a->scale;
#if CAP
  s = v_tanh(s / a->cap) * a->cap;
#endif
  (void)place;
  UNROLL
  for (int i = 0; i < MASKS; i++) {
    const attention_args_mask_t* m = &a->masks[i];
    const int64_t at = (int64_t)place * m->key;
    if (m->kind == 0)
      s += GLOBAL(const float, q->masks[i])[at];
    else
      s = (GLOBAL(const uint8_t, q->masks[i])[at] != 0) == (m->kind == 1) ? s : m->fill;
  }
  return seen ? s : NO_SCORE;
}

// exp(s - m), where m is the largest score so far; 0 where there is none yet.
DEVICE float weight(float s, float m) { return exp_of_negative(s - (m == NO_SCORE ? 0.0F : m)); }

// The larger one; NaN is none, since it makes the row's sum NaN.
DEVICE float larger(float a, float b) { return b > a ? b : a; }

// Blocks of keys that any query of [first, end) sees: from *low on, before *high.
DEVICE void seen_keys(const attention_args_t* a, int32_t first, int32_t end, int32_t* low,
                      int32_t* high) {
  *low = 0;
  *high = a->kv_len;
  if (!WINDOWED || first / a->period != (end - 1) / a->period) return;
  const int32_t from = first % a->period - a->left, to = (end - 1) % a->period + a->right + 1;
  if (from > 0) *low = from < a->kv_len ? from : a->kv_len - 1;
  if (to < *high) *high = to < 1 ? 1 : to;
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ATTENTION_H_
