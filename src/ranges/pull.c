// Which way the inputs have to move so that one element of an inner value grows: backwards through
// a graph that has run.
#include "ranges/pull.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/gradients/vjp.h"

// What one node's rule is given: derivatives by its outputs to be taken to its inputs.
typedef struct step {
  assay_pull_t* pull;
  assay_evaluator_t* evaluator;
  const assay_model_t* model;
  const assay_node_t* node;
  assay_tensor_t **in, **out;
} step_t;

typedef assay_status_t way_fn(step_t* s);

void assay_pull_deinit(assay_pull_t* p) {
  for (size_t i = 0; p->g && i < p->n; i++) assay_free(p->g[i]);
  for (size_t i = 0; p->row_g && i < p->n_inputs; i++) assay_free(p->row_g[i]);
  for (size_t i = 0; p->table && i < p->n_inputs; i++)
    if (p->table[i]) assay_tensor_release((assay_tensor_t*)(uintptr_t)p->table[i]);
  assay_free(p->g);
  assay_free(p->row_g);
  assay_free(p->table);
  assay_free(p->width);
  *p = (assay_pull_t){0};
}

static double elem(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : (double)assay_i64(t)[i];
}

static bool is_numbers(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR &&
         (t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_I64);
}

// Room for derivatives by input i; NULL: it is a constant.
static assay_status_t reserve(const step_t* s, size_t i, double** out) {
  const assay_value_t* v = i < s->node->n_inputs ? s->node->inputs[i] : NULL;
  *out = NULL;
  if (!v || !is_numbers(s->in[i]) || (v->constant && !v->producer)) return NULL;
  if (!s->pull->g[v->id])
    ASSAY_TRY(assay_new_array((size_t)s->in[i]->size, sizeof(double), &s->pull->g[v->id]));
  *out = s->pull->g[v->id];
  return NULL;
}

static const double* coming(const step_t* s, size_t i) {
  const assay_value_t* v = s->node->outputs[i];
  return v ? s->pull->g[v->id] : NULL;
}

// ---- straight through ---------------------------------------------------------------------------

static assay_status_t through(step_t* s, double (*slope)(const step_t* s, int64_t i)) {
  const double* g = coming(s, 0);
  double* to;
  ASSAY_TRY(reserve(s, 0, &to));
  if (!to || !g || s->in[0]->size != s->out[0]->size) return NULL;
  for (int64_t i = 0; i < s->in[0]->size; i++) to[i] += g[i] * (slope ? slope(s, i) : 1);
  return NULL;
}

static assay_status_t pass(step_t* s) { return through(s, NULL); }

// A little flows through what is cut off.
static const double LEAK = 0.02;
static double relu_slope(const step_t* s, int64_t i) { return elem(s->in[0], i) > 0 ? 1 : LEAK; }
static assay_status_t relu(step_t* s) { return through(s, relu_slope); }
static double clip_slope(const step_t* s, int64_t i) {
  return elem(s->in[0], i) == elem(s->out[0], i) ? 1 : LEAK;
}
static assay_status_t clip(step_t* s) { return through(s, clip_slope); }

// The scale of element i, of one for all or one along an axis.
static double scale_at(const step_t* s, const assay_tensor_t* scale, int64_t i) {
  if (!is_numbers(scale) || !scale->size) return 1;
  if (scale->size == 1) return elem(scale, 0);
  const assay_tensor_t* x = s->in[0];
  int64_t axis = assay_attr_i64(s->node, "axis", 1);
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank || scale->size != x->dims[axis]) return elem(scale, 0);
  return elem(scale, i / assay_dims_product(x->dims, (int)axis + 1, x->rank) % x->dims[axis]);
}
static double quantized(const step_t* s, int64_t i) {
  const double scale = scale_at(s, s->in[1], i);
  return scale != 0 ? 1 / scale : 0;
}
static double dequantized(const step_t* s, int64_t i) { return scale_at(s, s->in[1], i); }
static double dynamic(const step_t* s, int64_t i) {
  (void)i;
  const double scale = is_numbers(s->out[1]) ? elem(s->out[1], 0) : 1;
  return scale != 0 ? 1 / scale : 0;
}
static assay_status_t quantize(step_t* s) { return through(s, quantized); }
static assay_status_t dequantize(step_t* s) { return through(s, dequantized); }
static assay_status_t dynamic_quantize(step_t* s) { return through(s, dynamic); }

// ---- by the rules of vjp.h ----------------------------------------------------------------------

static assay_status_t run_rule(step_t* s, const assay_node_t* node, size_t n_in,
                               assay_tensor_t* const* in, double** in_g, size_t n_out,
                               assay_tensor_t* const* out, const double** out_g, bool* out_known) {
  const assay_vjp_t c = {.evaluator = s->evaluator,
                         .node = node,
                         .n_in = n_in,
                         .n_out = n_out,
                         .in = in,
                         .out = out,
                         .probes = 1,
                         .out_g = out_g,
                         .in_g = in_g};
  return assay_vjp_run(&c, out_known);
}

