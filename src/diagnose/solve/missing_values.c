// Another value of the model added, multiplied, chosen by or taken instead.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { SAMPLES = 512, DIRECT = 64 };

// ---- a few elements ----------------------------------------------------------------------------

// Elements of what is there and of what has to be, at places spread over them.
typedef struct sampled {
  const assay_missing_place_t* p;
  int n;
  int64_t at[SAMPLES];
  double x[SAMPLES], want[SAMPLES];
} sampled_t;

static void take_samples(const assay_missing_place_t* p, sampled_t* out) {
  const int64_t size = p->want->size;
  out->p = p;
  out->n = size < SAMPLES ? (int)size : SAMPLES;
  for (int i = 0; i < out->n; i++) {
    const int64_t at = size <= SAMPLES ? i : (int64_t)((double)i * (double)size / SAMPLES + i % 7);
    out->at[i] = at < size ? at : size - 1;
    out->x[i] = assay_f64(p->x)[out->at[i]];
    out->want[i] = assay_f64(p->want)[out->at[i]];
  }
}

// Whether a value can be broadcast to the shape of another.
static bool broadcasts(const assay_tensor_t* from, const assay_tensor_t* to) {
  if (from->rank > to->rank) return false;
  for (int i = 1; i <= from->rank; i++) {
    const int64_t d = from->dims[from->rank - i];
    if (d != 1 && d != to->dims[to->rank - i]) return false;
  }
  return true;
}

double assay_missing_element(const assay_tensor_t* t, const assay_tensor_t* to, int64_t at) {
  int64_t index = 0, step = 1;
  for (int i = 1; i <= t->rank; i++) {
    const int64_t d = to->dims[to->rank - i];
    if (t->dims[t->rank - i] != 1) index += at % d * step;
    step *= t->dims[t->rank - i];
    at /= d;
  }
  return t->store == ASSAY_STORE_I64 ? (double)assay_i64(t)[index] : assay_f64(t)[index];
}

// ---- lines -------------------------------------------------------------------------------------

// need = offset + factor v, by least squares; holds where little is left.
typedef struct line {
  double offset, factor;
  bool holds;
} line_t;

static line_t fit_line(const double* v, const double* need, int n) {
  double mv = 0, mn = 0, vv = 0, vn = 0, nn = 0, left = 0;
  for (int i = 0; i < n; i++) {
    mv += v[i] / n;
    mn += need[i] / n;
  }
  for (int i = 0; i < n; i++) {
    vv += (v[i] - mv) * (v[i] - mv);
    vn += (v[i] - mv) * (need[i] - mn);
    nn += need[i] * need[i];
  }
  line_t l = {0};
  if (n < 4 || !(vv > 1e-12 * n * mv * mv) || !(nn > 0) || !isfinite(vn)) return l;
  l.factor = vn / vv;
  l.offset = mn - l.factor * mv;
  for (int i = 0; i < n; i++) {
    const double r = need[i] - l.offset - l.factor * v[i];
    left += r * r;
  }
  l.holds = left <= 1e-6 * nn;
  return l;
}

// A number as it was meant, in four digits: 1 for 0.9999998.
static double as_meant(double x) {
  char text[32];
  snprintf(text, sizeof text, "%.3e", x);
  const double y = strtod(text, NULL);
  return fabs(x - y) <= 2e-6 * fabs(y) ? y : x;
}

// ---- sums, products, choices -------------------------------------------------------------------

// The program of a line over v, "" of one that does nothing.
static void line_program(const line_t* l, const char* op, char* out, size_t size) {
  const double factor = as_meant(l->factor), offset = as_meant(l->offset);
  const bool shifted = fabs(offset) > 1e-6 * fabs(factor);
  char by[64] = "", plus[64] = "";
  if (factor != 1) snprintf(by, sizeof by, " %.9g *", factor);
  if (shifted) snprintf(plus, sizeof plus, " %.9g +", offset);
  snprintf(out, size, "x v cast%s%s %s", by, plus, op);
}

