// Elements that are in another order along one or two dimensions: rolled, flipped, halves or
// channels exchanged.
//
// A slice across a dimension keeps its sums when the elements of other dimensions change places. By
// these sums the slices of what is there and of what has to be are matched, for each dimension
// alone.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

typedef struct slice {
  double sums[3];  // of the elements, their squares and their cubes
  int64_t index;
} slice_t;

// size: what sums are divided by.
static assay_status_t sum_slices(const assay_tensor_t* t, int axis, const double* size,
                                 slice_t** out) {
  int64_t inner = 1;
  const int64_t n = t->dims[axis];
  for (int i = axis + 1; i < t->rank; i++) inner *= t->dims[i];
  ASSAY_TRY(assay_new_array((size_t)n, sizeof **out, out));
  for (int64_t i = 0; i < n; i++) (*out)[i].index = i;
  for (int64_t i = 0; i < t->size; i++) {
    slice_t* s = &(*out)[i / inner % n];
    const double x = assay_f64(t)[i];
    s->sums[0] += x;
    s->sums[1] += x * x;
    s->sums[2] += x * x * x;
  }
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 3; k++) (*out)[i].sums[k] /= size[k];
  return NULL;
}

// What the sums of a slice come to if nothing cancels.
static void sizes_of(const assay_tensor_t* t, int64_t n, double* out) {
  for (int k = 0; k < 3; k++) out[k] = 0;
  for (int64_t i = 0; i < t->size; i++) {
    const double x = fabs(assay_f64(t)[i]);
    out[0] += x;
    out[1] += x * x;
    out[2] += x * x * x;
  }
  for (int k = 0; k < 3; k++) out[k] = out[k] > 0 ? out[k] / (double)n : 1;
}

static int by_first(const void* a, const void* b) {
  const double x = ((const slice_t*)a)->sums[0], y = ((const slice_t*)b)->sums[0];
  return (x > y) - (x < y);
}

static bool is_same(const slice_t* a, const slice_t* b) {
  for (int k = 0; k < 3; k++)
    if (!(fabs(a->sums[k] - b->sums[k]) <= 1e-4 * (fabs(b->sums[k]) + 0.1))) return false;
  return true;
}

// The slice like this one, at its own index if that is one, else the next that is not taken.
static int64_t find_slice(const slice_t* sorted, const slice_t* in_order, bool* taken, int64_t n,
                          const slice_t* wanted) {
  const double near = 2e-4 * (fabs(wanted->sums[0]) + 0.1);
  if (wanted->index < n && !taken[wanted->index] && is_same(&in_order[wanted->index], wanted))
    return wanted->index;
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sorted[middle].sums[0] < wanted->sums[0] - near)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < n && sorted[low].sums[0] <= wanted->sums[0] + near; low++)
    if (!taken[sorted[low].index] && is_same(&sorted[low], wanted)) return sorted[low].index;
  return -1;
}

// Which slice of x each of the wanted ones is; *out NULL: some are none, or none has moved.
static assay_status_t order_of(const assay_tensor_t* x, const assay_tensor_t* want, int axis,
                               assay_tensor_t** out) {
  const int64_t n = x->dims[axis], m = want->dims[axis];
  slice_t *have = NULL, *sorted = NULL, *wanted = NULL;
  bool* taken = NULL;
  bool moved = n != m, known = n >= m;
  *out = NULL;
  double size[3];
  sizes_of(x, n, size);
  assay_status_t st = sum_slices(x, axis, size, &have);
  if (!st) st = sum_slices(want, axis, size, &wanted);
  if (!st) st = assay_new_array((size_t)n, sizeof *sorted, &sorted);
  if (!st) st = assay_new_array((size_t)n, sizeof *taken, &taken);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_INT64, 1, &m, out);
  if (!st) {
    memcpy(sorted, have, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_first);
  }
  for (int64_t i = 0; !st && known && i < m; i++) {
    const int64_t at = find_slice(sorted, have, taken, n, &wanted[i]);
    known = at >= 0;
    if (!known) break;
    taken[at] = true;
    moved |= at != i;
    assay_i64(*out)[i] = at;
  }
  if (st || !known || !moved) assay_tensor_release(*out), *out = NULL;
  assay_free(have);
  assay_free(sorted);
  assay_free(wanted);
  assay_free(taken);
  return st;
}

// whole: how many slices there are.
static void describe(const assay_tensor_t* order, int axis, int64_t whole, char* out, size_t size) {
  const int64_t n = order->size, first = assay_i64(order)[0];
  bool rolled = true, flipped = true, part = first != 0 || whole != n;
  for (int64_t i = 0; i < n; i++) {
    rolled &= assay_i64(order)[i] == (first + i) % n;
    flipped &= assay_i64(order)[i] == n - 1 - i;
    part &= assay_i64(order)[i] == first + i;
  }
  if (part)
    snprintf(out, size, "elements %lld to %lld of dimension %d of", (long long)first,
             (long long)(first + n - 1), axis);
  else if (flipped)
    snprintf(out, size, "dimension %d is the other way round", axis);
  else if (rolled && first > n / 2)
    snprintf(out, size, "dimension %d is rolled by %lld", axis, (long long)(n - first));
  else if (rolled)
    snprintf(out, size, "dimension %d is rolled by %lld", axis, -(long long)first);
  else
    snprintf(out, size, "dimension %d is in another order", axis);
}

assay_status_t assay_missing_moves(assay_missing_search_t* s, const assay_missing_place_t* p) {
  if (!p->want || !p->x || p->x->store != ASSAY_STORE_F64 || p->want->store != ASSAY_STORE_F64 ||
      p->x->rank != p->want->rank || !p->x->size || !p->want->size)
    return NULL;
  assay_formula_terms_t terms = {.program = "x gather"};
  char text[160] = "";
  int unlike = 0;
  for (int i = 0; i < p->x->rank; i++) unlike += p->x->dims[i] != p->want->dims[i];
  if (unlike > 1) return NULL;
  assay_status_t st = NULL;
  for (int axis = 0; !st && axis < p->x->rank && terms.n_axes < 2; axis++) {
    // Slices across a dimension are alike only where the other dimensions are whole.
    if (unlike && p->x->dims[axis] == p->want->dims[axis]) continue;
    assay_tensor_t* order = NULL;
    st = order_of(p->x, p->want, axis, &order);
    if (st || !order) continue;
    char one[64];
    describe(order, axis, p->x->dims[axis], one, sizeof one);
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "", one);
    *(terms.n_axes ? &terms.d : &terms.c) = order;
    terms.axes[terms.n_axes++] = axis;
  }
  if (terms.n_axes == 2) terms.program = "x gather gather2";
  if (!st && terms.n_axes) st = assay_missing_try(s, p, &terms, "moved elements", text);
  assay_tensor_release(terms.c);
  assay_tensor_release(terms.d);
  return st;
}
