// The arithmetic of dimensions. Every rule holds for all integers that the names can stand for.
#include "ir/dim.h"

#include <stdlib.h>
#include <string.h>

#include "ir/dim_internal.h"

// ---- looking ----------------------------------------------------------------------------------

bool assay_dim_value(const assay_dim_t* d, int64_t* out) {
  if (!d || d->n > 1 || (d->n == 1 && d->terms[0].mono->n)) return false;
  *out = d->n ? d->terms[0].coef : 0;
  return true;
}

const atom_t* dim_as_atom(const assay_dim_t* d) {
  if (!d || d->n != 1 || d->terms[0].coef != 1 || d->terms[0].mono->n != 1) return NULL;
  return d->terms[0].mono->atoms[0];
}

const char* assay_dim_name(const assay_dim_t* d) {
  const atom_t* a = dim_as_atom(d);
  return a && a->kind == DIM_SYMBOL ? a->name : NULL;
}

int64_t dim_constant(const assay_dim_t* d) {
  // The constant term is the last one, as it has the lowest degree.
  return d->n && !d->terms[d->n - 1].mono->n ? d->terms[d->n - 1].coef : 0;
}

bool assay_dim_same(const assay_dim_t* a, const assay_dim_t* b) { return a && a == b; }

bool assay_dim_differ(const assay_dim_t* a, const assay_dim_t* b) {
  if (!a || !b || a == b) return false;
  if (a->range.hi < b->range.lo || b->range.hi < a->range.lo) return true;
  // The same but for the constant term.
  int n = a->n - (dim_constant(a) != 0), m = b->n - (dim_constant(b) != 0);
  if (n != m) return false;
  for (int i = 0; i < n; i++)
    if (a->terms[i].coef != b->terms[i].coef || a->terms[i].mono != b->terms[i].mono) return false;
  return true;
}

// ---- sums and products ------------------------------------------------------------------------

// a + factor * b
static const assay_dim_t* add_scaled(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b,
                                     int64_t factor) {
  if (!a || !b) return NULL;
  build_t sum;
  dim_build_init(&sum);
  for (int i = 0; i < a->n; i++) dim_build_add(&sum, a->terms[i].coef, a->terms[i].mono);
  for (int i = 0; i < b->n; i++) {
    int64_t coef;
    if (__builtin_mul_overflow(b->terms[i].coef, factor, &coef)) return NULL;
    dim_build_add(&sum, coef, b->terms[i].mono);
  }
  return dim_build_done(p, &sum);
}

const assay_dim_t* assay_dim_add(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  return add_scaled(p, a, b, 1);
}

const assay_dim_t* assay_dim_sub(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  return a == b && a ? assay_dim_const(p, 0) : add_scaled(p, a, b, -1);
}

const assay_dim_t* assay_dim_add_i(assay_dims_t* p, const assay_dim_t* a, int64_t b) {
  return add_scaled(p, a, assay_dim_const(p, b), 1);
}

const assay_dim_t* assay_dim_mul_i(assay_dims_t* p, const assay_dim_t* a, int64_t b) {
  return add_scaled(p, assay_dim_const(p, 0), a, b);
}

const assay_dim_t* assay_dim_mul(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  if (!a || !b || a->n * b->n > DIM_MAX_BUILD) return NULL;
  build_t sum;
  dim_build_init(&sum);
  for (int i = 0; i < a->n; i++) {
    for (int j = 0; j < b->n; j++) {
      int64_t coef;
      if (__builtin_mul_overflow(a->terms[i].coef, b->terms[j].coef, &coef)) return NULL;
      dim_build_add(&sum, coef, dim_mono_mul(p, a->terms[i].mono, b->terms[j].mono));
      if (sum.bad) return NULL;
    }
  }
  return dim_build_done(p, &sum);
}

// ---- signs ------------------------------------------------------------------------------------

static bool show_nonnegative(assay_dims_t* p, const assay_dim_t* d, int depth, int* budget);

