// Whether a constant looks rounded, as a whole, by channels, by blocks of them, or by digits.
#include "diagnose/kinds/rounded_numbers.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// Fewer numbers are no weights; so many bits of evidence are no chance.
enum { LEAST = 16 };
static const double SURE = 64;

// ---- sets --------------------------------------------------------------------------------------

// Sets of elements: one for each index of an axis, and of each block of another axis.
typedef struct sets {
  int axis, blocked;  // -1: none
  int64_t block;
  int64_t n, per_axis;
} sets_t;

static sets_t sets_of(const assay_tensor_t* t, int axis, int blocked, int64_t block) {
  sets_t s = {.axis = axis, .blocked = blocked, .block = block, .n = 1, .per_axis = 1};
  if (blocked >= 0) s.per_axis = (t->dims[blocked] + block - 1) / block;
  s.n = (axis >= 0 ? t->dims[axis] : 1) * s.per_axis;
  return s;
}

static int64_t index_along(const assay_tensor_t* t, int axis, int64_t i) {
  return i / assay_dims_product(t->dims, axis + 1, t->rank) % t->dims[axis];
}

static int64_t set_at(const assay_tensor_t* t, const sets_t* s, int64_t i) {
  int64_t at = s->axis >= 0 ? index_along(t, s->axis, i) * s->per_axis : 0;
  if (s->blocked >= 0) at += index_along(t, s->blocked, i) / s->block;
  return at;
}

// Numbers of a tensor, sorted into its sets.
typedef struct members {
  double* numbers;
  int64_t* first;  // of each set, and the end
} members_t;

static void members_deinit(members_t* m) {
  assay_free(m->numbers);
  assay_free(m->first);
}

static assay_status_t gather(const assay_tensor_t* t, const sets_t* s, members_t* out) {
  int64_t* next = NULL;
  assay_status_t st = assay_new_array((size_t)t->size, sizeof *out->numbers, &out->numbers);
  if (!st) st = assay_new_array((size_t)s->n + 1, sizeof *out->first, &out->first);
  if (!st) st = assay_new_array((size_t)s->n, sizeof *next, &next);
  if (st) return assay_free(next), members_deinit(out), st;
  for (int64_t i = 0; i < t->size; i++) out->first[set_at(t, s, i) + 1]++;
  for (int64_t k = 0; k < s->n; k++) out->first[k + 1] += out->first[k];
  memcpy(next, out->first, (size_t)s->n * sizeof *next);
  for (int64_t i = 0; i < t->size; i++) out->numbers[next[set_at(t, s, i)]++] = assay_f64(t)[i];
  assay_free(next);
  return NULL;
}

// Whether some numbers of the first set are rounded: what is not is seen at once.
static bool may_be_rounded(const assay_tensor_t* t, const sets_t* s) {
  enum { SOME = 256 };
  static const double REPEATED = 0.1;
  double some[SOME];
  int64_t n = 0, zeros = 0;
  for (int64_t i = 0; i < t->size && n < SOME; i++)
    if (set_at(t, s, i) == 0) zeros += assay_f64(t)[i] == 0, some[n++] = assay_f64(t)[i];
  if (zeros == n) return true;
  const assay_rounded_set_t found = assay_rounded_set_of(some, n);
  return found.way || found.bits || (double)found.repeated > REPEATED * (double)found.used;
}

// How a tensor is rounded, by some sets.
typedef struct rounding {
  assay_rounded_way_t way;
  assay_tensor_t* reach;  // NULL: it is not
  int64_t numbers;        // unlike ones, of all sets together
  bool few;               // in every set numbers are used again and again
} rounding_t;

// What the sets of a tensor are together.
typedef struct together {
  bool all, palette, few;
  int64_t numbers;
  double evidence;
  int bits;  // of numbers times a scale, of all sets; 0: they are not
} together_t;

// Whether sets of few bits are that, and not even steps: these end where their bits do, with most
// sets.
static bool is_scaled(const assay_rounded_set_t* found, int64_t n, int bits) {
  int64_t known = 0, uneven = 0;
  for (int64_t k = 0; k < n; k++) {
    if (found[k].n < 2 || !found[k].bits) continue;
    known++;
    uneven += found[k].largest / found[k].last > ldexp(1.25, bits);
  }
  return 2 * uneven > known;
}

