// Truth of single layers, on the inputs that an engine gave them, with limits on what rounding can
// do there.
#include "account/local.h"

#include <math.h>
#include <string.h>

#include "account/double_double.h"
#include "account/special.h"
#include "base/alloc.h"
#include "formats/format.h"

struct assay_locals {
  const assay_layers_t* layers;
  assay_evaluator_t* plain;       // as asked for
  assay_evaluator_t* quantizing;  // of unquantized truth: with quantizers; NULL: `plain` has them
  assay_evaluator_t* truth;       // of the evaluation in progress: one of these
  assay_evaluator_t* engine;      // for reruns; made when the first one is asked for
  assay_outer_t outer;
  bool coarse;           // of the evaluation in progress
  assay_tensor_t** low;  // the same: not NULL in twice the precision
  uint64_t iteration;
  int variant;  // of the rerun in progress
  const assay_layer_t* layer;
};

void assay_local_deinit(assay_local_t* l) {
  for (size_t i = 0; i < l->n_out; i++) {
    if (l->truth) assay_tensor_release(l->truth[i]);
    if (l->converted) assay_tensor_release(l->converted[i]);
    if (l->limits) assay_limits_deinit(&l->limits[i]);
    if (l->doubt) assay_limits_deinit(&l->doubt[i]);
    if (l->flips) assay_limits_deinit(&l->flips[i]);
  }
  assay_free(l->truth);
  assay_free(l->converted);
  assay_free(l->limits);
  assay_free(l->doubt);
  assay_free(l->flips);
  *l = (assay_local_t){0};
}

// ---- making -----------------------------------------------------------------------------------

static void configure_truth(void* user, const assay_node_t* node, assay_eval_t* c) {
  const assay_locals_t* l = user;
  (void)node;
  c->coarse = l->coarse;
  c->low = l->low;
  if (l->low) c->arith = ASSAY_ARITH_DOUBLE_DOUBLE;
}

assay_status_t assay_locals_create(const assay_layers_t* layers, bool unquantized,
                                   assay_locals_t** out) {
  assay_locals_t* l = NULL;
  ASSAY_TRY(ASSAY_NEW(&l));
  l->layers = layers;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .unquantized = unquantized,
                                           .seed = layers->seed,
                                           .hooks = {.configure = configure_truth, .user = l}};
  assay_evaluator_config_t quantizing = config;
  quantizing.unquantized = false;
  assay_status_t st = assay_evaluator_create(layers->model, &config, &l->plain);
  if (!st && unquantized) st = assay_evaluator_create(layers->model, &quantizing, &l->quantizing);
  if (st) return assay_locals_destroy(l), st;
  l->truth = l->plain;
  *out = l;
  return NULL;
}

void assay_locals_set_outer(assay_locals_t* l, const assay_outer_t* outer) { l->outer = *outer; }

void assay_locals_destroy(assay_locals_t* l) {
  if (!l) return;
  assay_evaluator_destroy(l->plain);
  assay_evaluator_destroy(l->quantizing);
  assay_evaluator_destroy(l->engine);
  assay_free(l);
}

void assay_locals_set_iteration(assay_locals_t* l, uint64_t iteration) {
  l->iteration = iteration;
  assay_evaluator_set_iteration(l->plain, iteration);
  if (l->quantizing) assay_evaluator_set_iteration(l->quantizing, iteration);
}

// ---- values within a layer ---------------------------------------------------------------------

typedef struct slot {
  const assay_value_t* value;
  assay_tensor_t* tensor;
  assay_limits_t limits;
} slot_t;

// A run through the nodes of a layer.
typedef struct chain {
  assay_locals_t* l;
  const assay_layer_t* layer;
  const assay_node_t* const* nodes;
  size_t n_nodes;
  assay_evaluator_t* evaluator;
  bool convert;                      // round what enters to the layer's format
  const assay_rounding_t* rounding;  // NULL: no limits
  bool emulate;                      // round hidden values as the engine keeps them
  bool uncertain;                    // the engine may have read other values than it has shown
  bool flips;                        // choices that are open may come out otherwise
  int64_t open;                      // such choices
  const assay_hidden_tap_t* tap;
  slot_t* hidden;
  size_t n_hidden;
  bool converted;  // something was rounded
  bool bounded;
} chain_t;

