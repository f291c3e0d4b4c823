// Constants that a format cannot hold: past its range, or too small for it.
#include "ranges/constants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void assay_odd_constants_deinit(assay_odd_constants_t* c) {
  assay_free(c->at);
  *c = (assay_odd_constants_t){0};
}

// ---- what the format makes of it ----------------------------------------------------------------

// Of weights, which are many, that a few small ones vanish is no news.
enum { MANY = 64 };

static bool count(const assay_tensor_t* t, assay_format_t format, assay_odd_constant_t* out) {
  const assay_format_info_t* f = assay_format_info(format);
  int worst = 0;
  out->n = t->size;
  for (int64_t i = 0; i < t->size; i++) {
    const double x = assay_f64(t)[i];
    const double y = assay_format_round(format, x, ASSAY_OVERFLOW_IEEE);
    int kind = 0;
    if (!isfinite(x)) continue;
    if (!isfinite(y))
      kind = 3, out->past++;
    else if (x != 0 && y == 0)
      kind = 2, out->flushed++;
    else if (x != 0 && fabs(y) < f->min_normal)
      kind = 1, out->subnormal++;
    else if (fabs(y) == 1 && y != x)
      kind = 1, out->ones++;
    if (kind > worst || (kind == worst && kind == 3 && fabs(x) > fabs(out->example))) {
      worst = kind;
      out->example = x;
      out->becomes = y;
    }
  }
  return out->past || (out->n <= MANY && (out->flushed || out->subnormal || out->ones)) ||
         (out->n > MANY && out->flushed * 2 > out->n);
}

// ---- whether it matters -------------------------------------------------------------------------

static bool is(const assay_node_t* n, const char* op) {
  return n && !*n->domain && !strcmp(n->op_type, op);
}

typedef struct reader {
  const assay_node_t* node;
  size_t input;
} reader_t;

// The first node that reads a value, from position `*at` of its graph on; NULL: none.
static reader_t next_reader(const assay_value_t* v, size_t* at) {
  const assay_graph_t* g = v->graph;
  for (; *at < g->n_nodes; ++*at)
    for (size_t i = 0; i < g->nodes[*at]->n_inputs; i++)
      if (g->nodes[*at]->inputs[i] == v) return (reader_t){g->nodes[(*at)++], i};
  return (reader_t){NULL, 0};
}

// The node after a value, through roots, in which 0 is a fault: a divisor, a logarithm.
static const assay_node_t* breaks_at_zero(const assay_value_t* v, int depth) {
  reader_t r;
  for (size_t at = 0; v && depth < 4 && (r = next_reader(v, &at)).node;) {
    const assay_node_t* n = r.node;
    if (is(n, "Reciprocal") || is(n, "Log") || (is(n, "Div") && r.input == 1)) return n;
    if (is(n, "Pow") && r.input == 0) return n;
    const bool goes_on = is(n, "Sqrt") || is(n, "Identity") || is(n, "Expand") || is(n, "Cast") ||
                         is(n, "Reshape") || is(n, "Unsqueeze");
    const assay_node_t* found =
        goes_on && n->n_outputs ? breaks_at_zero(n->outputs[0], depth + 1) : NULL;
    if (found) return found;
  }
  return NULL;
}

// The node after a value, through limits, in which 1 is a fault: the rest to 1 is divided by, or
// its logarithm is taken.
static const assay_node_t* breaks_at_one(const assay_value_t* v, int depth) {
  reader_t r;
  for (size_t at = 0; v && depth < 4 && (r = next_reader(v, &at)).node;) {
    const assay_node_t* n = r.node;
    if (is(n, "Atanh")) return n;
    const bool rest = is(n, "Sub") || is(n, "Add");
    const bool goes_on = is(n, "Clip") || is(n, "Min") || is(n, "Max") || is(n, "Identity") ||
                         is(n, "Cast") || is(n, "Neg");
    const assay_value_t* y = n->n_outputs ? n->outputs[0] : NULL;
    const assay_node_t* found = rest      ? breaks_at_zero(y, 0)
                                : goes_on ? breaks_at_one(y, depth + 1)
                                          : NULL;
    if (found) return found;
  }
  return NULL;
}

