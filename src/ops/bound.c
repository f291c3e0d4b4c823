// Rounding bounds: how far an engine's result of an operator may lie from truth, element by
// element.
#include "ops/bound.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/bound_parts.h"
#include "ops/math/pointwise.h"
#include "ops/matmul/split_products.h"
#include "ops/matmul/tf32_products.h"

static const double SIGMAS = 6;  // 1 in 10^9 of a normal distribution lies outside

assay_rounding_t assay_rounding_unknown(assay_format_t compute, assay_format_t accumulator) {
  return (assay_rounding_t){
      .compute = compute, .accumulator = accumulator, .by_definition = true, .function_ulps = 4};
}

// ---- numbers ---------------------------------------------------------------------------------

double assay_bound_unit(assay_format_t format) {
  return format == ASSAY_FORMAT_NONE ? 0 : assay_format_info(format)->unit_roundoff;
}

double assay_bound_operands(const assay_rounding_t* r) {
  const double u = assay_bound_unit(r->operands);
  return u > assay_bound_unit(r->compute) ? u : 0;
}

double assay_bound_operand_tiny(const assay_rounding_t* r) {
  return assay_bound_operands(r) > 0 ? assay_format_info(r->operands)->min_subnormal / 2 : 0;
}

// Roundings on the longest way of a term into a sum of n: its product's, and one an addition.
static double roundings(const assay_rounding_t* r, double n) {
  double joins = r->splits > 1 ? (double)r->splits : 0;
  double terms = joins > 0 ? ceil(n / joins) : n;
  if (r->order == ASSAY_SUM_BLOCKED && r->block > 0 && terms > (double)r->block)
    terms = (double)r->block + ceil(assay_log2(ceil(terms / (double)r->block)));
  return terms + joins;
}

// Of h roundings in a row. Rounding towards zero has errors up to 2u of one sign, and no theorem
// without denominator: gamma_h, and nothing better is probable.
static assay_factor_t of_roundings(double h, double u, bool truncates) {
  if (truncates) {
    double hu = 2 * u * h, gamma = hu < 1 ? hu / (1 - hu) : (double)INFINITY;
    return (assay_factor_t){gamma, gamma};
  }
  double g = h * u;
  return (assay_factor_t){g, fmin(g, SIGMAS * sqrt(h) * u)};
}

static bool has_parts(const assay_rounding_t* r) {
  return assay_split_parts(r->algorithm) || r->algorithm == ASSAY_ALGORITHM_TF32_3;
}

// Sums of products of parts: their longest way, and what the parts leave out of each term and
// tensor cores cut off, which have any sign.
static assay_factor_t of_tf32_parts(const assay_rounding_t* r, double n) {
  const double u = assay_bound_unit(r->accumulator);
  const double out = assay_tf32_left_out() + assay_tf32_cut() * u;
  const assay_factor_t f = of_roundings(assay_tf32_roundings(n), u, false);
  return (assay_factor_t){(f.guaranteed + out) * (1 + 0x1p-6), (f.probable + out) * (1 + 0x1p-6)};
}

static assay_factor_t of_parts(const assay_rounding_t* r, double n) {
  if (r->algorithm == ASSAY_ALGORITHM_TF32_3) return of_tf32_parts(r, n);
  const double out = assay_split_left_out(r->algorithm);
  const assay_factor_t f =
      of_roundings(assay_split_roundings(n), assay_bound_unit(r->accumulator), r->truncates);
  return (assay_factor_t){f.guaranteed + out, f.probable + out};
}

assay_factor_t assay_bound_sum(const assay_rounding_t* r, double n) {
  if (has_parts(r)) return of_parts(r, n);
  return of_roundings(roundings(r, n), assay_bound_unit(r->accumulator), r->truncates);
}

// A partial sum is a sum of some of the terms: no farther from 0 than all those of one sign
// together, (size + |value|) / 2. Each of n - 1 additions rounds one, and each term was rounded
// once before. Probable: variances add up; sums that are as many additions away from the end have
// no term in common, so that their magnitudes add up to `size` at most. As they are computed,
// partial sums carry errors of their own, no larger than the result's may be.
assay_factor_t assay_bound_sum_of(const assay_rounding_t* r, double n, double size, double value) {
  const double u = assay_bound_unit(r->accumulator), y = fmin(fabs(value), size);
  const assay_factor_t f = assay_bound_sum(r, n);
  assay_factor_t e = {f.guaranteed * size, f.probable * size};
  if (r->truncates || has_parts(r) || !(e.guaranteed < (double)INFINITY) || !(size > 0)) return e;
  const double maximum = (size + y) / 2, level = fmin(n * maximum, roundings(r, n) * size);
  const double grows = u * n, varies = u * u * level / maximum, terms = (size * size + y * y) / 2;
  if (grows < 0.5) e.guaranteed = fmin(e.guaranteed, u * (n * maximum + size) / (1 - grows));
  if (varies < 0.5)
    e.probable = fmin(e.probable, SIGMAS * u * sqrt((level * maximum + terms) / (1 - varies)));
  e.probable = fmin(e.probable, e.guaranteed);
  return e;
}

