// Judging layers of engines that are not ours, of which not everything is known.
#include "account/external.h"

#include <math.h>
#include <string.h>

#include "account/account_internal.h"
#include "base/alloc.h"
#include "formats/error_sum.h"

// Whether an engine's result is better explained by one judgement than by another.
static bool explains_better(const assay_judgement_t* a, const assay_judgement_t* b) {
  if (a->beyond != b->beyond) return a->beyond < b->beyond;
  return assay_judgement_ratio(a) < assay_judgement_ratio(b);
}

assay_status_t assay_external_judge(assay_locals_t* l, const assay_external_run_t* r,
                                    assay_judgement_t* judged, bool* out_final) {
  assay_judgement_t other = {0};
  if (r->local->was_converted) {
    ASSAY_TRY(assay_local_judge(r->local, r->local->truth, r->engine, r->layer, r->rounding,
                                r->special, &other));
    if (explains_better(&other, judged)) *judged = other;
  }
  if (!judged->beyond) return NULL;
  assay_local_t wide = {0};
  other = (assay_judgement_t){0};
  ASSAY_TRY(assay_locals_run_uncertain(l, r->layer, r->node, r->in, r->rounding, &wide));
  assay_status_t st = assay_local_judge(&wide, wide.converted, r->engine, r->layer, r->rounding,
                                        r->special, &other);
  assay_local_deinit(&wide);
  if (st || !explains_better(&other, judged)) return st;
  *judged = other;
  *out_final = true;
  return NULL;
}

static bool same_structure(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != b->kind || a->n_items != b->n_items) return false;
  if (a->kind == ASSAY_KIND_TENSOR)
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
  for (int64_t i = 0; i < a->n_items; i++)
    if (!same_structure(a->items[i], b->items[i])) return false;
  return true;
}

assay_status_t assay_external_check(const assay_node_t* node, size_t n,
                                    assay_tensor_t* const* engine, assay_tensor_t* const* truth) {
  for (size_t i = 0; i < n; i++) {
    const assay_tensor_t *e = engine[i], *t = truth[i];
    if (!e || !t || same_structure(e, t)) continue;
    if (e->kind != ASSAY_KIND_TENSOR || t->kind != ASSAY_KIND_TENSOR)
      return ASSAY_ERROR(ASSAY_DEVICE, "the engine's '%s' is of another kind than the model's",
                         node->outputs[i]->name);
    return ASSAY_ERROR(ASSAY_DEVICE, "the engine's '%s' has shape %s; the model gives %s",
                       node->outputs[i]->name, ASSAY_DIMS_TEXT(e), ASSAY_DIMS_TEXT(t));
  }
  return NULL;
}

// Whether a node, or one in its bodies, makes a choice by floats: one that comes out otherwise is
// no error of the size that rounding has.
static bool chooses(const assay_node_t* node) {
  for (size_t i = 0; node->op && node->op->discrete && i < node->n_inputs; i++) {
    const assay_valtype_t* t = node->inputs[i] ? node->inputs[i]->type : NULL;
    if (!t || t->kind != ASSAY_KIND_TENSOR || assay_type_is_float(t->elem)) return true;
  }
  for (size_t a = 0; a < node->n_attrs; a++) {
    const assay_attr_t* attr = &node->attrs[a];
    const bool single = attr->type == ASSAY_ATTR_GRAPH;
    if (!single && attr->type != ASSAY_ATTR_GRAPHS) continue;
    for (size_t k = 0; k < (single ? 1 : attr->n); k++) {
      const assay_graph_t* body = single ? attr->u.g : attr->u.graphs[k];
      for (size_t i = 0; i < body->n_nodes; i++)
        if (chooses(body->nodes[i])) return true;
    }
  }
  return false;
}

static bool is_control(const assay_node_t* node) {
  return node->op && node->op->flags & ASSAY_OP_CONTROL;
}

bool assay_external_is_vague(const assay_external_run_t* r) {
  if (!r->layer || (r->local->bounded && r->layer->n_nodes == 1)) return false;
  for (size_t k = 0; k < r->layer->n_nodes; k++) {
    const assay_node_t* node = r->layer->nodes[k];
    if (chooses(node)) return false;
    // Bodies are not run again in the layer's format.
    if (is_control(node) && r->layer->format != ASSAY_FORMAT_FP32) return false;
  }
  return true;
}

