// What a condition chooses: what stands at a place is right where a condition holds, and elsewhere
// something else is: another value, a sum, a difference or a product with one, a number.
//
// The condition is one that the model has, or whether a value is above or below a number: where all
// places that are right lie on one side of it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { PLACES = 400, CONDITIONS = 200, VALUES = 120 };

typedef struct branches {
  assay_missing_search_t* s;
  const assay_missing_place_t* p;
  int n;
  int64_t at[PLACES];
  double x[PLACES], want[PLACES];
  bool right[PLACES];
  int n_right;
  double scale;
} branches_t;

static bool broadcasts(const assay_tensor_t* from, const assay_tensor_t* to) {
  if (from->kind != ASSAY_KIND_TENSOR || from->store > ASSAY_STORE_I64 || from->rank > to->rank)
    return false;
  for (int i = 1; i <= from->rank; i++) {
    const int64_t d = from->dims[from->rank - i];
    if (d != 1 && d != to->dims[to->rank - i]) return false;
  }
  return from->size > 0;
}

// A value's element where another of the shape that it is broadcast to has element `at`.
static double element(const assay_tensor_t* t, const assay_tensor_t* to, int64_t at) {
  int64_t index = 0, step = 1;
  for (int i = 1; i <= t->rank; i++) {
    const int64_t d = to->dims[to->rank - i];
    if (t->dims[t->rank - i] != 1) index += at % d * step;
    step *= t->dims[t->rank - i];
    at /= d;
  }
  return t->store == ASSAY_STORE_I64 ? (double)assay_i64(t)[index] : assay_f64(t)[index];
}

static bool is_near(const branches_t* k, double x, double want) {
  return x == want || fabs(x - want) <= 1e-4 * fabs(want) + 1e-6 * k->scale;
}

static void take_places(branches_t* k) {
  const assay_tensor_t* want = k->p->want;
  double sum = 0;
  k->n = want->size < PLACES ? (int)want->size : PLACES;
  for (int i = 0; i < k->n; i++) {
    k->at[i] = want->size <= PLACES ? i : (int64_t)((double)i * (double)want->size / PLACES);
    k->x[i] = assay_f64(k->p->x)[k->at[i]];
    k->want[i] = assay_f64(want)[k->at[i]];
    sum += k->want[i] * k->want[i];
  }
  k->scale = sqrt(sum / (double)k->n);
  for (int i = 0; i < k->n; i++) k->n_right += k->right[i] = is_near(k, k->x[i], k->want[i]);
}

// ---- elsewhere ---------------------------------------------------------------------------------

typedef struct branch {
  const char* program;
  const char* says;
  double (*of)(double x, double v);
} branch_t;

static double itself(double x, double v) { return (void)x, v; }
static double negative(double x, double v) { return (void)x, -v; }
static double sum(double x, double v) { return x + v; }
static double difference(double x, double v) { return x - v; }
static double rest(double x, double v) { return v - x; }
static double product(double x, double v) { return x * v; }
static double quotient(double x, double v) { return x / v; }

static const branch_t BRANCHES[] = {
    {"u", "'%.50s'", itself},
    {"x u +", "what is there plus '%.50s'", sum},
    {"x u -", "what is there less '%.50s'", difference},
    {"u x -", "'%.50s' less what is there", rest},
    {"x u *", "what is there times '%.50s'", product},
    {"x u /", "what is there by '%.50s'", quotient},
    {"u Neg", "less '%.50s'", negative},
};

// `condition` is a program that gives where what is there is right.
static assay_status_t put(const branches_t* k, const char* condition,
                          const assay_missing_other_t* c, const char* otherwise,
                          const assay_missing_other_t* u, const char* what) {
  char program[ASSAY_FORMULA_TEXT], text[160];
  snprintf(program, sizeof program, "%s x %s where", condition, otherwise);
  snprintf(text, sizeof text, "%s, where '%.40s' says so, is missing", what, c->value->name);
  const assay_formula_terms_t terms = {
      .program = program, .value = c->value, .value2 = u ? u->value : NULL};
  return assay_missing_try(k->s, k->p, &terms, "lost branch", text);
}

static bool explains(const branches_t* k, const branch_t* b, const assay_tensor_t* u) {
  for (int i = 0; i < k->n; i++)
    if (!k->right[i] && !is_near(k, b->of(k->x[i], element(u, k->p->want, k->at[i])), k->want[i]))
      return false;
  return true;
}

// need = slope x + offset where it is not right; false: it is no line.
static bool fit_line(const branches_t* k, double* slope, double* offset) {
  double n = 0, mx = 0, my = 0, xx = 0, xy = 0;
  for (int i = 0; i < k->n; i++)
    if (!k->right[i]) n++, mx += k->x[i], my += k->want[i];
  mx /= n;
  my /= n;
  for (int i = 0; i < k->n; i++)
    if (!k->right[i]) {
      xx += (k->x[i] - mx) * (k->x[i] - mx);
      xy += (k->x[i] - mx) * (k->want[i] - my);
    }
  *slope = xx > 1e-20 ? xy / xx : 0;
  *offset = my - *slope * mx;
  for (int i = 0; i < k->n; i++)
    if (!k->right[i] && !is_near(k, *slope * k->x[i] + *offset, k->want[i])) return false;
  return n >= 4;
}

