// Outputs judged by slices: what the statistics of a whole output cannot show.
#include "account/verdict/slices.h"

#include <limits.h>
#include <math.h>

#include "base/alloc.h"
#include "formats/exact_sum.h"

enum { AXES = 2, MAX_SLICES = 1 << 14, MIN_ELEMENTS = 32, MAX_SHAPES = 64 };

// A slice varies if an eighth of its steps from one element to the next are at least a 64th of its
// size, and all of it by a 16th: bfloat16 can tell these apart. Below SMALLEST of the output's size
// it may vanish in formats that are right otherwise (a softmax in fp16).
static const double STEP = 1. / 64, SPAN = 1. / 16, SMALLEST = 1e-5;
static const int64_t STEPS = 8;
// Slices are small from this part of the largest one's RMS on.
static const double SMALL = 0.01;

// What is kept of a slice in some samples. `steps` are told by the size of the slice in the sample
// they are in; a step from one sample to the next one, by that of its two elements.
typedef struct slice {
  int64_t n, steps;
  double error2, ref2, ref_min, ref_max, got_min, got_max, first, last;
} slice_t;

typedef struct slice_sums {
  assay_exact_sum_t error2, ref2;
} slice_sums_t;

// Slices along one axis of outputs of one rank.
typedef struct along {
  int rank, which;  // which: of AXES
  int64_t n;
  double largest;  // |ref|
  slice_t* at;     // of all samples; that of the sample at hand follows
  slice_sums_t* sums;
} along_t;

// The samples that count are those of the first one's shape along the axes.
struct assay_slices {
  int rank;
  int64_t n[AXES];  // 0: no slices along it
  bool keeps_all;
  along_t* along;  // in the order in which they came up
  size_t n_along, capacity;
};

assay_status_t assay_slices_create(assay_slices_t** out) { return ASSAY_NEW(out); }

void assay_slices_destroy(assay_slices_t* s) {
  for (size_t i = 0; s && i < s->n_along; i++) {
    assay_free(s->along[i].at);
    assay_free(s->along[i].sums);
  }
  if (s) assay_free(s->along);
  assay_free(s);
}

void assay_slices_keep_all(assay_slices_t* s) { s->keeps_all = true; }

// Channels lie along axis 1, or the last one.
static int axis_of(int rank, int which) {
  if (which == 0) return rank > 1 ? 1 : -1;
  return rank > 2 ? rank - 1 : -1;
}

// How many slices are wanted along it; 0: none.
static int64_t slices_along(const assay_tensor_t* t, int which) {
  const int axis = axis_of(t->rank, which);
  const int64_t n = axis > 0 ? t->dims[axis] : 0;
  return n < 2 || n > MAX_SLICES ? 0 : n;
}

static along_t* find(const assay_slices_t* s, int rank, int which, int64_t n) {
  for (size_t i = 0; i < s->n_along; i++) {
    along_t* a = &s->along[i];
    if (a->rank == rank && a->which == which && a->n == n) return a;
  }
  return NULL;
}

static assay_status_t find_or_add(assay_slices_t* s, int rank, int which, int64_t n,
                                  along_t** out) {
  along_t a = {.rank = rank, .which = which, .n = n};
  *out = find(s, rank, which, n);
  if (*out) return NULL;
  if (s->n_along == MAX_SHAPES)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "an output has more than %d shapes in a part of the samples; check the "
                       "samples on one machine",
                       MAX_SHAPES);
  ASSAY_TRY(assay_grow(&s->along, &s->capacity, s->n_along + 1, sizeof *s->along));
  ASSAY_TRY(assay_new_array(2 * (size_t)n, sizeof *a.at, &a.at));
  assay_status_t st = assay_new_array((size_t)n, sizeof *a.sums, &a.sums);
  if (st) return assay_free(a.at), st;
  s->along[s->n_along++] = a;
  *out = &s->along[s->n_along - 1];
  return NULL;
}

static void begin(assay_slices_t* s, const assay_tensor_t* t) {
  s->rank = t->rank;
  for (int k = 0; k < AXES; k++) s->n[k] = slices_along(t, k);
}