static bool reaches_softmax(const assay_value_t* v, int depth) {
  reader_t r;
  for (size_t at = 0; v && depth < 6 && (r = next_reader(v, &at)).node;) {
    if (is(r.node, "Softmax") || is(r.node, "LogSoftmax")) return true;
    const bool goes_on = is(r.node, "Add") || is(r.node, "Where") || is(r.node, "Reshape") ||
                         is(r.node, "Unsqueeze") || is(r.node, "Expand") || is(r.node, "Cast") ||
                         is(r.node, "Max") || is(r.node, "Concat") || is(r.node, "Mul") ||
                         is(r.node, "Slice");
    if (goes_on && r.node->n_outputs && reaches_softmax(r.node->outputs[0], depth + 1)) return true;
  }
  return false;
}

#define LOG(...) snprintf(c->why, sizeof c->why, __VA_ARGS__)

static void judge_past(assay_odd_constant_t* c, size_t input) {
  const assay_node_t* n = c->node;
  const assay_value_t* y = n->n_outputs ? n->outputs[0] : NULL;
  c->matters = true;
  if (is(n, "Mul") || is(n, "MatMul") || is(n, "Gemm") || is(n, "Conv")) {
    LOG("infinite, and multiplied: 0 times it is NaN");
  } else if (is(n, "Clip") || is(n, "Min") || is(n, "Max")) {
    c->matters = false;
    LOG("a limit that no number of the format passes anyway");
  } else if ((is(n, "Add") || is(n, "Where") || is(n, "Sub")) && reaches_softmax(y, 0)) {
    c->matters = false;
    LOG("a mask: fine unless all of a row is masked (then Softmax gives NaN)");
  } else if (is(n, "Div") && input == 1) {
    LOG("infinite as a divisor: quotients become 0");
  } else {
    LOG("infinite in %s", assay_format_name(c->format));
  }
}

static void judge_small(assay_odd_constant_t* c, size_t input) {
  const assay_node_t* n = c->node;
  const assay_value_t* y = n->n_outputs ? n->outputs[0] : NULL;
  const bool zero = c->flushed > 0;
  if (is(n, "Add") || is(n, "Max") || is(n, "Clip")) {
    const assay_node_t* broken = breaks_at_zero(y, 0);
    c->matters = broken != NULL;
    if (broken && zero)
      LOG("an epsilon that becomes 0: where the rest is 0, '%.40s' (%s) gets 0", broken->label,
          broken->op_type);
    else if (broken)
      LOG("an epsilon that is subnormal: units that flush make it 0, and '%.40s' (%s) gets 0",
          broken->label, broken->op_type);
    else
      LOG("%s; it was next to nothing beside the rest", zero ? "becomes 0" : "subnormal");
  } else if (zero && is(n, "Div") && input == 1) {
    c->matters = true;
    LOG("becomes 0 and is divided by");
  } else if (zero && (is(n, "Mul") || is(n, "Pow"))) {
    c->matters = is(n, "Mul") && c->flushed == c->n;
    LOG("becomes 0: %s", c->matters ? "so does all that it multiplies" : "");
  } else {
    LOG("%s in %s", zero ? "0" : "subnormal", assay_format_name(c->format));
  }
}

// A limit below 1 that is to keep something away from 1.
static void judge_one(assay_odd_constant_t* c, size_t input) {
  const assay_node_t* n = c->node;
  const bool limits = is(n, "Clip") || is(n, "Min") || is(n, "Max") || is(n, "Sub");
  const assay_node_t* broken = limits ? breaks_at_one(c->value, 0) : NULL;
  (void)input;
  c->matters = broken != NULL;
  if (broken) LOG("becomes 1: '%.40s' (%s) gets 0 of the rest", broken->label, broken->op_type);
}

// ---- finding ------------------------------------------------------------------------------------

static assay_status_t keep(assay_odd_constants_t* all, const assay_odd_constant_t* c) {
  ASSAY_TRY(assay_grow(&all->at, &all->capacity, all->n + 1, sizeof *all->at));
  all->at[all->n++] = *c;
  all->n_matter += c->matters;
  return NULL;
}

