// Chains: new nodes that a repair puts after a node's output, or before one of its inputs.
#include "diagnose/repair_chain.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

// ---- evaluating --------------------------------------------------------------------------------

typedef struct run {
  assay_evaluator_t* evaluator;
  const assay_node_t* node;
  const assay_repair_edit_t* edit;
  size_t n_in;
  assay_tensor_t* const* in;
  assay_tensor_t* start;
  assay_tensor_t* made[ASSAY_CHAIN_STEPS];
} run_t;

// *out: retained; it stays NULL for an input that is left out.
static assay_status_t operand(const run_t* r, const assay_chain_operand_t* o,
                              assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  switch (o->kind) {
    case ASSAY_OPERAND_NONE:
      break;
    case ASSAY_OPERAND_START:
      t = r->start;
      break;
    case ASSAY_OPERAND_STEP:
      t = r->made[o->index];
      break;
    case ASSAY_OPERAND_INPUT:
      t = o->index < r->n_in ? r->in[o->index] : NULL;
      break;
    case ASSAY_OPERAND_NUMBER:
      return assay_tensor_scalar_f64(r->edit->type, o->number, out);
    case ASSAY_OPERAND_VALUE:
      t = assay_evaluator_get(r->evaluator, o->value);
      break;
    case ASSAY_OPERAND_TENSOR:
      t = r->edit->tensor;
      break;
    case ASSAY_OPERAND_OMITTED:
      return NULL;
  }
  if (!t) return ASSAY_ERROR(ASSAY_NOT_FOUND, "an operand of the new node has no value");
  *out = assay_tensor_retain(t);
  return NULL;
}

bool assay_chain_takes(const assay_schema_t* schema, size_t n_in, assay_tensor_t* const* in) {
  for (size_t i = 0; i < n_in; i++) {
    const assay_param_t* p = in[i] ? assay_schema_input(schema, i) : NULL;
    if (!in[i]) continue;
    if (!p || in[i]->kind != ASSAY_KIND_TENSOR) return false;
    const assay_valtype_t type = {.kind = ASSAY_KIND_TENSOR, .elem = in[i]->type};
    if (!assay_typeset_has(&p->types, &type)) return false;
    for (size_t k = 0; k < i && *p->type; k++) {
      const assay_param_t* q = in[k] ? assay_schema_input(schema, k) : NULL;
      if (q && strcmp(q->type, p->type) == 0 && in[k]->type != in[i]->type) return false;
    }
  }
  return true;
}

// A node of the step's operator, for evaluation alone.
static assay_status_t step_node(const run_t* r, const assay_chain_step_t* step, assay_node_t* out) {
  const assay_model_t* m = r->node->graph->model;
  if (step->like) {
    *out = *step->like;
  } else {
    const int64_t version = assay_model_opset(m, "");
    *out = *r->node;
    out->domain = "";
    out->op_type = step->op_type;
    out->n_attrs = 0;
    out->op = assay_op_find("", step->op_type, version);
    out->schema = assay_schema_find("", step->op_type, version, NULL);
  }
  if (!out->op || !out->schema)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no operator %s", step->op_type);
  return NULL;
}

static assay_status_t run_step(run_t* r, size_t k) {
  enum { MAX = 8 };
  const assay_chain_step_t* step = &r->edit->chain[k];
  assay_tensor_t* in[MAX] = {NULL};
  assay_value_t* none[MAX] = {NULL};
  assay_node_t node;
  size_t n = 0;
  ASSAY_TRY(step_node(r, step, &node));
  const bool as_like = step->like && !step->other_inputs;
  if (as_like && step->like->n_inputs > MAX)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "'%s' has too many inputs", step->like->label);
  assay_status_t st = NULL;
  if (as_like) {
    n = step->like->n_inputs;
    for (size_t i = 0; !st && i < n; i++) {
      const assay_value_t* v = step->like->inputs[i];
      if (i == step->at)
        st = operand(r, &step->of[0], &in[i]);
      else if (v)
        in[i] = assay_tensor_retain(assay_evaluator_get(r->evaluator, v));
    }
  } else {
    for (; !st && n < ASSAY_CHAIN_OPERANDS && step->of[n].kind; n++)
      st = operand(r, &step->of[n], &in[n]);
    node.inputs = none;
    node.n_inputs = n;
  }
  node.n_outputs = 1;
  if (!st && !assay_chain_takes(node.schema, n, in))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s does not take these types", step->op_type);
  if (!st) st = assay_evaluator_node(r->evaluator, &node, n, in, 1, &r->made[k]);
  for (size_t i = 0; i < MAX; i++) assay_tensor_release(in[i]);
  return st;
}