// d with its term i, which is coef times one atom, replaced by coef times `by`.
static const assay_dim_t* with_term(assay_dims_t* p, const assay_dim_t* d, int i,
                                    const assay_dim_t* by) {
  build_t sum;
  dim_build_init(&sum);
  for (int j = 0; j < d->n; j++)
    if (j != i) dim_build_add(&sum, d->terms[j].coef, d->terms[j].mono);
  return add_scaled(p, dim_build_done(p, &sum), by, d->terms[i].coef);
}

// Whether d is nonnegative because it still is when its term i is replaced by something smaller:
//   -min(a, ...) by -a;   max(a, ...) by a;
//   k*floor(a/c) by k*(a - c + 1)/c for k > 0, by k*a/c for k < 0, with everything times c.
static bool lower_term(assay_dims_t* p, const assay_dim_t* d, int i, int depth, int* budget) {
  const term_t* t = &d->terms[i];
  if (t->mono->n != 1 || t->mono->atoms[0]->kind == DIM_SYMBOL) return false;
  const atom_t* a = t->mono->atoms[0];
  if (a->kind == DIM_FLOORDIV) {
    int64_t c, rest;
    if (!assay_dim_value(a->args[1], &c) || c <= 0) return false;
    const assay_dim_t* by = t->coef < 0 ? a->args[0] : assay_dim_add_i(p, a->args[0], 1 - c);
    // c*d - c*k*floor(a/c) + k*by; the product below may not fit, which is unknown.
    if (__builtin_mul_overflow(t->coef, c, &rest)) return false;
    const assay_dim_t* scaled = assay_dim_mul_i(p, d, c);
    const assay_dim_t* atom = dim_atom(p, DIM_FLOORDIV, 2, a->args);
    scaled = scaled && atom ? add_scaled(p, scaled, atom, -rest) : NULL;
    return show_nonnegative(p, add_scaled(p, scaled, by, t->coef), depth, budget);
  }
  if (a->kind == DIM_BROADCAST || (a->kind == DIM_MIN) != (t->coef < 0)) return false;
  for (int k = 0; k < a->n; k++)
    if (show_nonnegative(p, with_term(p, d, i, a->args[k]), depth, budget)) return true;
  return false;
}

// `budget`: how many expressions may still be looked at.
static bool show_nonnegative(assay_dims_t* p, const assay_dim_t* d, int depth, int* budget) {
  int64_t value;
  if (!d || --*budget < 0) return false;
  if (assay_dim_value(d, &value)) return value >= 0;
  if (d->range.lo >= 0) return true;
  for (int i = 0; depth > 0 && i < d->n; i++)
    if (lower_term(p, d, i, depth - 1, budget)) return true;
  return false;
}

bool dim_is_nonnegative(assay_dims_t* p, const assay_dim_t* d) {
  int budget = 32;
  return show_nonnegative(p, d, 3, &budget);
}

// The least that d is where every name is 1 or more; INT64_MIN if nothing is known.
static int64_t min(const assay_dim_t* d);

static int64_t min_atom(const atom_t* a) {
  int64_t low, divisor;
  switch (a->kind) {
    case DIM_SYMBOL:
      return 1;
    case DIM_FLOORDIV:
      low = min(a->args[0]);
      if (low == INT64_MIN || !assay_dim_value(a->args[1], &divisor) || divisor <= 0) break;
      return dim_floordiv_i64(low, divisor);
    default:
      low = min(a->args[0]);
      for (int i = 1; i < a->n; i++) {
        int64_t x = min(a->args[i]);
        if (a->kind == DIM_MAX ? x > low : x < low) low = x;
      }
      return low;
  }
  return a->range.lo;
}

static int64_t min(const assay_dim_t* d) {
  int64_t sum = 0;
  for (int i = 0; i < d->n; i++) {
    const mono_t* m = d->terms[i].mono;
    int64_t product = d->terms[i].coef;
    if (m->n && product < 0) return d->range.lo;  // there is no limit above to names
    for (int k = 0; k < m->n; k++) {
      int64_t x = min_atom(m->atoms[k]);
      if (x < 0 || !assay_mul_i64(product, x, &product)) return d->range.lo;
    }
    if (!assay_add_i64(sum, product, &sum)) return d->range.lo;
  }
  return sum > d->range.lo ? sum : d->range.lo;
}

