// Outputs judged by slices: what the statistics of a whole output cannot show.
#include "account/verdict/slices.h"

#include <math.h>

#include "base/alloc.h"

enum { AXES = 2, MAX_SLICES = 1 << 14, MIN_ELEMENTS = 32 };

// A slice varies if an eighth of its steps from one element to the next are at least a 64th of its
// size, and all of it by a 16th: bfloat16 can tell these apart. Below SMALLEST of the output's size
// it may vanish in formats that are right otherwise (a softmax in fp16).
static const double STEP = 1. / 64, SPAN = 1. / 16, SMALLEST = 1e-5;
static const int64_t STEPS = 8;
// Slices are small from this part of the largest one's RMS on.
static const double SMALL = 0.01;

typedef struct slice {
  int64_t n, steps;
  double error2, ref2, ref_min, ref_max, got_min, got_max, last;
} slice_t;

struct assay_slices {
  int rank;
  int axis[AXES];
  int64_t n[AXES];
  slice_t* at[AXES];
  double largest;  // |ref|
};

assay_status_t assay_slices_create(assay_slices_t** out) { return ASSAY_NEW(out); }

void assay_slices_destroy(assay_slices_t* s) {
  for (int k = 0; s && k < AXES; k++) assay_free(s->at[k]);
  assay_free(s);
}

// Channels lie along axis 1, or the last one.
static assay_status_t begin(assay_slices_t* s, const assay_tensor_t* t) {
  const int axes[AXES] = {t->rank > 1 ? 1 : -1, t->rank > 2 ? t->rank - 1 : -1};
  s->rank = t->rank;
  for (int k = 0; k < AXES; k++) {
    const int64_t n = axes[k] > 0 ? t->dims[axes[k]] : 0;
    if (n < 2 || n > MAX_SLICES) continue;
    ASSAY_TRY(assay_new_array((size_t)n, sizeof *s->at[k], &s->at[k]));
    s->axis[k] = axes[k];
    s->n[k] = n;
  }
  return NULL;
}

static void add_element(slice_t* s, double got, double ref) {
  if (!s->n) {
    s->ref_min = s->ref_max = s->last = ref;
    s->got_min = s->got_max = got;
  }
  s->n++;
  s->ref_min = fmin(s->ref_min, ref);
  s->ref_max = fmax(s->ref_max, ref);
  s->got_min = fmin(s->got_min, got);
  s->got_max = fmax(s->got_max, got);
  s->steps += fabs(ref - s->last) > STEP * fmax(fabs(s->ref_min), fabs(s->ref_max));
  s->last = ref;
  s->error2 += (got - ref) * (got - ref);
  s->ref2 += ref * ref;
}

assay_status_t assay_slices_add(assay_slices_t* s, const assay_tensor_t* got,
                                const assay_tensor_t* ref) {
  if (!assay_tensor_alike(got, ref) || ref->store != ASSAY_STORE_F64) return NULL;
  if (!s->rank && ref->rank) ASSAY_TRY(begin(s, ref));
  if (s->rank != ref->rank) return NULL;
  for (int k = 0; k < AXES; k++) {
    if (!s->n[k] || ref->dims[s->axis[k]] != s->n[k]) continue;
    const int64_t inner = assay_dims_product(ref->dims, s->axis[k] + 1, ref->rank);
    for (int64_t i = 0; i < ref->size; i++) {
      const double g = assay_f64(got)[i], r = assay_f64(ref)[i];
      if (!isfinite(g) || !isfinite(r)) continue;
      add_element(&s->at[k][i / inner % s->n[k]], g, r);
      s->largest = fmax(s->largest, fabs(r));
    }
  }
  return NULL;
}

static bool is_dead(const assay_slices_t* s, const slice_t* a) {
  const double size = fmax(fabs(a->ref_min), fabs(a->ref_max));
  return a->n >= MIN_ELEMENTS && a->got_min == a->got_max &&
         a->ref_max - a->ref_min > SPAN * size && a->steps * STEPS >= a->n &&
         size > SMALLEST * s->largest;
}

static double mean2(const slice_t* a) { return a->n ? a->ref2 / (double)a->n : 0; }

static assay_slices_found_t judge(const assay_slices_t* s, int k) {
  assay_slices_found_t f = {.axis = s->axis[k], .slices = s->n[k], .first = -1, .first_small = -1};
  double largest = 0, error2 = 0, ref2 = 0;
  for (int64_t i = 0; i < s->n[k]; i++) largest = fmax(largest, mean2(&s->at[k][i]));
  for (int64_t i = 0; i < s->n[k]; i++) {
    const slice_t* a = &s->at[k][i];
    if (is_dead(s, a) && !f.dead++) {
      f.first = i;
      f.got = a->got_min;
      f.ref_min = a->ref_min;
      f.ref_max = a->ref_max;
    }
    if (a->n < MIN_ELEMENTS || !(mean2(a) > 0) || !(mean2(a) < SMALL * SMALL * largest) ||
        !(mean2(a) > SMALLEST * SMALLEST * largest))
      continue;
    if (!f.small++) f.first_small = i;
    error2 += a->error2;
    ref2 += a->ref2;
  }
  f.small_loss = f.small && ref2 > 0 ? error2 / ref2 : 0;
  return f;
}

assay_slices_found_t assay_slices_judge(const assay_slices_t* s) {
  assay_slices_found_t found = {.axis = -1};
  for (int k = 0; k < AXES; k++) {
    if (!s->n[k]) continue;
    const assay_slices_found_t f = judge(s, k);
    const bool more = f.dead != found.dead ? f.dead > found.dead : f.small_loss > found.small_loss;
    if (found.axis < 0 ? f.dead || f.small : more) found = f;
  }
  return found;
}
