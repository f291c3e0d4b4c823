// The table of rules, and the two that hold for whole kinds of operators.
#include "eval/gradients/vjp.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

typedef struct rule {
  const char* op;
  assay_vjp_fn* run;
} rule_t;

#define ASSAY_VJP(op, function) {op, function},
static const rule_t rules[] = {
#include "eval/gradients/vjp.inc"
};
#undef ASSAY_VJP

static bool is_float_tensor(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

assay_status_t assay_vjp_run(const assay_vjp_t* c, bool* out_known) {
  const assay_op_t* op = c->node->op;
  const uint32_t other = ASSAY_OP_RANDOM | ASSAY_OP_QUANTIZES | ASSAY_OP_CONTROL;
  *out_known = false;
  if (!op) return NULL;
  for (size_t i = 0; !*c->node->domain && i < sizeof rules / sizeof *rules; i++)
    if (strcmp(rules[i].op, c->node->op_type) == 0) return rules[i].run(c, out_known);
  return op->flags & ASSAY_OP_POINTWISE && !(op->flags & other) && !(op->discrete & 1)
             ? assay_vjp_pointwise(c, out_known)
             : NULL;
}

// ---- pointwise ----------------------------------------------------------------------------------

// Steps of the central difference: relative to the element, but for those that are tiny beside the
// others. Its error is about STEP^2 of the third derivative, and rounding over STEP.
static const double STEP = 1e-5, TINY = 1e-4;

// The input with every element moved up or down by its step.
static assay_status_t moved_input(const assay_tensor_t* x, double sign, assay_tensor_t** out) {
  double sum = 0;
  ASSAY_TRY(assay_tensor_copy(x, out));
  for (int64_t i = 0; i < x->size; i++)
    if (isfinite(assay_f64(x)[i])) sum += assay_f64(x)[i] * assay_f64(x)[i];
  const double min = fmax(TINY * sqrt(sum / fmax(1, (double)x->size)), 1e-30);
  for (int64_t i = 0; i < x->size; i++)
    assay_f64(*out)[i] += sign * STEP * fmax(fabs(assay_f64(x)[i]), min);
  return NULL;
}

// Offsets into x of each element of the output; false if x is not broadcast to it.
static bool broadcasts(const assay_tensor_t* x, const assay_tensor_t* y, int64_t* strides) {
  if (x->rank > y->rank) return false;
  for (int i = 0; i < x->rank; i++) {
    const int64_t d = x->dims[i], e = y->dims[i + y->rank - x->rank];
    if (d != e && d != 1) return false;
  }
  assay_broadcast_strides(x, y->rank, y->dims, strides);
  return true;
}

enum { WORK_FOR_THREADS = 100000 };  // products that are worth starting threads for

// to[p][offset] += g[p][i] * d[i], where strides say which offset element i of the output has. Each
// probe by one thread.
static void add_weighted(const assay_vjp_t* c, size_t input, const double* d,
                         const int64_t* strides) {
  const assay_tensor_t *x = c->in[input], *y = c->out[0];
  const int64_t n = y->size;
#pragma omp parallel for schedule(static) if (n * c->probes > WORK_FOR_THREADS)
  for (int64_t p = 0; p < c->probes; p++) {
    const double* g = c->out_g[0] + p * n;
    double* to = c->in_g[input] + p * x->size;
    if (x->size == n) {
      for (int64_t i = 0; i < n; i++) to[i] += g[i] * d[i];
      continue;
    }
    const int last = y->rank - 1;
    const int64_t row = y->rank ? y->dims[last] : 1, step = y->rank ? strides[last] : 0;
    int64_t at[ASSAY_MAX_RANK] = {0}, from = 0;
    for (int64_t o = 0; o < n; o += row) {
      for (int64_t i = 0; i < row; i++) to[from + i * step] += g[o + i] * d[o + i];
      for (int k = last - 1; k >= 0; k--) {
        from += strides[k];
        if (++at[k] < y->dims[k]) break;
        from -= strides[k] * y->dims[k];
        at[k] = 0;
      }
    }
  }
}

// d[i] = (up - down)[i] / (xu - xd)[offset]; 0 where that is not finite.
static void divide(const assay_tensor_t* y, const assay_tensor_t* xu, const assay_tensor_t* xd,
                   const assay_tensor_t* up, const assay_tensor_t* down, const int64_t* strides,
                   double* d) {
  int64_t at[ASSAY_MAX_RANK] = {0}, from = 0;
  const bool same = xu->size == y->size;
#pragma omp parallel for schedule(static) if (same && y->size > WORK_FOR_THREADS)
  for (int64_t i = 0; i < (same ? y->size : 0); i++) {
    const double slope =
        (assay_f64(up)[i] - assay_f64(down)[i]) / (assay_f64(xu)[i] - assay_f64(xd)[i]);
    d[i] = isfinite(slope) ? slope : 0;
  }
  for (int64_t i = 0; !same && i < y->size; i++) {
    const double h = assay_f64(xu)[from] - assay_f64(xd)[from];
    const double slope = (assay_f64(up)[i] - assay_f64(down)[i]) / h;
    d[i] = isfinite(slope) ? slope : 0;
    for (int k = y->rank - 1; k >= 0; k--) {
      from += strides[k];
      if (++at[k] < y->dims[k]) break;
      from -= strides[k] * y->dims[k];
      at[k] = 0;
    }
  }
}

static bool same_size(const assay_tensor_t* a, const assay_tensor_t* b) {
  return is_float_tensor(a) && a->rank == b->rank &&
         !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static assay_status_t differentiate(const assay_vjp_t* c, size_t input, assay_tensor_t** in,
                                    assay_tensor_t** up, assay_tensor_t** down, bool* out_known) {
  int64_t strides[ASSAY_MAX_RANK];
  assay_tensor_t *const x = in[input], *xu = NULL, *xd = NULL;
  if (!broadcasts(x, c->out[0], strides)) return NULL;
  assay_status_t st = moved_input(x, 1, &xu);
  if (!st) st = moved_input(x, -1, &xd);
  in[input] = xu;
  if (!st) st = assay_vjp_evaluate(c, NULL, 0, NULL, c->n_in, in, c->n_out, up);
  in[input] = xd;
  if (!st) st = assay_vjp_evaluate(c, NULL, 0, NULL, c->n_in, in, c->n_out, down);
  in[input] = x;
  *out_known = !st && same_size(up[0], c->out[0]) && same_size(down[0], c->out[0]);
  if (*out_known) {
    double* d = NULL;
    st = assay_new_array((size_t)c->out[0]->size, sizeof *d, &d);
    if (!st) divide(c->out[0], xu, xd, up[0], down[0], strides, d);
    if (!st) add_weighted(c, input, d, strides);
    assay_free(d);
  }
  for (size_t i = 0; i < c->n_out; i++) {
    assay_tensor_release(up[i]);
    assay_tensor_release(down[i]);
    up[i] = down[i] = NULL;
  }
  assay_tensor_release(xu);
  assay_tensor_release(xd);
  return st;
}

static assay_status_t pointwise_to(const assay_vjp_t* c, size_t end, bool* out_known) {
  assay_tensor_t **in = NULL, **out = NULL;
  *out_known = false;
  // Before version 7 an attribute laid the second operand along other axes.
  if (!is_float_tensor(c->out[0]) || assay_attr_has(c->node, "broadcast")) return NULL;
  for (size_t o = 1; o < c->n_out; o++)
    if (c->out_g[o]) return NULL;
  if (assay_vjp_wants_from(c, end)) return NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(2 * c->n_out, sizeof *out, &out);
  if (!st) memcpy(in, c->in, c->n_in * sizeof *in);
  bool known = !st;
  for (size_t i = 0; !st && known && i < c->n_in; i++)
    if (assay_vjp_wants(c, i)) st = differentiate(c, i, in, out, out + c->n_out, &known);
  *out_known = known;
  assay_free(in);
  assay_free(out);
  return st;
}

assay_status_t assay_vjp_pointwise(const assay_vjp_t* c, bool* out_known) {
  return pointwise_to(c, c->n_in, out_known);
}

// The identity, where truth does not round: ops/data/cast.c.
assay_status_t assay_vjp_cast(const assay_vjp_t* c, bool* out_known) {
  *out_known = is_float_tensor(c->in[0]) && is_float_tensor(c->out[0]) &&
               assay_type_bits(c->out[0]->type) >= 16;
  for (int64_t i = 0; *out_known && c->in_g[0] && i < c->probes * c->in[0]->size; i++)
    c->in_g[0][i] += c->out_g[0][i];
  return NULL;
}

// Of one element of x, with parameters that follow the channel. Source: ONNX BatchNormalization-15.
assay_status_t assay_vjp_batch_norm(const assay_vjp_t* c, bool* out_known) {
  if (assay_attr_i64(c->node, "training_mode", 0)) return *out_known = false, NULL;
  return pointwise_to(c, 1, out_known);
}

// ---- moved elements -----------------------------------------------------------------------------

// Inputs in a row: element e of input i has number first[i] + e, from 1 on; 0: from nowhere.
typedef struct numbering {
  assay_tensor_t** in;  // the numbers in place of float inputs
  double* first;
} numbering_t;

static assay_status_t number_inputs(const assay_vjp_t* c, numbering_t* n) {
  double next = 1;
  for (size_t i = 0; i < c->n_in; i++) {
    const assay_tensor_t* x = c->in[i];
    n->first[i] = next;
    if (!is_float_tensor(x)) {
      n->in[i] = assay_tensor_retain((assay_tensor_t*)x);
      continue;
    }
    ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &n->in[i]));
    for (int64_t e = 0; e < x->size; e++) assay_f64(n->in[i])[e] = next + (double)e;
    next += (double)x->size;
  }
  return NULL;
}

