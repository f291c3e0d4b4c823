// Limits beside numbers: rounding bounds of operators that compute in several steps.
#include "ops/running_bound.h"

#include <string.h>

#include "base/alloc.h"
#include "ops/matmul/gemm.h"

// Numbers that have limits. The tensor is held, so that its place in memory means it and no other.
typedef struct range {
  assay_tensor_t* t;
  const double* first;
  int64_t size;
  assay_span_t span;
  assay_tensor_t *guaranteed, *probable;
  const double* truth;  // NULL: not an output
} range_t;

struct assay_running_bound {
  const assay_bound_t* bound;
  range_t* ranges;
  size_t n, cap;
};

static void running_bound_deinit(assay_running_bound_t* s) {
  for (size_t i = 0; i < s->n; i++) {
    assay_tensor_release(s->ranges[i].t);
    assay_tensor_release(s->ranges[i].guaranteed);
    assay_tensor_release(s->ranges[i].probable);
  }
  assay_free(s->ranges);
}

static assay_status_t add_range(assay_running_bound_t* s, assay_tensor_t* t,
                                assay_tensor_t* guaranteed, assay_tensor_t* probable,
                                const double* truth) {
  ASSAY_TRY(assay_grow(&s->ranges, &s->cap, s->n + 1, sizeof *s->ranges));
  s->ranges[s->n++] = (range_t){.t = assay_tensor_retain(t),
                                .first = assay_f64(t),
                                .size = t->size,
                                .span = {assay_f64(guaranteed), assay_f64(probable)},
                                .guaranteed = assay_tensor_retain(guaranteed),
                                .probable = assay_tensor_retain(probable),
                                .truth = truth};
  return NULL;
}

