// A quantizer that is missing: what has to be there lies on a grid, next to what is there, and at
// its ends where that goes beyond them. Where golden has the integers, too, they tell the grid and
// its ends.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

typedef struct grid {
  double step, low, high;  // in steps
  bool cuts_low, cuts_high;
} grid_t;

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// The smallest distance of two values that are not the same; 0: all are.
static assay_status_t find_distance(const assay_tensor_t* want, double* out) {
  enum { LOOK = 4096 };
  static const double SAME = 1e-6;
  const int64_t n = want->size < LOOK ? want->size : LOOK;
  double* sorted = NULL;
  *out = 0;
  ASSAY_TRY(assay_new_array((size_t)n + 1, sizeof *sorted, &sorted));
  for (int64_t i = 0; i < n; i++)
    sorted[i] = assay_f64(want)[(int64_t)((double)i * (double)want->size / (double)n)];
  sorted[n] = 0;  // 0 is on the grid
  qsort(sorted, (size_t)n + 1, sizeof *sorted, by_value);
  const double largest = fmax(fabs(sorted[0]), fabs(sorted[n]));
  for (int64_t i = 1; i <= n; i++) {
    const double d = sorted[i] - sorted[i - 1];
    if (d > SAME * largest && (*out == 0 || d < *out)) *out = d;
  }
  assay_free(sorted);
  return NULL;
}

// Whether everything lies on the grid of a step, which becomes the one that fits best.
static bool lies_on(const assay_missing_place_t* p, double step, grid_t* g) {
  static const double NEAR = 2e-3, MANY = 65536;
  double nn = 0, nw = 0;
  *g = (grid_t){.low = INFINITY, .high = -INFINITY};
  for (int64_t i = 0; i < p->want->size; i++) {
    const double w = assay_f64(p->want)[i], n = rint(w / step);
    if (!(fabs(w / step - n) <= NEAR * fmax(1, fabs(n) * 1e-2)) || fabs(n) > MANY) return false;
    nn += n * n;
    nw += n * w;
    g->low = fmin(g->low, n);
    g->high = fmax(g->high, n);
  }
  g->step = nn > 0 ? nw / nn : 0;
  return g->step > 0 && g->high > g->low;
}

// Whether what is there is rounded to it: half a step away at most, but at the ends.
static bool rounds_to(const assay_missing_place_t* p, grid_t* g) {
  static const double HALF = 0.5001;
  int64_t moved = 0;
  for (int64_t i = 0; i < p->want->size; i++) {
    const double x = assay_f64(p->x)[i] / g->step, n = rint(assay_f64(p->want)[i] / g->step);
    moved += fabs(x - n) > 1e-3;
    if (fabs(x - n) <= HALF) continue;
    if (x > n && n == g->high)
      g->cuts_high = true;
    else if (x < n && n == g->low)
      g->cuts_low = true;
    else
      return false;
  }
  return 2 * moved > p->want->size;
}

// The grid by integers of what is wanted: their line through it, and the ends of their type.
static bool read_integers(const assay_missing_place_t* p, const assay_tensor_t* q, grid_t* g) {
  const int64_t size = q->size;
  double n = 0, w = 0, nn = 0, nw = 0;
  for (int64_t i = 0; i < size; i++) {
    const double k = (double)assay_i64(q)[i], y = assay_f64(p->want)[i];
    n += k;
    w += y;
    nn += k * k;
    nw += k * y;
  }
  const double spread = nn - n * n / (double)size;
  *g = (grid_t){.step = spread > 0 ? (nw - n * w / (double)size) / spread : 0};
  if (!(g->step > 0)) return false;
  const double zero = rint((n - w / g->step) / (double)size);
  for (int64_t i = 0; i < size; i++)
    if (fabs(assay_f64(p->want)[i] / g->step + zero - (double)assay_i64(q)[i]) > 1e-2) return false;
  g->low = (double)assay_type_saturate(q->type, -(double)INFINITY) - zero;
  g->high = (double)assay_type_saturate(q->type, (double)INFINITY) - zero;
  return g->cuts_low = g->cuts_high = true;
}

static assay_status_t try_grid(assay_missing_search_t* s, const assay_missing_place_t* p,
                               const grid_t* g) {
  char program[ASSAY_FORMULA_TEXT], low[40] = "", high[40] = "", text[96];
  const assay_formula_terms_t terms = {.program = program};
  if (g->cuts_low) snprintf(low, sizeof low, " %.9g max", g->low);
  if (g->cuts_high) snprintf(high, sizeof high, " %.9g min", g->high);
  snprintf(program, sizeof program, "x %.9g / Round%s%s %.9g *", g->step, low, high, g->step);
  snprintf(text, sizeof text, "a quantizer in steps of %.6g %s", g->step,
           p->source ? "of" : "is missing");
  return assay_missing_try(s, p, &terms, "missing node", text);
}

// An array of golden that no value of the model is, of integers that golden's numbers stand for.
static assay_status_t by_integers(assay_missing_search_t* s, const assay_missing_place_t* p) {
  for (size_t i = 0; i < s->golden->n && !assay_missing_is_over(s); i++) {
    const assay_golden_tensor_t* from = &s->golden->at[i];
    assay_tensor_t* q = NULL;
    grid_t g;
    if (from->value || from->tensor->kind != ASSAY_KIND_TENSOR ||
        !assay_tensor_same_shape(from->tensor, p->want) || assay_type_bits(from->tensor->type) > 16)
      continue;
    ASSAY_TRY(assay_tensor_widen(from->tensor, &q));
    assay_status_t st =
        q->store == ASSAY_STORE_I64 && read_integers(p, q, &g) ? try_grid(s, p, &g) : NULL;
    assay_tensor_release(q);
    if (st) return st;
  }
  return NULL;
}

assay_status_t assay_missing_grid(assay_missing_search_t* s, const assay_missing_place_t* p) {
  enum { FEW = 3, PARTS = 4 };
  double distance = 0;
  if (!p->want || !p->x || p->x->store != ASSAY_STORE_F64 || p->want->size < FEW ||
      !assay_tensor_alike(p->x, p->want))
    return NULL;
  ASSAY_TRY(by_integers(s, p));
  if (assay_missing_is_over(s)) return NULL;
  ASSAY_TRY(find_distance(p->want, &distance));
  for (int part = 1; part <= PARTS && distance > 0 && !assay_missing_is_over(s); part++) {
    grid_t g;
    if (lies_on(p, distance / part, &g) && rounds_to(p, &g)) ASSAY_TRY(try_grid(s, p, &g));
  }
  return NULL;
}
