// Quantizers move past nodes that only move elements, so that these work on integers, a quarter of
// the bytes, and what computes has its quantizers next to it:
//   M(DequantizeLinear(q))                    is DequantizeLinear(M(q)), MaxPool too, since scales
//   are positive; QuantizeLinear(M(x))                      is M(QuantizeLinear(x)), where M keeps
//   every element, or is MaxPool behind a layer on integers, since quantizing keeps the order of
//   numbers (ONNX does not say what a NaN becomes); QuantizeLinear(f(M(x)))
//   is M(QuantizeLinear(f(x))), where f is a function of one tensor and numbers that is computed by
//   a layer on integers then; QuantizeLinear(DequantizeLinear(q))       is q, where both have the
//   same scale and zero point.
// Scales and zero points are constants for the whole tensor. The last line holds for 8-bit integers
// in float32, too: two roundings move (q - z), at most 255, by far less than a half; s itself and
// 255 s must be normal numbers.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/quant/int8.h"
#include "passes/edit.h"

enum { X, SCALE, ZERO };
enum { DEPTH = 8, MAX_OPERANDS = 64 };

// ---- what is asked of nodes ---------------------------------------------------------------------

typedef struct mover {
  const char* op_type;
  bool keeps;  // every element, once
  bool all;    // inputs are alike; else only the first one is moved
} mover_t;

static const mover_t movers[] = {
    {"Reshape", true, false},      {"Flatten", true, false},      {"Squeeze", true, false},
    {"Unsqueeze", true, false},    {"Transpose", true, false},    {"Identity", true, false},
    {"DepthToSpace", true, false}, {"SpaceToDepth", true, false}, {"Concat", true, true},
    {"Split", true, false},        {"Slice", false, false},       {"Gather", false, false},
    {"MaxPool", false, false},
};

static const mover_t* mover_of(const assay_node_t* n) {
  for (size_t i = 0; n && i < sizeof movers / sizeof *movers; i++)
    if (assay_is(n, movers[i].op_type) && n->n_inputs && n->inputs[X]) {
      // A MaxPool's second output are places, which have no scale.
      if (strcmp(n->op_type, "MaxPool") == 0 && n->n_outputs > 1 && n->outputs[1]) return NULL;
      return &movers[i];
    }
  return NULL;
}

typedef struct quantizer {
  double scale, zero;
  assay_type_t type;  // of the integers
} quantizer_t;

// Reads a quantizer of either kind whose constants are one number each; `quantized`: the integers.
static bool read_quantizer(const assay_node_t* n, const assay_value_t* quantized,
                           quantizer_t* out) {
  const double max = 255;
  *out = (quantizer_t){.type = assay_elem_of(quantized)};
  if (n->n_inputs < 2 || !n->inputs[X] || !n->inputs[SCALE] || assay_attr_i64(n, "block_size", 0))
    return false;
  const bool zero = n->n_inputs > ZERO && n->inputs[ZERO];
  if (!assay_pass_number(n->inputs[SCALE], &out->scale)) return false;
  if (zero && !assay_pass_number(n->inputs[ZERO], &out->zero)) return false;
  return (out->type == ASSAY_TYPE_INT8 || out->type == ASSAY_TYPE_UINT8) &&
         out->scale >= 0x1p-126 && out->scale * max <= 0x1.fffffep127;
}

static bool is_dequantizer(const assay_node_t* n, quantizer_t* out) {
  return n && assay_is(n, "DequantizeLinear") && n->outputs[0] &&
         assay_elem_of(n->outputs[0]) == ASSAY_TYPE_FLOAT && read_quantizer(n, n->inputs[X], out);
}

static bool is_quantizer(const assay_node_t* n, quantizer_t* out) {
  return n && assay_is(n, "QuantizeLinear") && n->outputs[0] && n->n_inputs && n->inputs[X] &&
         assay_elem_of(n->inputs[X]) == ASSAY_TYPE_FLOAT && read_quantizer(n, n->outputs[0], out);
}

static bool same(const quantizer_t* a, const quantizer_t* b) {
  return a->type == b->type && a->scale == b->scale && a->zero == b->zero;
}

// Whether somebody computes on the integers after a value if its DequantizeLinear comes to him.
static bool is_wanted(const assay_edit_t* e, const assay_value_t* v, int depth) {
  if (!v || v->id >= e->uses.n_values || depth == 0) return false;
  for (int i = e->uses.first[v->id]; i < e->uses.first[v->id + 1]; i++) {
    const assay_node_t* r = e->uses.readers[i];
    if (assay_int8_is_anchor(r) || assay_int8_knows(r) || assay_int8_is_quantizer(r)) return true;
    for (size_t k = 0; mover_of(r) && k < r->n_outputs; k++)
      if (is_wanted(e, r->outputs[k], depth - 1)) return true;
  }
  return false;
}