static void add_element(slice_t* s, double got, double ref) {
  if (!s->n) {
    s->ref_min = s->ref_max = s->first = s->last = ref;
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

// Samples that follow; their sums are added apart.
static void join_slice(slice_t* s, const slice_t* more) {
  if (!more->n) return;
  if (!s->n) {
    *s = *more;
    return;
  }
  s->steps += more->steps;
  s->steps += fabs(more->first - s->last) > STEP * fmax(fabs(more->first), fabs(s->last));
  s->n += more->n;
  s->last = more->last;
  s->ref_min = fmin(s->ref_min, more->ref_min);
  s->ref_max = fmax(s->ref_max, more->ref_max);
  s->got_min = fmin(s->got_min, more->got_min);
  s->got_max = fmax(s->got_max, more->got_max);
}

static void add_sample(along_t* a, const assay_tensor_t* got, const assay_tensor_t* ref) {
  const int64_t inner = assay_dims_product(ref->dims, axis_of(a->rank, a->which) + 1, ref->rank);
  slice_t* run = a->at + a->n;
  for (int64_t i = 0; i < a->n; i++) run[i] = (slice_t){0};
  for (int64_t i = 0; i < ref->size; i++) {
    const double g = assay_f64(got)[i], r = assay_f64(ref)[i];
    if (!isfinite(g) || !isfinite(r)) continue;
    add_element(&run[i / inner % a->n], g, r);
    a->largest = fmax(a->largest, fabs(r));
  }
  for (int64_t i = 0; i < a->n; i++) {
    join_slice(&a->at[i], &run[i]);
    assay_exact_add_to(&a->sums[i].error2, &a->at[i].error2, run[i].error2);
    assay_exact_add_to(&a->sums[i].ref2, &a->at[i].ref2, run[i].ref2);
  }
}

assay_status_t assay_slices_add(assay_slices_t* s, const assay_tensor_t* got,
                                const assay_tensor_t* ref) {
  if (!assay_tensor_alike(got, ref) || ref->store != ASSAY_STORE_F64 || !ref->rank) return NULL;
  if (!s->rank) begin(s, ref);
  for (int k = 0; k < AXES; k++) {
    const int64_t n = slices_along(ref, k);
    const bool counts = s->rank == ref->rank && n == s->n[k];
    along_t* a = NULL;
    if (!n || !(counts || s->keeps_all)) continue;
    ASSAY_TRY(find_or_add(s, ref->rank, k, n, &a));
    add_sample(a, got, ref);
  }
  return NULL;
}

// ---- parts of the samples -----------------------------------------------------------------------

assay_status_t assay_slices_join(assay_slices_t* s, const assay_slices_t* more) {
  if (!s->rank && more->rank) {
    s->rank = more->rank;
    for (int k = 0; k < AXES; k++) s->n[k] = more->n[k];
  }
  for (size_t i = 0; i < more->n_along; i++) {
    const along_t* from = &more->along[i];
    const bool counts = s->rank == from->rank && s->n[from->which] == from->n;
    along_t* to = NULL;
    if (!(counts || s->keeps_all)) continue;
    ASSAY_TRY(find_or_add(s, from->rank, from->which, from->n, &to));
    to->largest = fmax(to->largest, from->largest);
    for (int64_t k = 0; k < to->n; k++) {
      join_slice(&to->at[k], &from->at[k]);
      assay_exact_join_to(&to->sums[k].error2, &to->at[k].error2, &from->sums[k].error2);
      assay_exact_join_to(&to->sums[k].ref2, &to->at[k].ref2, &from->sums[k].ref2);
    }
  }
  return NULL;
}

static void pack_slice(assay_packing_t* p, slice_t* a, slice_sums_t* sums) {
  double* const numbers[] = {&a->ref_min, &a->ref_max, &a->got_min,
                             &a->got_max, &a->first,   &a->last};
  assay_pack_tally(p, &a->n);
  assay_pack_tally(p, &a->steps);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) assay_pack_f64(p, numbers[i]);
  assay_exact_pack(p, &sums->error2);
  assay_exact_pack(p, &sums->ref2);
  a->error2 = assay_exact_get(&sums->error2);
  a->ref2 = assay_exact_get(&sums->ref2);
}

static assay_status_t pack_along(assay_packing_t* p, assay_slices_t* s, along_t* a) {
  uint64_t rank = (uint64_t)a->rank, which = (uint64_t)a->which, n = (uint64_t)a->n;
  assay_pack_count(p, &rank, INT_MAX);
  assay_pack_count(p, &which, AXES - 1);
  assay_pack_count(p, &n, MAX_SLICES);
  if (assay_packing_reads(p)) {
    p->failed |= !rank || !n || find(s, (int)rank, (int)which, (int64_t)n) != NULL;
    if (p->failed) return NULL;
    ASSAY_TRY(find_or_add(s, (int)rank, (int)which, (int64_t)n, &a));
  }
  assay_pack_f64(p, &a->largest);
  for (int64_t i = 0; i < a->n && !p->failed; i++) pack_slice(p, &a->at[i], &a->sums[i]);
  return NULL;
}

assay_status_t assay_slices_pack(assay_packing_t* p, assay_slices_t* s) {
  uint64_t rank = (uint64_t)s->rank, n = s->n_along;
  assay_pack_count(p, &rank, INT_MAX);
  s->rank = (int)rank;
  for (int k = 0; k < AXES; k++) assay_pack_tally(p, &s->n[k]);
  assay_pack_count(p, &n, MAX_SHAPES);
  for (uint64_t i = 0; i < n && !p->failed; i++)
    ASSAY_TRY(pack_along(p, s, assay_packing_reads(p) ? &(along_t){0} : &s->along[i]));
  return NULL;
}

// ---- judging ------------------------------------------------------------------------------------

static bool is_dead(const slice_t* a, double largest) {
  const double size = fmax(fabs(a->ref_min), fabs(a->ref_max));
  return a->n >= MIN_ELEMENTS && a->got_min == a->got_max &&
         a->ref_max - a->ref_min > SPAN * size && a->steps * STEPS >= a->n &&
         size > SMALLEST * largest;
}

static double mean2(const slice_t* a) { return a->n ? a->ref2 / (double)a->n : 0; }

static assay_slices_found_t judge(const along_t* s, double largest_of_all) {
  assay_slices_found_t f = {
      .axis = axis_of(s->rank, s->which), .slices = s->n, .first = -1, .first_small = -1};
  double largest = 0, error2 = 0, ref2 = 0;
  for (int64_t i = 0; i < s->n; i++) largest = fmax(largest, mean2(&s->at[i]));
  for (int64_t i = 0; i < s->n; i++) {
    const slice_t* a = &s->at[i];
    if (is_dead(a, largest_of_all) && !f.dead++) {
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
  const along_t* at[AXES];
  double largest = 0;
  for (int k = 0; k < AXES; k++) {
    at[k] = s->n[k] ? find(s, s->rank, k, s->n[k]) : NULL;
    if (at[k]) largest = fmax(largest, at[k]->largest);
  }
  for (int k = 0; k < AXES; k++) {
    if (!at[k]) continue;
    const assay_slices_found_t f = judge(at[k], largest);
    const bool more = f.dead != found.dead ? f.dead > found.dead : f.small_loss > found.small_loss;
    if (found.axis < 0 ? f.dead || f.small : more) found = f;
  }
  return found;
}