assay_status_t assay_chain_evaluate(assay_evaluator_t* m, const assay_node_t* node,
                                    const assay_repair_edit_t* edit, size_t n_in,
                                    assay_tensor_t* const* in, assay_tensor_t* start,
                                    assay_tensor_t** out) {
  run_t r = {.evaluator = m, .node = node, .edit = edit, .n_in = n_in, .in = in, .start = start};
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < edit->n_chain; k++) st = run_step(&r, k);
  if (!st) *out = assay_tensor_retain(r.made[edit->n_chain - 1]);
  for (size_t k = 0; k < edit->n_chain; k++) assay_tensor_release(r.made[k]);
  return st;
}

// ---- making it in a model ----------------------------------------------------------------------

typedef struct build {
  assay_graph_t* graph;
  assay_node_t* node;
  const assay_repair_edit_t* edit;
  assay_value_t* start;
  assay_value_t* made[ASSAY_CHAIN_STEPS];
} build_t;

static assay_status_t constant(const build_t* b, assay_tensor_t* t, assay_value_t** out) {
  assay_tensor_t* packed = NULL;
  const char* name = NULL;
  ASSAY_TRY(assay_arena_printf(b->graph->model->arena, &name, "%s_new", b->node->label));
  ASSAY_TRY(assay_graph_new_value(b->graph, name, out));
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  return assay_graph_set_initializer(*out, packed);
}

static assay_status_t by_name(const build_t* b, const assay_value_t* v, assay_value_t** out) {
  *out = assay_graph_find(b->graph, v->name);
  if (!*out)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no value '%s' in its top graph", v->name);
  return NULL;
}

static assay_status_t read_operand(const build_t* b, const assay_chain_operand_t* o,
                                   assay_value_t** out) {
  assay_tensor_t* t = NULL;
  switch (o->kind) {
    case ASSAY_OPERAND_NONE:
    case ASSAY_OPERAND_OMITTED:
      return NULL;
    case ASSAY_OPERAND_START:
      return *out = b->start, NULL;
    case ASSAY_OPERAND_STEP:
      return *out = b->made[o->index], NULL;
    case ASSAY_OPERAND_INPUT:
      return *out = b->node->inputs[o->index], NULL;
    case ASSAY_OPERAND_VALUE:
      return by_name(b, o->value, out);
    case ASSAY_OPERAND_TENSOR:
      return constant(b, b->edit->tensor, out);
    case ASSAY_OPERAND_NUMBER:
      break;
  }
  ASSAY_TRY(assay_tensor_scalar_f64(b->edit->type, o->number, &t));
  assay_status_t st = constant(b, t, out);
  assay_tensor_release(t);
  return st;
}

static assay_status_t copy_attrs(const build_t* b, const assay_node_t* from, assay_node_t* to) {
  // Those of the searched model die with it; the model as it was read has a node of this label.
  const assay_node_t* own = NULL;
  for (size_t i = 0; i < b->graph->n_nodes; i++)
    if (strcmp(b->graph->nodes[i]->label, from->label) == 0) own = b->graph->nodes[i];
  if (!own)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no node '%s' in its top graph", from->label);
  to->attrs = own->attrs;
  to->n_attrs = own->n_attrs;
  return NULL;
}