// ---- rewriting ----------------------------------------------------------------------------------

static assay_status_t quantized_type(assay_edit_t* e, const assay_value_t* like, assay_type_t elem,
                                     const assay_valtype_t** out) {
  assay_valtype_t* t = NULL;
  ASSAY_TRY(assay_arena_new(e->c->model->arena, 1, sizeof *t, &t));
  *t = *like->type;
  t->elem = elem;
  *out = t;
  return NULL;
}

// A node that does to these inputs what n does to its own, with outputs of that type; before n.
static assay_status_t repeat(assay_edit_t* e, assay_node_t* n, assay_value_t* const* inputs,
                             assay_type_t elem, assay_node_t** out) {
  ASSAY_TRY(assay_edit_insert_bare(e, n, n->op_type, n->n_inputs, inputs, n->n_outputs, out));
  (*out)->attrs = n->attrs;
  (*out)->n_attrs = n->n_attrs;
  for (size_t i = 0; i < n->n_outputs; i++) {
    assay_value_t* v = NULL;
    if (!n->outputs[i]) continue;
    ASSAY_TRY(assay_graph_new_value(n->graph, n->outputs[i]->name, &v));
    ASSAY_TRY(quantized_type(e, n->outputs[i], elem, &v->type));
    assay_node_set_output(*out, i, v);
  }
  return NULL;
}

// M(DequantizeLinear(q)): `like` is the dequantizer of all moved inputs.
static assay_status_t dequantize_behind(assay_edit_t* e, assay_node_t* n, const mover_t* m,
                                        const assay_node_t* like, assay_type_t elem) {
  assay_value_t *inputs[MAX_OPERANDS], *args[3] = {NULL};
  assay_node_t* on_integers = NULL;
  const assay_node_t* both[] = {n, like};
  for (size_t i = 0; i < n->n_inputs; i++) {
    assay_value_t* v = n->inputs[i] ? assay_edit_value(e, n->inputs[i]) : NULL;
    inputs[i] = v && (m->all || i == 0) ? assay_edit_value(e, v->producer->inputs[X]) : v;
  }
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, both, 2,
                              "it moves integers, which are dequantized after it"));
  ASSAY_TRY(repeat(e, n, inputs, elem, &on_integers));
  for (size_t i = 0; i < like->n_inputs && i < 3; i++) args[i] = like->inputs[i];
  for (size_t i = 0; i < n->n_outputs; i++) {
    assay_value_t* y = n->outputs[i];
    assay_node_t* d = NULL;
    if (!y) continue;
    args[X] = on_integers->outputs[i];
    ASSAY_TRY(assay_edit_insert_bare(e, n, "DequantizeLinear", like->n_inputs, args, 1, &d));
    assay_node_set_output(n, i, NULL);
    assay_node_set_output(d, 0, y);
  }
  assay_edit_kill(e, n);
  return NULL;
}

static assay_status_t try_behind(assay_edit_t* e, assay_node_t* n) {
  const mover_t* m = mover_of(n);
  quantizer_t first, q;
  bool wanted = false;
  if (!m || n->n_inputs > MAX_OPERANDS) return NULL;
  const assay_node_t* like = assay_edit_value(e, n->inputs[X])->producer;
  if (!is_dequantizer(like, &first) || like->n_inputs > 3) return NULL;
  for (size_t i = 0; i < (m->all ? n->n_inputs : 1); i++) {
    const assay_value_t* v = n->inputs[i] ? assay_edit_value(e, n->inputs[i]) : NULL;
    if (!v || v->is_output || !is_dequantizer(v->producer, &q) || !same(&q, &first) ||
        v->producer->graph != n->graph)
      return NULL;
  }
  for (size_t i = 0; i < n->n_outputs; i++) {
    if (n->outputs[i] && (!n->outputs[i]->type || n->outputs[i]->is_output)) return NULL;
    wanted |= is_wanted(e, n->outputs[i], DEPTH);
  }
  if (!wanted || !assay_edit_allows(e, n->op_type, like->inputs[X])) return NULL;
  return dequantize_behind(e, n, m, like, first.type);
}