assay_factor_t assay_bound_few(const assay_rounding_t* r, double few, double maximum) {
  const double u = fmax(assay_bound_unit(r->accumulator), assay_bound_unit(r->compute));
  const double grows = u * few, varies = u * u * few;
  assay_factor_t e = {INFINITY, INFINITY};
  if (r->truncates) return e;
  if (grows < 0.5) e.guaranteed = grows * maximum / (1 - grows);
  if (varies < 0.5) e.probable = fmin(e.guaranteed, SIGMAS * maximum * sqrt(varies / (1 - varies)));
  return e;
}

assay_factor_t assay_bound_ops(const assay_rounding_t* r, double ops) {
  return of_roundings(ops, assay_bound_unit(r->compute), false);
}

// An ulp is at most 2u of the value.
assay_factor_t assay_bound_function(const assay_rounding_t* r) {
  double g = fmax(1, 2 * r->function_ulps) * assay_bound_unit(r->compute);
  return (assay_factor_t){g, g};
}

double assay_bound_tiny(const assay_rounding_t* r, assay_format_t format) {
  if (format == ASSAY_FORMAT_NONE) return 0;
  const assay_format_info_t* f = assay_format_info(format);
  const double one = r->flushes ? f->min_normal : f->min_subnormal / 2;
  return has_parts(r) ? ASSAY_SPLIT_PRODUCTS * one : one;
}

// ---- limits ------------------------------------------------------------------------------------

void assay_limits_deinit(assay_limits_t* l) {
  assay_tensor_release(l->guaranteed);
  assay_tensor_release(l->probable);
  *l = (assay_limits_t){0};
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

assay_status_t assay_bound_output(assay_bound_t* c, size_t i, double** guaranteed,
                                  double** probable) {
  *guaranteed = *probable = NULL;
  const assay_tensor_t* y = i < c->n_out ? c->out[i] : NULL;
  if (!y || y->kind != ASSAY_KIND_TENSOR) return NULL;
  // Integers are bounded too, where rounding comes before the choice.
  if (y->store != ASSAY_STORE_F64 && y->store != ASSAY_STORE_I64) return NULL;
  assay_limits_t* l = &c->out_error[i];
  assay_limits_deinit(l);
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, y->rank, y->dims, &l->guaranteed));
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, y->rank, y->dims, &l->probable));
  *guaranteed = assay_f64(l->guaranteed);
  *probable = assay_f64(l->probable);
  return NULL;
}

typedef struct scaled {
  assay_factor_t f;
  double tiny;
  const double* x;
  double *g, *p;
} scaled_t;

static void scaled_chunk(const void* user, int64_t first, int64_t n) {
  const scaled_t* s = user;
#pragma omp simd
  for (int64_t i = first; i < first + n; i++) {
    double m = fabs(s->x[i]);
    s->g[i] = s->f.guaranteed * m + s->tiny;
    s->p[i] = s->f.probable * m + s->tiny;
  }
}

assay_status_t assay_bound_scaled(assay_bound_t* c, size_t i, assay_factor_t f,
                                  const assay_tensor_t* x, double tiny) {
  scaled_t s = {.f = f, .tiny = tiny, .x = assay_f64(x)};
  ASSAY_TRY(assay_bound_output(c, i, &s.g, &s.p));
  if (s.g) assay_chunks_run(x->size, 2, scaled_chunk, &s);
  return NULL;
}

static assay_status_t add_tensor(assay_tensor_t** a, assay_tensor_t* b) {
  if (!b) return NULL;
  if (!*a) {
    *a = assay_tensor_retain(b);
    return NULL;
  }
  assay_tensor_t* sum = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, b->rank, b->dims, &sum));
  for (int64_t i = 0; i < b->size; i++) assay_f64(sum)[i] = assay_f64(*a)[i] + assay_f64(b)[i];
  assay_tensor_release(*a);
  *a = sum;
  return NULL;
}

assay_status_t assay_limits_add(assay_limits_t* a, const assay_limits_t* b) {
  ASSAY_TRY(add_tensor(&a->guaranteed, b->guaranteed));
  return add_tensor(&a->probable, b->probable);
}

static bool is_whole(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_I64;
}

static bool has_limits(const assay_bound_t* c, size_t i) {
  return c->in_error && c->in_error[i].guaranteed && c->in[i];
}

bool assay_bound_inputs_exact(const assay_bound_t* c) {
  for (size_t i = 0; i < c->n_in; i++)
    if (has_limits(c, i)) return false;
  return true;
}

static assay_tensor_t* limit_of(const assay_bound_t* c, size_t i, bool probable) {
  return probable ? c->in_error[i].probable : c->in_error[i].guaranteed;
}

