// Constants each of whose elements reaches places of the output of its own.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/solve/solve.h"

// Which element of the constant each place of the output depends on, and how.
typedef struct reach {
  int64_t n, n_constant;
  int64_t* from;   // by place; -1: on none
  double* factor;  // by place
} reach_t;

static void reach_deinit(reach_t* r) {
  assay_free(r->from);
  assay_free(r->factor);
}

static assay_status_t filled(const assay_tensor_t* like, double from, double step,
                             assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(like->type, like->rank, like->dims, out));
  for (int64_t i = 0; i < like->size; i++) assay_f64(*out)[i] = from + step * (double)i;
  return NULL;
}

static assay_status_t evaluate_filled(const assay_solve_t* s, double from, double step,
                                      assay_tensor_t** out) {
  assay_tensor_t* c = NULL;
  ASSAY_TRY(filled(s->in[s->input], from, step, &c));
  assay_status_t st = assay_solve_evaluate(s, c, out);
  assay_tensor_release(c);
  return st;
}

// False: some place depends on several elements, or not linearly.
static bool place(const double* zero, const double* one, const double* count, int64_t i,
                  reach_t* r) {
  const double g = one[i] - zero[i], k = g != 0 ? (count[i] - zero[i]) / g - 1 : -1;
  if (!isfinite(zero[i]) || !isfinite(one[i]) || !isfinite(count[i])) return false;
  r->from[i] = -1;
  if (g == 0) return count[i] == zero[i];
  const double nearest = rint(k), scale = fabs(zero[i]) + fabs(one[i]);
  // What float64 may do to a difference of outputs that hold much else.
  if (fabs(g) < 1e-9 * scale) return true;
  if (nearest < 0 || nearest >= (double)r->n_constant) return false;
  if (fabs(k - nearest) > 1e-3 + 1e-9 * scale * nearest / fabs(g)) return false;
  r->from[i] = (int64_t)nearest;
  r->factor[i] = g;
  return true;
}

static assay_status_t find_reach(const assay_solve_t* s, reach_t* out, double** out_zero,
                                 bool* out_known) {
  assay_tensor_t *zero = NULL, *one = NULL, *count = NULL;
  *out = (reach_t){.n = s->want->size, .n_constant = s->in[s->input]->size};
  *out_known = false;
  assay_status_t st = evaluate_filled(s, 0, 0, &zero);
  if (!st && zero) st = evaluate_filled(s, 1, 0, &one);
  if (!st && one) st = evaluate_filled(s, 1, 1, &count);
  if (!st) st = assay_new_array((size_t)out->n, sizeof *out->from, &out->from);
  if (!st) st = assay_new_array((size_t)out->n, sizeof *out->factor, &out->factor);
  if (!st) st = assay_new_array((size_t)out->n, sizeof **out_zero, out_zero);
  bool known = !st && count != NULL;
  for (int64_t i = 0; known && i < out->n; i++) {
    (*out_zero)[i] = assay_f64(zero)[i];
    known = place(assay_f64(zero), assay_f64(one), assay_f64(count), i, out);
  }
  *out_known = known;
  assay_tensor_release(zero);
  assay_tensor_release(one);
  assay_tensor_release(count);
  return st;
}

// Sums over the places of an element of the constant.
typedef struct element {
  int64_t seen;
  double sum, weight;
  bool differs;  // some place is not what it has to be
} element_t;

// Golden's rounding, over the largest that there is.
static bool differs_at(const assay_solve_t* s, int64_t i, double largest) {
  return !(fabs(assay_f64(s->want)[i] - assay_f64(s->have)[i]) <= 1e-6 * largest);
}

static assay_status_t count_places(const assay_solve_t* s, const reach_t* r, element_t* e) {
  double largest = 0;
  for (int64_t i = 0; i < r->n; i++) largest = fmax(largest, fabs(assay_f64(s->want)[i]));
  for (int64_t i = 0; i < r->n; i++) {
    if (r->from[i] < 0) continue;
    e[r->from[i]].seen++;
    e[r->from[i]].differs |= differs_at(s, i, largest);
  }
  return NULL;
}

// Weighted means of (want - zero) / factor; elements that no place shows stay. An element that one
// place alone shows, and shows to be wrong, is not tested by another: if many are such, *out_enough
// is false, unless others test it. A few are the row of an embedding that a sample has once.
static assay_status_t solve(const assay_solve_t* s, const reach_t* r, const double* zero,
                            bool* held, assay_tensor_t* out, bool* out_enough) {
  element_t* e = NULL;
  int64_t shown = 0, once = 0;
  const size_t n = (size_t)r->n_constant;
  ASSAY_TRY(assay_new_array(n, sizeof *e, &e));
  assay_status_t st = count_places(s, r, e);
  for (int64_t i = 0; !st && i < r->n; i++) {
    if (r->from[i] < 0) continue;
    element_t* k = &e[r->from[i]];
    const bool alone = k->seen == 1 && k->differs;
    if (held && (held[i] = !alone && assay_solve_tests(i))) continue;
    k->sum += r->factor[i] * (assay_f64(s->want)[i] - zero[i]);
    k->weight += r->factor[i] * r->factor[i];
  }
  for (size_t k = 0; !st && k < n; k++) {
    shown += e[k].seen > 0;
    once += e[k].seen == 1 && e[k].differs;
    if (e[k].weight > 0) assay_f64(out)[k] = e[k].sum / e[k].weight;
  }
  *out_enough = !st && shown > 0 && (s->untested || 4 * once < shown);
  assay_free(e);
  return st;
}

assay_status_t assay_solve_diagonal(const assay_solve_t* s, bool* held, assay_tensor_t** out) {
  reach_t r = {0};
  double* zero = NULL;
  bool known = false, enough = false;
  assay_tensor_t* made = NULL;
  *out = NULL;
  assay_status_t st = find_reach(s, &r, &zero, &known);
  if (!st && known) st = assay_tensor_copy(s->in[s->input], &made);
  if (!st && known) st = solve(s, &r, zero, held, made, &enough);
  if (!st && enough) {
    *out = made;
    made = NULL;
  }
  assay_tensor_release(made);
  assay_free(zero);
  reach_deinit(&r);
  return st;
}