bool assay_dim_is_size(assay_dims_t* p, const assay_dim_t* d) {
  return d && (dim_is_nonnegative(p, d) || min(d) >= 1);
}

// ---- division by a number ---------------------------------------------------------------------

// Not negative; 1 for the one result that int64_t has not.
static int64_t gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) {
    uint64_t r = x % y;
    x = y;
    y = r;
  }
  return x > INT64_MAX ? 1 : (int64_t)x;
}

// Splits a into b*q + r: r's constant term within 0..b-1, its other coefficients smaller than b
// in magnitude, with the sign that they had.
static bool split(assay_dims_t* p, const assay_dim_t* a, int64_t b, const assay_dim_t** q,
                  const assay_dim_t** r) {
  build_t quotient, rest;
  dim_build_init(&quotient);
  dim_build_init(&rest);
  for (int i = 0; i < a->n; i++) {
    int64_t k = a->terms[i].coef / b, c = a->terms[i].coef % b;
    if (c < 0 && !a->terms[i].mono->n) {
      k--;
      c += b;
    }
    dim_build_add(&quotient, k, a->terms[i].mono);
    dim_build_add(&rest, c, a->terms[i].mono);
  }
  *q = dim_build_done(p, &quotient);
  *r = dim_build_done(p, &rest);
  return *q && *r;
}

// What all coefficients but the constant's have in common with b.
static int64_t common_factor(const assay_dim_t* a, int64_t b) {
  for (int i = 0; i < a->n; i++)
    if (a->terms[i].mono->n) b = gcd(b, a->terms[i].coef);
  return b;
}

// If a is floor(x/y) + k with a number y > 0: floor(a/b) is floor((x + k*y)/(y*b)), and *x, *y
// are set to that dividend and divisor.
static bool unnest(assay_dims_t* p, const assay_dim_t* a, int64_t b, const assay_dim_t** x,
                   int64_t* y) {
  int64_t k = dim_constant(a), divisor, shift;
  const atom_t* atom = dim_as_atom(k ? assay_dim_add_i(p, a, -k) : a);
  if (!atom || atom->kind != DIM_FLOORDIV || !assay_dim_value(atom->args[1], &divisor) ||
      divisor <= 0 || __builtin_mul_overflow(divisor, k, &shift) ||
      __builtin_mul_overflow(divisor, b, y))
    return false;
  *x = assay_dim_add_i(p, atom->args[0], shift);
  return *x != NULL;
}

// floor(a/b), b > 0. Each step back to the beginning makes a, its coefficients or its depth
// smaller.
static const assay_dim_t* floordiv_i(assay_dims_t* p, const assay_dim_t* a, int64_t b) {
  const assay_dim_t *q, *r, *x;
  if (!a) return NULL;
  if (b == 1) return a;
  if (!split(p, a, b, &q, &r)) return NULL;
  if (q->n) return assay_dim_add(p, q, floordiv_i(p, r, b));
  int64_t value, y;
  if (assay_dim_value(a, &value)) return assay_dim_const(p, 0);  // 0 <= value < b
  if (a->terms[0].coef < 0) {
    // floor(-x/b) is -ceil(x/b), so that N - (-N)//2 and N + ceil(N/2) are one.
    x = assay_dim_add_i(p, assay_dim_mul_i(p, a, -1), b - 1);
    return assay_dim_mul_i(p, floordiv_i(p, x, b), -1);
  }
  int64_t g = common_factor(a, b);
  if (g > 1) {
    // floor((g*x + k)/(g*c)) is floor((x + floor(k/g))/c).
    if (!split(p, a, g, &q, &r)) return NULL;
    return floordiv_i(p, q, b / g);
  }
  if (unnest(p, a, b, &x, &y)) return floordiv_i(p, x, y);
  if (a->range.lo >= 0 && a->range.hi < b) return assay_dim_const(p, 0);
  const assay_dim_t* args[2] = {a, assay_dim_const(p, b)};
  return dim_atom(p, DIM_FLOORDIV, 2, args);
}

// ---- division by an expression ----------------------------------------------------------------

static const assay_dim_t* one_term(assay_dims_t* p, int64_t coef, const mono_t* mono) {
  build_t b;
  dim_build_init(&b);
  dim_build_add(&b, coef, mono);
  return dim_build_done(p, &b);
}