// ---- other inputs ------------------------------------------------------------------------------

typedef struct abs_job {
  const double* x;
  double* y;
} abs_job_t;

static void abs_chunk(const void* user, int64_t first, int64_t n) {
  const abs_job_t* j = user;
#pragma omp simd
  for (int64_t i = first; i < first + n; i++) j->y[i] = fabs(j->x[i]);
}

assay_status_t assay_tensor_abs(assay_tensor_t* t, assay_tensor_t** out) {
  if (!is_float(t)) {
    *out = assay_tensor_retain(t);
    return NULL;
  }
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_create(t->type, t->rank, t->dims, &y));
  abs_job_t job = {assay_f64(t), assay_f64(y)};
  assay_chunks_run(t->size, 1, abs_chunk, &job);
  *out = y;
  return NULL;
}

// |x|, plus its limit if it has one.
static assay_status_t widest(const assay_bound_t* c, size_t i, bool probable,
                             assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_abs(c->in[i], out));
  if (!has_limits(c, i) || !is_float(*out)) return NULL;
  const double* e = assay_f64(limit_of(c, i, probable));
  double* y = assay_f64(*out);
  for (int64_t k = 0; k < (*out)->size; k++) y[k] += e[k];
  return NULL;
}

static assay_status_t zeros_like(const assay_tensor_t* t, assay_tensor_t** out) {
  return assay_tensor_create_zero(t->type, t->rank, t->dims, out);
}

// The limit as a tensor of the input's own type, as the operator wants it.
static assay_status_t as_input(const assay_bound_t* c, size_t i, assay_tensor_t* limit,
                               assay_tensor_t** out) {
  return assay_tensor_retype(limit, c->in[i]->type, out);
}

static void release_all(size_t n, assay_tensor_t** t) {
  for (size_t i = 0; i < n; i++) {
    assay_tensor_release(t[i]);
    t[i] = NULL;
  }
}

// ---- moved elements ----------------------------------------------------------------------------

// An operator that moves elements moves their limits alike; what has none moves zeros.
static assay_status_t moved(assay_bound_t* c, bool probable, assay_tensor_t** in,
                            assay_tensor_t** out) {
  for (size_t i = 0; i < c->n_in; i++) {
    if (!c->in[i]) continue;
    if (has_limits(c, i)) {
      ASSAY_TRY(as_input(c, i, limit_of(c, i, probable), &in[i]));
    } else if (is_float(c->in[i])) {
      ASSAY_TRY(zeros_like(c->in[i], &in[i]));
    } else {
      in[i] = assay_tensor_retain(c->in[i]);
    }
  }
  return c->evaluate(c, false, in, out);
}

static assay_status_t bound_moved(assay_bound_t* c) {
  assay_tensor_t **in = NULL, **out = NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *out, &out);
  for (int probable = 0; !st && probable < 2; probable++) {
    st = moved(c, probable, in, out);
    for (size_t i = 0; !st && i < c->n_out; i++) {
      if (!is_float(out[i]) || !is_float(c->out[i])) continue;
      assay_tensor_t** to = probable ? &c->out_error[i].probable : &c->out_error[i].guaranteed;
      assay_tensor_release(*to);
      *to = NULL;
      st = assay_tensor_retype(out[i], ASSAY_TYPE_DOUBLE, to);
    }
    if (in) release_all(c->n_in, in);
    if (out) release_all(c->n_out, out);
  }
  assay_free(in);
  assay_free(out);
  return st;
}

static assay_status_t computed(assay_bound_t* c) {
  const assay_op_t* op = c->node->op;
  if (op && op->bound) return op->bound(c);
  bool floats = false;
  for (size_t i = 0; i < c->n_out; i++)
    floats |= is_float(c->out[i]) && !(op && op->discrete >> i & 1);
  const bool exact = assay_bound_inputs_exact(c);
  if (exact && (!floats || (op && op->flags & ASSAY_OP_MOVES))) return NULL;
  if (op && op->flags & ASSAY_OP_MOVES) return bound_moved(c);
  return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "there is no rounding bound for it");
}

// ---- choices behind inexact values -------------------------------------------------------------

// Whether output i is wanted, and a discrete choice. A cast to floats of 16 bits or more rounds
// like any store.
static bool chooses(const assay_bound_t* c, size_t i) {
  const assay_op_t* op = c->node->op;
  if (!c->node->outputs[i] || !c->out[i] || !op || !(op->discrete >> i & 1)) return false;
  return !(op->flags & ASSAY_OP_KEEPS_TYPE) || !is_float(c->out[i]) ||
         assay_type_bits(c->out[i]->type) < 16;
}

// Limits of output i that are the same everywhere.
static assay_status_t fill_limits(assay_bound_t* c, size_t i, double limit) {
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, i, &g, &p));
  for (int64_t k = 0; g && k < c->out[i]->size; k++) g[k] = p[k] = limit;
  return NULL;
}

