// Whether an input breaks the model: one run of the emulated engine, every layer watched.
#include "ranges/confirm.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

struct assay_confirm {
  const assay_plan_t* plan;
  const assay_ranges_t* ranges;
  assay_tap_t tap;
  assay_executor_t* executor;
  assay_evaluator_t* exact;  // sums of integers, as real numbers
  bool broken;
  assay_witness_t found;
};

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static bool is_numbers(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR &&
         (t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_I64);
}

static double elem(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64    ? assay_f64(t)[i]
         : t->type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)assay_i64(t)[i]
                                        : (double)assay_i64(t)[i];
}

// Which kinds of numbers that are not finite are there: bit 0 NaN, bit 1 infinities.
static int unfinite(const assay_tensor_t* t) {
  int kinds = 0;
  if (!is_float(t)) return 0;
  for (int64_t i = 0; i < t->size && kinds != 3; i++) {
    const double x = assay_f64(t)[i];
    if (isnan(x))
      kinds |= 1;
    else if (isinf(x))
      kinds |= 2;
  }
  return kinds;
}

// A constant past the layer's format is infinite as it enters.
static bool passes(const assay_tensor_t* t, double max) {
  for (int64_t i = 0; is_float(t) && i < t->size; i++)
    if (fabs(assay_f64(t)[i]) > max) return true;
  return false;
}

// The same of what enters a node. max: what its format holds.
static assay_status_t unfinite_in(const assay_node_t* node, size_t n, assay_tensor_t* const* in,
                                  double max, int* out) {
  int kinds = 0;
  for (size_t i = 0; i < n; i++) {
    assay_tensor_t* wide = NULL;
    if (!in[i] || in[i]->kind != ASSAY_KIND_TENSOR) continue;
    ASSAY_TRY(assay_tensor_widen(in[i], &wide));
    kinds |= unfinite(wide);
    const bool constant = i < node->n_inputs && node->inputs[i] && node->inputs[i]->constant;
    if (constant && wide->type == ASSAY_TYPE_FLOAT && passes(wide, max)) kinds |= 2;
    assay_tensor_release(wide);
  }
  *out = kinds;
  return NULL;
}

static void note(assay_confirm_t* c, const assay_node_t* node, const assay_value_t* v,
                 assay_hazard_kind_t kind, double figure) {
  c->broken = true;
  c->found.node = node;
  c->found.value = v;
  c->found.kind = kind;
  c->found.figure = figure;
}

// ---- floats -------------------------------------------------------------------------------------

// What truth of the node on the engine's own inputs is, of the element that goes farthest.
static assay_status_t figure_of(assay_confirm_t* c, const assay_node_t* node, size_t n_in,
                                assay_tensor_t* const* in, size_t n_out, size_t which,
                                const assay_tensor_t* engine, double* out) {
  assay_tensor_t** y = NULL;
  *out = (double)NAN;
  if (node->op && node->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM)) return NULL;
  ASSAY_TRY(assay_new_array(n_out, sizeof *y, &y));
  assay_status_t st = assay_evaluator_node(c->exact, node, n_in, in, n_out, y);
  for (int64_t i = 0; !st && is_float(y[which]) && i < y[which]->size && i < engine->size; i++) {
    const double x = assay_f64(y[which])[i];
    if (isfinite(assay_f64(engine)[i])) continue;
    if (isnan(*out) || fabs(x) > fabs(*out)) *out = x;
  }
  for (size_t i = 0; i < n_out; i++) assay_tensor_release(y[i]);
  assay_free(y);
  if (assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  assay_status_free(st);  // of shapes in a body, say: the figure is not known
  return NULL;
}

static assay_status_t inspect_floats(assay_confirm_t* c, const assay_layer_t* layer,
                                     const assay_node_t* node, size_t n_in,
                                     assay_tensor_t* const* in, size_t n_out,
                                     assay_tensor_t* const* out) {
  const double max = layer ? assay_format_info(layer->format)->max : (double)INFINITY;
  int coming = -1;
  for (size_t i = 0; i < n_out && !c->broken; i++) {
    const int kinds = unfinite(out[i]);
    if (!kinds) continue;
    if (coming < 0) ASSAY_TRY(unfinite_in(node, n_in, in, max, &coming));
    // Infinities that came in may go on; NaN arises once.
    const bool moves = node->op && node->op->flags & (ASSAY_OP_MOVES | ASSAY_OP_CONTROL);
    if (moves || (coming & 1) || (kinds == 2 && coming & 2)) continue;
    double figure;
    ASSAY_TRY(figure_of(c, node, n_in, in, n_out, i, out[i], &figure));
    note(c, node, node->outputs[i],
         kinds & 1 && !isfinite(figure) ? ASSAY_HAZARD_INVALID : ASSAY_HAZARD_OVERFLOW, figure);
  }
  return NULL;
}

