// Makes the changes of a fix in a model as it was read from its file.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/edits/row.h"
#include "diagnose/quantizers/quantizers.h"
#include "diagnose/quantizers/write_out.h"
#include "onnx/onnx.h"

static bool is_op(const assay_node_t* n, const char* op_type) {
  return n && strcmp(n->op_type, op_type) == 0;
}

static assay_node_t* node_of_label(const assay_graph_t* g, const char* label) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (strcmp(g->nodes[i]->label, label) == 0) return g->nodes[i];
  return NULL;
}

// ---- scales ------------------------------------------------------------------------------------

static assay_type_t type_of(const assay_quantizer_site_t* s) {
  if (!s->other_sign) return s->type;
  return s->type == ASSAY_TYPE_INT8 ? ASSAY_TYPE_UINT8 : ASSAY_TYPE_INT8;
}

static assay_status_t scale_tensor(const assay_quantizer_site_t* s,
                                   const assay_quantizer_scales_t* by, bool zero,
                                   assay_tensor_t** out) {
  const assay_valtype_t* t = s->node->inputs[1]->type;
  const assay_type_t type = zero ? type_of(s) : t && t->elem ? t->elem : ASSAY_TYPE_FLOAT;
  ASSAY_TRY(assay_tensor_create(type, by->axis < 0 ? 0 : 1, &by->n, out));
  for (int64_t i = 0; i < by->n; i++) {
    if (zero)
      assay_i64(*out)[i] = (int64_t)by->zero[i];
    else
      assay_f64(*out)[i] = by->scale[i];
  }
  return NULL;
}

static assay_status_t put_scales(assay_model_t* raw, assay_node_t* n,
                                 const assay_quantizer_site_t* s,
                                 const assay_quantizer_scales_t* by) {
  assay_repair_t r = {.node = n, .n_edits = by->axis < 0 ? 2 : 3};
  for (size_t k = 0; k < r.n_edits; k++)
    r.edits[k] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = k + 1};
  if (by->axis >= 0) {
    r.edits[2].kind = ASSAY_EDIT_ATTR;
    r.edits[2].attr = (assay_attr_t){
        .name = "axis", .doc = "", .ref = "", .type = ASSAY_ATTR_INT, .n = 1, .u.i = by->axis};
  }
  ASSAY_TRY(assay_repair_grow_inputs(n, 2));
  assay_status_t st = scale_tensor(s, by, false, &r.edits[0].tensor);
  if (!st) st = scale_tensor(s, by, true, &r.edits[1].tensor);
  if (!st) st = assay_repair_apply(&r, raw);
  assay_repair_deinit(&r);
  return st;
}

// Stored bytes read the other way.
static assay_status_t put_bytes(assay_model_t* raw, assay_node_t* n,
                                const assay_quantizer_site_t* s) {
  assay_tensor_t *was = NULL, *made = NULL;
  assay_value_t* v = NULL;
  ASSAY_TRY(assay_quantizer_integers(s, &was));
  assay_status_t st = assay_tensor_create(type_of(s), was->rank, was->dims, &made);
  for (int64_t i = 0; !st && i < was->size; i++)
    assay_i64(made)[i] = (int64_t)assay_quantizer_other_sign((double)assay_i64(was)[i]);
  if (!st) st = assay_repair_new_constant(raw->graph, n->inputs[0]->name, made, &v);
  if (!st) n->inputs[0] = v;
  assay_tensor_release(was);
  assay_tensor_release(made);
  return st;
}

// ---- taken out ---------------------------------------------------------------------------------

// What reads the real numbers reads what was quantized. A quantizer that begins at 0 may stand for
// a Relu, which then has to be there.
static void put_float(assay_node_t* dequantize, assay_node_t* quantize, bool cuts) {
  dequantize->op_type = cuts ? "Relu" : "Identity";
  dequantize->inputs[0] = quantize->inputs[0];
  dequantize->n_inputs = 1;
  dequantize->n_attrs = 0;
}

static bool is_read(const assay_graph_t* g, const assay_value_t* v) {
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == v) return true;
  return v->is_output;
}

// ---- biases ------------------------------------------------------------------------------------

static assay_tensor_t* constant_input(const assay_node_t* n, size_t i) {
  return n->n_inputs > i && n->inputs[i] ? n->inputs[i]->constant : NULL;
}

// The DequantizeLinear that makes an input.
static assay_node_t* dequantizer(const assay_node_t* n, size_t i) {
  assay_node_t* p = n->n_inputs > i && n->inputs[i] ? n->inputs[i]->producer : NULL;
  return is_op(p, "DequantizeLinear") ? p : NULL;
}