static assay_status_t by_rule(step_t* s) {
  double **in_g = NULL, **to = NULL;
  const double** out_g = NULL;
  const assay_node_t* n = s->node;
  bool known = false;
  assay_status_t st = assay_new_array(n->n_inputs, sizeof *in_g, &in_g);
  if (!st) st = assay_new_array(n->n_inputs, sizeof *to, &to);
  if (!st) st = assay_new_array(n->n_outputs, sizeof *out_g, &out_g);
  for (size_t i = 0; !st && i < n->n_outputs; i++) {
    if (is_numbers(s->out[i]) && s->out[i]->store == ASSAY_STORE_F64) out_g[i] = coming(s, i);
  }
  // One input after the other: a rule may know some of them only.
  for (size_t i = 0; !st && i < n->n_inputs; i++) {
    if (!is_numbers(s->in[i]) || s->in[i]->store != ASSAY_STORE_F64) continue;
    st = reserve(s, i, &to[i]);
    if (st || !to[i]) continue;
    st = assay_new_array((size_t)s->in[i]->size, sizeof(double), &in_g[i]);
    if (!st) st = run_rule(s, n, n->n_inputs, s->in, in_g, n->n_outputs, s->out, out_g, &known);
    for (int64_t k = 0; !st && known && k < s->in[i]->size; k++)
      if (isfinite(in_g[i][k])) to[i][k] += in_g[i][k];
    assay_free(in_g[i]);
    in_g[i] = NULL;
  }
  assay_free(in_g);
  assay_free(to);
  assay_free(out_g);
  return st;
}

// ---- products of integers -----------------------------------------------------------------------

static assay_status_t as_reals(const assay_tensor_t* t, const assay_tensor_t* zero,
                               assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, t->rank, t->dims, out));
  const double z = is_numbers(zero) && zero->size ? elem(zero, 0) : 0;
  for (int64_t i = 0; i < t->size; i++) assay_f64(*out)[i] = elem(t, i) - z;
  return NULL;
}

// As the product of reals that it stands for.
static assay_status_t integers(step_t* s, const char* op, size_t a, size_t b, size_t za,
                               size_t zb) {
  const assay_node_t* n = s->node;
  assay_tensor_t *in[2] = {NULL}, *out[1] = {NULL};
  double *to[2], *in_g[2] = {NULL};
  const double* g = coming(s, 0);
  const int64_t version = assay_model_opset(s->model, "");
  bool known = false;
  if (!g || b >= n->n_inputs || !is_numbers(s->in[a]) || !is_numbers(s->in[b])) return NULL;
  assay_status_t st = as_reals(s->in[a], za < n->n_inputs ? s->in[za] : NULL, &in[0]);
  if (!st) st = as_reals(s->in[b], zb < n->n_inputs ? s->in[zb] : NULL, &in[1]);
  if (!st) st = as_reals(s->out[0], NULL, &out[0]);
  assay_node_t node = *n;
  node.domain = "";
  node.op_type = op;
  node.op = assay_op_find("", op, version);
  node.schema = assay_schema_find("", op, version, NULL);
  node.n_inputs = 2;
  for (size_t i = 0; !st && i < 2; i++) {
    st = reserve(s, i ? b : a, &to[i]);
    if (st || !to[i]) continue;
    st = assay_new_array((size_t)in[i]->size, sizeof(double), &in_g[i]);
    if (!st) st = run_rule(s, &node, 2, in, in_g, 1, out, &g, &known);
    for (int64_t k = 0; !st && known && k < in[i]->size; k++) to[i][k] += in_g[i][k];
    assay_free(in_g[i]);
    in_g[i] = NULL;
  }
  for (size_t i = 0; i < 2; i++) assay_tensor_release(in[i]);
  assay_tensor_release(out[0]);
  return st;
}
static assay_status_t matmul_integer(step_t* s) { return integers(s, "MatMul", 0, 1, 2, 3); }
static assay_status_t conv_integer(step_t* s) { return integers(s, "Conv", 0, 1, 2, 3); }
static assay_status_t qlinear_matmul(step_t* s) { return integers(s, "MatMul", 0, 3, 2, 5); }
static assay_status_t qlinear_conv(step_t* s) { return integers(s, "Conv", 0, 3, 2, 5); }

// ---- rows of a table ----------------------------------------------------------------------------