static assay_status_t build_step(build_t* b, size_t k) {
  const assay_chain_step_t* s = &b->edit->chain[k];
  assay_graph_t* g = b->graph;
  const char *op = NULL, *name = NULL, *domain = NULL;
  assay_node_t* n = NULL;
  size_t n_in = 0;
  const bool as_like = s->like && !s->other_inputs;
  while (!as_like && n_in < ASSAY_CHAIN_OPERANDS && s->of[n_in].kind) n_in++;
  if (as_like) n_in = s->like->n_inputs;
  ASSAY_TRY(
      assay_arena_printf(g->model->arena, &op, "%s", s->like ? s->like->op_type : s->op_type));
  ASSAY_TRY(assay_arena_printf(g->model->arena, &domain, "%s", s->like ? s->like->domain : ""));
  ASSAY_TRY(assay_arena_printf(g->model->arena, &name, "%s_%s", b->node->label, op));
  ASSAY_TRY(assay_graph_new_value(g, name, &b->made[k]));
  ASSAY_TRY(assay_node_create(g, domain, op, b->made[k]->name, n_in, 1, 0, &n));
  for (size_t i = 0; i < n_in; i++) {
    if (!as_like)
      ASSAY_TRY(read_operand(b, &s->of[i], &n->inputs[i]));
    else if (i == s->at)
      ASSAY_TRY(read_operand(b, &s->of[0], &n->inputs[i]));
    else if (s->like->inputs[i])
      ASSAY_TRY(by_name(b, s->like->inputs[i], &n->inputs[i]));
  }
  if (s->like) ASSAY_TRY(copy_attrs(b, s->like, n));
  assay_node_set_output(n, 0, b->made[k]);
  return assay_graph_insert(g, n, g->n_nodes);
}

// Marks the nodes that a value is made by.
static void mark_makers(const assay_graph_t* g, const assay_value_t* v, bool* makes) {
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* n = g->nodes[i];
    bool any = v->producer == n;
    for (size_t k = 0; k < n->n_outputs && !any; k++)
      for (size_t j = i + 1; n->outputs[k] && j < g->n_nodes && !any; j++)
        for (size_t q = 0; makes[j] && q < g->nodes[j]->n_inputs && !any; q++)
          any = g->nodes[j]->inputs[q] == n->outputs[k];
    makes[i] |= any;
  }
}

// A chain may join what the node gives with a branch that is made from it: that branch goes on
// reading the node.
static assay_status_t keep_branches(const build_t* b, const assay_value_t* from,
                                    assay_value_t* inner) {
  assay_graph_t* g = b->graph;
  bool* makes = NULL;
  ASSAY_TRY(assay_new_array(g->n_nodes, sizeof *makes, &makes));
  for (size_t k = 0; k < b->edit->n_chain; k++)
    for (size_t o = 0; o < ASSAY_CHAIN_OPERANDS; o++) {
      const assay_chain_operand_t* x = &b->edit->chain[k].of[o];
      const assay_value_t* v =
          x->kind == ASSAY_OPERAND_VALUE ? assay_graph_find(g, x->value->name) : NULL;
      if (v) mark_makers(g, v, makes);
    }
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; makes[i] && k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == from) g->nodes[i]->inputs[k] = inner;
  assay_free(makes);
  return NULL;
}

// What the node gives gets another name: those that read it read the chain's end, which keeps the
// name that golden may know.
static assay_status_t redirect(build_t* b, assay_value_t* from) {
  assay_value_t* inner = NULL;
  assay_node_t* last = b->made[b->edit->n_chain - 1]->producer;
  ASSAY_TRY(assay_graph_new_value(b->graph, b->made[b->edit->n_chain - 1]->name, &inner));
  for (size_t k = 0; k < b->edit->n_chain; k++) {
    assay_node_t* n = b->made[k]->producer;
    for (size_t i = 0; i < n->n_inputs; i++)
      if (n->inputs[i] == from) n->inputs[i] = inner;
  }
  ASSAY_TRY(keep_branches(b, from, inner));
  assay_node_set_output(b->node, 0, inner);
  assay_node_set_output(last, 0, from);
  return NULL;
}

assay_status_t assay_chain_apply(assay_graph_t* g, assay_node_t* n,
                                 const assay_repair_edit_t* edit) {
  build_t b = {.graph = g, .node = n, .edit = edit};
  b.start = edit->at_input ? n->inputs[edit->input] : n->outputs[0];
  for (size_t k = 0; k < edit->n_chain; k++) ASSAY_TRY(build_step(&b, k));
  if (!edit->at_input) return redirect(&b, n->outputs[0]);
  n->inputs[edit->input] = b.made[edit->n_chain - 1];
  return NULL;
}