// What is chosen among inexact elements is off by the largest of their limits at most: other ones
// may come to its place.
static assay_status_t bound_selected(assay_bound_t* c) {
  double largest = 0;
  for (size_t i = 0; i < c->n_in; i++) {
    if (!has_limits(c, i)) continue;
    const assay_tensor_t* e = limit_of(c, i, false);
    for (int64_t k = 0; k < e->size; k++) largest = fmax(largest, assay_f64(e)[k]);
  }
  for (size_t i = 0; i < c->n_out; i++)
    if (is_float(c->out[i]) && !chooses(c, i)) ASSAY_TRY(fill_limits(c, i, largest));
  return NULL;
}

// Bools that are moved: those that were open are open at their new places.
static assay_status_t bound_moved_bools(assay_bound_t* c) {
  assay_tensor_t **in = NULL, **out = NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *out, &out);
  for (size_t i = 1; !st && i < c->n_in; i++) in[i] = assay_tensor_retain(c->in[i]);
  if (!st) st = assay_tensor_copy(c->in[0], &in[0]);
  for (int64_t k = 0; !st && k < in[0]->size; k++)
    assay_i64(in[0])[k] = !(assay_f64(limit_of(c, 0, false))[k] == 0);
  if (!st) st = c->evaluate(c, false, in, out);
  for (size_t i = 0; !st && i < c->n_out; i++) {
    double *g, *p;
    if (!is_whole(out[i])) continue;
    st = assay_bound_output(c, i, &g, &p);
    for (int64_t k = 0; !st && g && k < out[i]->size; k++)
      g[k] = p[k] = (double)assay_i64(out[i])[k];
  }
  if (in) release_all(c->n_in, in);
  if (out) release_all(c->n_out, out);
  assay_free(in);
  assay_free(out);
  return st;
}

// Of whole numbers with limits.
static assay_status_t bound_whole(assay_bound_t* c) {
  const uint32_t flags = c->node->op ? c->node->op->flags : 0;
  if (flags & ASSAY_OP_POINTWISE) return computed(c);
  bool first_only = flags & ASSAY_OP_MOVES && c->in[0] && c->in[0]->type == ASSAY_TYPE_BOOL;
  for (size_t i = 1; i < c->n_in; i++) first_only &= !has_limits(c, i);
  return first_only ? bound_moved_bools(c) : NULL;
}

// Counts the choices that are open. The same for any number of threads: counts are whole.
static void settle(assay_bound_t* c) {
  for (size_t i = 0; i < c->n_out; i++) {
    assay_limits_t* l = &c->out_error[i];
    if (!chooses(c, i) || !l->guaranteed) continue;
    int64_t open = 0;
    for (int64_t k = 0; k < c->out[i]->size; k++) open += !(assay_f64(l->guaranteed)[k] == 0);
    c->open += open;
    if (!open || !c->flips) assay_limits_deinit(l);
  }
}

assay_status_t assay_bound_node(assay_bound_t* c) {
  const assay_op_t* op = c->node->op;
  bool whole = false, choice = false, only_choices = true;
  for (size_t i = 0; i < c->n_in; i++) whole |= has_limits(c, i) && is_whole(c->in[i]);
  for (size_t i = 0; i < c->n_out; i++) {
    choice |= chooses(c, i);
    only_choices &= !c->node->outputs[i] || chooses(c, i);
  }
  if (assay_bound_inputs_exact(c) || (op && op->flags & ASSAY_OP_QUANTIZES) || !(whole || choice))
    return computed(c);
  const bool selects = op && op->flags & ASSAY_OP_MOVES && !op->bound && !whole;
  assay_status_t st = whole ? bound_whole(c) : selects ? bound_selected(c) : computed(c);
  if (st && assay_status_code(st) == ASSAY_UNSUPPORTED && (whole || only_choices)) {
    assay_status_free(st);
    st = NULL;
    for (size_t i = 0; i < c->n_out; i++) assay_limits_deinit(&c->out_error[i]);
  }
  // Of what nothing was said, anything may come out.
  for (size_t i = 0; !st && i < c->n_out; i++)
    if (c->node->outputs[i] && c->out[i] && !c->out_error[i].guaranteed && (whole || chooses(c, i)))
      st = fill_limits(c, i, (double)INFINITY);
  if (!st) settle(c);
  return st;
}

// ---- monotone functions ------------------------------------------------------------------------

// A whole number moved by a limit, within its type.
static int64_t moved_whole(assay_type_t type, int64_t x, double by) {
  const double y = assay_i64_to_f64(type, x) + by;
  if (type == ASSAY_TYPE_BOOL) return y >= 1;
  return assay_type_saturate(type, rint(y));
}