static assay_status_t cover(assay_running_bound_t* s, assay_tensor_t* t, const double* truth) {
  assay_tensor_t *guaranteed = NULL, *probable = NULL;
  ASSAY_TRY(assay_tensor_create_zero(ASSAY_TYPE_DOUBLE, t->rank, t->dims, &guaranteed));
  assay_status_t st = assay_tensor_create_zero(ASSAY_TYPE_DOUBLE, t->rank, t->dims, &probable);
  if (!st) st = add_range(s, t, guaranteed, probable, truth);
  assay_tensor_release(guaranteed);
  assay_tensor_release(probable);
  return st;
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

assay_status_t assay_running_bound_cover(const assay_eval_t* c, assay_tensor_t* t) {
  return is_float(t) ? cover(c->running, t, NULL) : NULL;
}

assay_status_t assay_running_bound_output(const assay_eval_t* c, size_t i, assay_tensor_t* t) {
  const assay_bound_t* b = c->running->bound;
  if (!is_float(t)) return NULL;
  const bool known = i < b->n_out && is_float(b->out[i]) && b->out[i]->size == t->size;
  return cover(c->running, t, known ? assay_f64(b->out[i]) : NULL);
}

static const range_t* find(const assay_eval_t* c, const double* at) {
  const assay_running_bound_t* s = c->running;
  for (size_t i = s->n; i-- > 0;) {
    const range_t* r = &s->ranges[i];
    if (at >= r->first && at < r->first + r->size) return r;
  }
  return NULL;
}

const assay_rounding_t* assay_running_bound_rounding(const assay_eval_t* c) {
  return c->running->bound->rounding;
}

assay_span_t assay_running_bound_of(const assay_eval_t* c, const double* at) {
  const range_t* r = find(c, at);
  return r ? assay_span_from(r->span, at - r->first) : (assay_span_t){NULL, NULL};
}

const double* assay_running_bound_truth(const assay_eval_t* c, const double* at) {
  const range_t* r = find(c, at);
  return r && r->truth ? r->truth + (at - r->first) : NULL;
}

void assay_running_bound_copy(const assay_eval_t* c, const double* from, double* to, int64_t n) {
  if (n == 0) return;
  const assay_span_t a = assay_running_bound_of(c, from), b = assay_running_bound_of(c, to);
  if (!b.guaranteed) return;
  if (a.guaranteed) {
    memcpy(b.guaranteed, a.guaranteed, (size_t)n * sizeof *b.guaranteed);
    memcpy(b.probable, a.probable, (size_t)n * sizeof *b.probable);
  } else {
    memset(b.guaranteed, 0, (size_t)n * sizeof *b.guaranteed);
    memset(b.probable, 0, (size_t)n * sizeof *b.probable);
  }
}

// ---- the evaluation -----------------------------------------------------------------------------

static assay_status_t add_inputs(assay_running_bound_t* s, const assay_bound_t* b) {
  for (size_t i = 0; b->in_error && i < b->n_in; i++) {
    const assay_limits_t* l = &b->in_error[i];
    if (is_float(b->in[i]) && l->guaranteed)
      ASSAY_TRY(add_range(s, b->in[i], l->guaranteed, l->probable, NULL));
  }
  return NULL;
}

static void take_limits(const assay_running_bound_t* s, assay_bound_t* b,
                        assay_tensor_t* const* out) {
  for (size_t i = 0; i < b->n_out; i++) {
    if (!is_float(out[i])) continue;
    // The last range is the tensor's own; an input that is handed on has its own limits, too.
    for (size_t k = s->n; k-- > 0;) {
      const range_t* r = &s->ranges[k];
      if (r->t != out[i]) continue;
      assay_limits_deinit(&b->out_error[i]);
      b->out_error[i].guaranteed = assay_tensor_retain(r->guaranteed);
      b->out_error[i].probable = assay_tensor_retain(r->probable);
      break;
    }
  }
}

assay_status_t assay_bound_running(assay_bound_t* b, assay_status_t (*eval)(assay_eval_t* c)) {
  assay_running_bound_t running = {.bound = b};
  assay_tensor_t **in = NULL, **out = NULL;
  assay_status_t st = assay_new_array(b->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(b->n_out, sizeof *out, &out);
  if (!st) st = add_inputs(&running, b);
  if (!st) {
    if (b->n_in > 0) memcpy(in, b->in, b->n_in * sizeof *in);
    assay_eval_t c = {.node = b->node,
                      .mode = ASSAY_MODE_TRUTH,
                      .arith = ASSAY_ARITH_F64,
                      .n_in = b->n_in,
                      .n_out = b->n_out,
                      .in = in,
                      .out = out,
                      .running = &running};
    st = eval(&c);
  }
  if (!st) take_limits(&running, b, out);
  for (size_t i = 0; out && i < b->n_out; i++) assay_tensor_release(out[i]);
  assay_free(in);
  assay_free(out);
  running_bound_deinit(&running);
  return st;
}

assay_status_t assay_bound_running_exact(assay_bound_t* b,
                                         assay_status_t (*eval)(assay_eval_t* c)) {
  if (!assay_bound_inputs_exact(b))
    return ASSAY_NODE_ERROR(b->node, ASSAY_UNSUPPORTED, "it has no bound after rounded inputs");
  return assay_bound_running(b, eval);
}

// ---- numbers -----------------------------------------------------------------------------------

assay_steps_t assay_rounding_steps(const assay_rounding_t* r) {
  const double u = fmax(assay_bound_unit(r->compute), assay_bound_unit(r->accumulator));
  return (assay_steps_t){
      .u = u,
      .tiny = fmax(assay_bound_tiny(r, r->compute), assay_bound_tiny(r, r->accumulator)),
      .range = fmin(assay_format_info(r->compute)->max, assay_format_info(r->accumulator)->max),
      .function = fmax(1, 2 * r->function_ulps) * u,
      .definition = r->by_definition ? u : 0};
}

// ---- products -----------------------------------------------------------------------------------

// |x|, or limits of x, of a matrix as one without gaps.
static assay_status_t dense(const assay_matrix_t* x, const double* data, int64_t rows, int64_t cols,
                            assay_tensor_t** out) {
  const int64_t dims[2] = {rows, cols};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, dims, out));
  double* to = assay_f64(*out);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++)
      *to++ = fabs(data[x->offset + i * x->row_stride + j * x->col_stride]);
  return NULL;
}

static assay_matrix_t matrix(const assay_tensor_t* t) {
  return (assay_matrix_t){t->data, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, t->dims[1], 1};
}

typedef struct product {
  const assay_eval_t* c;
  int64_t m, n, k, ld;
  double* out;
  bool root;  // the roots of the product are added
} product_t;

// limits += f * (a x b); one kind or both.
static assay_status_t add_product(const product_t* p, const assay_tensor_t* a,
                                  const assay_tensor_t* b, double guaranteed, double probable) {
  const int64_t dims[2] = {p->m, p->n};
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, dims, &t));
  const assay_matrix_t ma = matrix(a), mb = matrix(b);
  assay_status_t st = assay_gemm(p->c, p->m, p->n, p->k, &ma, &mb, assay_f64(t), p->n, false);
  const assay_span_t s = assay_running_bound_of(p->c, p->out);
  for (int64_t i = 0; !st && s.guaranteed && i < p->m; i++) {
    for (int64_t j = 0; j < p->n; j++) {
      double x = assay_f64(t)[i * p->n + j];
      if (p->root) x = sqrt(x);
      if (guaranteed > 0) s.guaranteed[i * p->ld + j] += guaranteed * x;
      if (probable > 0) s.probable[i * p->ld + j] += probable * x;
    }
  }
  assay_tensor_release(t);
  return st;
}