// a/b if that has no rest, by long division: as the order of terms is kept by products, the first
// and the last term of a must be divisible by those of b.
static const assay_dim_t* exact_quotient(assay_dims_t* p, const assay_dim_t* a,
                                         const assay_dim_t* b) {
  const assay_dim_t *q = assay_dim_const(p, 0), *r = a;
  const term_t *first = &b->terms[0], *last = &b->terms[b->n - 1];
  for (int step = 0; step < DIM_MAX_TERMS && r && q && r->n; step++) {
    const term_t *t = &r->terms[0], *end = &r->terms[r->n - 1];
    // INT64_MIN / -1 is not a number.
    if (t->coef == INT64_MIN || end->coef == INT64_MIN) return NULL;
    if (t->coef % first->coef || end->coef % last->coef || !dim_mono_div(p, end->mono, last->mono))
      return NULL;
    const mono_t* mono = dim_mono_div(p, t->mono, first->mono);
    const assay_dim_t* k = mono ? one_term(p, t->coef / first->coef, mono) : NULL;
    q = assay_dim_add(p, q, k);
    r = assay_dim_sub(p, r, assay_dim_mul(p, k, b));
  }
  return r && !r->n ? q : NULL;
}

// The atoms that all terms of both have.
static const mono_t* common_mono(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  const mono_t* common = b->terms[0].mono;
  for (int i = 0; i < a->n + b->n; i++) {
    const mono_t* m = i < a->n ? a->terms[i].mono : b->terms[i - a->n].mono;
    const mono_t* without = common;
    // without = common less what m has; common = common less `without`.
    for (int k = 0; k < m->n && without; k++) {
      const mono_t* less = dim_mono_div(p, without, dim_mono_atom(p, m->atoms[k]));
      if (less) without = less;
    }
    common = dim_mono_div(p, common, without);
    if (!common || !common->n) return dim_mono_one(p);
  }
  return common;
}

// Divides all terms by coef * mono, which they are multiples of.
static const assay_dim_t* divide_terms(assay_dims_t* p, const assay_dim_t* d, int64_t coef,
                                       const mono_t* mono) {
  build_t sum;
  dim_build_init(&sum);
  for (int i = 0; i < d->n; i++)
    dim_build_add(&sum, d->terms[i].coef / coef, dim_mono_div(p, d->terms[i].mono, mono));
  return dim_build_done(p, &sum);
}

// Takes out of a what is a multiple of the single term b: a = b*q + r.
static bool split_term(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b,
                       const assay_dim_t** q, const assay_dim_t** r) {
  const term_t* t = &b->terms[0];
  build_t quotient, rest;
  dim_build_init(&quotient);
  dim_build_init(&rest);
  for (int i = 0; i < a->n; i++) {
    const mono_t* mono = dim_mono_div(p, a->terms[i].mono, t->mono);
    int64_t k = mono ? a->terms[i].coef / t->coef : 0;
    if (k) dim_build_add(&quotient, k, mono);
    dim_build_add(&rest, a->terms[i].coef - k * t->coef, a->terms[i].mono);
  }
  *q = dim_build_done(p, &quotient);
  *r = dim_build_done(p, &rest);
  return *q && *r;
}

// Whether both are numbers, which can be divided.
static bool are_numbers(const assay_dim_t* a, const assay_dim_t* b, int64_t* x, int64_t* y) {
  return assay_dim_value(a, x) && assay_dim_value(b, y) && *y && !(*x == INT64_MIN && *y == -1);
}