static slot_t* find(const chain_t* c, const assay_value_t* v) {
  for (size_t i = 0; i < c->n_hidden; i++)
    if (c->hidden[i].value == v) return &c->hidden[i];
  return NULL;
}

static void chain_deinit(chain_t* c) {
  for (size_t i = 0; i < c->n_hidden; i++) {
    assay_tensor_release(c->hidden[i].tensor);
    assay_limits_deinit(&c->hidden[i].limits);
  }
  assay_free(c->hidden);
}

static bool same_elements(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->store == ASSAY_STORE_F64 && b->store == ASSAY_STORE_F64 && a->size == b->size &&
         !memcmp(a->data, b->data, (size_t)a->size * sizeof(double));
}

// How far a value that an engine has shown in a narrow format may lie from the one that it read, if
// it kept that wider: half an ulp.
static assay_status_t shown_error(const chain_t* c, const assay_value_t* v,
                                  const assay_tensor_t* shown, assay_limits_t* out) {
  if (!v || !v->producer || v->constant || shown->kind != ASSAY_KIND_TENSOR) return NULL;
  const int maker = c->l->layers->layer_of_node[v->producer->id];
  const assay_layer_t* layer = maker < 0 ? NULL : &c->l->layers->layers[maker];
  const assay_format_t format = assay_layer_storage(layer, shown->type);
  if (shown->store != ASSAY_STORE_F64 || assay_bound_unit(format) <= 0x1p-24) return NULL;
  const double u = assay_bound_unit(format), tiny = assay_format_info(format)->min_subnormal / 2;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, shown->rank, shown->dims, &out->guaranteed));
  out->probable = assay_tensor_retain(out->guaranteed);
  for (int64_t k = 0; k < shown->size; k++)
    assay_f64(out->guaranteed)[k] = u * (1 + u) * fabs(assay_f64(shown)[k]) + tiny;
  return NULL;
}

// A hidden value as products of tf32 take it, where the engine rounds such operands: what is known
// exactly is rounded to the same number; what has limits is rounded somewhere within them. (A
// softmax's limits have that in them.)
static assay_status_t round_hidden(chain_t* c, const assay_node_t* node, size_t i, const slot_t* s,
                                   assay_tensor_t** x, assay_limits_t* error) {
  const assay_value_t* v = node->inputs[i];
  const bool weights = v->producer && v->producer->op && !strcmp(v->producer->op_type, "Softmax");
  if (!c->rounding || c->rounding->operands != ASSAY_FORMAT_TF32 || weights ||
      !assay_layer_multiplies_tf32(c->layer, node, i, s->tensor))
    return NULL;
  if (!s->limits.guaranteed) {
    assay_tensor_release(*x);
    *x = NULL;
    return assay_round_tensor(s->tensor, ASSAY_FORMAT_TF32, x);
  }
  const double u = assay_bound_operands(c->rounding), tiny = assay_bound_operand_tiny(c->rounding);
  assay_limits_t more = {0};
  assay_status_t st =
      assay_tensor_create(ASSAY_TYPE_DOUBLE, s->tensor->rank, s->tensor->dims, &more.guaranteed);
  for (int64_t k = 0; !st && k < s->tensor->size; k++)
    assay_f64(more.guaranteed)[k] =
        u * (fabs(assay_f64(s->tensor)[k]) + assay_f64(s->limits.guaranteed)[k]) + tiny;
  if (!st) more.probable = assay_tensor_retain(more.guaranteed);
  if (!st) st = assay_limits_add(error, &more);
  assay_limits_deinit(&more);
  return st;
}

// One input as the chain has it: from the layer's own values, or what entered, rounded. *out_error
// is the caller's.
static assay_status_t input(chain_t* c, const assay_node_t* node, size_t i, assay_tensor_t* entered,
                            assay_tensor_t** out, assay_limits_t* out_error) {
  if (!entered) {
    const slot_t* s = node->inputs[i] ? find(c, node->inputs[i]) : NULL;
    *out = s ? assay_tensor_retain(s->tensor) : NULL;
    if (!s) return NULL;
    out_error->guaranteed = assay_tensor_retain(s->limits.guaranteed);
    out_error->probable = assay_tensor_retain(s->limits.probable);
    return round_hidden(c, node, i, s, out, out_error);
  }
  if (c->uncertain) ASSAY_TRY(shown_error(c, node->inputs[i], entered, out_error));
  const assay_format_t format = c->convert
                                    ? assay_layer_operand(c->l->layers, c->layer, node, i, entered)
                                    : ASSAY_FORMAT_NONE;
  if (format == ASSAY_FORMAT_NONE) {
    // Bounds look at elements: they want them canonical.
    if (c->rounding) return assay_tensor_widen(entered, out);
    *out = assay_tensor_retain(entered);
    return NULL;
  }
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(entered, &wide));
  assay_status_t st = assay_round_tensor(wide, format, out);
  if (!st && !c->converted) c->converted = !same_elements(wide, *out);
  assay_tensor_release(wide);
  return st;
}