// One corner: input i moved by its limit in the direction that bit b of `corner` says, where b
// counts the inputs that have limits.
static assay_status_t corner_inputs(const assay_bound_t* c, unsigned corner, bool probable,
                                    assay_tensor_t** in) {
  unsigned b = 0;
  for (size_t i = 0; i < c->n_in; i++) {
    if (!c->in[i]) continue;
    if (!has_limits(c, i)) {
      in[i] = assay_tensor_retain(c->in[i]);
      continue;
    }
    const double sign = corner >> b++ & 1 ? 1 : -1;
    ASSAY_TRY(assay_tensor_copy(c->in[i], &in[i]));
    const double* e = assay_f64(limit_of(c, i, probable));
    const bool whole = is_whole(in[i]);
    for (int64_t k = 0; k < in[i]->size; k++) {
      if (whole)
        assay_i64(in[i])[k] = moved_whole(in[i]->type, assay_i64(in[i])[k], sign * e[k]);
      else
        assay_f64(in[i])[k] += sign * e[k];
    }
  }
  return NULL;
}

// Adds to sums[] how far the outputs move at the farthest corner.
static assay_status_t add_corners(assay_bound_t* c, bool probable, unsigned corners,
                                  assay_tensor_t** in, assay_tensor_t** out,
                                  assay_tensor_t** farthest) {
  for (unsigned corner = 0; corner < corners; corner++) {
    assay_status_t st = corner_inputs(c, corner, probable, in);
    if (!st) st = c->evaluate(c, false, in, out);
    for (size_t i = 0; !st && i < c->n_out; i++) {
      const bool whole = is_whole(c->out[i]) && is_whole(out[i]);
      if (!whole && (!is_float(c->out[i]) || !is_float(out[i]))) continue;
      if (!farthest[i]) {
        st = assay_tensor_create_zero(ASSAY_TYPE_DOUBLE, out[i]->rank, out[i]->dims, &farthest[i]);
        if (st) break;
      }
      double* f = assay_f64(farthest[i]);
      for (int64_t k = 0; k < out[i]->size; k++) {
        const double y = assay_elem_f64(c->out[i], k), z = assay_elem_f64(out[i], k);
        double d = fabs(z - y);
        if (z == y) d = 0;  // equal infinities
        // Outside the function's domain anything may come out.
        if (d != d && y == y) d = (double)INFINITY;
        if (d > f[k]) f[k] = d;
      }
    }
    release_all(c->n_in, in);
    release_all(c->n_out, out);
    if (st) return st;
  }
  return NULL;
}

static assay_status_t add_incoming(assay_bound_t* c) {
  unsigned limited = 0;
  for (size_t i = 0; i < c->n_in; i++) limited += has_limits(c, i);
  if (!limited) return NULL;
  if (limited > 6)
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "%u inputs carry rounding errors; 6 is the most", limited);
  assay_tensor_t **in = NULL, **out = NULL, **farthest = NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *out, &out);
  if (!st) st = assay_new_array(c->n_out, sizeof *farthest, &farthest);
  for (int probable = 0; !st && probable < 2; probable++) {
    st = add_corners(c, probable, 1U << limited, in, out, farthest);
    for (size_t i = 0; !st && i < c->n_out; i++)
      st = add_tensor(probable ? &c->out_error[i].probable : &c->out_error[i].guaranteed,
                      farthest[i]);
    if (farthest) release_all(c->n_out, farthest);
  }
  assay_free(in);
  assay_free(out);
  assay_free(farthest);
  return st;
}

assay_status_t assay_bound_monotone(assay_bound_t* c, assay_factor_t local) {
  const double tiny =
      local.guaranteed > 0 ? assay_bound_tiny(c->rounding, c->rounding->compute) : 0;
  if (local.guaranteed > 0)
    for (size_t i = 0; i < c->n_out; i++)
      if (is_float(c->out[i])) ASSAY_TRY(assay_bound_scaled(c, i, local, c->out[i], tiny));
  return add_incoming(c);
}

assay_status_t assay_bound_one_rounding(assay_bound_t* c) {
  return assay_bound_monotone(c, assay_bound_ops(c->rounding, 1));
}
assay_status_t assay_bound_exact(assay_bound_t* c) {
  return assay_bound_monotone(c, (assay_factor_t){0, 0});
}
assay_status_t assay_bound_one_function(assay_bound_t* c) {
  return assay_bound_monotone(c, assay_bound_function(c->rounding));
}

// ---- functions of one input --------------------------------------------------------------------

typedef struct curve_job {
  const assay_curve_t* curve;
  double relative, u, tiny;
  double floor, floor_x;
  const double *x, *y;
  double *g, *p;
} curve_job_t;

static void curve_chunk(const void* user, int64_t first, int64_t n) {
  const curve_job_t* j = user;
#pragma omp simd
  for (int64_t i = first; i < first + n; i++) {
    const double e = j->relative * fabs(j->y[i]) + j->floor + j->floor_x * fabs(j->x[i]) + j->tiny;
    j->g[i] += e;
    j->p[i] += e;
  }
}

