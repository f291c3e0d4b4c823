// Masks: constants of two numbers, one for what is seen and one for what is not, that begin one
// place too early or too late, or have the two in each other's place.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { MANY = 1 << 20 };  // elements; larger masks are left alone

static size_t elem_bytes(const assay_tensor_t* x) { return assay_store_elem_bytes(x->store); }

static const char* at(const assay_tensor_t* x, int64_t i) {
  return (const char*)x->data + (size_t)i * elem_bytes(x);
}

// The first element that is not the first one's equal, if all are one of the two; -1: they are not.
static int64_t find_other(const assay_tensor_t* x) {
  const size_t bytes = elem_bytes(x);
  int64_t other = -1;
  for (int64_t i = 1; i < x->size; i++) {
    if (memcmp(at(x, i), at(x, 0), bytes) == 0) continue;
    if (other < 0)
      other = i;
    else if (memcmp(at(x, i), at(x, other), bytes) != 0)
      return -1;
  }
  return other;
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input,
                            assay_tensor_t* take, const char* text, const assay_trial_t* t,
                            bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = input;
  r.edits[0].tensor = take;
  snprintf(r.text, sizeof r.text, "the mask '%.100s' %s", s->node->inputs[input]->name, text);
  return assay_offer(t, &r, stop);
}

// Element i along the axis is what stood at i - step; at the edge the last one is repeated, as in a
// band that moves.
static assay_status_t offer_band(const assay_suspect_t* s, const char* cause, size_t input,
                                 const assay_tensor_t* x, int axis, int64_t step,
                                 const assay_trial_t* t, bool* stop) {
  assay_tensor_t* y = NULL;
  char text[80];
  const int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank), d = x->dims[axis];
  const size_t bytes = (size_t)inner * elem_bytes(x);
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t k = 0; k < x->size / inner; k++) {
    int64_t from = k % d - step;
    from = from < 0 ? 0 : from >= d ? d - 1 : from;
    memcpy((char*)y->data + (size_t)k * bytes, at(x, ((k / d) * d + from) * inner), bytes);
  }
  snprintf(text, sizeof text, "moved by %+lld along axis %d", (long long)step, axis);
  return offer(s, cause, input, y, text, t, stop);
}

// Element (i, j) of the last two axes, of those that stand side by side in matrix m.
static const char* element(const assay_tensor_t* x, int64_t m, int64_t i, int64_t j) {
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  return at(x, (m * rows + i) * columns + j);
}

// Whether all diagonals are of one number each, as those of causal masks and bands are.
static bool has_diagonals(const assay_tensor_t* x) {
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  for (int64_t m = 0; m < x->size / (rows * columns); m++)
    for (int64_t i = 1; i < rows; i++)
      for (int64_t j = 1; j < columns; j++)
        if (memcmp(element(x, m, i, j), element(x, m, i - 1, j - 1), elem_bytes(x)) != 0)
          return false;
  return true;
}

// Each diagonal is what the one `step` to the right of it was; the last one is repeated.
static assay_status_t offer_diagonal(const assay_suspect_t* s, const char* cause, size_t input,
                                     const assay_tensor_t* x, int64_t step, const assay_trial_t* t,
                                     bool* stop) {
  const int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  assay_tensor_t* y = NULL;
  char text[80];
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t e = 0; e < x->size; e++) {
    const int64_t i = e / columns % rows, j = e % columns;
    int64_t k = j - i + step;
    k = k < 1 - rows ? 1 - rows : k >= columns ? columns - 1 : k;
    memcpy((char*)y->data + (size_t)e * elem_bytes(x),
           element(x, e / (rows * columns), k < 0 ? -k : 0, k < 0 ? 0 : k), elem_bytes(x));
  }
  snprintf(text, sizeof text, "with its diagonal moved by %+lld", (long long)-step);
  return offer(s, cause, input, y, text, t, stop);
}

static assay_status_t offer_inverted(const assay_suspect_t* s, const char* cause, size_t input,
                                     const assay_tensor_t* x, int64_t other, const assay_trial_t* t,
                                     bool* stop) {
  const size_t bytes = elem_bytes(x);
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t i = 0; i < x->size; i++) {
    const bool is_first = memcmp(at(x, i), at(x, 0), bytes) == 0;
    memcpy((char*)y->data + (size_t)i * bytes, at(x, is_first ? other : 0), bytes);
  }
  return offer(s, cause, input, y, "inverted", t, stop);
}

// The last two axes exchanged: what was to see what comes before sees what comes after.
static assay_status_t offer_turned(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  const int64_t n = x->dims[x->rank - 1];
  const size_t bytes = elem_bytes(x);
  assay_tensor_t* y = NULL;
  if (x->dims[x->rank - 2] != n) return NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t i = 0; i < x->size; i++) {
    const int64_t from = i / (n * n) * (n * n) + (i % n) * n + i / n % n;
    memcpy((char*)y->data + (size_t)i * bytes, at(x, from), bytes);
  }
  return offer(s, cause, input, y, "with its last two axes exchanged", t, stop);
}

static assay_status_t offer_all(const assay_suspect_t* s, const char* cause, size_t input,
                                const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  const int64_t other = find_other(x);
  if (other < 0) return NULL;
  ASSAY_TRY(offer_inverted(s, cause, input, x, other, t, stop));
  const bool diagonals = x->rank >= 2 && has_diagonals(x);
  for (int64_t step = -1; diagonals && step <= 1 && !*stop; step += 2)
    ASSAY_TRY(offer_diagonal(s, cause, input, x, step, t, stop));
  for (int axis = x->rank - 2; x->rank >= 2 && !diagonals && axis < x->rank; axis++)
    for (int64_t step = -1; step <= 1 && !*stop; step += 2)
      if (x->dims[axis] > 2) ASSAY_TRY(offer_band(s, cause, input, x, axis, step, t, stop));
  return x->rank >= 2 && !*stop ? offer_turned(s, cause, input, x, t, stop) : NULL;
}

// Sources: the diagonal of Trilu, onnx/onnx issue 8068; masks of True for what is seen and for what
// is not, pytorch/pytorch pull request 165780.
assay_status_t assay_propose_mask(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    if (x && x->store <= ASSAY_STORE_I64 && x->size >= 4 && x->size <= MANY)
      st = offer_all(s, cause, i, x, t, stop);
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}