const assay_dim_t* assay_dim_floordiv(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  int64_t value, x, y;
  if (!a || !b || !b->n) return NULL;
  if (are_numbers(a, b, &x, &y))
    return assay_dim_const(p, x / y - (x % y != 0 && (x < 0) != (y < 0)));
  if (!a->n) return a;
  if (b->terms[0].coef < 0)
    return assay_dim_floordiv(p, assay_dim_mul_i(p, a, -1), assay_dim_mul_i(p, b, -1));
  if (assay_dim_value(b, &value)) return floordiv_i(p, a, value);
  const assay_dim_t *q = exact_quotient(p, a, b), *r;
  if (q) return q;

  int64_t g = 0;
  for (int i = 0; i < a->n; i++) g = gcd(g, a->terms[i].coef);
  for (int i = 0; i < b->n; i++) g = gcd(g, b->terms[i].coef);
  const mono_t* common = common_mono(p, a, b);
  if (g > 1 || common->n)
    return assay_dim_floordiv(p, divide_terms(p, a, g, common), divide_terms(p, b, g, common));
  if (b->n == 1) {
    if (!split_term(p, a, b, &q, &r)) return NULL;
    if (q->n) return assay_dim_add(p, q, assay_dim_floordiv(p, r, b));
  }
  // 0 <= a < b
  if (dim_is_nonnegative(p, a) &&
      dim_is_nonnegative(p, assay_dim_add_i(p, assay_dim_sub(p, b, a), -1)))
    return assay_dim_const(p, 0);
  const atom_t* inner = dim_as_atom(a);
  if (inner && inner->kind == DIM_FLOORDIV && b->range.lo >= 0) {
    // floor(floor(x/y)/b) is floor(x/(y*b)) for b > 0.
    const assay_dim_t* both = assay_dim_mul(p, inner->args[1], b);
    if (both) return assay_dim_floordiv(p, inner->args[0], both);
  }
  const assay_dim_t* args[2] = {a, b};
  return dim_atom(p, DIM_FLOORDIV, 2, args);
}

const assay_dim_t* assay_dim_ceildiv(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  int64_t value, x, y;
  if (!a || !b || !b->n) return NULL;
  if (are_numbers(a, b, &x, &y))
    return assay_dim_const(p, x / y + (x % y != 0 && (x < 0) == (y < 0)));
  // -floor(-a/b) holds always; floor((a + b - 1)/b), for b > 0, reads better.
  if (!assay_dim_value(b, &value) && b->range.lo >= 0) {
    const assay_dim_t* q = exact_quotient(p, a, b);
    return q ? q : assay_dim_floordiv(p, assay_dim_add_i(p, assay_dim_add(p, a, b), -1), b);
  }
  return assay_dim_mul_i(p, assay_dim_floordiv(p, assay_dim_mul_i(p, a, -1), b), -1);
}

const assay_dim_t* assay_dim_mod(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  int64_t x, y;
  if (are_numbers(a, b, &x, &y))
    return assay_dim_const(p, x % y + (x % y != 0 && (x < 0) != (y < 0) ? y : 0));
  return assay_dim_sub(p, a, assay_dim_mul(p, b, assay_dim_floordiv(p, a, b)));
}

// ---- smallest and largest ---------------------------------------------------------------------

// Whether a is an atom of the opposite kind that has b: max(b, min(b, c)) is b.
static bool absorbed(dim_kind_t kind, const assay_dim_t* a, const assay_dim_t* b) {
  const atom_t* atom = dim_as_atom(a);
  if (!atom || atom->kind != (kind == DIM_MIN ? DIM_MAX : DIM_MIN)) return false;
  for (int i = 0; i < atom->n; i++)
    if (atom->args[i] == b) return true;
  return false;
}

// Whether `kept` alone is the smaller (larger) of the two.
static bool decides(assay_dims_t* p, dim_kind_t kind, const assay_dim_t* kept,
                    const assay_dim_t* other) {
  int64_t value;
  if (kept == other || absorbed(kind, other, kept)) return true;
  // No value is past these ('to the end', as Slice has it).
  if (assay_dim_value(other, &value) && value == (kind == DIM_MIN ? INT64_MAX : INT64_MIN))
    return true;
  return dim_is_nonnegative(
      p, kind == DIM_MIN ? assay_dim_sub(p, other, kept) : assay_dim_sub(p, kept, other));
}

// The most complicated first: where two arguments are equal, the simpler one stays.
static int compare_weights(const void* a, const void* b) {
  const assay_dim_t *x = *(const assay_dim_t*const*)a, *y = *(const assay_dim_t*const*)b;
  if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
  return dim_compare(x, y);
}