// Which input and element of it each element of the output is; `of` -1: from nowhere.
typedef struct source {
  int32_t of;
  int64_t at;
} source_t;

static void find_sources(const assay_vjp_t* c, const numbering_t* n, const assay_tensor_t* from,
                         source_t* sources) {
  size_t i = 0;
  for (int64_t o = 0; o < from->size; o++) {
    const double number = assay_f64(from)[o];
    sources[o].of = -1;
    if (!(number >= 1)) continue;
    while (i + 1 < c->n_in && n->first[i + 1] <= number) i++;
    while (i > 0 && n->first[i] > number) i--;
    const int64_t e = (int64_t)(number - n->first[i]);
    if (c->in_g[i] && e < c->in[i]->size) sources[o] = (source_t){(int32_t)i, e};
  }
}

static assay_status_t add_moved(const assay_vjp_t* c, const numbering_t* n,
                                const assay_tensor_t* from, const double* g) {
  source_t* sources = NULL;
  ASSAY_TRY(assay_new_array((size_t)from->size, sizeof *sources, &sources));
  find_sources(c, n, from, sources);
#pragma omp parallel for schedule(static) if (from->size * c->probes > WORK_FOR_THREADS)
  for (int64_t p = 0; p < c->probes; p++)
    for (int64_t o = 0; o < from->size; o++) {
      const source_t s = sources[o];
      if (s.of >= 0) c->in_g[s.of][p * c->in[s.of]->size + s.at] += g[p * from->size + o];
    }
  assay_free(sources);
  return NULL;
}

