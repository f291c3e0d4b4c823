// Replaces the calls of a model's functions by the functions' bodies.
//
// Bodies keep what the checker found by the functions' own imports (op and schema of each node), so
// that a body written for another operator set than the model's means the same inside it.
// Source: ONNX IR.md, 'Model Local Functions'.
#include <string.h>

#include "base/shown.h"
#include "onnx/onnx.h"
#include "onnx/read.h"
#include "ops/op.h"

enum {
  MAX_NODES = 250000,  // that bodies may add: functions that double each other pass any limit
  MAX_PREFIX = 400,    // bytes of the labels that stand before a name
};

typedef struct inliner {
  assay_model_t* model;
  // By id of a value of a body: the value that stands for it in the call being expanded. No
  // function is expanded within itself, so that one table does for all of them.
  assay_value_t** values;
  size_t added;
} inliner_t;

// The nodes of a graph while calls in it are replaced.
typedef struct nodes {
  assay_node_t** list;
  size_t n, capacity;
} nodes_t;

// A call being expanded.
typedef struct call {
  const assay_node_t* node;
  const assay_function_t* function;
  assay_str_t prefix;
} call_t;

static assay_status_t inline_graph(inliner_t* c, assay_graph_t* g);

// ---- copies -----------------------------------------------------------------------------------

// A value of graph `to` for a value of a body or of a graph within; names are made unique.
static assay_status_t copy_value(inliner_t* c, const call_t* call, const assay_value_t* from,
                                 assay_graph_t* to) {
  if (c->values[from->id]) return NULL;
  assay_str_t name = {0};
  assay_value_t* v = NULL;
  assay_str_printf_raw(&name, "%s/%s", assay_str_get(&call->prefix), from->name);
  assay_status_t st = assay_str_status(&name);
  if (!st) st = assay_graph_new_value(to, assay_str_get(&name), &v);
  assay_str_deinit(&name);
  if (st) return st;
  v->constant = from->constant;
  v->doc = from->doc;
  v->props = from->props;
  v->n_props = from->n_props;
  c->values[from->id] = v;
  return NULL;
}

// What stands for a value that a node of a body reads.
static assay_value_t* mapped(const inliner_t* c, const assay_value_t* from) {
  return from ? c->values[from->id] : NULL;
}

static assay_status_t copy_graph(inliner_t* c, const call_t* call, const assay_graph_t* from,
                                 assay_node_t* owner, assay_graph_t** out);

// The attribute that a reference stands for: the call's, else the function's default, else none.
static const assay_attr_t* referred(const call_t* call, const char* name) {
  const assay_attr_t* a = assay_node_attr(call->node, name);
  const assay_function_t* f = call->function;
  for (size_t i = 0; !a && i < f->n_attr_defaults; i++)
    if (strcmp(f->attr_defaults[i].name, name) == 0) a = &f->attr_defaults[i];
  return a;
}

static assay_status_t copy_attr(inliner_t* c, const call_t* call, const assay_attr_t* from,
                                assay_node_t* owner, size_t* n) {
  const assay_attr_t* source = *from->ref ? referred(call, from->ref) : from;
  if (!source) return NULL;  // neither given nor a default: left out
  if (*from->ref && from->type && from->type != source->type)
    return ASSAY_NODE_ERROR(call->node, ASSAY_CORRUPT,
                            "attribute '%s' is of type %d; function '%s' uses it as of type %d",
                            from->ref, (int)source->type, call->function->name, (int)from->type);
  assay_attr_t* a = &owner->attrs[(*n)++];
  *a = *source;
  a->name = from->name;
  a->doc = from->doc;
  if (a->type == ASSAY_ATTR_GRAPH) {
    // A graph that the call brought belongs to where the call stands.
    if (source != from)
      return ASSAY_NODE_ERROR(call->node, ASSAY_UNSUPPORTED,
                              "attribute '%s' hands a graph to function '%s'", from->ref,
                              call->function->name);
    return copy_graph(c, call, source->u.g, owner, &a->u.g);
  }
  if (a->type == ASSAY_ATTR_GRAPHS) {
    a->u.graphs = NULL;
    ASSAY_TRY(assay_arena_new(c->model->arena, a->n, sizeof *a->u.graphs, &a->u.graphs));
    for (size_t i = 0; i < a->n; i++)
      ASSAY_TRY(copy_graph(c, call, source->u.graphs[i], owner, &a->u.graphs[i]));
  }
  return NULL;
}