static assay_status_t try_line(assay_missing_search_t* s, const sampled_t* k,
                               const assay_missing_other_t* o, const double* need, const double* v,
                               int n, const char* op, const char* after, const char* says) {
  char program[ASSAY_FORMULA_TEXT], text[160], line[96];
  const line_t l = fit_line(v, need, n);
  if (!l.holds) return NULL;
  line_program(&l, op, line, sizeof line);
  snprintf(program, sizeof program, "%s%s", line, after);
  const bool taken_off = *op == '+' && l.factor < 0;
  snprintf(text, sizeof text, "'%.60s' is not %s", o->value->name, taken_off ? "taken off" : says);
  const assay_formula_terms_t terms = {.program = program, .value = o->value};
  return assay_missing_try(s, k->p, &terms, "missing node", text);
}

// Sums and products with one value, and a Relu of the sum.
static assay_status_t combine(assay_missing_search_t* s, const sampled_t* k,
                              const assay_missing_other_t* o) {
  double need[SAMPLES], v[SAMPLES];
  int n = 0;
  for (int i = 0; i < k->n; i++) {
    v[i] = assay_missing_element(o->tensor, k->p->want, k->at[i]);
    need[i] = k->want[i] - k->x[i];
  }
  ASSAY_TRY(try_line(s, k, o, need, v, k->n, "+", "", "added"));
  for (int i = 0; i < k->n; i++) {
    const double b = assay_missing_element(o->tensor, k->p->want, k->at[i]);
    if (fabs(k->x[i]) < 1e-3 || !isfinite(k->want[i] / k->x[i])) continue;
    v[n] = b;
    need[n++] = k->want[i] / k->x[i];
  }
  ASSAY_TRY(try_line(s, k, o, need, v, n, "*", "", "multiplied"));
  n = 0;
  for (int i = 0; i < k->n; i++) {
    if (fabs(k->want[i]) < 1e-3 || !isfinite(k->x[i] / k->want[i])) continue;
    v[n] = assay_missing_element(o->tensor, k->p->want, k->at[i]);
    need[n++] = k->x[i] / k->want[i];
  }
  ASSAY_TRY(try_line(s, k, o, need, v, n, "/", "", "divided by"));
  n = 0;
  for (int i = 0; i < k->n; i++) {
    if (!(k->want[i] > 0)) continue;
    v[n] = assay_missing_element(o->tensor, k->p->want, k->at[i]);
    need[n++] = k->want[i] - k->x[i];
  }
  if (n == k->n || n < 8) return NULL;
  return try_line(s, k, o, need, v, n, "+", " Relu", "added, with Relu after it,");
}

// The larger or the smaller one of both, where it is each of them somewhere.
static assay_status_t choose_extreme(assay_missing_search_t* s, const sampled_t* k,
                                     const assay_missing_other_t* o, bool larger) {
  double scale = 0;
  int taken = 0, kept = 0;
  char text[160];
  if (o->tensor->store != ASSAY_STORE_F64) return NULL;
  for (int i = 0; i < k->n; i++) scale = fmax(scale, fabs(k->want[i]));
  for (int i = 0; i < k->n; i++) {
    const double v = assay_missing_element(o->tensor, k->p->want, k->at[i]);
    const double made = larger ? fmax(k->x[i], v) : fmin(k->x[i], v);
    if (!(fabs(made - k->want[i]) <= 1e-4 * fabs(k->want[i]) + 1e-6 * scale)) return NULL;
    taken += made == v && v != k->x[i];
    kept += made == k->x[i] && v != k->x[i];
  }
  if (!taken || !kept) return NULL;
  snprintf(text, sizeof text, "%s with '%.60s' is missing", larger ? "Max" : "Min", o->value->name);
  const assay_formula_terms_t terms = {.program = larger ? "x v max" : "x v min",
                                       .value = o->value};
  return assay_missing_try(s, k->p, &terms, "missing node", text);
}

// Where a condition holds, x stays; elsewhere it is one number.
static assay_status_t choose(assay_missing_search_t* s, const sampled_t* k,
                             const assay_missing_other_t* o, bool keep) {
  double number = NAN;
  int kept = 0, others = 0;
  char program[ASSAY_FORMULA_TEXT], text[160];
  for (int i = 0; i < k->n; i++) {
    const bool is = assay_missing_element(o->tensor, k->p->want, k->at[i]) != 0;
    const double near = 1e-3 * fabs(k->want[i]) + 1e-30;
    if (is == keep) {
      if (!(fabs(k->want[i] - k->x[i]) <= near)) return NULL;
      kept++;
    } else {
      if (others && !(fabs(k->want[i] - number) <= near) && k->want[i] != number) return NULL;
      number = k->want[i];
      others++;
    }
  }
  if (!kept || !others) return NULL;
  snprintf(program, sizeof program, "v%s%s x %.9g where",
           o->tensor->type == ASSAY_TYPE_BOOL ? "" : " bool", keep ? "" : " not", number);
  snprintf(text, sizeof text, "the mask '%.60s' (%.4g where it is %s) is missing", o->value->name,
           number, keep ? "false" : "true");
  const assay_formula_terms_t terms = {.program = program, .value = o->value};
  return assay_missing_try(s, k->p, &terms, "missing node", text);
}

