// A function of one value with its numbers: c f(a x + b) + d, c (x + b)^a + d, a clipping, slopes.
//
// Sorted by what is there, what has to be is a curve if it is a function of it. That is looked at
// first; then the function is fitted on some elements, those with the fewest unknown numbers first,
// and tried on all of them. A number that the model has already (an epsilon that stands on the
// wrong side of a root) is no unknown.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/formulas/curves.h"
#include "diagnose/solve/missing.h"

enum { SORTED = 512, NUMBERS = 24 };

// ---- whether it is a function ------------------------------------------------------------------

typedef struct pair {
  double x, want;
} pair_t;

typedef struct curve {
  pair_t at[SORTED];  // by x
  int n;
  double spread;    // standard deviation of what is wanted
  bool is_unknown;  // too few to see whether it is a curve
} curve_t;

static int by_x(const void* a, const void* b) {
  const double x = ((const pair_t*)a)->x, y = ((const pair_t*)b)->x;
  return (x > y) - (x < y);
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// How far elements lie from the line between their neighbours: half of them lie nearer.
static double roughness(const curve_t* c) {
  double off[SORTED];
  int n = 0;
  for (int i = 1; i + 1 < c->n; i++) {
    const pair_t *l = &c->at[i - 1], *m = &c->at[i], *r = &c->at[i + 1];
    const double t = r->x > l->x ? (m->x - l->x) / (r->x - l->x) : 0.5;
    off[n++] = fabs(m->want - l->want - t * (r->want - l->want));
  }
  qsort(off, (size_t)n, sizeof *off, by_size);
  return n ? off[n / 2] : 0;
}

// False: golden is not a function of the value, or is a linear one, which missing_fit.c finds.
static bool take_curve(const assay_missing_place_t* p, curve_t* c) {
  enum { FEW = 48 };
  static const double ROUGH = 3e-3;
  const int64_t size = p->want->size;
  double mx = 0, mw = 0, xx = 0, xw = 0, ww = 0;
  c->n = size < SORTED ? (int)size : SORTED;
  for (int i = 0; i < c->n; i++) {
    const int64_t at = (int64_t)((double)i * (double)size / c->n);
    c->at[i] = (pair_t){assay_f64(p->x)[at], assay_f64(p->want)[at]};
    if (!isfinite(c->at[i].x) || !isfinite(c->at[i].want)) return false;
    mx += c->at[i].x / c->n;
    mw += c->at[i].want / c->n;
  }
  qsort(c->at, (size_t)c->n, sizeof *c->at, by_x);
  for (int i = 0; i < c->n; i++) {
    const double x = c->at[i].x - mx, w = c->at[i].want - mw;
    xx += x * x;
    xw += x * w;
    ww += w * w;
  }
  c->spread = sqrt(ww / c->n);
  c->is_unknown = c->n < FEW;
  if (c->is_unknown) return c->n > 0;
  const double left = xx > 0 ? ww - xw * xw / xx : 0;
  return xx > 0 && left > 1e-10 * ww && roughness(c) <= ROUGH * c->spread;
}

// ---- trying ------------------------------------------------------------------------------------

static assay_status_t try_program(assay_missing_search_t* s, const assay_missing_place_t* p,
                                  const char* program, const char* says) {
  char text[128];
  snprintf(text, sizeof text, p->source ? "%s of" : "%s is missing", says);
  return assay_missing_try(s, p, &(assay_formula_terms_t){.program = program}, "missing node",
                           text);
}

static void append_text(char* to, size_t size, const char* text) {
  const size_t at = strlen(to);
  snprintf(to + at, size - at, "%s", text);
}

static void append(char* to, size_t size, const char* format, double number) {
  const size_t at = strlen(to);
  snprintf(to + at, size - at, format, number);
}

// A factor, or a divisor where that is the rounder one.
static void append_factor(char* to, size_t size, double factor, int digits) {
  char by[32], over[32];
  if (factor == 1) return;
  snprintf(by, sizeof by, "%.*g", digits, factor);
  snprintf(over, sizeof over, "%.*g", digits, 1 / factor);
  const bool divides = strtod(over, NULL) != 0 && strlen(over) < strlen(by);
  const size_t at = strlen(to);
  snprintf(to + at, size - at, divides ? " %s /" : " %s *", divides ? over : by);
}

static double rounded(double x, int digits) {
  char text[32];
  snprintf(text, sizeof text, "%.*g", digits, x);
  return strtod(text, NULL);
}

// "8 tanh(0.125 x) + 1"
static void say(const assay_curve_kind_t* f, const assay_curve_fit_t* fit, char* out, size_t size) {
  *out = 0;
  if (fit->c != 1) append(out, size, "%.5g ", fit->c);
  append_text(out, size, f->name);
  if (f->power) append(out, size, " %.5g ", fit->a);
  append_text(out, size, "(");
  if (fit->a != 1 && !f->power) append(out, size, "%.5g ", fit->a);
  append_text(out, size, "x");
  if (fit->b != 0) append(out, size, " + %.5g", fit->b);
  append_text(out, size, ")");
  if (fit->d != 0) append(out, size, " + %.5g", fit->d);
}

// An exponent as people write it: 1 / 2.2 has more digits than 2.2.
static double written(double x, int digits) {
  const double by = rounded(x, digits), over = 1 / rounded(1 / x, digits);
  return fabs(over - x) < fabs(by - x) ? over : by;
}

// With numbers of few digits first, as people write them.
static assay_status_t try_fit(assay_missing_search_t* s, const assay_missing_place_t* p,
                              const assay_curve_kind_t* f, const assay_curve_fit_t* fit) {
  static const int DIGITS[] = {2, 3, 4, 9};
  char last[ASSAY_FORMULA_TEXT] = "";
  for (size_t i = 0; i < sizeof DIGITS / sizeof *DIGITS && !assay_missing_is_over(s); i++) {
    char program[ASSAY_FORMULA_TEXT] = "x", says[100];
    const double b = rounded(fit->b, DIGITS[i]), d = rounded(fit->d, DIGITS[i]);
    if (!f->power) append_factor(program, sizeof program, fit->a, DIGITS[i]);
    if (b != 0) append(program, sizeof program, " %.9g +", b);
    if (f->power && f->about_zero) append_text(program, sizeof program, " Abs");
    if (f->power) append(program, sizeof program, " %.9g", written(fit->a, DIGITS[i]));
    append_text(program, sizeof program, " ");
    append_text(program, sizeof program, f->program);
    append_factor(program, sizeof program, fit->c, DIGITS[i]);
    if (d != 0) append(program, sizeof program, " %.9g +", d);
    if (strcmp(program, last) == 0) continue;
    memcpy(last, program, sizeof last);
    say(f, fit, says, sizeof says);
    ASSAY_TRY(try_program(s, p, program, says));
  }
  return NULL;
}

// ---- functions with numbers --------------------------------------------------------------------

static assay_status_t fitted(assay_missing_search_t* s, const assay_missing_place_t* p,
                             const curve_t* c) {
  static const double NEAR = 1e-4;
  double x[ASSAY_CURVE_SAMPLES], want[ASSAY_CURVE_SAMPLES];
  const int n = c->n < ASSAY_CURVE_SAMPLES ? c->n : ASSAY_CURVE_SAMPLES;
  for (int i = 0; i < n; i++) {
    const pair_t* q = &c->at[n > 1 ? (int)((int64_t)i * (c->n - 1) / (n - 1)) : 0];
    x[i] = q->x;
    want[i] = q->want;
  }
  for (size_t k = 0; k < assay_curve_forms(); k++) {
    for (size_t i = 0; i < assay_curve_count() && !assay_missing_is_over(s); i++) {
      const assay_curve_kind_t* f = assay_curve_get(i);
      assay_curve_fit_t fit;
      if (assay_curve_fit(f, k, n, x, want, &fit) && fit.left <= NEAR * c->spread)
        ASSAY_TRY(try_fit(s, p, f, &fit));
    }
  }
  return NULL;
}

// ---- numbers that the model has ----------------------------------------------------------------

// Scalars, nearest first, without repetition.
static int list_numbers(const assay_missing_search_t* s, double* out) {
  int n = 0;
  for (size_t i = 0; i < s->n_others && n < NUMBERS; i++) {
    const assay_tensor_t* t = s->others[i].tensor;
    if (s->others[i].varies || t->size != 1 || t->store != ASSAY_STORE_F64) continue;
    const double x = assay_f64(t)[0];
    bool is_new = isfinite(x) && x != 0;
    for (int k = 0; k < n; k++) is_new &= out[k] != x;
    if (is_new) out[n++] = x;
  }
  return n;
}

static double apply(char op, double x, double k) {
  return op == '+' ? x + k : op == '-' ? x - k : op == '*' ? x * k : x / k;
}

static bool agrees(const curve_t* c, const assay_curve_kind_t* f, char op, double k, bool before) {
  static const double NEAR = 3e-6;
  for (int i = 0; i < c->n; i++) {
    const double x = c->at[i].x, w = c->at[i].want;
    const double y = before ? f->of(apply(op, x, k)) : apply(op, f->of(x), k);
    if (!(fabs(y - w) <= NEAR * (fabs(w) + c->spread))) return false;
  }
  return true;
}

// f(x op k) and f(x) op k.
static assay_status_t with_known_number(assay_missing_search_t* s, const assay_missing_place_t* p,
                                        const curve_t* c) {
  double numbers[NUMBERS];
  const int n = list_numbers(s, numbers);
  for (size_t i = 0; i < assay_curve_count(); i++) {
    const assay_curve_kind_t* f = assay_curve_get(i);
    for (int k = 0; k < n * 8 && !assay_missing_is_over(s); k++) {
      if (f->power) break;
      const char op = "+-*/"[k % 8 / 2];
      const bool before = k % 2 == 0;
      const double number = numbers[k / 8];
      char program[ASSAY_FORMULA_TEXT], says[100];
      if (!agrees(c, f, op, number, before)) continue;
      if (before)
        snprintf(program, sizeof program, "x %.9g %c %s", number, op, f->program);
      else
        snprintf(program, sizeof program, "x %s %.9g %c", f->program, number, op);
      snprintf(says, sizeof says, before ? "%s(x %c %.6g)" : "%s(x) %c %.6g", f->name, op, number);
      ASSAY_TRY(try_program(s, p, program, says));
    }
  }
  return NULL;
}

// ---- clipping, slopes, powers ------------------------------------------------------------------

static assay_status_t clipped(assay_missing_search_t* s, const assay_missing_place_t* p,
                              const curve_t* c) {
  double low = INFINITY, high = -INFINITY;
  char program[ASSAY_FORMULA_TEXT] = "x", says[100];
  for (int64_t i = 0; i < p->want->size; i++) {
    low = fmin(low, assay_f64(p->want)[i]);
    high = fmax(high, assay_f64(p->want)[i]);
  }
  int below = 0, above = 0;
  for (int i = 0; i < c->n; i++) {
    const double x = c->at[i].x, w = c->at[i].want;
    if (!(fabs(fmin(fmax(x, low), high) - w) <= 1e-5 * (fabs(w) + c->spread))) return NULL;
    below += x < low;
    above += x > high;
  }
  // A limit that one element shows is that element.
  if (below + above < 3) return NULL;
  if (below) append(program, sizeof program, " %.9g max", low);
  if (above) append(program, sizeof program, " %.9g min", high);
  snprintf(says, sizeof says, "a clipping to %.6g .. %.6g", below ? low : -(double)INFINITY,
           above ? high : (double)INFINITY);
  return try_program(s, p, program, says);
}

static assay_status_t slopes(assay_missing_search_t* s, const assay_missing_place_t* p,
                             const curve_t* c) {
  double below[2] = {0}, above[2] = {0};  // x w, x x
  char program[ASSAY_FORMULA_TEXT], says[100];
  for (int i = 0; i < c->n; i++) {
    double* to = c->at[i].x < 0 ? below : above;
    to[0] += c->at[i].x * c->at[i].want;
    to[1] += c->at[i].x * c->at[i].x;
  }
  if (!(below[1] > 0) || !(above[1] > 0)) return NULL;
  const double a = below[0] / below[1], b = above[0] / above[1];
  for (int i = 0; i < c->n; i++) {
    const double w = c->at[i].want, y = c->at[i].x * (c->at[i].x < 0 ? a : b);
    if (!(fabs(y - w) <= 1e-5 * (fabs(w) + c->spread))) return NULL;
  }
  for (int digits = 3; digits <= 9 && !assay_missing_is_over(s); digits += 6) {
    snprintf(program, sizeof program, "x 0 min %.*g * x 0 max %.*g * +", digits, a, digits, b);
    snprintf(says, sizeof says, "slopes of %.6g below 0 and %.6g above", a, b);
    ASSAY_TRY(try_program(s, p, program, says));
  }
  return NULL;
}

assay_status_t assay_missing_functions(assay_missing_search_t* s, const assay_missing_place_t* p) {
  curve_t* c = NULL;
  if (!p->want || !p->x || p->x->store != ASSAY_STORE_F64 || p->want->store != ASSAY_STORE_F64 ||
      !p->want->size || !assay_tensor_alike(p->x, p->want))
    return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *c, &c));
  assay_status_t st = NULL;
  if (take_curve(p, c)) {
    st = with_known_number(s, p, c);
    if (!st && !assay_missing_is_over(s) && !c->is_unknown) st = clipped(s, p, c);
    if (!st && !assay_missing_is_over(s) && !c->is_unknown) st = slopes(s, p, c);
    if (!st && !assay_missing_is_over(s)) st = fitted(s, p, c);
  }
  assay_free(c);
  return st;
}