// ---- one node -----------------------------------------------------------------------------------

typedef struct evaluation {
  assay_locals_t* l;
  const assay_node_t* node;
} evaluation_t;

static assay_status_t evaluate(assay_bound_t* b, bool coarse, assay_tensor_t* const* in,
                               assay_tensor_t** out) {
  const evaluation_t* e = b->driver;
  e->l->coarse = coarse;
  assay_status_t st = assay_evaluator_node(e->l->truth, e->node, b->n_in, in, b->n_out, out);
  e->l->coarse = false;
  return st;
}

// How a hidden value is kept: one that the model declares narrower than float32 is rounded to that.
typedef struct kept {
  double u, tiny, max;  // u 0: as the arithmetic leaves it
  assay_format_t format;
} hidden_t;

static hidden_t hidden_as(const chain_t* c, const assay_tensor_t* t) {
  const assay_rounding_t* r = c->rounding;
  const double u_sum = assay_bound_unit(r->accumulator), u_one = assay_bound_unit(r->compute);
  const assay_format_t declared = assay_type_format(t->type);
  if (t->type != ASSAY_TYPE_FLOAT && assay_bound_unit(declared) > fmin(u_sum, u_one)) {
    const assay_format_info_t* f = assay_format_info(declared);
    return (hidden_t){f->unit_roundoff, f->min_subnormal / 2, f->max, declared};
  }
  if (u_sum == u_one) return (hidden_t){0};
  const assay_format_t coarser = u_sum > u_one ? r->accumulator : r->compute;
  return (hidden_t){assay_bound_unit(coarser), assay_bound_tiny(r, coarser),
                    assay_format_info(coarser)->max, coarser};
}

// What keeping hidden values adds to their limits: the coarser of the arithmetic's two formats, or
// the declared one. Nothing limits those that may have become infinite.
static assay_status_t add_hidden(const chain_t* c, const assay_tensor_t* t,
                                 assay_limits_t* limits) {
  if (t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_F64) return NULL;
  const hidden_t how = hidden_as(c, t);
  if (how.u == 0) return NULL;
  assay_limits_t kept = {0};
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_DOUBLE, t->rank, t->dims, &kept.guaranteed);
  if (!st) {
    for (int64_t k = 0; k < t->size; k++) {
      const double x = fabs(assay_f64(t)[k]);
      const double e = limits->guaranteed ? assay_f64(limits->guaranteed)[k] : 0;
      const bool past = (x + e) * (1 + how.u) > how.max;
      // A whole number that was chosen, say.
      const bool fits = e == 0 && assay_format_round(how.format, x, ASSAY_OVERFLOW_IEEE) == x;
      assay_f64(kept.guaranteed)[k] = past   ? (double)INFINITY
                                      : fits ? 0
                                             : how.u * (x + e) + how.tiny;
    }
    kept.probable = assay_tensor_retain(kept.guaranteed);
    st = assay_limits_add(limits, &kept);
  }
  assay_limits_deinit(&kept);
  return st;
}

// Sums of integers are exact: nothing is limited before f (ops/quant/int8.h), and f by its own
// roundings.
static assay_status_t int8_limits(const assay_int8_t* q, const assay_node_t* node,
                                  const assay_tensor_t* f, assay_limits_t* limits) {
  if (node->outputs[0] != q->result || !f || f->store != ASSAY_STORE_F64) return NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, f->rank, f->dims, &limits->guaranteed));
  limits->probable = assay_tensor_retain(limits->guaranteed);
  const int64_t inner = assay_dims_product(f->dims, q->channel_axis + 1, f->rank);
  for (int64_t k = 0; k < f->size; k++)
    assay_f64(limits->guaranteed)[k] =
        assay_int8_limit(q, assay_f64(f)[k], q->n_factor > 1 ? k / inner % q->n_factor : 0);
  return NULL;
}