static assay_status_t by_samples(assay_missing_search_t* s, const assay_missing_place_t* p) {
  sampled_t* k = NULL;
  if (p->x->store != ASSAY_STORE_F64 || !assay_tensor_alike(p->x, p->want)) return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *k, &k));
  take_samples(p, k);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < s->n_others && !assay_missing_is_over(s); i++) {
    const assay_missing_other_t* o = &s->others[i];
    if (!broadcasts(o->tensor, p->want) || o->tensor->size < 2) continue;
    st = combine(s, k, o);
    if (!st) st = choose_extreme(s, k, o, true);
    if (!st) st = choose_extreme(s, k, o, false);
    if (!st) st = choose(s, k, o, true);
    if (!st) st = choose(s, k, o, false);
  }
  assay_free(k);
  return st;
}

// ---- without knowing what has to be there ------------------------------------------------------

static assay_status_t instead(assay_missing_search_t* s, const assay_missing_place_t* p,
                              const assay_missing_other_t* o) {
  assay_missing_place_t other = *p;
  other.x = o->tensor;
  other.source = o->value;
  return assay_missing_try(s, &other, &(assay_formula_terms_t){.program = "x"}, "another source",
                           "take");
}

static assay_status_t added(assay_missing_search_t* s, const assay_missing_place_t* p,
                            const assay_missing_other_t* o, const char* program, const char* says) {
  char text[160];
  snprintf(text, sizeof text, "'%.60s' is not %s", o->value->name, says);
  const assay_formula_terms_t terms = {.program = program, .value = o->value};
  return assay_missing_try(s, p, &terms, "missing node", text);
}

static bool alike_type(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->type == b->type && a->store == b->store;
}

// An input that was left out may be anything of a fitting type, also with one dimension more.
static assay_status_t directly(assay_missing_search_t* s, const assay_missing_place_t* p) {
  const bool left_out = !p->x;
  size_t n = 0;
  for (size_t i = 0; i < s->n_others && n < DIRECT && !assay_missing_is_over(s); i++) {
    const assay_missing_other_t* o = &s->others[i];
    if (p->index < s->node->n_inputs && o->value == s->node->inputs[p->index]) continue;
    if (left_out) {
      if (o->value->constant) continue;
      n++;
      ASSAY_TRY(instead(s, p, o));
      assay_missing_place_t other = *p;
      other.x = o->tensor;
      other.source = o->value;
      const assay_formula_terms_t terms = {.program = "x unsqueeze", .axes = {0}, .n_axes = 1};
      if (!assay_missing_is_over(s) && o->tensor->rank == 2)
        ASSAY_TRY(assay_missing_try(s, &other, &terms, "another source", "take"));
      continue;
    }
    if (!alike_type(o->tensor, p->x) || o->tensor->size < 2 || !broadcasts(o->tensor, p->x))
      continue;
    n++;
    if (assay_tensor_same_shape(o->tensor, p->x)) ASSAY_TRY(instead(s, p, o));
    if (p->x->store != ASSAY_STORE_F64) continue;
    ASSAY_TRY(added(s, p, o, "x v +", "added"));
    ASSAY_TRY(added(s, p, o, "x v *", "multiplied"));
    ASSAY_TRY(added(s, p, o, "x v -", "taken off"));
    ASSAY_TRY(added(s, p, o, "x v /", "divided by"));
    ASSAY_TRY(added(s, p, o, "x v + Relu", "added, with Relu after it,"));
  }
  return NULL;
}

assay_status_t assay_missing_values(assay_missing_search_t* s, const assay_missing_place_t* p) {
  return p->want ? by_samples(s, p) : directly(s, p);
}