static assay_status_t with_line(const branches_t* k, const char* condition,
                                const assay_missing_other_t* c) {
  double slope = 0, offset = 0;
  char program[64], what[80];
  if (!fit_line(k, &slope, &offset)) return NULL;
  if (fabs(slope) < 1e-9)
    snprintf(program, sizeof program, "%.7g", offset);
  else if (fabs(slope - 1) < 1e-5)
    snprintf(program, sizeof program, "x %.7g +", offset);
  else
    snprintf(program, sizeof program, "x %.7g * %.7g +", slope, offset);
  snprintf(what, sizeof what, "%.5g times what is there plus %.5g", slope, offset);
  return put(k, condition, c, program, NULL, what);
}

static assay_status_t with_condition(const branches_t* k, const char* condition,
                                     const assay_missing_other_t* c) {
  const assay_missing_search_t* s = k->s;
  for (size_t i = 0, n = 0; i < s->n_others && n < VALUES && !assay_missing_is_over(s); i++) {
    const assay_missing_other_t* u = &s->others[i];
    if (u->tensor->store != ASSAY_STORE_F64 || !broadcasts(u->tensor, k->p->want)) continue;
    n++;
    for (size_t b = 0; b < sizeof BRANCHES / sizeof *BRANCHES; b++) {
      char what[120];
      if (!explains(k, &BRANCHES[b], u->tensor)) continue;
      snprintf(what, sizeof what, BRANCHES[b].says, u->value->name);
      ASSAY_TRY(put(k, condition, c, BRANCHES[b].program, u, what));
    }
  }
  return assay_missing_is_over(s) ? NULL : with_line(k, condition, c);
}

// ---- conditions --------------------------------------------------------------------------------

// Whether what is there is right where a condition is `when`, and only there.
static bool chooses(const branches_t* k, const assay_tensor_t* c, bool when) {
  bool wrong_elsewhere = false;
  for (int i = 0; i < k->n; i++) {
    const bool is = (element(c, k->p->want, k->at[i]) != 0) == when;
    if (is && !k->right[i]) return false;
    wrong_elsewhere |= !is && !k->right[i];
  }
  return wrong_elsewhere;
}

// Of the numbers between two, the one that a person would have written: of the fewest digits, and
// of those the one nearest to the middle.
static double roundest(double from, double to) {
  enum { DIGITS = 9 };
  static const double USUAL[] = {0, 1, -1, 0.5, -0.5, 2, 3, 6, -3, 10};
  const double middle = (from + to) / 2;
  for (size_t i = 0; i < sizeof USUAL / sizeof *USUAL; i++)
    if (from <= USUAL[i] && USUAL[i] <= to) return USUAL[i];
  for (double unit = 1e9; unit > 1e-12 && isfinite(middle); unit /= 10) {
    const double x = floor(middle / unit + 0.5) * unit;
    if (from <= x && x <= to) {
      char text[32];
      snprintf(text, sizeof text, "%.*g", DIGITS, x);
      return strtod(text, NULL);
    }
  }
  return middle;
}

// Whether a number parts the places that are right from the others. *above: those are above it.
static bool parts(const branches_t* k, const assay_tensor_t* c, bool* above, double* number) {
  double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
  for (int i = 0; i < k->n; i++) {
    const double v = element(c, k->p->want, k->at[i]);
    low[k->right[i]] = fmin(low[k->right[i]], v);
    high[k->right[i]] = fmax(high[k->right[i]], v);
  }
  *above = low[1] > high[0];
  if (!*above && !(high[1] < low[0])) return false;
  const double from = *above ? high[0] : high[1], to = *above ? low[1] : low[0];
  *number = roundest(from, to);
  return isfinite(*number);
}

static assay_status_t by_condition(const branches_t* k, const assay_missing_other_t* c) {
  const bool is_bool = c->tensor->type == ASSAY_TYPE_BOOL;
  bool above = false;
  double number = 0;
  char condition[64];
  if (is_bool) {
    if (chooses(k, c->tensor, true)) ASSAY_TRY(with_condition(k, "v", c));
    return chooses(k, c->tensor, false) && !assay_missing_is_over(k->s)
               ? with_condition(k, "v not", c)
               : NULL;
  }
  if (c->tensor->store != ASSAY_STORE_F64 || !parts(k, c->tensor, &above, &number)) return NULL;
  snprintf(condition, sizeof condition, "v %.7g %s", number, above ? ">" : "<");
  return with_condition(k, condition, c);
}

static assay_status_t try_conditions(const branches_t* k) {
  const assay_missing_search_t* s = k->s;
  for (int numbers = 0; numbers < 2; numbers++)
    for (size_t i = 0, n = 0; i < s->n_others && n < CONDITIONS && !assay_missing_is_over(s); i++) {
      const assay_missing_other_t* c = &s->others[i];
      if (!c->varies || (c->tensor->type != ASSAY_TYPE_BOOL) != numbers ||
          !broadcasts(c->tensor, k->p->want))
        continue;
      n++;
      ASSAY_TRY(by_condition(k, c));
    }
  return NULL;
}

assay_status_t assay_missing_branches(assay_missing_search_t* s, const assay_missing_place_t* p) {
  const int few = s->holdout ? 1 : 3;
  branches_t* k = NULL;
  if (!p->want || !p->x || p->x->store != ASSAY_STORE_F64 || !assay_tensor_alike(p->x, p->want) ||
      p->want->size < 4)
    return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *k, &k));
  k->s = s;
  k->p = p;
  take_places(k);
  assay_status_t st = k->n_right >= few && k->n - k->n_right >= few ? try_conditions(k) : NULL;
  assay_free(k);
  return st;
}