// ---- integers -----------------------------------------------------------------------------------

static assay_status_t as_reals(const assay_tensor_t* t, const assay_tensor_t* zero,
                               assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, t->rank, t->dims, out));
  const bool one = is_numbers(zero) && zero->size == 1;
  for (int64_t i = 0; i < t->size; i++) assay_f64(*out)[i] = elem(t, i) - (one ? elem(zero, 0) : 0);
  return NULL;
}

static const struct product {
  const char *op, *as;
  size_t a, b, zero_a, zero_b;
} products[] = {{"MatMulInteger", "MatMul", 0, 1, 2, 3},
                {"ConvInteger", "Conv", 0, 1, 2, 3},
                {"QLinearMatMul", "MatMul", 0, 3, 2, 5},
                {"QLinearConv", "Conv", 0, 3, 2, 5}};

// The inputs of the product as reals, less their zero points.
static assay_status_t product_inputs(const struct product* p, size_t n_in,
                                     assay_tensor_t* const* in, assay_tensor_t** real,
                                     bool* out_known) {
  *out_known = p->a < n_in && p->b < n_in && is_numbers(in[p->a]) && is_numbers(in[p->b]);
  if (!*out_known) return NULL;
  ASSAY_TRY(as_reals(in[p->a], p->zero_a < n_in ? in[p->zero_a] : NULL, &real[0]));
  return as_reals(in[p->b], p->zero_b < n_in ? in[p->zero_b] : NULL, &real[1]);
}

// Data as reals; axes and the like as they are.
static assay_status_t plain_inputs(const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                                   assay_tensor_t** real) {
  const assay_valtype_t* t = node->outputs[0] ? node->outputs[0]->type : NULL;
  const bool has_axes = strstr(node->op_type, "Reduce") || strstr(node->op_type, "Cum");
  for (size_t i = 0; i < n_in; i++) {
    if (!in[i]) continue;
    if (is_numbers(in[i]) && t && in[i]->type == t->elem && !(i == 1 && has_axes))
      ASSAY_TRY(as_reals(in[i], NULL, &real[i]));
    else
      real[i] = assay_tensor_retain(in[i]);
  }
  return NULL;
}

// The node with its integers taken as real numbers: what it would give if nothing wrapped. *out
// stays NULL where that is not known.
static assay_status_t evaluate_reals(assay_confirm_t* c, const assay_node_t* node, size_t n_in,
                                     assay_tensor_t* const* in, assay_tensor_t** out) {
  enum { MAX = 16 };
  assay_tensor_t *wide[MAX] = {NULL}, *real[MAX] = {NULL}, *y[MAX] = {NULL};
  // An output without a type is of that of the inputs.
  assay_value_t untyped[MAX] = {{0}}, *outputs[MAX];
  assay_node_t as = *node;
  assay_status_t st = NULL;
  bool known = true;
  if (n_in > MAX || node->n_outputs > MAX) return NULL;
  for (size_t i = 0; i < MAX; i++) outputs[i] = &untyped[i];
  as.outputs = outputs;
  // The engine holds integers in as few bytes as their type has.
  for (size_t i = 0; !st && i < n_in; i++)
    if (in[i] && in[i]->kind == ASSAY_KIND_TENSOR) st = assay_tensor_widen(in[i], &wide[i]);
  const struct product* p = NULL;
  for (size_t i = 0; i < sizeof products / sizeof *products; i++)
    if (!strcmp(products[i].op, node->op_type)) p = &products[i];
  if (!st && p) {
    const int64_t version = assay_model_opset(node->graph->model, "");
    as.domain = "";
    as.op_type = p->as;
    as.op = assay_op_find("", p->as, version);
    as.schema = assay_schema_find("", p->as, version, NULL);
    as.n_inputs = 2;
    as.n_outputs = 1;
    st = product_inputs(p, n_in, wide, real, &known);
  } else if (!st) {
    st = plain_inputs(node, n_in, wide, real);
  }
  if (!st && known) st = assay_evaluator_node(c->exact, &as, p ? 2 : n_in, real, as.n_outputs, y);
  if (!st && is_float(y[0])) *out = assay_tensor_retain(y[0]);
  for (size_t i = 0; i < MAX; i++) {
    assay_tensor_release(wide[i]);
    assay_tensor_release(real[i]);
    assay_tensor_release(y[i]);
  }
  const bool unable = st && assay_status_code(st) != ASSAY_NO_MEMORY;
  if (unable) assay_status_free(st);
  return unable ? NULL : st;
}

