// A formula of two or three values that the model has, with a factor and a summand: f(c (g(a) op
// h(b)) + d), c (a b) + d of a third, a mixture of two by a third.
//
// All of a grammar is gone through on a few elements, the shortest formulas first. What each
// function makes of each value is computed once; golden is read backwards through the outer
// function; what then has to be linear is told by three elements for nearly all. What remains is
// fitted on all of them and tried as a whole.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/formulas/grammar.h"
#include "diagnose/solve/missing.h"

enum { VALUES = 14, PLACES = 40, LEAST = 12, THIRDS = 10 };

// ---- elements ----------------------------------------------------------------------------------

typedef struct pairs {
  assay_missing_search_t* s;
  const assay_missing_place_t* p;
  int n;  // places
  int64_t at[PLACES];
  double need[ASSAY_GRAMMAR_OUTER][PLACES], size[ASSAY_GRAMMAR_OUTER];
  bool has_need[ASSAY_GRAMMAR_OUTER];
  const assay_missing_other_t* value[VALUES];  // the first may be what is there: `there`
  assay_missing_other_t there;
  int values;
  double of[VALUES][ASSAY_GRAMMAR_INNER][PLACES];
  bool has[VALUES][ASSAY_GRAMMAR_INNER];
} pairs_t;

// Whether elements tell more than a number or two.
static bool is_varied(const double* x, int n) {
  enum { FEW = 6 };
  double seen[FEW];
  int count = 0;
  for (int i = 0; i < n && count < FEW; i++) {
    bool is_new = true;
    if (!isfinite(x[i])) return false;
    for (int k = 0; k < count; k++) is_new &= seen[k] != x[i];
    if (is_new) seen[count++] = x[i];
  }
  return count == FEW;
}

static void take_golden(pairs_t* k) {
  const assay_tensor_t* want = k->p->want;
  k->n = want->size < PLACES ? (int)want->size : PLACES;
  for (int i = 0; i < k->n; i++) {
    const int64_t at =
        want->size <= PLACES ? i : (int64_t)((double)i * (double)want->size / PLACES) + i % 5;
    k->at[i] = at < want->size ? at : want->size - 1;
  }
  for (size_t f = 0; f < ASSAY_GRAMMAR_OUTER; f++) {
    double sum = 0;
    for (int i = 0; i < k->n; i++) {
      k->need[f][i] = assay_grammar_outer[f].inverse(assay_f64(want)[k->at[i]]);
      sum += k->need[f][i] * k->need[f][i];
    }
    k->size[f] = sqrt(sum / k->n);
    k->has_need[f] = is_varied(k->need[f], k->n) && k->size[f] > 0;
  }
}

static bool broadcasts(const assay_tensor_t* from, const assay_tensor_t* to) {
  if (from->rank > to->rank) return false;
  for (int i = 1; i <= from->rank; i++)
    if (from->dims[from->rank - i] != 1 && from->dims[from->rank - i] != to->dims[to->rank - i])
      return false;
  return true;
}

static void add_value(pairs_t* k, const assay_missing_other_t* o) {
  const assay_tensor_t* t = o->tensor;
  if (k->values == VALUES || t->store != ASSAY_STORE_F64 || t->size < 2 ||
      t->type != k->p->want->type || !broadcasts(t, k->p->want))
    return;
  for (int v = 0; v < k->values; v++)
    if (k->value[v]->value == o->value) return;
  for (size_t g = 0; g < ASSAY_GRAMMAR_INNER; g++) {
    double* to = k->of[k->values][g];
    k->has[k->values][g] = true;
    for (int i = 0; i < k->n; i++) {
      to[i] = assay_grammar_inner[g].of(assay_missing_element(t, k->p->want, k->at[i]));
      k->has[k->values][g] &= isfinite(to[i]) != 0;
    }
  }
  k->value[k->values++] = o;
}

static bool is_read_by(const assay_node_t* n, const assay_value_t* v) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] == v) return true;
  return false;
}

// What is there, what the node reads, then what is near before it.
static void take_values(pairs_t* k) {
  k->there = (assay_missing_other_t){.value = k->p->source, .tensor = k->p->x, .varies = true};
  if (k->p->x && k->p->x->kind == ASSAY_KIND_TENSOR) add_value(k, &k->there);
  for (int own = 1; own >= 0; own--)
    for (size_t i = 0; i < k->s->n_others; i++)
      if (is_read_by(k->s->node, k->s->others[i].value) == own) add_value(k, &k->s->others[i]);
}

// ---- lines -------------------------------------------------------------------------------------

typedef struct line {
  double factor, offset;
} line_t;

static bool is_near(double x, double want, double size) {
  return fabs(x - want) <= 1e-5 * (fabs(want) + size);
}