static assay_status_t gather(step_t* s) {
  const assay_node_t* n = s->node;
  const double* g = coming(s, 0);
  const assay_value_t* at = n->inputs[1];
  while (at && at->producer &&
         (!strcmp(at->producer->op_type, "Cast") || !strcmp(at->producer->op_type, "Identity")))
    at = at->producer->inputs[0];
  ASSAY_TRY(by_rule(s));
  const bool rows = g && at && at->is_input && !at->constant && assay_attr_i64(n, "axis", 0) == 0 &&
                    is_numbers(s->in[0]) && s->in[0]->store == ASSAY_STORE_F64 &&
                    s->in[0]->rank >= 1;
  for (size_t i = 0; rows && i < s->pull->n_inputs; i++) {
    if (s->model->graph->inputs[i] != at || s->pull->table[i]) continue;
    s->pull->table[i] = assay_tensor_retain(s->in[0]);
    s->pull->width[i] = assay_dims_product(s->in[0]->dims, 1, s->in[0]->rank);
    ASSAY_TRY(assay_new_array((size_t)s->out[0]->size, sizeof(double), &s->pull->row_g[i]));
    memcpy(s->pull->row_g[i], g, (size_t)s->out[0]->size * sizeof *g);
  }
  return NULL;
}

static const struct {
  const char* op;
  way_fn* run;
} ways[] = {{"Relu", relu},
            {"Clip", clip},
            {"Cast", pass},
            {"Round", pass},
            {"Floor", pass},
            {"Ceil", pass},
            {"Identity", pass},
            {"QuantizeLinear", quantize},
            {"DequantizeLinear", dequantize},
            {"DynamicQuantizeLinear", dynamic_quantize},
            {"MatMulInteger", matmul_integer},
            {"ConvInteger", conv_integer},
            {"QLinearMatMul", qlinear_matmul},
            {"QLinearConv", qlinear_conv},
            {"Gather", gather}};

// ---- the graph ----------------------------------------------------------------------------------

static assay_status_t widen(const assay_evaluator_t* m, const assay_value_t* v,
                            assay_tensor_t** out) {
  assay_tensor_t* t = v ? assay_evaluator_get(m, v) : NULL;
  *out = NULL;
  return t ? assay_tensor_widen(t, out) : NULL;
}

static assay_status_t pass_node(assay_pull_t* p, assay_evaluator_t* m, const assay_model_t* model,
                                const assay_node_t* node) {
  step_t s = {.pull = p, .evaluator = m, .model = model, .node = node};
  bool any = false;
  for (size_t i = 0; i < node->n_outputs; i++)
    any |= node->outputs[i] && p->g[node->outputs[i]->id];
  if (!any || !node->op) return NULL;
  assay_status_t st = assay_new_array(node->n_inputs, sizeof *s.in, &s.in);
  if (!st) st = assay_new_array(node->n_outputs, sizeof *s.out, &s.out);
  for (size_t i = 0; !st && i < node->n_inputs; i++) st = widen(m, node->inputs[i], &s.in[i]);
  for (size_t i = 0; !st && i < node->n_outputs; i++) st = widen(m, node->outputs[i], &s.out[i]);
  way_fn* run = by_rule;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (!strcmp(ways[i].op, node->op_type)) run = ways[i].run;
  if (!st && node->n_inputs && s.in[0]) st = run(&s);
  for (size_t i = 0; s.in && i < node->n_inputs; i++) assay_tensor_release(s.in[i]);
  for (size_t i = 0; s.out && i < node->n_outputs; i++) assay_tensor_release(s.out[i]);
  assay_free(s.in);
  assay_free(s.out);
  // What lies after is no longer needed.
  for (size_t i = 0; i < node->n_outputs; i++) {
    if (!node->outputs[i]) continue;
    assay_free(p->g[node->outputs[i]->id]);
    p->g[node->outputs[i]->id] = NULL;
  }
  return st;
}

assay_status_t assay_pull_run(assay_evaluator_t* evaluator, const assay_model_t* model,
                              size_t position, const assay_value_t* v, int64_t element,
                              assay_pull_t* out) {
  const assay_graph_t* g = model->graph;
  assay_pull_t p = {.n = (size_t)model->n_values, .n_inputs = g->n_inputs};
  const assay_tensor_t* t = assay_evaluator_get(evaluator, v);
  if (!t || t->kind != ASSAY_KIND_TENSOR || element < 0 || element >= t->size)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "value '%s' has no such element", v->name);
  assay_status_t st = assay_new_array(p.n, sizeof *p.g, &p.g);
  if (!st) st = assay_new_array(p.n_inputs, sizeof *p.table, &p.table);
  if (!st) st = assay_new_array(p.n_inputs, sizeof *p.row_g, &p.row_g);
  if (!st) st = assay_new_array(p.n_inputs, sizeof *p.width, &p.width);
  if (!st) st = assay_new_array((size_t)t->size, sizeof(double), &p.g[v->id]);
  if (!st) p.g[v->id][element] = 1;
  for (size_t i = position + 1; !st && i-- > 0;) st = pass_node(&p, evaluator, model, g->nodes[i]);
  if (st) return assay_pull_deinit(&p), st;
  *out = p;
  return NULL;
}