static together_t put_together(const assay_rounded_set_t* found, int64_t n) {
  together_t t = {.all = true, .few = true};
  bool scaled = true;
  double sure = 0;
  for (int64_t k = 0; k < n; k++) {
    const assay_rounded_set_t* s = &found[k];
    t.evidence += s->evidence;
    t.all &= s->way || s->n < 2;
    t.palette |= s->way == ASSAY_ROUNDED_FEW;
    t.few &= s->few;
    t.numbers += s->unlike;  // 0 is of all channels
    if (s->n < 2) continue;
    scaled &= s->bits > 0;
    t.bits = s->bits > t.bits ? s->bits : t.bits;
  }
  for (int64_t k = 0; k < n; k++) sure += assay_rounded_scaled_evidence(&found[k], t.bits);
  if (!scaled || !t.bits || (t.all && t.few) || sure < SURE || !is_scaled(found, n, t.bits))
    t.bits = 0;
  return t;
}

static double reach_of(const together_t* all, const assay_rounded_set_t* s, const double* numbers,
                       double x) {
  if (all->bits) return s->bits ? assay_rounded_scaled_reach(s, all->bits, x) : 0;
  return s->way ? assay_rounded_set_reach(s, numbers, x) : 0;
}

static assay_status_t try_sets(const assay_tensor_t* t, const sets_t* s, rounding_t* out) {
  members_t m = {0};
  assay_rounded_set_t* found = NULL;
  assay_tensor_t* reach = NULL;
  together_t all = {.all = true};
  if (!may_be_rounded(t, s)) return NULL;
  ASSAY_TRY(gather(t, s, &m));
  assay_status_t st = assay_new_array((size_t)s->n, sizeof *found, &found);
  for (int64_t k = 0; !st && all.all && k < s->n; k++) {
    found[k] = assay_rounded_set_of(m.numbers + m.first[k], m.first[k + 1] - m.first[k]);
    all.all = found[k].way || found[k].bits || found[k].n < 2;
  }
  if (!st && all.all) all = put_together(found, s->n);
  if (!st && (all.bits || (all.all && all.evidence >= SURE)))
    st = assay_tensor_create(ASSAY_TYPE_FLOAT, t->rank, t->dims, &reach);
  for (int64_t i = 0; !st && reach && i < t->size; i++) {
    const int64_t k = set_at(t, s, i);
    assay_f64(reach)[i] = reach_of(&all, &found[k], m.numbers + m.first[k], assay_f64(t)[i]);
  }
  assay_free(found);
  members_deinit(&m);
  if (st) return assay_tensor_release(reach), st;
  const assay_rounded_way_t way = all.bits      ? ASSAY_ROUNDED_SCALED
                                  : all.palette ? ASSAY_ROUNDED_FEW
                                                : ASSAY_ROUNDED_GRID;
  *out = (rounding_t){way, reach, all.numbers, all.few && !all.bits};
  return NULL;
}

// ---- few digits --------------------------------------------------------------------------------

// How many bits a number has, from its first to its last one that is set.
static int significant_bits(double x) {
  int exponent, bits = 0;
  double rest = fabs(frexp(x, &exponent));
  while (rest > 0) {
    rest = 2 * rest - (rest >= 0.5 ? 1 : 0);
    bits++;
  }
  return bits;
}

// Numbers of few significant bits: each may have been off by half of its last one.
static assay_status_t try_short(const assay_tensor_t* t, rounding_t* out) {
  enum { MAX_BITS = 11 };  // float16
  int most = 0, exponent;
  double last = (double)INFINITY, largest = 0;
  for (int64_t i = 0; i < t->size; i++) {
    const double x = assay_f64(t)[i];
    const int bits = significant_bits(x);
    if (bits > MAX_BITS) return NULL;
    if (!bits) continue;
    frexp(x, &exponent);
    most = bits > most ? bits : most;
    last = fmin(last, ldexp(1, exponent - bits));
    largest = fmax(largest, fabs(x));
  }
  // Even steps: a grid whose scale is a power of two.
  if (!most || largest / last <= ldexp(1, most)) return NULL;
  assay_tensor_t* reach = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, t->rank, t->dims, &reach));
  for (int64_t i = 0; i < t->size; i++) {
    frexp(assay_f64(t)[i], &exponent);
    assay_f64(reach)[i] = assay_f64(t)[i] == 0 ? 0 : ldexp(1, exponent - most - 1);
  }
  *out = (rounding_t){.way = ASSAY_ROUNDED_SHORT, .reach = reach};
  return NULL;
}

// ---- zeros -------------------------------------------------------------------------------------