// need = offset + factor made: of the two elements that lie farthest apart among the first ones,
// and the others have to lie on it. plain: factor 1 and offset 0.
static bool fits_line(const pairs_t* k, size_t f, const double* made, bool plain, line_t* out) {
  const double* need = k->need[f];
  int low = 0, high = 0;
  *out = (line_t){1, 0};
  for (int i = 0; i < k->n; i++) {
    if (!isfinite(made[i])) return false;
    if (made[i] < made[low]) low = i;
    if (made[i] > made[high]) high = i;
  }
  if (!(made[high] > made[low])) return false;
  if (!plain) {
    out->factor = (need[high] - need[low]) / (made[high] - made[low]);
    out->offset = need[low] - out->factor * made[low];
  }
  if (out->factor == 0) return false;
  for (int i = 0; i < k->n; i++)
    if (!is_near(out->offset + out->factor * made[i], need[i], k->size[f])) return false;
  return true;
}

// A number as it was meant, in four digits: 1 for 0.9999998.
static double as_meant(double x, double size) {
  char text[32];
  snprintf(text, sizeof text, "%.3e", x);
  const double y = strtod(text, NULL);
  if (fabs(x) <= 1e-5 * size) return 0;
  return fabs(x - y) <= 2e-5 * fabs(y) ? y : x;
}

static void append_line(char* program, size_t size, const line_t* l, double need) {
  const double factor = as_meant(l->factor, 0), offset = as_meant(l->offset, need);
  size_t at = strlen(program);
  if (factor != 1 && at < size) at += (size_t)snprintf(program + at, size - at, " %.9g *", factor);
  if (offset != 0 && at < size) snprintf(program + at, size - at, " %.9g +", offset);
}

// Names what a formula is of. What is there can only be x.
static assay_status_t try_formula(const pairs_t* k, const char* program, const char* says, int a,
                                  int b, int c) {
  char text[160], third[48] = "";
  assay_missing_place_t p = *k->p;
  const assay_missing_other_t *v = k->value[b], *u = c < 0 ? NULL : k->value[c];
  const assay_formula_terms_t terms = {
      .program = program, .value = v->value, .value2 = u ? u->value : NULL};
  p.x = k->value[a]->tensor;
  p.source = k->value[a]->value;
  if (u) snprintf(third, sizeof third, ", u = '%.30s'", u->value->name);
  snprintf(text, sizeof text, "%.72s with v = '%.30s'%s%s", says, v->value->name, third,
           p.source ? " and x =" : "");
  return assay_missing_try(k->s, &p, &terms, "another formula", text);
}

static bool is_there(const pairs_t* k, int v) { return k->value[v] == &k->there; }

// ---- of two ------------------------------------------------------------------------------------

typedef struct choice {
  int a, b;
  size_t g, h, op, f;
} choice_t;

// A template with g(a) and h(b) filled in: as a program, or for people.
static void fill(const choice_t* x, const char* from, bool for_people, char* out, size_t size) {
  size_t at = 0;
  for (const char* c = from; *c && at + 1 < size; c++) {
    const assay_grammar_inner_t* f = *c == '%'   ? &assay_grammar_inner[x->g]
                                     : *c == '&' ? &assay_grammar_inner[x->h]
                                                 : NULL;
    const char name = *c == '%' ? 'x' : 'v';
    if (!f)
      out[at++] = *c;
    else if (!for_people)
      at += (size_t)snprintf(out + at, size - at, "%c%s", name, f->program);
    else
      at += (size_t)snprintf(out + at, size - at, *f->says ? "%s(%c)" : "%s%c", f->says, name);
  }
  out[at < size ? at : size - 1] = 0;
}

static assay_status_t try_choice(const pairs_t* k, const choice_t* x, const line_t* line,
                                 bool plain) {
  char program[ASSAY_FORMULA_TEXT], inside[72], says[120];
  const char* outer = assay_grammar_outer[x->f].says;
  fill(x, assay_grammar_operators[x->op].program, false, program, sizeof program);
  fill(x, assay_grammar_operators[x->op].says, true, inside, sizeof inside);
  if (!plain) append_line(program, sizeof program, line, k->size[x->f]);
  const size_t at = strlen(program);
  snprintf(program + at, sizeof program - at, "%s", assay_grammar_outer[x->f].program);
  if (plain)
    snprintf(says, sizeof says, *outer ? "%s(%s)" : "%s%s", outer, inside);
  else
    snprintf(says, sizeof says, *outer ? "%s(%.5g (%s) + %.5g)" : "%s%.5g (%s) + %.5g", outer,
             line->factor, inside, as_meant(line->offset, k->size[x->f]));
  return try_formula(k, program, says, x->a, x->b, -1);
}