// n becomes what `moving` was, on other inputs; that one goes.
static assay_status_t take_over(assay_edit_t* e, assay_node_t* n, assay_node_t* moving,
                                assay_value_t* const* inputs) {
  const char* op_type = moving->op_type;
  assay_attr_t* attrs = moving->attrs;
  const size_t n_attrs = moving->n_attrs;
  ASSAY_TRY(assay_pass_absorb(e->c, moving, n));
  assay_edit_kill(e, moving);
  ASSAY_TRY(assay_edit_become(e, n, op_type, moving->n_inputs, inputs));
  n->attrs = attrs;
  n->n_attrs = n_attrs;
  return NULL;
}

// QuantizeLinear(M(x)): the quantizer becomes M.
static assay_status_t quantize_before(assay_edit_t* e, assay_node_t* n, const mover_t* m,
                                      assay_node_t* moving, assay_type_t elem) {
  assay_value_t *inputs[MAX_OPERANDS], *args[3] = {NULL};
  const assay_node_t* both[] = {n, moving};
  const size_t n_args = n->n_inputs;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, both, 2,
                              "what '%s' moves is quantized before", moving->label));
  for (size_t i = 0; i < n_args; i++) args[i] = n->inputs[i];
  for (size_t i = 0; i < moving->n_inputs; i++) {
    const assay_valtype_t* type = NULL;
    assay_node_t* q = NULL;
    inputs[i] = moving->inputs[i] ? assay_edit_value(e, moving->inputs[i]) : NULL;
    if (!inputs[i] || (!m->all && i)) continue;
    ASSAY_TRY(quantized_type(e, inputs[i], elem, &type));
    args[X] = inputs[i];
    ASSAY_TRY(assay_edit_insert(e, n, "QuantizeLinear", n_args, args, inputs[i]->name, type, &q));
    if (n->n_attrs) {
      q->attrs = n->attrs;
      q->n_attrs = n->n_attrs;
    }
    inputs[i] = q->outputs[0];
  }
  return take_over(e, n, moving, inputs);
}

// Whether a value comes of a product of quantized tensors and nodes that a layer on integers has
// behind it, so that a quantizer there costs nothing.
static bool is_of_integers(assay_edit_t* e, const assay_value_t* v) {
  quantizer_t q;
  const assay_node_t* n = v->producer;
  for (int depth = DEPTH; depth && n && (assay_int8_knows(n) || assay_int8_is_norm(n)); depth--)
    n = assay_edit_value(e, n->inputs[X])->producer;
  return n && assay_int8_is_anchor(n) &&
         is_dequantizer(assay_edit_value(e, n->inputs[X])->producer, &q);
}

// Whether a quantizer may stand before a node: what it makes of all elements is what it makes of
// those that are left.
static bool may_precede(assay_edit_t* e, const assay_node_t* moving, const mover_t* m) {
  if (m->keeps) return true;
  return strcmp(moving->op_type, "MaxPool") == 0 &&
         is_of_integers(e, assay_edit_value(e, moving->inputs[X]));
}

// The place of the one tensor that a function reads beside numbers; -1: it is none.
static int operand_of(const assay_node_t* n) {
  int at = -1;
  if (!assay_int8_knows(n) || n->n_outputs != 1 || n->n_inputs > MAX_OPERANDS) return -1;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_tensor_t* k = n->inputs[i] ? assay_pass_constant(n->inputs[i]) : NULL;
    if (!n->inputs[i] || (k && k->size == 1 && k->rank == 0)) continue;
    if (k || at >= 0) return -1;
    at = (int)i;
  }
  return at;
}

// Whether a function comes to a layer on integers if it moves before x as well.
static bool reaches_integers(assay_edit_t* e, assay_value_t* x) {
  for (int depth = DEPTH; depth; depth--) {
    if (!x->type || x->is_output || assay_uses_of(&e->uses, x) != 1) return false;
    const assay_node_t* n = x->producer;
    const mover_t* m = mover_of(n);
    if (!m) return is_of_integers(e, x);
    if (!m->keeps || m->all || n->n_outputs != 1) return false;
    x = assay_edit_value(e, n->inputs[X]);
  }
  return false;
}

