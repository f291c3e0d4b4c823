// Parts of the bounds of operators that do several steps inside: normalizations, softmax, norms,
// reductions, quantizers.
#include "ops/bound_parts.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/math/pointwise.h"

assay_inner_t assay_bound_inner(const assay_rounding_t* r) {
  const double u_compute = assay_bound_unit(r->compute);
  double u_acc = assay_bound_unit(r->accumulator);
  if (r->truncates) u_acc *= 2;
  assay_inner_t inner = {.u = fmax(u_compute, u_acc)};
  inner.function = assay_bound_function(r).guaranteed + (u_acc > u_compute ? u_acc : 0);
  inner.tiny = fmax(assay_bound_tiny(r, r->compute), assay_bound_tiny(r, r->accumulator));
  inner.max = fmin(assay_format_info(r->compute)->max, assay_format_info(r->accumulator)->max);
  return inner;
}

int assay_last_place(double x) {
  int exponent;
  if (x == 0) return INT_MAX;
  if (!isfinite(x)) return INT_MIN;
  const uint64_t bits = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53);
  return exponent - 53 + __builtin_ctzll(bits);
}

int assay_sum_place(double u, double largest) {
  return largest > 0 && largest < (double)INFINITY && u > 0 ? ilogb(2 * u * largest) : INT_MAX;
}

bool assay_bound_is_limited(const assay_bound_t* c, size_t input) {
  return input < c->n_in && c->in[input] && c->in_error && c->in_error[input].guaranteed;
}

const double* assay_bound_in(const assay_bound_t* c, size_t input, bool probable) {
  if (!assay_bound_is_limited(c, input)) return NULL;
  const assay_limits_t* l = &c->in_error[input];
  return assay_f64(probable ? l->probable : l->guaranteed);
}

assay_status_t assay_bound_want_exact(const assay_bound_t* c, size_t allowed) {
  for (size_t i = 0; i < c->n_in; i++)
    if (i != allowed && assay_bound_is_limited(c, i))
      return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                              "there is no bound where input %zu carries rounding errors", i);
  return NULL;
}

bool assay_bound_is_float(const assay_bound_t* c, size_t output) {
  const assay_tensor_t* t = output < c->n_out ? c->out[output] : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

assay_eval_t assay_bound_as_eval(const assay_bound_t* c) {
  assay_eval_t e = {.node = c->node, .n_in = c->n_in};
  e.in = (assay_tensor_t**)(uintptr_t)c->in;  // readers change no input
  return e;
}

// ---- the operator on other numbers -------------------------------------------------------------

static assay_status_t replaced(const assay_bound_t* c, assay_instead_t what, bool probable,
                               assay_tensor_t** out) {
  const assay_tensor_t* x = c->in[0];
  const double* e = assay_bound_in(c, 0, probable);
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &t));
  const double* from = assay_f64(x);
  double* to = assay_f64(t);
  const double min = what == ASSAY_INSTEAD_RAISED ? 1 : 0;
#pragma omp parallel for schedule(static) if (x->size > 100000)
  for (int64_t i = 0; i < x->size; i++) to[i] = fmax(fabs(from[i]) + (e ? e[i] : 0), min);
  *out = t;
  return NULL;
}

assay_status_t assay_bound_instead(assay_bound_t* c, assay_instead_t what, bool probable,
                                   assay_tensor_t** out) {
  assay_tensor_t **in = NULL, **all = NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *all, &all);
  if (!st) st = replaced(c, what, probable, &in[0]);
  for (size_t i = 1; !st && i < c->n_in; i++)
    in[i] = c->in[i] ? assay_tensor_retain(c->in[i]) : NULL;
  if (!st) st = c->evaluate(c, false, in, all);
  for (size_t i = 0; in && i < c->n_in; i++) assay_tensor_release(in[i]);
  for (size_t i = 1; all && i < c->n_out; i++) assay_tensor_release(all[i]);
  if (!st) *out = all[0];
  assay_free(in);
  assay_free(all);
  return st;
}