// A node without a bound leaves the layer unjudged; that is not an error.
static assay_status_t node_limits(chain_t* c, const assay_node_t* node, assay_tensor_t* const* in,
                                  const assay_limits_t* in_error, size_t n_out,
                                  assay_tensor_t* const* out, assay_limits_t* limits) {
  const assay_int8_t* int8 = c->layer ? c->layer->int8 : NULL;
  if (int8 && assay_int8_in_affine(int8, node)) return int8_limits(int8, node, out[0], limits);
  evaluation_t e = {c->l, node};
  assay_bound_t b = {.node = node,
                     .rounding = c->rounding,
                     .n_in = node->n_inputs,
                     .n_out = n_out,
                     .in = in,
                     .in_error = in_error,
                     .out = out,
                     .out_error = limits,
                     .flips = c->flips,
                     .evaluate = evaluate,
                     .driver = &e};
  assay_status_t st = assay_bound_node(&b);
  c->open += b.open;
  if (st && assay_status_code(st) == ASSAY_UNSUPPORTED) {
    assay_status_free(st);
    for (size_t i = 0; i < n_out; i++) assay_limits_deinit(&limits[i]);
    c->bounded = false;
    st = NULL;
  }
  return st;
}

// ---- control nodes: what their bodies read around them -----------------------------------------

static void lend(const chain_t* c, const assay_value_t* v, const assay_graph_t* g) {
  if (!v || v->graph != g) return;
  const slot_t* s = find(c, v);
  assay_tensor_t* t = s ? s->tensor : c->l->outer.get(c->l->outer.user, v);
  if (t && t != v->constant) assay_evaluator_set(c->evaluator, v, t);
}

// Puts what the bodies of a node read of graph g into the machine's slots.
static void lend_outer(const chain_t* c, const assay_node_t* node, const assay_graph_t* g) {
  for (size_t a = 0; a < node->n_attrs; a++) {
    const assay_attr_t* attr = &node->attrs[a];
    const bool single = attr->type == ASSAY_ATTR_GRAPH;
    if (!single && attr->type != ASSAY_ATTR_GRAPHS) continue;
    for (size_t k = 0; k < (single ? 1 : attr->n); k++) {
      const assay_graph_t* body = single ? attr->u.g : attr->u.graphs[k];
      for (size_t i = 0; i < body->n_nodes; i++) {
        for (size_t j = 0; j < body->nodes[i]->n_inputs; j++) lend(c, body->nodes[i]->inputs[j], g);
        lend_outer(c, body->nodes[i], g);
      }
      for (size_t i = 0; i < body->n_outputs; i++) lend(c, body->outputs[i], g);
    }
  }
}

static bool is_control(const assay_node_t* node) {
  return node->op && node->op->flags & ASSAY_OP_CONTROL;
}

static assay_status_t run_with_bodies(const chain_t* c, const assay_node_t* node,
                                      assay_tensor_t* const* in, size_t n_out,
                                      assay_tensor_t** out) {
  if (!is_control(node) || !c->l->outer.get)
    return assay_evaluator_node(c->evaluator, node, node->n_inputs, in, n_out, out);
  lend_outer(c, node, node->graph);
  assay_status_t st = assay_evaluator_node(c->evaluator, node, node->n_inputs, in, n_out, out);
  assay_evaluator_reset(c->evaluator);
  return st;
}

// Runs one node; `entered` are its inputs that enter the layer. limits: NULL: none wanted.
static assay_status_t run_node(chain_t* c, const assay_node_t* node, assay_tensor_t* const* entered,
                               size_t n_out, assay_tensor_t** out, assay_limits_t* limits) {
  assay_tensor_t** in = NULL;
  assay_limits_t* in_error = NULL;
  assay_status_t st = assay_new_array(node->n_inputs, sizeof *in, &in);
  if (!st) st = assay_new_array(node->n_inputs, sizeof *in_error, &in_error);
  for (size_t i = 0; !st && i < node->n_inputs; i++)
    st = input(c, node, i, entered[i], &in[i], &in_error[i]);
  if (!st) st = run_with_bodies(c, node, in, n_out, out);
  if (!st && limits && c->bounded) st = node_limits(c, node, in, in_error, n_out, out, limits);
  for (size_t i = 0; in && i < node->n_inputs; i++) assay_tensor_release(in[i]);
  for (size_t i = 0; in_error && i < node->n_inputs; i++) assay_limits_deinit(&in_error[i]);
  assay_free(in);
  assay_free(in_error);
  return st;
}