// Integers of a bias by the scale of its products: engines that sum integers take it for granted.
static assay_status_t put_bias(assay_model_t* raw, assay_node_t* n, const assay_tensor_t* x,
                               const assay_tensor_t* w, const assay_tensor_t* b,
                               const assay_tensor_t* was) {
  assay_tensor_t *q = NULL, *scale = NULL;
  assay_value_t *qv = NULL, *sv = NULL;
  const bool several = w->size > 1;
  if (several && w->size != b->size) return NULL;
  ASSAY_TRY(assay_tensor_create(b->type, b->rank, b->dims, &q));
  assay_status_t st =
      assay_tensor_create(was->type, several ? 1 : 0, several ? w->dims : NULL, &scale);
  for (int64_t i = 0; !st && i < w->size; i++)
    assay_f64(scale)[i] = (double)(float)(assay_f64(x)[0] * assay_f64(w)[i]);
  for (int64_t i = 0; !st && i < b->size; i++) {
    const double real = (double)assay_i64(b)[i] * assay_f64(was)[was->size > 1 ? i : 0];
    const double to = assay_f64(scale)[several ? i : 0];
    assay_i64(q)[i] = assay_type_saturate(b->type, to > 0 ? rint(real / to) : 0);
  }
  if (!st) st = assay_repair_new_constant(raw->graph, n->inputs[0]->name, q, &qv);
  if (!st) st = assay_repair_new_constant(raw->graph, n->inputs[1]->name, scale, &sv);
  assay_tensor_release(q);
  assay_tensor_release(scale);
  if (st) return st;
  n->inputs[0] = qv;
  n->inputs[1] = sv;
  if (several) {
    const assay_repair_t axis = {
        .node = n,
        .n_edits = 1,
        .edits = {
            {.kind = ASSAY_EDIT_ATTR,
             .attr = {.name = "axis", .doc = "", .ref = "", .type = ASSAY_ATTR_INT, .n = 1}}}};
    return assay_repair_apply(&axis, raw);
  }
  return NULL;
}

static assay_status_t fit_bias(assay_model_t* raw, assay_node_t* product) {
  assay_node_t *x = dequantizer(product, 0), *w = dequantizer(product, 1),
               *b = dequantizer(product, 2);
  assay_tensor_t* from[4] = {NULL};  // scale of x, of w; integers and scale of b
  if (!x || !w || !b) return NULL;
  assay_tensor_t* const of[4] = {constant_input(x, 1), constant_input(w, 1), constant_input(b, 0),
                                 constant_input(b, 1)};
  if (!of[0] || !of[1] || !of[2] || !of[3] || of[2]->type != ASSAY_TYPE_INT32) return NULL;
  assay_status_t st = NULL;
  for (int i = 0; !st && i < 4; i++) st = assay_tensor_widen(of[i], &from[i]);
  if (!st && from[0]->size == 1 && (from[3]->size == 1 || from[3]->size == from[2]->size))
    st = put_bias(raw, b, from[0], from[1], from[2], from[3]);
  for (int i = 0; i < 4; i++) assay_tensor_release(from[i]);
  return st;
}

// Of all products that read what has other scales now.
static assay_status_t fit_biases(assay_model_t* raw, const assay_value_t* changed) {
  const assay_graph_t* g = raw->graph;
  for (size_t i = 0; i < g->n_nodes; i++) {
    assay_node_t* n = g->nodes[i];
    if (!is_op(n, "Conv") && !is_op(n, "ConvTranspose") && !is_op(n, "Gemm")) continue;
    if (n->n_inputs > 2 && (n->inputs[0] == changed || n->inputs[1] == changed))
      ASSAY_TRY(fit_bias(raw, n));
  }
  return NULL;
}

// ---- a quantizer -------------------------------------------------------------------------------

// The nodes that dequantize what a quantizer gives; the caller frees the list.
static assay_status_t list_dequantizers(const assay_graph_t* g, const assay_node_t* quantizer,
                                        assay_node_t*** out, size_t* out_n) {
  ASSAY_TRY(assay_new_array(g->n_nodes, sizeof **out, out));
  *out_n = 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (assay_quantizer_is_read_by(quantizer, g->nodes[i])) (*out)[(*out_n)++] = g->nodes[i];
  return NULL;
}

static void remove_node(assay_graph_t* g, const assay_node_t* n) {
  for (size_t i = g->n_nodes; i-- > 0;)
    if (g->nodes[i] == n) assay_graph_remove(g, i);
}