static assay_status_t try_pair(const pairs_t* k, const choice_t* x, bool plain) {
  double made[PLACES];
  line_t line;
  const double *a = k->of[x->a][0], *b = k->of[x->b][0];
  const double *ga = k->of[x->a][x->g], *hb = k->of[x->b][x->h];
  int chosen = 0;
  for (int i = 0; i < k->n; i++) {
    made[i] = assay_grammar_combine(x->op, a[i], b[i], ga[i], hb[i]);
    chosen += made[i] == ga[i];
    // Most are no line by their third element.
    if (i == 2 && plain && !is_near(made[0], k->need[x->f][0], k->size[x->f])) return NULL;
    if (i == 2 && !plain) {
      const double* need = k->need[x->f];
      const double l = (made[1] - made[0]) * (need[2] - need[0]);
      const double r = (made[2] - made[0]) * (need[1] - need[0]);
      if (!(fabs(l - r) <=
            1e-3 * (fabs(l) + fabs(r)) +
                1e-6 * k->size[x->f] * (fabs(made[1] - made[0]) + fabs(made[2] - made[0]))))
        return NULL;
    }
  }
  // What is chosen has to be each of the two somewhere.
  if (x->op >= ASSAY_GRAMMAR_CHOICES && (chosen < 2 || chosen > k->n - 2)) return NULL;
  if (!is_varied(made, k->n) || !fits_line(k, x->f, made, plain, &line)) return NULL;
  return try_choice(k, x, &line, plain);
}

// How many words a choice has more than two values and an operator.
static int length_of(size_t g, size_t h, size_t f, bool plain) {
  return (g > 0) + (h > 0) + (f > 0) + !plain;
}

static assay_status_t all_pairs(const pairs_t* k, size_t g, size_t h, size_t f, bool plain) {
  choice_t x = {.g = g, .h = h, .f = f};
  for (x.a = 0; x.a < k->values && !assay_missing_is_over(k->s); x.a++)
    for (x.b = 0; x.b < k->values; x.b++) {
      const bool varies = k->value[x.a]->varies || k->value[x.b]->varies;
      if (x.a == x.b || is_there(k, x.b) || !varies || !k->has[x.a][g] || !k->has[x.b][h]) continue;
      for (x.op = 0; x.op < ASSAY_GRAMMAR_OPERATORS; x.op++) {
        if (assay_grammar_operators[x.op].turns && g == h && x.b < x.a) continue;
        ASSAY_TRY(try_pair(k, &x, plain));
      }
    }
  return NULL;
}

static assay_status_t of_length(const pairs_t* k, int length) {
  for (size_t f = 0; f < ASSAY_GRAMMAR_OUTER; f++)
    for (int plain = 1; k->has_need[f] && plain >= 0; plain--)
      for (size_t g = 0; g < ASSAY_GRAMMAR_INNER; g++)
        for (size_t h = 0; h < ASSAY_GRAMMAR_INNER; h++)
          if (length_of(g, h, f, plain) == length && !assay_missing_is_over(k->s))
            ASSAY_TRY(all_pairs(k, g, h, f, plain));
  return NULL;
}

// ---- of three ----------------------------------------------------------------------------------

static assay_status_t try_three(const pairs_t* k, size_t op, int a, int b, int c) {
  double made[PLACES];
  line_t line;
  for (int i = 0; i < k->n; i++) {
    made[i] = assay_grammar_combine_three(op, k->of[a][0][i], k->of[b][0][i], k->of[c][0][i]);
    if (!is_near(made[i], k->need[0][i], k->size[0])) return NULL;
  }
  if (!is_varied(made, k->n) || !fits_line(k, 0, made, true, &line)) return NULL;
  return try_formula(k, assay_grammar_three[op].program, assay_grammar_three[op].says, a, b, c);
}

static assay_status_t of_three(const pairs_t* k) {
  const int n = k->values < THIRDS ? k->values : THIRDS;
  for (size_t op = 0; op < ASSAY_GRAMMAR_THREE && k->has_need[0]; op++)
    for (int a = 0; a < n && !assay_missing_is_over(k->s); a++)
      for (int b = 0; b < n; b++)
        for (int c = 0; c < n; c++)
          if (a != b && b != c && c != a && !is_there(k, b) && !is_there(k, c))
            ASSAY_TRY(try_three(k, op, a, b, c));
  return NULL;
}

assay_status_t assay_missing_pairs(assay_missing_search_t* s, const assay_missing_place_t* p) {
  enum { LONGEST = 3 };
  pairs_t* k = NULL;
  if (!p->want || p->want->store != ASSAY_STORE_F64 || p->want->size < LEAST) return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *k, &k));
  k->s = s;
  k->p = p;
  take_golden(k);
  take_values(k);
  assay_status_t st = NULL;
  for (int i = 0; !st && i <= LONGEST && !assay_missing_is_over(s); i++) {
    st = of_length(k, i);
    if (!st && i == 1 && !assay_missing_is_over(s)) st = of_three(k);
  }
  assay_free(k);
  return st;
}