// Of each four numbers along an axis two or more are 0: what was there was no larger than the
// smallest that is left. Source: Mishra et al., Accelerating sparse deep neural networks, 2021.
static assay_status_t try_zeros(const assay_tensor_t* t, int axis, rounding_t* out) {
  enum { GROUP = 4 };
  const int64_t inner = assay_dims_product(t->dims, axis + 1, t->rank), n = t->dims[axis];
  int64_t groups = 0;
  if (n % GROUP) return NULL;
  for (int64_t at = 0; at < t->size; at++) {
    int zeros = 0;
    if (at / inner % n % GROUP) continue;
    for (int k = 0; k < GROUP; k++) zeros += assay_f64(t)[at + k * inner] == 0;
    if (zeros < GROUP / 2 || zeros == GROUP) return NULL;
    groups++;
  }
  if (groups < GROUP * GROUP) return NULL;
  assay_tensor_t* reach = NULL;
  ASSAY_TRY(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, t->rank, t->dims, &reach));
  for (int64_t at = 0; at < t->size; at++) {
    double least = (double)INFINITY;
    if (at / inner % n % GROUP) continue;
    for (int k = 0; k < GROUP; k++)
      if (assay_f64(t)[at + k * inner] != 0)
        least = fmin(least, fabs(assay_f64(t)[at + k * inner]));
    for (int k = 0; k < GROUP; k++)
      if (assay_f64(t)[at + k * inner] == 0) assay_f64(reach)[at + k * inner] = least;
  }
  *out = (rounding_t){.way = ASSAY_ROUNDED_ZEROS, .reach = reach};
  return NULL;
}

// ---- all ---------------------------------------------------------------------------------------

// By channel, then by blocks of it, as of weights in groups.
static assay_status_t try_parts(const assay_tensor_t* t, rounding_t* out) {
  static const int64_t blocks[] = {128, 64, 32, 16};
  for (int axis = 0; !out->reach && axis < t->rank; axis++) {
    const sets_t s = sets_of(t, axis, -1, 0);
    ASSAY_TRY(try_sets(t, &s, out));
  }
  for (int axis = 0; axis < 2 && t->rank == 2; axis++)
    for (size_t b = 0; !out->reach && b < sizeof blocks / sizeof *blocks; b++) {
      if (t->dims[1 - axis] <= blocks[b]) continue;
      const sets_t s = sets_of(t, axis, 1 - axis, blocks[b]);
      ASSAY_TRY(try_sets(t, &s, out));
    }
  return NULL;
}

// Few numbers of each channel are still few of all channels together, with gaps that nobody chose:
// then channels have about as many between them.
static assay_status_t prefer_parts(const assay_tensor_t* t, rounding_t* r) {
  static const double AS_MANY = 1.25;
  rounding_t parts = {0};
  ASSAY_TRY(try_parts(t, &parts));
  if (parts.reach && (double)parts.numbers <= AS_MANY * (double)r->numbers) {
    assay_tensor_release(r->reach);
    *r = parts;
  } else {
    assay_tensor_release(parts.reach);
  }
  return NULL;
}

static assay_status_t find(const assay_tensor_t* t, rounding_t* r) {
  const sets_t whole = sets_of(t, -1, -1, 0);
  rounding_t digits = {0};
  ASSAY_TRY(try_sets(t, &whole, r));
  if (r->reach && r->few) return r->way == ASSAY_ROUNDED_FEW ? prefer_parts(t, r) : NULL;
  // Numbers of few bits lie on a fine grid, too.
  ASSAY_TRY(try_short(t, &digits));
  if (digits.reach) {
    assay_tensor_release(r->reach);
    *r = digits;
  }
  if (!r->reach) ASSAY_TRY(try_parts(t, r));
  for (int axis = 0; !r->reach && axis < t->rank && axis < 2; axis++)
    ASSAY_TRY(try_zeros(t, axis, r));
  return NULL;
}

assay_status_t assay_rounded_numbers(const assay_tensor_t* t, assay_rounded_way_t* out_way,
                                     assay_tensor_t** out) {
  rounding_t r = {0};
  *out_way = ASSAY_ROUNDED_NOT;
  *out = NULL;
  if (t->size < LEAST || t->rank < 2 || t->store != ASSAY_STORE_F64) return NULL;
  for (int64_t i = 0; i < t->size; i++)
    if (!isfinite(assay_f64(t)[i])) return NULL;
  assay_status_t st = find(t, &r);
  if (st) return assay_tensor_release(r.reach), st;
  if (r.reach) *out_way = r.way;
  *out = r.reach;
  return NULL;
}