// ---- all nodes of a layer ----------------------------------------------------------------------

static assay_status_t keep_hidden(chain_t* c, slot_t* s) {
  if (!s->tensor || !s->value) return NULL;
  if (c->emulate && s->tensor->kind == ASSAY_KIND_TENSOR) {
    assay_tensor_t* kept = NULL;
    const bool wide = s->tensor->type == ASSAY_TYPE_FLOAT;
    ASSAY_TRY(assay_round_tensor(
        s->tensor, wide ? c->layer->accumulator : assay_layer_storage(c->layer, s->tensor->type),
        &kept));
    assay_tensor_release(s->tensor);
    s->tensor = kept;
  }
  if (c->rounding && c->bounded) ASSAY_TRY(add_hidden(c, s->tensor, &s->limits));
  if (c->tap && c->l->layers->hidden_value[s->value->id])
    c->tap->value(c->tap->user, c->layer, s->value, s->tensor, &s->limits);
  return NULL;
}

static assay_status_t run_hidden_node(chain_t* c, const assay_node_t* node,
                                      assay_tensor_t* const* entered) {
  assay_tensor_t** out = NULL;
  assay_limits_t* limits = NULL;
  slot_t* slots = &c->hidden[c->n_hidden];
  assay_status_t st = assay_new_array(node->n_outputs, sizeof *out, &out);
  if (!st) st = assay_new_array(node->n_outputs, sizeof *limits, &limits);
  if (!st) st = run_node(c, node, entered, node->n_outputs, out, c->rounding ? limits : NULL);
  for (size_t o = 0; !st && o < node->n_outputs; o++) {
    slots[o] = (slot_t){.value = node->outputs[o], .tensor = out[o], .limits = limits[o]};
    c->n_hidden++;
  }
  const size_t made = st ? 0 : node->n_outputs;
  for (size_t o = 0; !st && o < node->n_outputs; o++) st = keep_hidden(c, &slots[o]);
  for (size_t o = made; out && limits && o < node->n_outputs; o++) {
    assay_tensor_release(out[o]);
    assay_limits_deinit(&limits[o]);
  }
  assay_free(out);
  assay_free(limits);
  return st;
}

// Lets go of hidden values that no node after number k reads: long layers have many.
static void forget(chain_t* c, size_t k) {
  for (size_t i = k + 1; i < c->n_nodes; i++)
    if (is_control(c->nodes[i])) return;  // its bodies may read anything
  for (size_t s = 0; s < c->n_hidden; s++) {
    slot_t* slot = &c->hidden[s];
    if (!slot->tensor) continue;
    bool read = false;
    for (size_t i = k + 1; !read && i < c->n_nodes; i++)
      for (size_t j = 0; !read && j < c->nodes[i]->n_inputs; j++)
        read = c->nodes[i]->inputs[j] == slot->value;
    if (read) continue;
    assay_tensor_release(slot->tensor);
    slot->tensor = NULL;
    assay_limits_deinit(&slot->limits);
  }
}

static assay_status_t run_chain(chain_t* c, assay_tensor_t* const* in, size_t n_out,
                                assay_tensor_t** out, assay_limits_t* limits) {
  size_t capacity = 0;
  for (size_t k = 0; k + 1 < c->n_nodes; k++) capacity += c->nodes[k]->n_outputs;
  c->bounded = true;
  assay_status_t st = assay_new_array(capacity, sizeof *c->hidden, &c->hidden);
  for (size_t k = 0; !st && k + 1 < c->n_nodes; k++) {
    st = run_hidden_node(c, c->nodes[k], in);
    in += c->nodes[k]->n_inputs;
    if (!st) forget(c, k);
  }
  if (!st) st = run_node(c, c->nodes[c->n_nodes - 1], in, n_out, out, c->rounding ? limits : NULL);
  chain_deinit(c);
  c->hidden = NULL;
  c->n_hidden = 0;
  return st;
}