static assay_status_t copy_node(inliner_t* c, const call_t* call, const assay_node_t* from,
                                assay_graph_t* to, assay_node_t** out) {
  if (++c->added > MAX_NODES)
    return ASSAY_NODE_ERROR(call->node, ASSAY_UNSUPPORTED,
                            "the model's functions expand to more than %d nodes", (int)MAX_NODES);
  assay_str_t name = {0};
  assay_node_t* n = NULL;
  assay_str_printf_raw(&name, "%s/%s", assay_str_get(&call->prefix), from->label);
  assay_status_t st = assay_str_status(&name);
  if (!st)
    st = assay_node_create(to, from->domain, from->op_type, assay_str_get(&name), from->n_inputs,
                           from->n_outputs, from->n_attrs, &n);
  assay_str_deinit(&name);
  if (st) return st;
  n->overload = from->overload;
  n->doc = from->doc;
  n->op = from->op;
  n->schema = from->schema;
  n->function = from->function;
  n->props = from->props;
  n->n_props = from->n_props;
  n->extra = from->extra;
  for (size_t i = 0; i < n->n_inputs; i++) n->inputs[i] = mapped(c, from->inputs[i]);
  for (size_t i = 0; i < n->n_outputs; i++) {
    if (!from->outputs[i]) continue;
    ASSAY_TRY(copy_value(c, call, from->outputs[i], to));
    assay_node_set_output(n, i, c->values[from->outputs[i]->id]);
  }
  size_t n_attrs = 0;
  for (size_t i = 0; i < from->n_attrs; i++)
    ASSAY_TRY(copy_attr(c, call, &from->attrs[i], n, &n_attrs));
  n->n_attrs = n_attrs;
  ASSAY_TRY(onnx_set_constant(c->model, n));
  *out = n;
  return NULL;
}

// A graph within a body, with all its values.
static assay_status_t copy_graph(inliner_t* c, const call_t* call, const assay_graph_t* from,
                                 assay_node_t* owner, assay_graph_t** out) {
  assay_arena_t* arena = c->model->arena;
  assay_graph_t* g = NULL;
  ASSAY_TRY(assay_graph_create(c->model, owner->graph, &g));
  g->owner = owner;
  g->name = from->name;
  g->doc = from->doc;
  // What an earlier call left in the table is not this one's.
  for (size_t i = 0; i < from->n_inputs; i++) c->values[from->inputs[i]->id] = NULL;
  for (size_t i = 0; i < from->n_initializers; i++) c->values[from->initializers[i]->id] = NULL;
  for (size_t i = 0; i < from->n_nodes; i++)
    for (size_t k = 0; k < from->nodes[i]->n_outputs; k++)
      if (from->nodes[i]->outputs[k]) c->values[from->nodes[i]->outputs[k]->id] = NULL;
  ASSAY_TRY(assay_arena_new(arena, from->n_inputs, sizeof *g->inputs, &g->inputs));
  ASSAY_TRY(assay_arena_new(arena, from->n_outputs, sizeof *g->outputs, &g->outputs));
  for (; g->n_inputs < from->n_inputs; g->n_inputs++) {
    const assay_value_t* v = from->inputs[g->n_inputs];
    ASSAY_TRY(copy_value(c, call, v, g));
    g->inputs[g->n_inputs] = c->values[v->id];
    g->inputs[g->n_inputs]->is_input = true;
    g->inputs[g->n_inputs]->declared = v->declared;
  }
  for (size_t i = 0; i < from->n_initializers; i++) {
    const assay_value_t* v = from->initializers[i];
    ASSAY_TRY(copy_value(c, call, v, g));
    c->values[v->id]->constant = NULL;
    ASSAY_TRY(assay_graph_set_initializer(c->values[v->id], assay_tensor_retain(v->constant)));
  }
  for (size_t i = 0; i < from->n_nodes; i++) {
    assay_node_t* n = NULL;
    ASSAY_TRY(copy_node(c, call, from->nodes[i], g, &n));
    ASSAY_TRY(assay_graph_insert(g, n, g->n_nodes));
  }
  for (; g->n_outputs < from->n_outputs; g->n_outputs++) {
    assay_value_t* v = mapped(c, from->outputs[g->n_outputs]);
    if (!v)
      return ASSAY_NODE_ERROR(call->node, ASSAY_CORRUPT,
                              "function '%s' hands on an input that is left out",
                              call->function->name);
    g->outputs[g->n_outputs] = v;
    if (v->graph == g) {
      v->is_output = true;
      v->declared = from->outputs[g->n_outputs]->declared;
    }
  }
  *out = g;
  return NULL;
}