// Probable limits += root of a^2 x b^2.
static assay_status_t add_squares(const product_t* p, const assay_tensor_t* a,
                                  const assay_tensor_t* b) {
  product_t roots = *p;
  roots.root = true;
  assay_tensor_t *a2 = NULL, *b2 = NULL;
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, a->dims, &a2);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, b->dims, &b2);
  for (int64_t i = 0; !st && i < a->size; i++) assay_f64(a2)[i] = assay_f64(a)[i] * assay_f64(a)[i];
  for (int64_t i = 0; !st && i < b->size; i++) assay_f64(b2)[i] = assay_f64(b)[i] * assay_f64(b)[i];
  if (!st) st = add_product(&roots, a2, b2, 0, 1);
  assay_tensor_release(a2);
  assay_tensor_release(b2);
  return st;
}

// What came in by one operand: its limits times the other one as wide as it may be.
static assay_status_t add_incoming(const product_t* p, const assay_matrix_t* a,
                                   const assay_matrix_t* b, const assay_tensor_t* abs_a,
                                   const assay_tensor_t* abs_b, bool independent) {
  const assay_span_t sa = assay_running_bound_of(p->c, (const double*)a->data);
  const assay_span_t sb = assay_running_bound_of(p->c, (const double*)b->data);
  for (int kind = 0; kind < 2; kind++) {
    const double* ea = kind ? sa.probable : sa.guaranteed;
    const double* eb = kind ? sb.probable : sb.guaranteed;
    assay_tensor_t *ta = NULL, *tb = NULL;
    assay_status_t st = NULL;
    if (ea) st = dense(a, ea, p->m, p->k, &ta);
    if (!st && eb) st = dense(b, eb, p->k, p->n, &tb);
    if (!st && ta && kind && independent) {
      st = add_squares(p, ta, abs_b);
    } else if (!st && ta) {
      st = add_product(p, ta, abs_b, !kind, kind);
    }
    // (|a| + limit) x limit
    for (int64_t i = 0; !st && ta && tb && i < ta->size; i++)
      assay_f64(ta)[i] += assay_f64(abs_a)[i];
    if (!st && tb) st = add_product(p, ta ? ta : abs_a, tb, !kind, kind);
    assay_tensor_release(ta);
    assay_tensor_release(tb);
    if (st) return st;
  }
  return NULL;
}

assay_status_t assay_running_bound_gemm(const assay_eval_t* c, int64_t m, int64_t n, int64_t k,
                                        const assay_matrix_t* a, const assay_matrix_t* b,
                                        double* out, int64_t ld, double extra, bool independent) {
  if (m == 0 || n == 0 || k == 0) return NULL;
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  const double more = extra * assay_rounding_steps(r).u;
  const assay_factor_t f =
      assay_factor_add(assay_bound_sum(r, (double)k), (assay_factor_t){more, more});
  const double range = assay_format_info(r->accumulator)->max;
  const product_t p = {c, m, n, k, ld, out, false};
  assay_tensor_t *abs_a = NULL, *abs_b = NULL;
  assay_status_t st = dense(a, (const double*)a->data, m, k, &abs_a);
  if (!st) st = dense(b, (const double*)b->data, k, n, &abs_b);
  if (!st) st = add_product(&p, abs_a, abs_b, f.guaranteed, f.probable);
  const assay_span_t s = assay_running_bound_of(c, out);
  // A sum that may pass the range on its way has no limit.
  for (int64_t i = 0; !st && s.guaranteed && f.guaranteed > 0 && i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      if (!(s.guaranteed[i * ld + j] / f.guaranteed * (1 + f.guaranteed) <= range))
        s.guaranteed[i * ld + j] = s.probable[i * ld + j] = INFINITY;
    }
  }
  if (!st) st = add_incoming(&p, a, b, abs_a, abs_b, independent);
  const double tiny = (double)k * assay_bound_tiny(r, r->accumulator);
  for (int64_t i = 0; !st && s.guaranteed && i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      s.guaranteed[i * ld + j] += tiny;
      s.probable[i * ld + j] += tiny;
    }
  }
  assay_tensor_release(abs_a);
  assay_tensor_release(abs_b);
  return st;
}