// Raises what came in, as the corners have it, to slope * limit where the curve turns in between.
static void raise_turning(assay_bound_t* c, const assay_curve_t* curve, bool probable, double* to) {
  const double *x = assay_f64(c->in[0]), *y = assay_f64(c->out[0]);
  const double* e = assay_f64(limit_of(c, 0, probable));
  for (int64_t i = 0; i < c->in[0]->size; i++) {
    const bool turns = curve->everywhere || fabs(x[i] - curve->extremum) <= e[i];
    if (curve->pole) {
      // Beyond a pole the function comes back from the other end.
      if (e[i] > 0 && (fabs(x[i]) <= e[i] || to[i] > 1e3 * (1 + fabs(y[i]))))
        to[i] = (double)INFINITY;
    } else if (curve->slope > 0 && turns) {
      to[i] = curve->everywhere ? curve->slope * e[i] : fmax(to[i], curve->slope * e[i]);
    }
  }
}

assay_status_t assay_bound_curve(assay_bound_t* c, const assay_curve_t* curve) {
  const assay_rounding_t* r = c->rounding;
  if (!is_float(c->in[0]) || !is_float(c->out[0])) return NULL;
  const bool limited = has_limits(c, 0);
  if (limited) {
    ASSAY_TRY(add_incoming(c));
    raise_turning(c, curve, false, assay_f64(c->out_error[0].guaranteed));
    raise_turning(c, curve, true, assay_f64(c->out_error[0].probable));
  } else {
    double *g, *p;
    ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
    memset(g, 0, (size_t)c->out[0]->size * sizeof *g);
    memset(p, 0, (size_t)c->out[0]->size * sizeof *p);
  }
  const double u = assay_bound_unit(r->compute);
  const double rough = r->by_definition ? u : 0;
  curve_job_t job = {.curve = curve, .u = u, .tiny = assay_bound_tiny(r, r->compute)};
  job.relative = curve->ops > 0 ? assay_bound_ops(r, curve->ops).guaranteed
                                : assay_bound_function(r).guaranteed;
  job.floor = u * curve->floor + rough * curve->definition;
  job.floor_x = u * curve->floor_x + rough * curve->definition_x;
  job.x = assay_f64(c->in[0]), job.y = assay_f64(c->out[0]);
  job.g = assay_f64(c->out_error[0].guaranteed), job.p = assay_f64(c->out_error[0].probable);
  assay_chunks_run(c->out[0]->size, 3, curve_chunk, &job);
  return NULL;
}

// ---- sums of products --------------------------------------------------------------------------

typedef struct sums {
  const assay_products_t* p;
  // Terms whose magnitudes add up to more may take a sum past the accumulator's range on the way,
  // whatever its end: no limit holds.
  double range;
  assay_tensor_t **in, **out;
} sums_t;

static bool is_factor(const assay_products_t* p, size_t i) {
  for (size_t k = 0; k < p->n_factors; k++)
    if (p->factors[k] == i) return true;
  return false;
}

static double max_of(const assay_tensor_t* t) {
  double max = 0;
  const double* x = assay_f64(t);
#pragma omp parallel for schedule(static) reduction(max : max) if (t->size > 100000)
  for (int64_t i = 0; i < t->size; i++) max = x[i] > max ? x[i] : max;
  return max;
}

// Whether fp32 can hold the sums, and each factor.
static bool fits_fp32(const assay_products_t* p, assay_tensor_t* const* in) {
  double product = fmax(p->terms, 1);
  for (size_t k = 0; k < p->n_factors; k++) {
    if (!is_float(in[p->factors[k]])) continue;
    const double max = max_of(in[p->factors[k]]);
    if (!(max < 0x1p126)) return false;
    product *= fmax(max, 0x1p-30);
  }
  return product < 0x1p126;
}

// The operator on inputs of one sign, raised by what fp32 may have lost.
static assay_status_t magnitude(assay_bound_t* c, const sums_t* s) {
  const double slack = s->p->terms * 0x1p-23;
  const bool coarse = slack < 0.01 && fits_fp32(s->p, s->in);
  ASSAY_TRY(c->evaluate(c, coarse, s->in, s->out));
  if (!coarse) return NULL;
  for (size_t i = 0; i < c->n_out; i++) {
    if (!is_float(s->out[i])) continue;
    double* y = assay_f64(s->out[i]);
    // Products below fp32's range may have vanished.
    for (int64_t k = 0; k < s->out[i]->size; k++)
      y[k] = fabs(y[k]) * (1 + slack) + s->p->terms * 0x1p-126;
  }
  return NULL;
}