// ---- calls ------------------------------------------------------------------------------------

static assay_status_t append(nodes_t* out, assay_node_t* n) {
  ASSAY_TRY(assay_grow(&out->list, &out->capacity, out->n + 1, sizeof *out->list));
  out->list[out->n++] = n;
  return NULL;
}

// An output of the call that is what another value is.
static assay_status_t append_identity(inliner_t* c, const call_t* call, assay_value_t* from,
                                      assay_value_t* to, nodes_t* out) {
  assay_graph_t* g = call->node->graph;
  int64_t version = assay_model_opset(c->model, "");
  if (version < 1) version = assay_schema_newest("");
  if (!from)
    return ASSAY_NODE_ERROR(call->node, ASSAY_CORRUPT,
                            "output '%s' is an input of function '%s' that the call leaves out",
                            to->name, call->function->name);
  assay_node_t* n = NULL;
  ASSAY_TRY(assay_node_create(g, "", "Identity", to->name, 1, 1, 0, &n));
  n->schema = assay_schema_find("", "Identity", version, NULL);
  n->op = assay_op_find("", "Identity", version);
  n->inputs[0] = from;
  assay_node_set_output(n, 0, to);
  return append(out, n);
}

static assay_status_t expand(inliner_t* c, assay_node_t* node, nodes_t* out);

// Takes over a node of the graph or of a body: expanded if it is a call itself.
static assay_status_t take(inliner_t* c, assay_node_t* n, nodes_t* out) {
  if (n->function) return expand(c, n, out);
  for (size_t i = 0; i < n->n_attrs; i++) {
    const assay_attr_t* a = &n->attrs[i];
    if (*a->ref) continue;
    if (a->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(inline_graph(c, a->u.g));
    for (size_t k = 0; a->type == ASSAY_ATTR_GRAPHS && k < a->n; k++)
      ASSAY_TRY(inline_graph(c, a->u.graphs[k]));
  }
  return append(out, n);
}

// Binds the values of the body that exist already: its inputs, and outputs that the call names.
// *n_aliases of the outputs are left: those that are an input of the body, or an output twice.
static void bind(inliner_t* c, const call_t* call, bool* is_alias) {
  const assay_graph_t* body = call->function->body;
  const assay_node_t* node = call->node;
  for (size_t i = 0; i < body->n_nodes; i++)
    for (size_t k = 0; k < body->nodes[i]->n_outputs; k++)
      if (body->nodes[i]->outputs[k]) c->values[body->nodes[i]->outputs[k]->id] = NULL;
  for (size_t i = 0; i < body->n_inputs; i++)
    c->values[body->inputs[i]->id] = i < node->n_inputs ? node->inputs[i] : NULL;
  for (size_t i = 0; i < node->n_outputs; i++) {
    const assay_value_t* v = body->outputs[i];
    if (!node->outputs[i]) continue;
    is_alias[i] = !v->producer || c->values[v->id];
    if (!is_alias[i]) {
      c->values[v->id] = node->outputs[i];
      node->outputs[i]->constant = v->constant;
    }
  }
}

static assay_status_t expand_body(inliner_t* c, const call_t* call, const bool* is_alias,
                                  nodes_t* out) {
  const assay_graph_t* body = call->function->body;
  nodes_t copies = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < body->n_nodes; i++) {
    assay_node_t* n = NULL;
    st = copy_node(c, call, body->nodes[i], call->node->graph, &n);
    if (!st) st = append(&copies, n);
  }
  // The table is read here for the last time: calls within write to other parts of it only.
  for (size_t i = 0; !st && i < copies.n; i++) st = take(c, copies.list[i], out);
  for (size_t i = 0; !st && i < call->node->n_outputs; i++)
    if (is_alias[i])
      st = append_identity(c, call, mapped(c, body->outputs[i]), call->node->outputs[i], out);
  assay_free(copies.list);
  return st;
}