static assay_status_t inspect_integers(assay_confirm_t* c, const assay_hazard_t* h, size_t n_in,
                                       assay_tensor_t* const* in) {
  assay_tensor_t *y = NULL, *wide = NULL;
  if (h->kind == ASSAY_HAZARD_CAST) {
    if (n_in && in[0]) ASSAY_TRY(assay_tensor_widen(in[0], &wide));
    y = wide;
  } else {
    ASSAY_TRY(evaluate_reals(c, h->node, n_in, in, &y));
  }
  const assay_format_info_t* f = NULL;
  const assay_valtype_t* t = h->node->outputs[0] ? h->node->outputs[0]->type : NULL;
  if (t && assay_type_is_integer(t->elem)) f = assay_format_info(assay_type_format(t->elem));
  const bool sums = h->kind == ASSAY_HAZARD_ACCUMULATOR;
  const double maximum = sums ? h->limit : f ? f->max : (double)INFINITY;
  const double min = sums ? -h->limit - 1 : f && !f->is_signed ? 0 : -maximum - 1;
  double worst = 0;
  for (int64_t i = 0; is_numbers(y) && i < y->size; i++) {
    const double x = trunc(elem(y, i));
    if ((x > maximum || x < min) && fabs(x) > fabs(worst)) worst = x;
  }
  assay_tensor_release(y);
  if (worst != 0) note(c, h->node, h->value, h->kind, worst);
  return NULL;
}

static const assay_hazard_t* hazard_of(const assay_confirm_t* c, const assay_node_t* node) {
  for (size_t i = 0; i < c->ranges->n_hazards; i++)
    if (c->ranges->hazards[i].node == node) return &c->ranges->hazards[i];
  return NULL;
}

static bool is_of_integers(const assay_hazard_t* h) {
  const assay_valtype_t* t = h->node->outputs[0] ? h->node->outputs[0]->type : NULL;
  const bool integers = t && assay_type_is_integer(t->elem);
  return h->kind == ASSAY_HAZARD_CAST || h->kind == ASSAY_HAZARD_WRAP ||
         (h->kind == ASSAY_HAZARD_ACCUMULATOR && integers);
}

// ---- the run ------------------------------------------------------------------------------------

static assay_status_t watch(void* user, const assay_layer_t* layer, const assay_node_t* node,
                            uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                            size_t n_out, assay_tensor_t* const* out) {
  assay_confirm_t* c = user;
  (void)iteration;
  if (c->broken) return NULL;
  const assay_hazard_t* h = hazard_of(c, node);
  if (h && is_of_integers(h)) return inspect_integers(c, h, n_in, in);
  return inspect_floats(c, layer, node, n_in, in, n_out, out);
}

assay_status_t assay_confirm_create(const assay_plan_t* plan, const assay_ranges_t* ranges,
                                    assay_confirm_t** out) {
  assay_confirm_t* c = NULL;
  const assay_evaluator_config_t exact = {.mode = ASSAY_MODE_TRUTH};
  ASSAY_TRY(ASSAY_NEW(&c));
  c->plan = plan;
  c->ranges = ranges;
  c->tap = (assay_tap_t){.layer = watch, .user = c};
  assay_status_t st = assay_executor_run_plan(plan, &assay_backend_emu, &c->tap, &c->executor);
  if (!st) st = assay_evaluator_create(assay_plan_layers(plan)->model, &exact, &c->exact);
  if (st) return assay_confirm_destroy(c), st;
  *out = c;
  return NULL;
}

void assay_confirm_destroy(assay_confirm_t* c) {
  if (!c) return;
  assay_executor_destroy(c->executor);
  assay_evaluator_destroy(c->exact);
  assay_free(c);
}

assay_status_t assay_confirm_run(assay_confirm_t* c, assay_tensor_t* const* inputs,
                                 bool* out_broken, assay_witness_t* out) {
  const assay_graph_t* g = assay_executor_graph(c->executor);
  assay_executor_reset(c->executor);
  c->broken = false;
  c->found = (assay_witness_t){0};
  ASSAY_TRY(assay_executor_set_inputs(c->executor, inputs));
  ASSAY_TRY(assay_executor_run(c->executor));
  *out_broken = c->broken;
  if (!c->broken) return NULL;
  for (size_t i = 0; i < g->n_outputs; i++)
    c->found.at_output |= unfinite(assay_executor_get(c->executor, g->outputs[i])) != 0;
  *out = c->found;
  return NULL;
}