static bool holds_floats(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static assay_error_sum_t error_of(const assay_local_t* local, assay_tensor_t* const* truth,
                                  assay_tensor_t* const* got) {
  assay_error_sum_t sum = ASSAY_ERROR_SUM_INIT;
  for (size_t i = 0; i < local->n_out; i++) {
    const assay_tensor_t *e = got[i], *t = truth[i];
    if (holds_floats(e) && holds_floats(t) && e->size == t->size)
      assay_error_sum_add(&sum, assay_f64(e), assay_f64(t), (size_t)t->size);
  }
  return sum;
}

// The largest error of the layer run again in other orders and with stochastic rounding.
static assay_status_t rerun_error(assay_locals_t* l, const assay_external_run_t* r,
                                  double* largest) {
  enum { RERUNS = 4 };
  const size_t n = r->local->n_out;
  assay_tensor_t** out = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *out, &out));
  assay_status_t st = NULL;
  for (int variant = 0; !st && variant < RERUNS; variant++) {
    st = assay_locals_rerun(l, r->layer, r->node, r->n_in, r->in, variant, n, out);
    if (st) break;
    const assay_error_sum_t again = error_of(r->local, r->local->converted, out);
    if (!again.mismatched) *largest = fmax(*largest, assay_error_sum_rms(&again));
    for (size_t i = 0; i < n; i++) {
      assay_tensor_release(out[i]);
      out[i] = NULL;
    }
  }
  assay_free(out);
  return st;
}

// The unit of the roundings that reruns do not show: they round no operands of inner products, and
// a layer of several nodes has the rounding of the one that it ends in, which need not be a
// product.
static double coarsest_unit(const assay_external_run_t* r) {
  const bool tf32 = r->layer && r->layer->format == ASSAY_FORMAT_TF32;
  const double operands = tf32 ? assay_bound_unit(ASSAY_FORMAT_TF32) : 0;
  return fmax(assay_bound_unit(r->rounding->compute),
              fmax(operands, assay_bound_operands(r->rounding)));
}

assay_status_t assay_external_compare(assay_locals_t* l, const assay_external_run_t* r,
                                      bool* out_asked, double* out_by) {
  const double FACTOR = 16, ROUNDINGS = 2;
  const assay_error_sum_t as_asked = error_of(r->local, r->local->converted, r->engine);
  const assay_error_sum_t wide = error_of(r->local, r->local->truth, r->engine);
  const double error = fmin(assay_error_sum_rms(&as_asked), assay_error_sum_rms(&wide));
  *out_asked = false;
  *out_by = 0;
  if (!as_asked.finite || as_asked.mismatched) return NULL;
  double usual = ROUNDINGS * coarsest_unit(r) * sqrt(as_asked.sum_ref2 / (double)as_asked.finite);
  if (!(error > FACTOR * usual)) return NULL;
  *out_asked = true;
  ASSAY_TRY(rerun_error(l, r, &usual));
  if (error > FACTOR * usual) *out_by = error / usual;
  return NULL;
}

// The largest magnitude that a layer's function has, where that is a number of its own: the error
// of an approximation goes by it, however small the values of a run are.
static double range_of(const assay_node_t* node) {
  static const char* const to_one[] = {"Sigmoid", "Tanh",        "Erf", "Softmax",
                                       "Sin",     "HardSigmoid", "Cos", "Softsign"};
  for (size_t i = 0; i < sizeof to_one / sizeof *to_one; i++)
    if (node && node->op && !strcmp(node->op->name, to_one[i])) return 1;
  return 0;
}

double assay_external_units(const assay_layer_account_t* a) {
  const double u = assay_bound_unit(a->storage ? a->storage : ASSAY_FORMAT_FP32);
  const double scale = fmax(a->own.ref_max, range_of(a->node));
  return scale > 0 ? a->own.max_abs / (u * scale) : 0;
}

// Measured: ONNX Runtime's Sigmoid is off by up to 2.2 units of fp32, OpenVINO's Erf by 8. In
// formats of 16 bits, functions are computed wider.
bool assay_external_is_near(const assay_layer_account_t* a) {
  const double FP32_UNITS = 16, NARROW_UNITS = 4;
  const assay_error_sum_t* own = &a->own;
  const bool narrow =
      a->storage && assay_bound_unit(a->storage) > assay_bound_unit(ASSAY_FORMAT_FP32);
  if (a->shape_mismatches || a->judged.born_nan || own->mismatched || !own->finite) return false;
  // Of everything that the layer gives, integers too, nothing else may be wrong.
  if (own->n != a->judged.elements || !isfinite(own->max_abs)) return false;
  return assay_external_units(a) <= (narrow ? NARROW_UNITS : FP32_UNITS);
}

void assay_external_blame_near(assay_account_t* a) {
  for (size_t i = 0; i < a->n_order; i++) {
    assay_layer_account_t* layer = &a->accounts[a->order[i]->id];
    if (layer->verdict == ASSAY_VERDICT_LESS_ACCURATE) layer->verdict = ASSAY_VERDICT_DEFECT;
  }
}
