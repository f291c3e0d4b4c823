// Numbers that know how far rounding may have taken them: running error analysis, for operators
// whose formulas are short.
#include "ops/bound_number.h"

assay_arithmetic_t assay_arithmetic_of(const assay_bound_t* c) {
  return (assay_arithmetic_t){c->rounding, assay_bound_inner(c->rounding)};
}

assay_number_t assay_number_input(const assay_bound_t* c, size_t input, int64_t i) {
  const assay_tensor_t* t = c->in[input];
  const double v = t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : (double)assay_i64(t)[i];
  if (!assay_bound_is_limited(c, input)) return assay_number_exact(v);
  const double p = assay_bound_in(c, input, true)[i] / 6;
  return (assay_number_t){v, assay_bound_in(c, input, false)[i], p * p};
}

void assay_number_limits(const assay_arithmetic_t* a, assay_number_t x, double* guaranteed,
                         double* probable) {
  *guaranteed = x.g == x.g ? x.g : (double)INFINITY;
  *probable = assay_number_probable(x);
  // Errors of one sign add up.
  if (a->rounding->truncates || !(*probable < *guaranteed)) *probable = *guaranteed;
}

assay_number_t assay_number_div(const assay_arithmetic_t* a, assay_number_t x, assay_number_t y) {
  const double v = x.v / y.v, size = fabs(y.v), p = assay_number_probable(y);
  assay_number_t z = {v, (double)INFINITY, (double)INFINITY};
  if (y.g < size) z.g = (x.g + fabs(v) * y.g) / (size - y.g);
  if (p < size) z.s2 = (x.s2 + v * v * y.s2) / ((size - p) * (size - p));
  return assay_number_round(a, a->inner.u, z);
}

// How far f(x) may move if x moves by e.
static double reach(double (*f)(double), double turn, double x, double v, double e) {
  if (e == 0) return 0;
  const double up = fabs(f(x + e) - v), down = fabs(f(x - e) - v);
  const double at_turn = fabs(x - turn) < e ? fabs(f(turn) - v) : 0;
  // Outside the function's domain anything may come out.
  if (up != up || down != down || at_turn != at_turn) return (double)INFINITY;
  return fmax(fmax(up, down), at_turn);
}

static double root(double x) { return x > 0 ? sqrt(x) : 0; }

assay_number_t assay_number_sqrt(const assay_arithmetic_t* a, assay_number_t x) {
  const double v = sqrt(x.v), p = reach(root, (double)INFINITY, x.v, v, assay_number_probable(x));
  const assay_number_t z = {v, reach(root, (double)INFINITY, x.v, v, x.g), p * p / 36};
  return assay_number_round(a, a->inner.u, z);
}

assay_number_t assay_number_function(const assay_arithmetic_t* a, double (*f)(double), double turn,
                                     assay_number_t x) {
  const double v = f(x.v), p = reach(f, turn, x.v, v, assay_number_probable(x));
  const assay_number_t z = {v, reach(f, turn, x.v, v, x.g), p * p / 36};
  return assay_number_round(a, a->inner.function, z);
}

// ---- sums ---------------------------------------------------------------------------------------

void assay_number_sum_add(assay_number_sum_t* s, assay_number_t term) {
  s->v += term.v;
  s->size += fabs(term.v) + term.g;
  s->size_probable += fabs(term.v) + assay_number_probable(term);
  s->g += term.g;
  s->s2 += term.s2;
  s->n += 1;
}

void assay_number_sum_add_product(assay_number_sum_t* s, assay_number_t x, assay_number_t y) {
  const assay_number_t term = {x.v * y.v, fabs(x.v) * y.g + fabs(y.v) * x.g + x.g * y.g,
                               x.v * x.v * y.s2 + y.v * y.v * x.s2 + 36 * x.s2 * y.s2};
  assay_number_sum_add(s, term);
}

assay_number_t assay_number_sum_end(const assay_arithmetic_t* a, const assay_number_sum_t* s) {
  if (s->n == 0) return assay_number_exact(0);
  const assay_factor_t f = assay_bound_sum(a->rounding, s->n);
  const double e = f.probable * s->size_probable / 6, tiny = s->n * a->inner.tiny;
  assay_number_t y = {s->v, s->g + f.guaranteed * s->size + tiny, s->s2 + e * e + tiny * tiny};
  if (!((1 + f.guaranteed) * s->size <= a->inner.max)) y.g = (double)INFINITY;
  return y;
}

// ---- a few roundings ----------------------------------------------------------------------------

typedef struct few {
  assay_inner_t inner;
  double ops;
} few_t;

static double local_roundings(const void* user, double y, double in, double magnitude,
                              bool probable) {
  const few_t* f = user;
  (void)y;
  (void)in;
  (void)probable;
  if (!(magnitude <= f->inner.max)) return (double)INFINITY;
  return f->ops * (f->inner.u * magnitude * (1 + f->ops * f->inner.u) + f->inner.tiny);
}

assay_status_t assay_bound_roundings(assay_bound_t* c, double ops) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  const few_t f = {assay_bound_inner(c->rounding), ops};
  ASSAY_TRY(assay_bound_exact(c));
  return assay_bound_add_local(c, local_roundings, &f, NULL);
}
