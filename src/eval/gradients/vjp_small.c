// Operators without a formula here: differentiated numerically, an element of an input at a time,
// where that is little work; and TopK, whose second output says where its first comes from.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/gradients/vjp.h"
#include "ops/cost.h"

static bool is_float_tensor(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// ---- element by element -------------------------------------------------------------------------

// Step of the central difference, over the element; over the input's RMS where that is larger.
// Its error is about STEP^2 of the third derivative, and rounding over STEP.
static const double STEP = 1e-5, SMALL = 0.01;

// Evaluations, and operations in all, that are still little work.
static const double MAX_EVALUATIONS = 20000, MAX_WORK = 1e8;

static double root_mean_square(const assay_tensor_t* x) {
  double sum = 0;
  for (int64_t i = 0; i < x->size; i++)
    if (isfinite(assay_f64(x)[i])) sum += assay_f64(x)[i] * assay_f64(x)[i];
  return sqrt(sum / fmax(1, (double)x->size));
}

static assay_status_t is_little_work(const assay_vjp_t* c, bool* out) {
  enum { CALL = 1000, ELEMENT = 4 };
  assay_cost_t cost = {0};
  double evaluations = 0, written = 0;
  *out = false;
  for (size_t i = 0; i < c->n_in; i++) {
    if (!assay_vjp_wants(c, i)) continue;
    if (!is_float_tensor(c->in[i])) return NULL;
    evaluations += 2 * (double)c->in[i]->size;
  }
  for (size_t o = 0; o < c->n_out; o++) {
    if (c->out_g[o] && !is_float_tensor(c->out[o])) return NULL;
    if (c->out_g[o]) written += (double)c->out[o]->size * (double)c->probes;
  }
  if (evaluations > MAX_EVALUATIONS) return NULL;
  ASSAY_TRY(assay_cost_of_tensors(c->node, c->n_in, c->in, c->n_out, c->out, &cost));
  *out = evaluations * (CALL + cost.flops + ELEMENT * written) <= MAX_WORK;
  return NULL;
}

static void release_all(size_t n, assay_tensor_t** t) {
  for (size_t i = 0; t && i < n; i++) assay_tensor_release(t[i]), t[i] = NULL;
}

// products[p] += sign * <g_p, outputs>. False: an output has another shape.
static bool add_products(const assay_vjp_t* c, assay_tensor_t* const* out, double sign,
                         double* products) {
  for (size_t o = 0; o < c->n_out; o++) {
    if (!c->out_g[o]) continue;
    if (!is_float_tensor(out[o]) || out[o]->size != c->out[o]->size) return false;
    for (int64_t p = 0; p < c->probes; p++) {
      const double* g = c->out_g[o] + p * out[o]->size;
      double sum = 0;
      for (int64_t k = 0; k < out[o]->size; k++) {
        // The difference first: what does not move must not drown what does.
        const double d = assay_f64(out[o])[k] - assay_f64(c->out[o])[k];
        if (isfinite(d)) sum += g[k] * d;
      }
      products[p] += sign * sum;
    }
  }
  return true;
}

// The products with what two evaluations differ by, over the step between them.
static assay_status_t add_element(const assay_vjp_t* c, size_t input, int64_t e, double step,
                                  assay_tensor_t** in, assay_tensor_t** out, double* products,
                                  bool* out_known) {
  double* at = &assay_f64(in[input])[e];
  const double was = *at;
  memset(products, 0, (size_t)c->probes * sizeof *products);
  for (int k = 0; k < 2 && *out_known; k++) {
    *at = was + (k ? -step : step);
    assay_status_t st = assay_vjp_evaluate(c, NULL, 0, NULL, c->n_in, in, c->n_out, out);
    *at = was;
    if (!st) *out_known = add_products(c, out, k ? -1 : 1, products);
    release_all(c->n_out, out);
    if (st) return st;
  }
  for (int64_t p = 0; *out_known && p < c->probes; p++)
    c->in_g[input][p * c->in[input]->size + e] += products[p] / (2 * step);
  return NULL;
}

static assay_status_t add_elements(const assay_vjp_t* c, assay_tensor_t** in, assay_tensor_t** out,
                                   double* products, bool* out_known) {
  for (size_t i = 0; i < c->n_in; i++) {
    if (!assay_vjp_wants(c, i)) continue;
    const double min = fmax(SMALL * root_mean_square(c->in[i]), 1e-30);
    assay_tensor_t* own = NULL;
    ASSAY_TRY(assay_tensor_copy(c->in[i], &own));
    assay_tensor_t* const was = in[i];
    in[i] = own;
    assay_status_t st = NULL;
    for (int64_t e = 0; e < own->size && !st && *out_known; e++) {
      const double step = STEP * fmax(fabs(assay_f64(own)[e]), min);
      st = add_element(c, i, e, step, in, out, products, out_known);
    }
    in[i] = was;
    assay_tensor_release(own);
    if (st) return st;
  }
  return NULL;
}

assay_status_t assay_vjp_small(const assay_vjp_t* c, bool* out_known) {
  assay_tensor_t **in = NULL, **out = NULL;
  double* products = NULL;
  ASSAY_TRY(is_little_work(c, out_known));
  if (!*out_known) return NULL;
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *out, &out);
  if (!st) st = assay_new_array((size_t)c->probes, sizeof *products, &products);
  if (!st) {
    memcpy(in, c->in, c->n_in * sizeof *in);
    st = add_elements(c, in, out, products, out_known);
  }
  assay_free(in);
  assay_free(out);
  assay_free(products);
  if (st) *out_known = false;
  return st;
}

// ---- what was chosen ----------------------------------------------------------------------------

// Source: ONNX TopK-11: Values are elements of X along an axis, at Indices.
assay_status_t assay_vjp_top_k(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t *x = c->in[0], *y = c->out[0], *at = c->n_out > 1 ? c->out[1] : NULL;
  *out_known = false;
  if (!at || at->store != ASSAY_STORE_I64 || !is_float_tensor(x) || !is_float_tensor(y) ||
      assay_vjp_wants_from(c, 1))
    return NULL;
  *out_known = true;
  if (!assay_vjp_wants(c, 0) || !c->out_g[0] || !x->rank) return NULL;
  int64_t axis = assay_attr_i64(c->node, "axis", -1);
  if (axis < 0) axis += x->rank;
  const int64_t inner = assay_dims_product(x->dims, (int)axis + 1, x->rank);
  const int64_t d = x->dims[axis], k = y->dims[axis];
  for (int64_t p = 0; p < c->probes; p++)
    for (int64_t i = 0; i < y->size; i++) {
      const int64_t outer = i / (k * inner);
      c->in_g[0][p * x->size + (outer * d + assay_i64(at)[i]) * inner + i % inner] +=
          c->out_g[0][p * y->size + i];
    }
  return NULL;
}
