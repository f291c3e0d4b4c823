// Conditions: constants each of whose elements chooses, at places of its own, one of two numbers.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/solve/solve.h"

// Which element of a constant a place depends on, where it is broadcast to the output; -1: it is
// not.
static int64_t element_at(const assay_tensor_t* c, const assay_tensor_t* to, int64_t at) {
  int64_t index = 0, step = 1;
  if (c->rank > to->rank) return -1;
  for (int i = 1; i <= c->rank; i++) {
    const int64_t d = to->dims[to->rank - i], own = c->dims[c->rank - i];
    if (own != 1 && own != d) return -1;
    if (own != 1) index += at % d * step;
    step *= own;
    at /= d;
  }
  return index;
}

static assay_status_t evaluate_all(const assay_solve_t* s, int64_t value, assay_tensor_t** out) {
  assay_tensor_t* c = NULL;
  ASSAY_TRY(assay_tensor_copy(s->in[s->input], &c));
  for (int64_t i = 0; i < c->size; i++) assay_i64(c)[i] = value;
  assay_status_t st = assay_solve_evaluate(s, c, out);
  assay_tensor_release(c);
  return st;
}

// What each choice is off by, over an element's places. False: some are neither.
static bool add_up(const assay_solve_t* s, const assay_tensor_t* no, const assay_tensor_t* yes,
                   double* off) {
  static const double NEAR = 1e-5;
  for (int64_t i = 0; i < s->want->size; i++) {
    const int64_t k = element_at(s->in[s->input], s->want, i);
    const double want = assay_f64(s->want)[i], near = NEAR * fabs(want);
    const double a = fabs(assay_f64(no)[i] - want), b = fabs(assay_f64(yes)[i] - want);
    if (k < 0 || !(fmin(a, b) <= near)) return false;
    off[2 * k] += a > near;
    off[2 * k + 1] += b > near;
  }
  return true;
}

static assay_status_t choose(const assay_solve_t* s, const assay_tensor_t* no,
                             const assay_tensor_t* yes, assay_tensor_t** out) {
  double* off = NULL;
  bool known = false;
  const size_t n = (size_t)s->in[s->input]->size;
  ASSAY_TRY(assay_new_array(2 * n, sizeof *off, &off));
  assay_status_t st = NULL;
  if (add_up(s, no, yes, off)) st = assay_tensor_copy(s->in[s->input], out);
  known = !st && *out;
  for (size_t k = 0; known && k < n; k++) {
    known = off[2 * k] == 0 || off[2 * k + 1] == 0;
    if (off[2 * k] != off[2 * k + 1]) assay_i64(*out)[k] = off[2 * k] > off[2 * k + 1];
  }
  if (!known) assay_tensor_release(*out), *out = NULL;
  assay_free(off);
  return st;
}

assay_status_t assay_solve_choice(const assay_solve_t* s, assay_tensor_t** out) {
  assay_tensor_t *no = NULL, *yes = NULL;
  *out = NULL;
  assay_status_t st = evaluate_all(s, 0, &no);
  if (!st && no) st = evaluate_all(s, 1, &yes);
  if (!st && yes) st = choose(s, no, yes, out);
  assay_tensor_release(no);
  assay_tensor_release(yes);
  return st;
}