static int gather(dim_kind_t kind, const assay_dim_t* d, const assay_dim_t** args) {
  const atom_t* atom = dim_as_atom(d);
  if (!atom || atom->kind != kind) return args[0] = d, 1;
  memcpy(args, atom->args, (size_t)atom->n * sizeof *args);
  return atom->n;
}

static const assay_dim_t* extreme(assay_dims_t* p, dim_kind_t kind, const assay_dim_t* a,
                                  const assay_dim_t* b) {
  const assay_dim_t* args[2 * DIM_MAX_ARGS];
  if (!a || !b) return NULL;
  int n = gather(kind, a, args);
  n += gather(kind, b, args + n);
  // In this order, so that the result does not depend on the order of a and b.
  qsort(args, (size_t)n, sizeof *args, compare_weights);
  for (int i = 0; i < n;) {
    bool needed = true;
    for (int j = 0; j < n && needed; j++)
      if (j != i) needed = !decides(p, kind, args[j], args[i]);
    if (needed)
      i++;
    else
      memmove(args + i, args + i + 1, (size_t)(--n - i) * sizeof *args);
  }
  if (n > DIM_MAX_ARGS) return NULL;
  return n == 1 ? args[0] : dim_atom(p, kind, n, args);
}

const assay_dim_t* assay_dim_min(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  return extreme(p, DIM_MIN, a, b);
}

const assay_dim_t* assay_dim_max(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b) {
  return extreme(p, DIM_MAX, a, b);
}

// ---- broadcasting -----------------------------------------------------------------------------

static bool has_broadcast(const assay_dim_t* d) {
  for (int i = 0; i < d->n; i++) {
    for (int k = 0; k < d->terms[i].mono->n; k++) {
      const atom_t* atom = d->terms[i].mono->atoms[k];
      if (atom->kind == DIM_BROADCAST) return true;
      for (int j = 0; j < atom->n; j++)
        if (has_broadcast(atom->args[j])) return true;
    }
  }
  return false;
}

// Whether broadcasting `part` with `whole`, a broadcast of sizes among which are a name x and some
// e(x), gives `whole`, since `part` is e(whole). Where x is the result, e(whole) is e(x), which is
// among them. Else x is 1 and the result is not; then part must be the result or 1, like any size
// that is broadcast with it. (Attention whose mask is cut by the length of its own queries makes
// these, layer after layer.) e is made without broadcasts: in one, replacing would come here again.
static bool is_of_whole(assay_dims_t* p, const assay_dim_t* whole, const assay_dim_t* part) {
  const atom_t* atom = dim_as_atom(whole);
  if (!atom || atom->kind != DIM_BROADCAST) return false;
  for (int i = 0; i < atom->n; i++) {
    const char* name = assay_dim_name(atom->args[i]);
    for (int k = 0; name && k < atom->n; k++)
      if (k != i && !has_broadcast(atom->args[k]) &&
          assay_dim_same(assay_dim_replace(p, atom->args[k], name, whole), part))
        return true;
  }
  return false;
}

// Which arguments stay: each once, and no 1. A number above 1, or 0, is the result, as there is no
// other one that the sizes may have.
const assay_dim_t* assay_dim_broadcast(assay_dims_t* p, const assay_dim_t* a,
                                       const assay_dim_t* b) {
  const assay_dim_t *args[2 * DIM_MAX_ARGS], *number = NULL;
  if (!a || !b) return NULL;
  if (is_of_whole(p, a, b)) return a;
  if (is_of_whole(p, b, a)) return b;
  const int all = gather(DIM_BROADCAST, a, args), end = all + gather(DIM_BROADCAST, b, args + all);
  int n = 0;
  for (int i = 0; i < end; i++) {
    int64_t value;
    bool needed = true;
    if (assay_dim_value(args[i], &value)) {
      if (value != 1 && number && number != args[i]) return NULL;
      if (value != 1) number = args[i];
      continue;
    }
    for (int k = 0; k < n && needed; k++) needed = args[k] != args[i];
    if (needed) args[n++] = args[i];
  }
  if (number) return number;
  if (!n) return a;
  if (n > DIM_MAX_ARGS) return NULL;
  return n == 1 ? args[0] : dim_atom(p, DIM_BROADCAST, n, args);
}
