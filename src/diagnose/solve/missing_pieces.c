// Slices of values joined along one dimension: a padding that goes round, a border of another kind,
// a column that was put beside.
//
// From the first slice of what is wanted on, the longest run of slices that a value has, forwards
// or backwards, or that hold one number, is a piece; the next begins after it.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { PIECES = 6, CANDIDATES = 48 };

typedef struct piece {
  const assay_missing_other_t* from;  // NULL: what stands at the place
  int64_t begin, step, n;
  bool whole;  // all of the value
} piece_t;

typedef struct pieces {
  assay_missing_search_t* s;
  const assay_missing_place_t* p;
  int axis;
  int64_t outer, inner;
  piece_t at[PIECES];
  int n;
} pieces_t;

static const assay_tensor_t* tensor_of(const pieces_t* k, const assay_missing_other_t* from) {
  return from ? from->tensor : k->p->x;
}

// Whether a value may be joined along the dimension.
static bool may_join(const pieces_t* k, const assay_tensor_t* t) {
  const assay_tensor_t* want = k->p->want;
  if (!t || t->store != want->store || t->rank != want->rank || t->type != want->type) return false;
  for (int i = 0; i < t->rank; i++)
    if (i != k->axis && t->dims[i] != want->dims[i]) return false;
  return t->size > 0;
}

static bool same_slice(const pieces_t* k, const assay_tensor_t* t, int64_t i, int64_t at) {
  const assay_tensor_t* want = k->p->want;
  const size_t bytes = (size_t)k->inner * 8;
  for (int64_t o = 0; o < k->outer; o++) {
    const char* a = (const char*)t->data + (size_t)(o * t->dims[k->axis] + i) * bytes;
    const char* b = (const char*)want->data + (size_t)(o * want->dims[k->axis] + at) * bytes;
    if (memcmp(a, b, bytes) != 0) return false;
  }
  return true;
}

// How many slices from `at` on a value has from its slice `begin` on.
static int64_t run_of(const pieces_t* k, const assay_tensor_t* t, int64_t begin, int64_t step,
                      int64_t at) {
  int64_t n = 0;
  while (at + n < k->p->want->dims[k->axis] && begin + n * step >= 0 &&
         begin + n * step < t->dims[k->axis] && same_slice(k, t, begin + n * step, at + n))
    n++;
  return n;
}

static void try_value(const pieces_t* k, const assay_missing_other_t* from, int64_t at,
                      piece_t* best) {
  const assay_tensor_t* t = tensor_of(k, from);
  for (int64_t i = 0; may_join(k, t) && i < t->dims[k->axis]; i++) {
    if (!same_slice(k, t, i, at)) continue;
    for (int64_t step = 1; step >= -1; step -= 2) {
      const int64_t n = run_of(k, t, i, step, at);
      if (n > best->n)
        *best = (piece_t){.from = from,
                          .begin = i,
                          .step = step,
                          .n = n,
                          .whole = step == 1 && i == 0 && n == t->dims[k->axis]};
    }
  }
}

// Splits what is wanted; false: some of it is in no value.
static bool split(pieces_t* k) {
  const assay_missing_search_t* s = k->s;
  k->n = 0;
  for (int64_t at = 0; at < k->p->want->dims[k->axis];) {
    piece_t best = {0};
    if (k->p->x && !k->p->source) try_value(k, NULL, at, &best);
    for (size_t i = 0, n = 0; i < s->n_others && n < CANDIDATES; i++) {
      if (!may_join(k, s->others[i].tensor)) continue;
      n++;
      try_value(k, &s->others[i], at, &best);
    }
    if (!best.n || k->n == PIECES) return false;
    k->at[k->n++] = best;
    at += best.n;
  }
  return true;
}

// As numbers of Slice: what reaches an end is counted from there, whatever the size.
static void slice_of(const piece_t* p, int axis, int64_t size, int64_t* out) {
  const int64_t end = p->begin + p->step * p->n;
  out[0] = axis;
  out[3] = p->step;
  out[1] = p->step > 0 && end == size ? p->begin - size : p->begin;
  out[2] = end;
  if (p->step > 0 && end == size) out[2] = INT64_MAX;
  if (p->step < 0 && p->begin == size - 1) out[1] = -1;
  if (p->step < 0 && end < 0) out[2] = INT64_MIN;
  if (p->step > 0 && p->begin == 0) out[1] = 0;
}

static assay_status_t try_pieces(const pieces_t* k) {
  char program[ASSAY_FORMULA_TEXT] = "", text[160];
  assay_formula_terms_t terms = {.program = program};
  size_t used = 0;
  int values = 0;
  for (int i = 0; i < k->n; i++) {
    const piece_t* p = &k->at[i];
    char word[8] = "x";
    int64_t list[4];
    if (p->from) {
      int v = 0;
      while (v < values && terms.more[v] != p->from->value) v++;
      if (v == ASSAY_FORMULA_MORE) return NULL;
      if (v == values) terms.more[values++] = p->from->value;
      snprintf(word, sizeof word, "w:%d", v);
    }
    used = assay_formula_append(program, used, word, NULL, 0);
    slice_of(p, k->axis, tensor_of(k, p->from)->dims[k->axis], list);
    if (!p->whole) used = assay_formula_append(program, used, "slice", list, 4);
  }
  const int64_t join[] = {k->axis, k->n};
  if (k->n > 1) used = assay_formula_append(program, used, "concat", join, 2);
  // A slice that takes the whole value is not a part of it.
  if (used >= sizeof program || (k->n == 1 && k->at[0].whole)) return NULL;
  if (k->n == 1)
    snprintf(text, sizeof text, "elements %lld to %lld of dimension %d of '%.60s'",
             (long long)k->at[0].begin,
             (long long)(k->at[0].begin + (k->at[0].n - 1) * k->at[0].step), k->axis,
             k->at[0].from ? k->at[0].from->value->name : "what is there");
  else
    snprintf(text, sizeof text, "%d pieces joined along dimension %d", k->n, k->axis);
  return assay_missing_try(k->s, k->p, &terms, "missing nodes", text);
}

assay_status_t assay_missing_pieces(assay_missing_search_t* s, const assay_missing_place_t* p) {
  static const int64_t MOST = 1 << 22;
  pieces_t k = {.s = s, .p = p};
  if (!p->want || p->want->kind != ASSAY_KIND_TENSOR || p->want->store > ASSAY_STORE_I64 ||
      p->want->size < 4 || p->want->size > MOST)
    return NULL;
  for (k.axis = 0; k.axis < p->want->rank && !assay_missing_is_over(s); k.axis++) {
    k.outer = assay_dims_product(p->want->dims, 0, k.axis);
    k.inner = assay_dims_product(p->want->dims, k.axis + 1, p->want->rank);
    if (p->want->dims[k.axis] > 1 && split(&k)) ASSAY_TRY(try_pieces(&k));
  }
  return NULL;
}