static assay_status_t put(assay_model_t* raw, const assay_quantizer_site_t* s,
                          assay_quantizer_change_t change) {
  const assay_quantizer_scales_t* by = change == ASSAY_QUANTIZER_APART    ? &s->apart
                                       : change == ASSAY_QUANTIZER_PAIRED ? &s->has
                                       : change == ASSAY_QUANTIZER_READ   ? &s->reads
                                                                          : &s->fits;
  const bool is_float = change == ASSAY_QUANTIZER_FLOAT;
  assay_node_t* quantize = node_of_label(raw->graph, s->node->label);
  assay_node_t** readers = NULL;
  size_t n = 0;
  if (quantize && s->stored && is_op(quantize, "DequantizeLinear")) {
    if (s->other_sign) ASSAY_TRY(put_bytes(raw, quantize, s));
    return put_scales(raw, quantize, s, by);
  }
  if (!quantize || !is_op(quantize, "QuantizeLinear"))
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no quantizer '%s' in its top graph",
                       s->node->label);
  assay_value_t* steps = quantize->outputs[0];
  ASSAY_TRY(list_dequantizers(raw->graph, quantize, &readers, &n));
  assay_status_t st = is_float ? NULL : put_scales(raw, quantize, s, by);
  for (size_t i = 0; !st && i < n; i++) {
    if (is_float) {
      put_float(readers[i], quantize, s->cuts);
      continue;
    }
    st = put_scales(raw, readers[i], s, by);
    if (!st) st = fit_biases(raw, readers[i]->outputs[0]);
  }
  assay_free(readers);
  if (!st && is_float && !is_read(raw->graph, steps)) remove_node(raw->graph, quantize);
  return st;
}

assay_status_t assay_quantizers_put(const assay_quantizers_t* q, assay_model_t* raw) {
  if (q->written_out) ASSAY_TRY(assay_qlinear_write_out(raw));
  for (size_t i = 0; i < q->n; i++)
    if (q->change && q->change[i] != ASSAY_QUANTIZER_KEPT)
      ASSAY_TRY(put(raw, &q->at[i], q->change[i]));
  return assay_onnx_sort(raw);
}

// ---- verified ----------------------------------------------------------------------------------

static assay_status_t run_sample(const assay_model_t* m, assay_tensor_t* const* inputs,
                                 assay_tensor_t* const* golden, assay_output_check_t* outputs) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_NATIVE, .arith = ASSAY_ARITH_F32};
  assay_evaluator_t* e = NULL;
  assay_status_t st = assay_evaluator_create_run(m, &config, inputs, &e);
  for (size_t i = 0; !st && i < m->graph->n_outputs; i++) {
    assay_tensor_t *made = assay_evaluator_get(e, m->graph->outputs[i]), *wide = NULL;
    if (!made) continue;
    st = assay_tensor_widen(made, &wide);
    if (!st) st = assay_output_add(&outputs[i], wide, wide);
    if (!st && golden && golden[i])
      st = assay_output_add_golden(&outputs[i], wide, wide, golden[i]);
    assay_tensor_release(wide);
  }
  assay_evaluator_destroy(e);
  return st;
}

// Whether a change that golden asked for does what it promised: golden is there but for single
// steps next to ties (40 dB, or what they were found to do), or as near as truth found it where a
// pair disagreed.
static bool brings_back(const assay_quantizers_t* q, const assay_output_check_t* outputs) {
  static const double STEPS = 1e-4, BACK = 1e-8, AS_FOUND = 2;
  double off = 0;
  for (size_t i = 0; i < q->n_outputs; i++) {
    const assay_error_sum_t* e = &outputs[i].engine_golden;
    if (outputs[i].has_golden && e->sum_ref2 > 0) off = fmax(off, e->sum_err2 / e->sum_ref2);
  }
  return off <= (q->pair    ? fmax(STEPS, AS_FOUND * q->after)
                 : q->exact ? fmax(STEPS, AS_FOUND * q->ties)
                            : BACK);
}

assay_status_t assay_quantizers_verify(assay_quantizers_t* q, const assay_model_t* changed,
                                       const assay_samples_t* inputs, const assay_samples_t* golden,
                                       const assay_requirements_t* require, bool* out_holds) {
  assay_output_check_t* outputs = NULL;
  ASSAY_TRY(assay_output_checks_create(changed->graph, require, &outputs));
  assay_status_t st = assay_outputs_want_slices(outputs, q->n_outputs, false);
  for (size_t k = 0; !st && k < inputs->n; k++)
    st = run_sample(changed, assay_samples_get(inputs, k),
                    golden->n ? assay_samples_get(golden, golden->n == 1 ? 0 : k) : NULL, outputs);
  if (!st && q->suspected) *out_holds = brings_back(q, outputs);
  if (!st && !q->suspected) *out_holds = assay_quantizers_hold(q, outputs, require);
  if (st) return assay_outputs_free(outputs, q->n_outputs), st;
  // Values of the changed model die with it.
  for (size_t i = 0; i < q->n_outputs; i++) {
    outputs[i].value = q->outputs[i].value;
    for (size_t k = 0; k < outputs[i].n_parts; k++) outputs[i].parts[k].value = q->outputs[i].value;
  }
  assay_outputs_free(q->fixed, q->n_outputs);
  q->fixed = outputs;
  return NULL;
}