static chain_t chain_of(assay_locals_t* l, const assay_layer_t* layer,
                        const assay_node_t* const* node, const assay_rounding_t* rounding) {
  chain_t c = {.l = l, .layer = layer, .evaluator = l->truth, .rounding = rounding};
  c.nodes = layer ? (const assay_node_t* const*)layer->nodes : node;
  c.n_nodes = layer ? layer->n_nodes : 1;
  return c;
}

// Whether the layer's format is one that operands are rounded to.
static bool may_convert(const assay_layer_t* layer) {
  return layer && layer->format != ASSAY_FORMAT_FP32 && layer->format != ASSAY_FORMAT_FP64;
}

// Whether truth's rounding is over 1/1000 of what the layer's limits are made of.
static bool is_as_fine(const assay_rounding_t* r) {
  if (r->compute == ASSAY_FORMAT_NONE || r->accumulator == ASSAY_FORMAT_NONE) return false;
  const double u = fmin(assay_bound_unit(r->compute), assay_bound_unit(r->accumulator));
  return 1000 * 0x1p-53 > u;
}

// Float64 as truth uses it.
static const assay_rounding_t truth_rounding = {.compute = ASSAY_FORMAT_FP64,
                                                .accumulator = ASSAY_FORMAT_FP64,
                                                .documented = true,
                                                .function_ulps = 1};

// What is within truth's last bit, as all numbers are, is no doubt.
static void keep_doubt(const assay_tensor_t* t, assay_limits_t* doubt) {
  bool any = false;
  for (int64_t k = 0; doubt->guaranteed && k < t->size; k++) {
    const double x = t->store == ASSAY_STORE_F64 ? fabs(assay_f64(t)[k]) : 0;
    double* g = assay_f64(doubt->guaranteed) + k;
    if (!(*g > x * 0x1p-52)) *g = 0;
    any |= *g > 0;
  }
  if (!any) assay_limits_deinit(doubt);
}

// Truth's own rounding bound, by the rows' bound functions.
static assay_status_t make_doubt(assay_locals_t* l, const assay_layer_t* layer,
                                 const assay_node_t* node, assay_tensor_t* const* in,
                                 assay_local_t* out) {
  chain_t c = chain_of(l, layer, &node, &truth_rounding);
  assay_tensor_t** again = NULL;
  ASSAY_TRY(assay_new_array(out->n_out, sizeof *again, &again));
  assay_status_t st = run_chain(&c, in, out->n_out, again, out->doubt);
  for (size_t i = 0; i < out->n_out; i++) {
    if (!st && again[i]) keep_doubt(again[i], &out->doubt[i]);
    assay_tensor_release(again[i]);
  }
  assay_free(again);
  return st;
}

static assay_status_t evaluate_dd(void* user, const assay_node_t* node, assay_tensor_t* const* in,
                                  assay_tensor_t** out, assay_tensor_t** low) {
  assay_locals_t* l = user;
  l->low = low;
  assay_status_t st =
      assay_evaluator_node(l->truth, node, node->n_inputs, in, node->n_outputs, out);
  l->low = NULL;
  return st;
}

// Makes a layer's truth dd than float64, or says how far it may be off.
static assay_status_t refine(assay_locals_t* l, const assay_layer_t* layer,
                             const assay_node_t* node, assay_tensor_t* const* in,
                             assay_local_t* out) {
  const assay_double_double_t f = {
      .nodes = layer ? (const assay_node_t* const*)layer->nodes : (const assay_node_t*[]){node},
      .n_nodes = layer ? layer->n_nodes : 1,
      .evaluate = evaluate_dd,
      .user = l};
  assay_status_t st = assay_double_double_run(&f, in, out->converted);
  if (assay_status_code(st) != ASSAY_UNSUPPORTED) return st;
  assay_status_free(st);
  return make_doubt(l, layer, node, in, out);
}

// Limits for choices that come out otherwise.
static assay_status_t follow_flips(const chain_t* settled, assay_tensor_t* const* in,
                                   assay_local_t* out) {
  chain_t c = *settled;
  assay_tensor_t** again = NULL;
  c.flips = true;
  c.tap = NULL;
  ASSAY_TRY(assay_new_array(out->n_out, sizeof *again, &again));
  assay_status_t st = run_chain(&c, in, out->n_out, again, out->flips);
  for (size_t i = 0; i < out->n_out; i++) assay_tensor_release(again[i]);
  assay_free(again);
  if (!st && !c.bounded) out->bounded = false;
  return st;
}