// f(M(x)), which a quantizer alone reads: M(f(x)).
static assay_status_t try_function(assay_edit_t* e, assay_node_t* f) {
  const int at = operand_of(f);
  assay_value_t *inputs[MAX_OPERANDS], *between = at < 0 ? NULL : f->inputs[at];
  assay_node_t *moving = between ? between->producer : NULL, *first = NULL;
  const mover_t* m = mover_of(moving);
  if (!m || !m->keeps || m->all || moving->graph != f->graph || moving->n_outputs != 1 ||
      moving->n_inputs > MAX_OPERANDS || between->is_output ||
      assay_uses_of(&e->uses, between) != 1 || assay_edit_is_dead(e, moving))
    return NULL;
  assay_value_t* x = assay_edit_value(e, moving->inputs[X]);
  if (!reaches_integers(e, x)) return NULL;
  const assay_node_t* both[] = {f, moving};
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, both, 2,
                              "what '%s' moves is computed before", moving->label));
  for (size_t i = 0; i < f->n_inputs; i++) inputs[i] = (int)i == at ? x : f->inputs[i];
  ASSAY_TRY(assay_edit_insert(e, f, f->op_type, f->n_inputs, inputs, f->outputs[0]->name, x->type,
                              &first));
  first->attrs = f->attrs;
  first->n_attrs = f->n_attrs;
  for (size_t i = 0; i < moving->n_inputs; i++)
    inputs[i] = i == X ? first->outputs[0] : moving->inputs[i];
  return take_over(e, f, moving, inputs);
}

static assay_status_t try_before(assay_edit_t* e, assay_node_t* n, const quantizer_t* q) {
  assay_value_t* between = n->inputs[X];
  assay_node_t* moving = between->producer;
  const mover_t* m = mover_of(moving);
  quantizer_t other;
  if (!m || !may_precede(e, moving, m) || moving->graph != n->graph || moving->n_outputs != 1 ||
      moving->n_inputs > MAX_OPERANDS || n->n_inputs > 3 || between->is_output ||
      assay_uses_of(&e->uses, between) != 1 ||
      !assay_edit_allows(e, moving->op_type, n->outputs[0]))
    return NULL;
  // One of them at least is computed by a node, and read here alone, or every element is moved,
  // which takes less for bytes whoever else reads it; or all are 8-bit integers, which are given
  // other scales by tables.
  bool gains = false, bytes = m->all;
  for (size_t i = 0; i < (m->all ? moving->n_inputs : 1); i++) {
    const assay_value_t* x = moving->inputs[i] ? assay_edit_value(e, moving->inputs[i]) : NULL;
    if (!x || !x->type || x->constant) return NULL;
    const bool dequantized = is_dequantizer(x->producer, &other);
    bytes &= dequantized;
    const bool alone = !x->is_output && assay_uses_of(&e->uses, x) == 1;
    gains |= x->producer && !dequantized && (alone || m->keeps);
  }
  return gains || bytes ? quantize_before(e, n, m, moving, q->type) : NULL;
}

// QuantizeLinear(DequantizeLinear(q)).
static assay_status_t try_cancel(assay_edit_t* e, assay_node_t* n, const quantizer_t* q) {
  assay_node_t* d = n->inputs[X]->producer;
  quantizer_t other;
  if (!is_dequantizer(d, &other) || !same(q, &other) || d->graph != n->graph) return NULL;
  assay_value_t *from = n->outputs[0], *to = assay_edit_value(e, d->inputs[X]);
  const assay_node_t* both[] = {n, d};
  if (!assay_edit_can_redirect(e, from, to)) return NULL;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_REMOVED, both, 1,
                              "it quantizes what was dequantized by the same scale"));
  assay_edit_kill(e, n);
  assay_edit_redirect(e, from, to);
  return NULL;
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  quantizer_t q;
  for (size_t j = 0; j < n->n_inputs; j++)
    if (n->inputs[j]) n->inputs[j] = assay_edit_value(e, n->inputs[j]);
  if (is_dequantizer(n, &q) && !n->outputs[0]->is_output &&
      assay_uses_of(&e->uses, n->outputs[0]) == 0) {  // those that read it have moved
    e->c->changed = true;
    assay_edit_kill(e, n);
    return NULL;
  }
  if (!is_quantizer(n, &q)) return try_behind(e, n);
  ASSAY_TRY(try_cancel(e, n, &q));
  if (assay_edit_is_dead(e, n)) return NULL;
  const assay_value_t* x = n->inputs[X];
  if (x->producer && x->producer->graph == n->graph && !x->is_output &&
      assay_uses_of(&e->uses, x) == 1)
    ASSAY_TRY(try_function(e, x->producer));
  return try_before(e, n, &q);
}

static assay_status_t run(assay_pass_context_t* c) { return assay_edit_each(c, visit); }

const assay_pass_t assay_pass_quantizer_moves = {
    .name = "quantizer_moves",
    .summary = "Quantizers move past nodes that only move elements, and cancel",
    .until_fixpoint = true,
    .run = run,
};
