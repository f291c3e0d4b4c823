// Limits of fewer bits between a quantizer and what dequantizes it.
#include "ops/quant/limits.h"

#include <math.h>
#include <string.h>

#include "ops/quant/quant.h"

// Nodes one after the other: Max, then Min, and one that changes the type.
enum { DEPTH = 4, MAX_BITS = 16 };

static bool is_op(const assay_node_t* n, const char* op_type) {
  return n && strcmp(n->op_type, op_type) == 0;
}

static bool limits(const assay_node_t* n) {
  return n && !*n->domain && (is_op(n, "Clip") || is_op(n, "Min") || is_op(n, "Max"));
}

// One whole number that is constant.
static bool number_of(const assay_value_t* v, double* out) {
  const assay_tensor_t* t = v ? v->constant : NULL;
  if (v && !t && is_op(v->producer, "Constant")) {
    const assay_attr_t* a = assay_node_attr(v->producer, "value");
    t = a && a->type == ASSAY_ATTR_TENSOR ? a->u.t : NULL;
  }
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->size != 1 || !assay_type_is_integer(t->type))
    return false;
  *out = assay_tensor_element(t, 0);
  return true;
}

const assay_value_t* assay_quant_limited_value(const assay_node_t* n) {
  const assay_value_t* found = NULL;
  double limit;
  if (!limits(n)) return NULL;
  if (is_op(n, "Clip")) return n->n_inputs ? n->inputs[0] : NULL;
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (number_of(n->inputs[i], &limit)) continue;
    if (found) return NULL;
    found = n->inputs[i];
  }
  return found;
}

const assay_node_t* assay_quant_limited(const assay_node_t* n) {
  for (int depth = 0; n && depth < DEPTH; depth++) {
    if (!limits(n)) return depth && is_op(n, "QuantizeLinear") ? n : NULL;
    const assay_value_t* v = assay_quant_limited_value(n);
    n = v ? v->producer : NULL;
  }
  return NULL;
}

// The zero point of a quantizer, if there is one for all.
static bool zero_of(const assay_node_t* quantizer, double* out) {
  *out = 0;
  if (quantizer->n_inputs < 3 || !quantizer->inputs[2]) return true;
  if (number_of(quantizer->inputs[2], out)) return true;
  const assay_tensor_t* t = quantizer->inputs[2]->constant;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !assay_type_is_integer(t->type) || t->size < 1)
    return false;
  *out = assay_tensor_element(t, 0);
  for (int64_t i = 1; i < t->size; i++)
    if (assay_tensor_element(t, i) != *out) return false;
  return true;
}

// Whether a range of bits ends there: -2^k, 1 - 2^k, 0 or 2^k - 1.
static bool ends_a_range(double limit) {
  const double size = fabs(limit);
  for (int bits = 0; bits < MAX_BITS; bits++)
    if (size == ldexp(1, bits) - 1 || (limit < 0 && size == ldexp(1, bits))) return true;
  return false;
}

static void take_low(double limit, double zero, assay_quant_limits_t* out) {
  out->low = limit;
  out->low_saturates = ends_a_range(limit) && limit != zero;
}

static void take_high(double limit, double zero, assay_quant_limits_t* out) {
  out->high = limit;
  out->high_saturates = ends_a_range(limit) && limit != zero;
}

bool assay_quant_limits_of(const assay_node_t* n, assay_quant_limits_t* out) {
  const assay_node_t* quantizer = assay_quant_limited(n);
  double zero, limit;
  *out = (assay_quant_limits_t){.low = -(double)INFINITY, .high = (double)INFINITY};
  if (!quantizer || !zero_of(quantizer, &zero)) return false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const bool first = is_op(n, "Clip") && i == 0;
    if (first || !n->inputs[i] || !number_of(n->inputs[i], &limit)) continue;
    if (is_op(n, "Max") || (is_op(n, "Clip") && i == 1)) take_low(limit, zero, out);
    if (is_op(n, "Min") || (is_op(n, "Clip") && i == 2)) take_high(limit, zero, out);
  }
  return true;
}

static assay_status_t make_infinite(assay_eval_t* c, size_t i, double sign) {
  assay_tensor_t* t = NULL;
  if (!assay_eval_has(c, i)) return NULL;
  ASSAY_TRY(assay_tensor_scalar_f64(ASSAY_TYPE_FLOAT, sign * (double)INFINITY, &t));
  assay_tensor_release(c->in[i]);
  c->in[i] = t;
  return NULL;
}

assay_status_t assay_quant_free_limits(assay_eval_t* c) {
  assay_quant_limits_t l;
  const assay_node_t* n = c->node;
  bool any = false;
  double limit;
  for (size_t i = 0; c->unquantized && i < c->n_in; i++)
    any |= assay_quant_is_real(n->inputs[i], c->in[i]) && !number_of(n->inputs[i], &limit);
  if (!any || !assay_quant_limits_of(n, &l)) return NULL;
  if (is_op(n, "Clip")) {
    if (l.low_saturates) ASSAY_TRY(make_infinite(c, 1, -1));
    return l.high_saturates ? make_infinite(c, 2, 1) : NULL;
  }
  for (size_t i = 0; i < c->n_in; i++)
    if (number_of(n->inputs[i], &limit) && (is_op(n, "Max") ? l.low_saturates : l.high_saturates))
      ASSAY_TRY(make_infinite(c, i, is_op(n, "Max") ? -1 : 1));
  return NULL;
}