static bool gives_integers(const assay_layer_t* layer, const assay_node_t* node) {
  const assay_node_t* last = layer ? layer->nodes[layer->n_nodes - 1] : node;
  for (size_t i = 0; i < last->n_outputs; i++) {
    const assay_valtype_t* t = last->outputs[i] ? last->outputs[i]->type : NULL;
    if (t && t->kind == ASSAY_KIND_TENSOR && assay_type_is_integer(t->elem)) return true;
  }
  return false;
}

// What the engine is judged by; *out_apart: it is not truth on these inputs as truth was asked for.
static assay_status_t run_judged(assay_locals_t* l, const assay_layer_t* layer,
                                 const assay_node_t* node, assay_tensor_t* const* in,
                                 const assay_rounding_t* rounding, bool uncertain,
                                 const assay_hidden_tap_t* tap, assay_local_t* out,
                                 bool* out_apart) {
  chain_t c = chain_of(l, layer, &node, rounding);
  c.convert = rounding && may_convert(layer);
  c.uncertain = uncertain;
  c.tap = tap;
  ASSAY_TRY(run_chain(&c, in, out->n_out, out->converted, out->limits));
  out->bounded = rounding && c.bounded;
  out->was_converted = c.converted;
  if (out->bounded && c.open > 0) ASSAY_TRY(follow_flips(&c, in, out));
  if (out->bounded && !c.convert && !uncertain && is_as_fine(rounding))
    ASSAY_TRY(refine(l, layer, node, in, out));
  *out_apart = c.converted;
  return NULL;
}

static assay_status_t run(assay_locals_t* l, const assay_layer_t* layer, const assay_node_t* node,
                          assay_tensor_t* const* in, const assay_rounding_t* rounding,
                          bool uncertain, const assay_hidden_tap_t* tap, assay_local_t* out) {
  // An engine that gives integers has quantized, whatever truth does.
  const bool quantizes = l->quantizing && gives_integers(layer, node);
  bool apart = false;
  if (quantizes) l->truth = l->quantizing;
  assay_status_t st = run_judged(l, layer, node, in, rounding, uncertain, tap, out, &apart);
  l->truth = l->plain;
  if (st) return st;
  if (!apart && !quantizes) {
    for (size_t i = 0; i < out->n_out; i++) out->truth[i] = assay_tensor_retain(out->converted[i]);
    return NULL;
  }
  chain_t plain = chain_of(l, layer, &node, NULL);
  return run_chain(&plain, in, out->n_out, out->truth, NULL);
}

static assay_status_t run_local(assay_locals_t* l, const assay_layer_t* layer,
                                const assay_node_t* node, assay_tensor_t* const* in,
                                const assay_rounding_t* rounding, bool uncertain,
                                const assay_hidden_tap_t* tap, assay_local_t* out) {
  const assay_node_t* last = layer ? layer->nodes[layer->n_nodes - 1] : node;
  *out = (assay_local_t){.n_out = last->n_outputs};
  assay_status_t st = assay_new_array(out->n_out, sizeof *out->truth, &out->truth);
  if (!st) st = assay_new_array(out->n_out, sizeof *out->converted, &out->converted);
  if (!st) st = assay_new_array(out->n_out, sizeof *out->limits, &out->limits);
  if (!st) st = assay_new_array(out->n_out, sizeof *out->doubt, &out->doubt);
  if (!st) st = assay_new_array(out->n_out, sizeof *out->flips, &out->flips);
  if (!st) st = run(l, layer, node, in, rounding, uncertain, tap, out);
  if (st) assay_local_deinit(out);
  return st;
}

assay_status_t assay_locals_run(assay_locals_t* l, const assay_layer_t* layer,
                                const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                                const assay_rounding_t* rounding, const assay_hidden_tap_t* tap,
                                assay_local_t* out) {
  (void)n_in;
  return run_local(l, layer, node, in, rounding, false, tap, out);
}

assay_status_t assay_locals_run_uncertain(assay_locals_t* l, const assay_layer_t* layer,
                                          const assay_node_t* node, assay_tensor_t* const* in,
                                          const assay_rounding_t* rounding, assay_local_t* out) {
  return run_local(l, layer, node, in, rounding, true, NULL, out);
}