// Recursion ends where the reader ends it: no function reaches itself.
static assay_status_t expand(inliner_t* c, assay_node_t* node, nodes_t* out) {
  call_t call = {.node = node, .function = node->function};
  // Within functions that are nested deeply, the innermost labels are the ones kept.
  size_t len = strlen(node->label);
  assay_str_append(&call.prefix, node->label + (len > MAX_PREFIX ? len - MAX_PREFIX : 0));
  bool* is_alias = NULL;
  assay_status_t st = assay_str_status(&call.prefix);
  if (!st && (node->n_inputs > call.function->body->n_inputs ||
              node->n_outputs > call.function->body->n_outputs))
    st = ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "has more inputs or outputs than its function");
  if (!st) st = assay_new_array(node->n_outputs, sizeof *is_alias, &is_alias);
  if (!st) {
    bind(c, &call, is_alias);
    st = expand_body(c, &call, is_alias, out);
  }
  assay_free(is_alias);
  assay_str_deinit(&call.prefix);
  return st;
}

static assay_status_t inline_graph(inliner_t* c, assay_graph_t* g) {
  nodes_t out = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes; i++) st = take(c, g->nodes[i], &out);
  if (!st) {
    assay_node_t** list = NULL;
    st = assay_arena_new(c->model->arena, out.n, sizeof *list, &list);
    if (!st) {
      if (out.n) memcpy(list, out.list, out.n * sizeof *list);
      g->nodes = list;
      g->n_nodes = g->cap_nodes = out.n;
    }
  }
  assay_free(out.list);
  return st;
}

// ---- the model --------------------------------------------------------------------------------

// Takes the functions away, and the graphs of their bodies from the model's list.
static void drop_functions(assay_model_t* m) {
  size_t kept = 0;
  for (size_t i = 0; i < m->n_graphs; i++) {
    assay_graph_t* g = m->graphs[i];
    const assay_graph_t* top = g;
    while (top->outer) top = top->outer;
    if (top == m->graph) {
      m->graphs[kept++] = g;
    } else {
      assay_map_deinit(&g->values);
      assay_map_deinit(&g->labels);
    }
  }
  m->n_graphs = kept;
  m->n_functions = 0;
  m->functions = NULL;
}

assay_status_t assay_onnx_inline_functions(const assay_model_t* model, assay_model_t** out) {
  inliner_t c = {0};
  ASSAY_TRY(assay_model_clone(model, &c.model));
  assay_status_t st = NULL;
  if (c.model->n_functions) {
    st = assay_new_array((size_t)c.model->n_values, sizeof *c.values, &c.values);
    if (!st) st = inline_graph(&c, c.model->graph);
    if (!st) drop_functions(c.model);
    assay_free(c.values);
  }
  if (st) return assay_model_release(c.model), st;
  *out = c.model;
  return NULL;
}