// Input i for the evaluation that shows what came in by input j. SIZE_MAX: for the one that shows
// what is summed, everything as wide as it may be.
static assay_status_t product_input(assay_bound_t* c, const assay_products_t* p, size_t i, size_t j,
                                    bool probable, assay_tensor_t** out) {
  const bool factor = is_factor(p, i);
  if (i == j) return as_input(c, i, limit_of(c, i, probable), out);
  if (j == SIZE_MAX) {
    ASSAY_TRY(widest(c, i, probable, out));
    if (!p->opposed || factor || !is_float(*out)) return NULL;
    for (int64_t k = 0; k < (*out)->size; k++) assay_f64(*out)[k] *= -1;
    return NULL;
  }
  if (!is_float(c->in[i])) {
    *out = assay_tensor_retain(c->in[i]);
    return NULL;
  }
  // Of the products' limits only those with input j matter, and each pair of limits once.
  if (!factor || !is_factor(p, j)) return zeros_like(c->in[i], out);
  return i < j ? widest(c, i, probable, out) : assay_tensor_abs(c->in[i], out);
}

static assay_status_t run_products(assay_bound_t* c, sums_t* s, size_t j, bool probable) {
  for (size_t i = 0; i < c->n_in; i++)
    if (c->in[i]) ASSAY_TRY(product_input(c, s->p, i, j, probable, &s->in[i]));
  return magnitude(c, s);
}

// Adds f * op(...) to one kind of limits.
static assay_status_t add_product(assay_bound_t* c, sums_t* s, size_t j, bool probable, double f,
                                  double tiny) {
  assay_status_t st = run_products(c, s, j, probable);
  for (size_t i = 0; !st && i < c->n_out; i++) {
    if (!is_float(s->out[i]) || !is_float(c->out[i])) continue;
    double* y = assay_f64(s->out[i]);
    for (int64_t k = 0; k < s->out[i]->size; k++)
      y[k] = j == SIZE_MAX && (1 + f) * fabs(y[k]) > s->range ? (double)INFINITY
                                                              : f * fabs(y[k]) + tiny;
    assay_tensor_t* wide = NULL;
    st = assay_tensor_retype(s->out[i], ASSAY_TYPE_DOUBLE, &wide);
    if (!st)
      st = add_tensor(probable ? &c->out_error[i].probable : &c->out_error[i].guaranteed, wide);
    assay_tensor_release(wide);
  }
  release_all(c->n_in, s->in);
  release_all(c->n_out, s->out);
  return st;
}

typedef struct exact_job {
  const assay_rounding_t* r;
  double terms, range, tiny;
  assay_factor_t sum, more, ends;  // of the sum, and of what is done besides and at the end
  const double *size, *value;
  const double* places;  // of each sum: how many roundings may be inexact, by `scale`; NULL: all
  double scale;
  double *g, *p;
} exact_job_t;

static void exact_chunk(const void* user, int64_t first, int64_t n) {
  const exact_job_t* j = user;
  const double all = j->sum.guaranteed + j->more.guaranteed + j->ends.guaranteed;
  for (int64_t i = first; i < first + n; i++) {
    const double size = fabs(j->size[i]), y = fmin(fabs(j->value[i]), size);
    assay_factor_t e = assay_bound_sum_of(j->r, j->terms, size, y);
    if (j->places && !has_parts(j->r)) {
      const assay_factor_t few = assay_bound_few(j->r, j->places[i] * j->scale, (size + y) / 2);
      e.guaranteed = fmin(e.guaranteed, few.guaranteed);
      e.probable = fmin(e.probable, few.probable);
    }
    e.guaranteed += j->more.guaranteed * size;
    e.probable += j->more.probable * size;
    e.guaranteed += j->ends.guaranteed * (y + e.guaranteed) + j->tiny;
    e.probable += j->ends.probable * (y + e.probable) + j->tiny;
    const bool fits = (1 + all) * size <= j->range;
    j->g[i] = fits ? e.guaranteed : (double)INFINITY;
    j->p[i] = fits ? e.probable : (double)INFINITY;
  }
}

// By element of x: how many places its last bits lie below the largest sum's. Gives false where
// there are so many that few sums would be exact.
static bool count_places(const assay_tensor_t* x, int largest, double* out) {
  double all = 0;
  for (int64_t i = 0; i < x->size; i++) {
    const int place = assay_last_place(assay_f64(x)[i]);
    if (place == INT_MIN) return false;
    out[i] = place < largest ? (double)largest - (double)place : 0;
    all += out[i];
  }
  return all < (double)x->size;
}

