// Shapes that say how many parts there are of how many numbers each: heads, groups, windows.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

// A part of the shape is taken to be so many times as many parts of so many times fewer numbers.
static assay_status_t offer(const assay_suspect_t* s, const char* cause,
                            const assay_tensor_t* shape, int at, int64_t first, int64_t second,
                            const assay_trial_t* t, bool* stop) {
  assay_tensor_t* y = NULL;
  char text[160];
  const int64_t* now = assay_i64(shape);
  ASSAY_TRY(assay_tensor_copy(shape, &y));
  assay_i64(y)[at] = first;
  assay_i64(y)[at + 1] = second;
  snprintf(text, sizeof text, "dimensions %d and %d: %lld parts of %lld in place of %lld of %lld",
           at, at + 1, (long long)first, (long long)second, (long long)now[at],
           (long long)now[at + 1]);
  return assay_offer_constant(s, cause, 1, y, text, t, stop);
}

// Whether two dimensions of what comes out are one of what goes in.
static bool is_split(const assay_tensor_t* x, const assay_tensor_t* y, int at) {
  int64_t before = 1, of_x = 1;
  for (int i = 0; i < at; i++) before *= y->dims[i];
  for (int i = 0; i < x->rank; i++) {
    if (of_x == before && x->dims[i] == y->dims[at] * y->dims[at + 1]) return true;
    of_x *= x->dims[i];
  }
  return false;
}

// An axis that is cut into parts: heads of attention, groups of channels. That all that belong
// together are counted alike is a matter of outputs/alike.h. Source: karpathy/minGPT issue 71.
static assay_status_t propose_shape(const assay_suspect_t* s, const char* cause,
                                    const assay_tensor_t* shape, const assay_trial_t* t,
                                    bool* stop) {
  static const int64_t factors[] = {2, 4, 3, 8};
  const int64_t* now = assay_i64(shape);
  for (int at = 1; at + 1 < shape->size; at++) {
    const int64_t a = now[at], b = now[at + 1];
    if (a < 1 || b < 2 || !is_split(s->in[0], s->out[0], at)) continue;
    for (size_t k = 0; k < sizeof factors / sizeof *factors && !*stop; k++) {
      const int64_t f = factors[k];
      if (b % f == 0) ASSAY_TRY(offer(s, cause, shape, at, a * f, b / f, t, stop));
      if (a % f == 0 && !*stop) ASSAY_TRY(offer(s, cause, shape, at, a / f, b * f, t, stop));
    }
    if (a != b && a > 1 && !*stop) ASSAY_TRY(offer(s, cause, shape, at, b, a, t, stop));
  }
  return NULL;
}

assay_status_t assay_propose_parts(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  assay_tensor_t* shape = NULL;
  if (!s->around || *s->node->domain || strcmp(s->node->op_type, "Reshape") != 0 || s->n_in < 2 ||
      !s->in[0] || !s->n_out || !s->out[0])
    return NULL;
  ASSAY_TRY(assay_suspect_constant(s, 1, &shape));
  assay_status_t st = NULL;
  if (shape && shape->store == ASSAY_STORE_I64 && shape->rank == 1 && shape->size > 2 &&
      shape->size == s->out[0]->rank)
    st = propose_shape(s, cause, shape, t, stop);
  assay_tensor_release(shape);
  return st;
}