static assay_status_t inspect_input(const assay_layers_t* layers, const assay_layer_t* layer,
                                    const assay_node_t* node, size_t i,
                                    assay_odd_constants_t* all) {
  assay_tensor_t *t = assay_value_constant(node->inputs[i]), *wide = NULL;
  assay_odd_constant_t c = {.node = node, .value = node->inputs[i]};
  if (!t || t->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(t->type)) return NULL;
  c.format = assay_layer_operand(layers, layer, node, i, t);
  // Moved elements are rounded as they are stored.
  if (c.format == ASSAY_FORMAT_NONE && node->op && node->op->flags & ASSAY_OP_MOVES)
    c.format = assay_layer_storage(layer, t->type);
  if (c.format == ASSAY_FORMAT_NONE || !assay_format_info(c.format)->is_float) return NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  const bool odd = count(wide, c.format, &c);
  assay_tensor_release(wide);
  if (!odd) return NULL;
  if (c.past)
    judge_past(&c, i);
  else if (c.flushed || c.subnormal)
    judge_small(&c, i);
  else
    judge_one(&c, i);
  // Weights that are near 1 become 1 and mean the same.
  return c.past || c.flushed || c.subnormal || c.matters ? keep(all, &c) : NULL;
}

// Epsilons that are attributes are added inside, where most engines compute in fp32.
static assay_status_t inspect_attribute(const assay_layer_t* layer, const assay_node_t* node,
                                        assay_odd_constants_t* all) {
  const assay_attr_t* a = assay_node_attr(node, "epsilon");
  if (!a || a->type != ASSAY_ATTR_FLOAT || !layer) return NULL;
  assay_odd_constant_t c = {
      .node = node, .attribute = "epsilon", .n = 1, .example = (double)a->u.f};
  const assay_valtype_t* t = node->n_inputs && node->inputs[0] ? node->inputs[0]->type : NULL;
  c.format = assay_layer_storage(layer, t && t->elem ? t->elem : ASSAY_TYPE_FLOAT);
  if (c.format == ASSAY_FORMAT_NONE || !assay_format_info(c.format)->is_float) return NULL;
  c.becomes = assay_format_round(c.format, c.example, ASSAY_OVERFLOW_IEEE);
  const assay_format_info_t *f = assay_format_info(c.format),
                            *sums = assay_format_info(layer->accumulator);
  if (!(c.example > 0) || c.becomes >= f->min_normal) return NULL;
  c.flushed = c.becomes == 0;
  c.subnormal = !c.flushed;
  c.matters =
      assay_format_round(layer->accumulator, c.example, ASSAY_OVERFLOW_IEEE) < sums->min_normal;
  snprintf(c.why, sizeof c.why,
           c.matters
               ? "too small for the format that sums are kept in: a variance of 0 is divided by"
               : "added inside, in %s: it holds there; an engine that computes in %s loses it",
           assay_format_name(layer->accumulator), assay_format_name(c.format));
  return keep(all, &c);
}

static int by_weight(const void* a, const void* b) {
  const assay_odd_constant_t *x = a, *y = b;
  if (x->matters != y->matters) return x->matters ? -1 : 1;
  if ((x->past > 0) != (y->past > 0)) return x->past ? -1 : 1;
  return x->node->id - y->node->id;
}

assay_status_t assay_odd_constants_find(const assay_plan_t* plan, assay_odd_constants_t* out) {
  const assay_layers_t* layers = assay_plan_layers(plan);
  const assay_model_t* m = layers->model;
  assay_odd_constants_t all = {0};
  assay_status_t st = NULL;
  for (size_t g = 0; !st && g < m->n_graphs; g++)
    for (size_t k = 0; !st && k < m->graphs[g]->n_nodes; k++) {
      const assay_node_t* n = m->graphs[g]->nodes[k];
      const int at = layers->layer_of_node[n->id];
      const assay_layer_t* layer = at < 0 ? NULL : &layers->layers[at];
      for (size_t i = 0; !st && i < n->n_inputs; i++)
        if (n->inputs[i]) st = inspect_input(layers, layer, n, i, &all);
      if (!st) st = inspect_attribute(layer, n, &all);
    }
  if (st) return assay_odd_constants_deinit(&all), st;
  if (all.n) qsort(all.at, all.n, sizeof *all.at, by_weight);
  *out = all;
  return NULL;
}