// The operator's sums of these numbers of places. NULL: there are none.
static assay_status_t sum_places(assay_bound_t* c, sums_t* s, assay_tensor_t** out) {
  const size_t input = s->p->factors[0];
  const double u =
      fmax(assay_bound_unit(c->rounding->accumulator), assay_bound_unit(c->rounding->compute));
  const double n = fmax(s->p->terms, 1), scale = s->p->scale > 0 ? n : 1;
  if (!s->p->plain || !is_float(s->out[0]) || !(u * n < 0.5)) return NULL;
  const int largest = assay_sum_place(u, max_of(s->out[0]) * scale * (1 + 2 * u * n));
  assay_tensor_t *counts = NULL, **in = NULL, **all = NULL;
  assay_status_t st =
      assay_tensor_create(c->in[input]->type, c->in[input]->rank, c->in[input]->dims, &counts);
  if (!st && count_places(c->in[input], largest, assay_f64(counts))) {
    st = assay_new_array(c->n_in, sizeof *in, &in);
    if (!st) st = assay_new_array(c->n_out, sizeof *all, &all);
    for (size_t i = 0; !st && i < c->n_in; i++)
      in[i] = i == input ? counts : (assay_tensor_t*)(uintptr_t)c->in[i];
    if (!st) st = c->evaluate(c, false, in, all);
    if (!st) *out = assay_tensor_retain(all[0]);
    if (all) release_all(c->n_out, all);
    assay_free(in);
    assay_free(all);
  }
  assay_tensor_release(counts);
  return st;
}

// Without limits on the inputs both kinds follow from one evaluation and truth.
static assay_status_t products_of_exact(assay_bound_t* c, sums_t* s, exact_job_t job) {
  assay_tensor_t* places = NULL;
  assay_status_t st = run_products(c, s, SIZE_MAX, false);
  if (!st) st = sum_places(c, s, &places);
  for (size_t i = 0; !st && i < c->n_out; i++)
    if (is_float(s->out[i]) && is_float(c->out[i])) {
      job.size = assay_f64(s->out[i]);
      job.value = assay_f64(c->out[i]);
      job.places = i == 0 && places ? assay_f64(places) : NULL;
      st = assay_bound_output(c, i, &job.g, &job.p);
      if (!st) assay_chunks_run(c->out[i]->size, 4, exact_chunk, &job);
    }
  assay_tensor_release(places);
  release_all(c->n_in, s->in);
  release_all(c->n_out, s->out);
  return st;
}

// What a term may lose where a part of one of its factors is less than what parts have bits for:
// that times the other one.
static double lost_by_parts(const assay_bound_t* c, const assay_products_t* p) {
  double most = 0;
  if (c->rounding->algorithm != ASSAY_ALGORITHM_TF32_3) return 0;
  for (size_t k = 0; k < p->n_factors; k++) {
    const assay_tensor_t* x = c->in[p->factors[k]];
    for (int64_t i = 0; is_float(x) && i < x->size; i++)
      if (fabs(assay_f64(x)[i]) < (double)INFINITY) most = fmax(most, fabs(assay_f64(x)[i]));
  }
  return most * assay_format_info(ASSAY_FORMAT_TF32)->min_subnormal;
}

assay_status_t assay_bound_products(assay_bound_t* c, const assay_products_t* p) {
  const assay_rounding_t* r = c->rounding;
  sums_t s = {.p = p, .range = assay_format_info(r->accumulator)->max};
  if (p->scale > 0 && p->scale < 1) s.range *= p->scale;
  // Where single operations are coarser than sums (engines that are not ours), partial sums may be
  // rounded to that format before they are joined, and the whole before a bias is added. What is
  // done to the whole sum may round in either format.
  const bool joined = assay_bound_unit(r->compute) > assay_bound_unit(r->accumulator);
  const assay_factor_t sum = assay_bound_sum(r, p->terms),
                       more = assay_bound_ops(r, p->extra + joined),
                       ends = of_roundings(
                           p->ends,
                           fmax(assay_bound_unit(r->accumulator), assay_bound_unit(r->compute)),
                           r->truncates),
                       f = assay_factor_add(assay_factor_add(sum, more), ends);
  // What terms lose below the normal numbers is scaled with their sum.
  const double least =
      assay_bound_tiny(r, joined ? r->compute : r->accumulator) + lost_by_parts(c, p);
  const double tiny = p->terms * least * (p->scale > 1 ? p->scale : 1);
  assay_status_t st = assay_new_array(c->n_in, sizeof *s.in, &s.in);
  if (!st) st = assay_new_array(c->n_out, sizeof *s.out, &s.out);
  if (!st && assay_bound_inputs_exact(c)) {
    const exact_job_t job = {.r = r,
                             .terms = p->terms,
                             .range = s.range,
                             .tiny = tiny,
                             .sum = sum,
                             .more = more,
                             .ends = ends,
                             .scale = p->scale > 0 ? p->terms : 1};
    st = products_of_exact(c, &s, job);
  } else {
    for (int probable = 0; !st && probable < 2; probable++) {
      st = add_product(c, &s, SIZE_MAX, probable, probable ? f.probable : f.guaranteed, tiny);
      for (size_t j = 0; !st && j < c->n_in; j++)
        if (has_limits(c, j)) st = add_product(c, &s, j, probable, 1, 0);
    }
  }
  assay_free(s.in);
  assay_free(s.out);
  return st;
}