// The operator is asked where it takes each element from, by letting it move their numbers.
assay_status_t assay_vjp_moved(const assay_vjp_t* c, bool* out_known) {
  numbering_t n = {0};
  assay_tensor_t** out = NULL;
  *out_known = false;
  assay_status_t st = assay_new_array(c->n_in, sizeof *n.in, &n.in);
  if (!st) st = assay_new_array(c->n_in, sizeof *n.first, &n.first);
  if (!st) st = assay_new_array(c->n_out, sizeof *out, &out);
  if (!st) st = number_inputs(c, &n);
  if (!st) st = assay_vjp_evaluate(c, NULL, 0, NULL, c->n_in, n.in, c->n_out, out);
  *out_known = !st;
  for (size_t o = 0; !st && o < c->n_out; o++) {
    if (!c->out_g[o]) continue;
    if (out[o] && same_size(out[o], c->out[o]))
      st = add_moved(c, &n, out[o], c->out_g[o]);
    else
      *out_known = false;
  }
  for (size_t i = 0; n.in && i < c->n_in; i++) assay_tensor_release(n.in[i]);
  for (size_t o = 0; out && o < c->n_out; o++) assay_tensor_release(out[o]);
  assay_free(n.in);
  assay_free(n.first);
  assay_free(out);
  return st;
}