// ---- again, as an engine would -----------------------------------------------------------------

static void configure_engine(void* user, const assay_node_t* node, assay_eval_t* c) {
  const assay_locals_t* l = user;
  (void)node;
  assay_layer_arithmetic(l->layer, c);
  c->backwards = l->variant == 1;
  c->draws = l->variant >= 2 ? (uint64_t)l->variant : 0;
  // Float64 is not rounded further, by chance neither.
  if (l->variant >= 2 && c->accumulator != ASSAY_FORMAT_FP64) c->arith = ASSAY_ARITH_STOCHASTIC;
}

assay_status_t assay_locals_rerun(assay_locals_t* l, const assay_layer_t* layer,
                                  const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                                  int variant, size_t n_out, assay_tensor_t** out) {
  (void)n_in;
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_PLAN,
                                           .arith = ASSAY_ARITH_F32,
                                           .seed = l->layers->seed,
                                           .hooks = {.configure = configure_engine, .user = l}};
  if (!l->engine) ASSAY_TRY(assay_evaluator_create(l->layers->model, &config, &l->engine));
  chain_t c = chain_of(l, layer, &node, NULL);
  assay_evaluator_set_iteration(l->engine, l->iteration);
  c.evaluator = l->engine;
  c.convert = true;
  c.emulate = layer != NULL;
  l->variant = variant;
  l->layer = layer;
  ASSAY_TRY(run_chain(&c, in, n_out, out, NULL));
  for (size_t i = 0; i < n_out; i++) {
    if (!out[i] || out[i]->kind != ASSAY_KIND_TENSOR) continue;
    assay_tensor_t* stored = NULL;
    ASSAY_TRY(assay_round_tensor(out[i], assay_layer_storage(layer, out[i]->type), &stored));
    assay_tensor_release(out[i]);
    out[i] = stored;
  }
  return NULL;
}

// ---- judging ------------------------------------------------------------------------------------

// The dd of the formats in which values leave the layer's arithmetic: storing them in a coarser
// one is a rounding of its own.
static assay_format_t leaves_in(const assay_rounding_t* r) {
  const bool sums = assay_bound_unit(r->accumulator) < assay_bound_unit(r->compute);
  return sums ? r->accumulator : r->compute;
}

static const double* guaranteed_of(const assay_limits_t* limits, size_t i) {
  return limits && limits[i].guaranteed ? assay_f64(limits[i].guaranteed) : NULL;
}

// Whether all that the layer does is to move elements, whatever they are.
static bool only_moves(const assay_layer_t* layer) {
  const uint32_t asked = ASSAY_OP_MOVES | ASSAY_OP_SELECTS;
  bool moves = layer && layer->n_nodes > 0;
  for (size_t i = 0; moves && i < layer->n_nodes; i++) {
    const assay_op_t* op = layer->nodes[i]->op;
    moves = op && (op->flags & asked) == ASSAY_OP_MOVES;
  }
  return moves;
}

assay_status_t assay_local_judge(const assay_local_t* local, assay_tensor_t* const* truth,
                                 assay_tensor_t* const* got, const assay_layer_t* layer,
                                 const assay_rounding_t* rounding, const assay_special_t* special,
                                 assay_judgement_t* out) {
  for (size_t i = 0; i < local->n_out; i++) {
    const assay_tensor_t *e = got[i], *t = truth[i];
    if (!e || !t || e->kind != ASSAY_KIND_TENSOR || e->store > ASSAY_STORE_I64) continue;
    if (!assay_tensor_same_shape(e, t) || e->store != t->store) continue;
    const assay_judge_input_t in = {.engine = e,
                                    .truth = t,
                                    .limits = local->bounded ? &local->limits[i] : NULL,
                                    .flips = guaranteed_of(local->flips, i),
                                    .truth_error = guaranteed_of(local->doubt, i),
                                    .storage = assay_layer_storage(layer, e->type),
                                    .compute = leaves_in(rounding),
                                    .special = special && special->at ? special->at[i] : NULL,
                                    .rerun = special && special->rerun,
                                    .moves = only_moves(layer)};
    ASSAY_TRY(assay_judge(&in, out));
  }
  return NULL;
}