static assay_status_t run_inputs(const assay_bound_t* c, bool magnitudes, assay_tensor_t** in) {
  for (size_t i = 0; i < c->n_in; i++) {
    if (!c->in[i]) continue;
    if (magnitudes)
      ASSAY_TRY(assay_tensor_abs(c->in[i], &in[i]));
    else
      in[i] = assay_tensor_retain(c->in[i]);
  }
  return NULL;
}

assay_status_t assay_bound_evaluate(const assay_bound_t* c, const assay_bound_run_t* run,
                                    assay_tensor_t** out) {
  assay_tensor_t **in = NULL, **all = NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *all, &all);
  if (!st) st = run_inputs(c, run->magnitudes, in);
  if (!st) {
    assay_eval_t e = {.node = c->node,
                      .n_in = c->n_in,
                      .n_out = c->n_out,
                      .in = in,
                      .out = all,
                      .unquantized = run->unquantized};
    st = run->eval(&e);
  }
  for (size_t i = 0; in && i < c->n_in; i++) assay_tensor_release(in[i]);
  for (size_t i = st ? 0 : 1; all && i < c->n_out; i++) assay_tensor_release(all[i]);
  if (!st) *out = all[0];
  assay_free(in);
  assay_free(all);
  return st;
}

assay_status_t assay_bound_begin(assay_bound_t* c, size_t i, double** guaranteed,
                                 double** probable) {
  if (!c->out_error[i].guaranteed) {
    ASSAY_TRY(assay_bound_output(c, i, guaranteed, probable));
    if (!*guaranteed) return NULL;
    memset(*guaranteed, 0, (size_t)c->out[i]->size * sizeof **guaranteed);
    memset(*probable, 0, (size_t)c->out[i]->size * sizeof **probable);
    return NULL;
  }
  *guaranteed = assay_f64(c->out_error[i].guaranteed);
  *probable = assay_f64(c->out_error[i].probable);
  return NULL;
}

assay_status_t assay_bound_outward(assay_bound_t* c) {
  double* limits[2];
  ASSAY_TRY(assay_bound_begin(c, 0, &limits[0], &limits[1]));
  if (!assay_bound_is_limited(c, 0)) return NULL;
  const double* y = assay_f64(c->out[0]);
  for (int probable = 0; probable < 2; probable++) {
    assay_tensor_t* wide = NULL;
    ASSAY_TRY(assay_bound_instead(c, ASSAY_INSTEAD_WIDEST, probable, &wide));
    for (int64_t i = 0; i < wide->size; i++)
      limits[probable][i] += fmax(0, fabs(assay_f64(wide)[i]) - fabs(y[i]));
    assay_tensor_release(wide);
  }
  return NULL;
}

assay_status_t assay_bound_add_local(assay_bound_t* c, assay_bound_local_fn* local,
                                     const void* user, assay_tensor_t* const magnitude[2]) {
  double* limits[2];
  ASSAY_TRY(assay_bound_begin(c, 0, &limits[0], &limits[1]));
  const double* y = assay_f64(c->out[0]);
  for (int probable = 0; probable < 2; probable++) {
    const double* m = magnitude ? assay_f64(magnitude[probable]) : NULL;
    double* to = limits[probable];
#pragma omp parallel for schedule(static) if (c->out[0]->size > 20000)
    for (int64_t i = 0; i < c->out[0]->size; i++) {
      const double e = local(user, y[i], to[i], m ? m[i] : fabs(y[i]) + to[i], probable);
      to[i] = e == e ? to[i] + e : (double)INFINITY;
    }
  }
  return NULL;
}

assay_status_t assay_bound_add_instead(assay_bound_t* c, assay_instead_t instead,
                                       assay_bound_local_fn* local, const void* user) {
  assay_tensor_t* magnitude[2] = {0};
  assay_status_t st = NULL;
  for (int probable = 0; !st && probable < 2; probable++)
    st = assay_bound_instead(c, instead, probable, &magnitude[probable]);
  if (!st) st = assay_bound_add_local(c, local, user, magnitude);
  assay_tensor_release(magnitude[0]);
  assay_tensor_release(magnitude[1]);
  return st;
}
