// The invariants that all code above relies on.
//
// Graphs are walked in order, subgraphs at the node that holds them, so that 'defined' is exactly
// what a node may read: values of its own graph made so far, and those that the graphs around it
// had made before the node which holds it.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ir/internal.h"

#define BAD(...) ASSAY_ERROR(ASSAY_INTERNAL, __VA_ARGS__)

typedef struct check {
  const assay_model_t* model;
  const assay_value_t** seen;  // by id: the value that has it
  bool* defined;               // by id
  const void** functions;      // sorted addresses, as the next two
  const void** tensors;
  const void** graphs;
} check_t;

static assay_status_t check_graph(check_t* c, const assay_graph_t* g);

// ---- sets of addresses ------------------------------------------------------------------------

static int compare(const void* a, const void* b) {
  uintptr_t x = (uintptr_t) * (void*const*)a, y = (uintptr_t) * (void*const*)b;
  return x < y ? -1 : x > y;
}

static assay_status_t sorted(const void* from, size_t n, const void*** out) {
  ASSAY_TRY(assay_new_array(n, sizeof **out, out));
  if (n) memcpy(*out, from, n * sizeof **out);
  if (n) qsort(*out, n, sizeof **out, compare);
  return NULL;
}

static bool has(const void* const* set, size_t n, const void* p) {
  return n && bsearch(&p, set, n, sizeof p, compare) != NULL;
}

// ---- values -----------------------------------------------------------------------------------

static assay_status_t check_type(const assay_value_t* v, const assay_valtype_t* t) {
  for (int depth = 0; t; t = t->of, depth++) {
    if (t->rank < 0 || t->rank > ASSAY_MAX_RANK || (t->rank && !t->dims))
      return BAD("value '%s': its type has the rank %d", v->name, t->rank);
    if (depth > IR_MAX_TYPE_DEPTH) return BAD("value '%s': its type has no end", v->name);
  }
  return NULL;
}

// A value of this graph, met anywhere: known under its name, with an id of its own.
static assay_status_t check_value(check_t* c, const assay_graph_t* g, const assay_value_t* v,
                                  const char* where) {
  if (!v) return BAD("graph '%s': %s holds NULL", g->name, where);
  if (!v->name || !*v->name) return BAD("graph '%s': a value in %s has no name", g->name, where);
  if (v->graph != g)
    return BAD("value '%s' in %s of graph '%s' belongs to graph '%s'", v->name, where, g->name,
               v->graph ? v->graph->name : "(none)");
  if (v->id < 0 || v->id >= c->model->n_values)
    return BAD("value '%s' has the id %d of %d", v->name, v->id, c->model->n_values);
  if (c->seen[v->id] == v) return NULL;
  if (c->seen[v->id])
    return BAD("values '%s' and '%s' have the same id %d", c->seen[v->id]->name, v->name, v->id);
  if (assay_graph_find(g, v->name) != v)
    return BAD("value '%s' is not what graph '%s' has under its name", v->name, g->name);
  if (v->constant && !has(c->tensors, c->model->n_tensors, v->constant))
    return BAD("value '%s': its tensor is not owned by the model", v->name);
  ASSAY_TRY(check_type(v, v->type));
  ASSAY_TRY(check_type(v, v->declared));
  c->seen[v->id] = v;
  return NULL;
}

// A value that is read in graph g: of this graph or one around it, and made before.
static assay_status_t check_read(check_t* c, const assay_graph_t* g, const assay_value_t* v,
                                 const char* reader) {
  const assay_graph_t* home = g;
  while (home && home != v->graph) home = home->outer;
  if (!home)
    return BAD("'%s' in graph '%s' reads '%s', which it cannot see", reader, g->name, v->name);
  ASSAY_TRY(check_value(c, home, v, "what is read"));
  if (!c->defined[v->id])
    return BAD("'%s' in graph '%s' reads '%s' before it is made", reader, g->name, v->name);
  return NULL;
}

// ---- nodes ------------------------------------------------------------------------------------

static assay_status_t check_subgraph(check_t* c, const assay_node_t* n, const assay_attr_t* a,
                                     const assay_graph_t* sub) {
  if (!sub) return BAD("node '%s': graph '%s' is NULL", n->label, a->name);
  if (sub->owner != n || sub->outer != n->graph)
    return BAD("node '%s': graph '%s' belongs to node '%s'", n->label, a->name,
               sub->owner ? sub->owner->label : "(none)");
  return check_graph(c, sub);
}

static assay_status_t check_attr(check_t* c, const assay_node_t* n, const assay_attr_t* a) {
  if (!a->name || !*a->name) return BAD("node '%s': an attribute has no name", n->label);
  if (a->ref && *a->ref) return NULL;
  if (a->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(check_subgraph(c, n, a, a->u.g));
  for (size_t i = 0; a->type == ASSAY_ATTR_GRAPHS && i < a->n; i++)
    ASSAY_TRY(check_subgraph(c, n, a, a->u.graphs[i]));
  bool owned = true;
  if (a->type == ASSAY_ATTR_TENSOR || a->type == ASSAY_ATTR_SPARSE_TENSOR)
    owned = has(c->tensors, c->model->n_tensors, a->u.t);
  if (a->type == ASSAY_ATTR_TENSORS || a->type == ASSAY_ATTR_SPARSE_TENSORS)
    for (size_t i = 0; i < a->n && owned; i++)
      owned = has(c->tensors, c->model->n_tensors, a->u.tensors[i]);
  if (!owned)
    return BAD("node '%s': the tensor of '%s' is not owned by the model", n->label, a->name);
  return NULL;
}

static assay_status_t check_output(check_t* c, const assay_node_t* n, size_t i) {
  const assay_value_t* v = n->outputs[i];
  if (!v) return NULL;
  ASSAY_TRY(check_value(c, n->graph, v, "a node's outputs"));
  // Before the producer, so that the message names what is really wrong.
  if (c->defined[v->id])
    return BAD("node '%s' makes '%s', which is there already", n->label, v->name);
  if (v->producer != n || v->output_index != (int)i)
    return BAD("node '%s' makes '%s' as output %zu; the value says output %d of '%s'", n->label,
               v->name, i, v->output_index, v->producer ? v->producer->label : "(none)");
  c->defined[v->id] = true;
  return NULL;
}

static assay_status_t check_node(check_t* c, const assay_graph_t* g, const assay_node_t* n,
                                 assay_map_t* labels) {
  if (!n) return BAD("graph '%s' holds a node that is NULL", g->name);
  if (!n->op_type || !*n->op_type || !n->domain || !n->name || !n->label || !*n->label)
    return BAD("graph '%s': a node lacks its operator, domain or label", g->name);
  if (n->graph != g)
    return BAD("node '%s' is not of the graph '%s' that holds it", n->label, g->name);
  bool twice;
  ASSAY_TRY(assay_map_put(labels, n->label, 0, &twice));
  if (twice) return BAD("graph '%s': two nodes have the label '%s'", g->name, n->label);
  if (n->function && !has(c->functions, c->model->n_functions, n->function))
    return BAD("node '%s' calls a function that the model lacks", n->label);
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i]) ASSAY_TRY(check_read(c, g, n->inputs[i], n->label));
  for (size_t i = 0; i < n->n_attrs; i++) ASSAY_TRY(check_attr(c, n, &n->attrs[i]));
  for (size_t i = 0; i < n->n_outputs; i++) ASSAY_TRY(check_output(c, n, i));
  return NULL;
}

// ---- graphs -----------------------------------------------------------------------------------

static assay_status_t check_sources(check_t* c, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_value_t* v = g->inputs[i];
    ASSAY_TRY(check_value(c, g, v, "the inputs"));
    if (c->defined[v->id]) return BAD("graph '%s' lists its input '%s' twice", g->name, v->name);
    if (!v->is_input || v->producer)
      return BAD("input '%s' of graph '%s' is made by a node or not marked", v->name, g->name);
    c->defined[v->id] = true;
  }
  // An initializer may be an input, too (its default). 'listed' is told apart by is_input.
  for (size_t i = 0; i < g->n_initializers; i++) {
    const assay_value_t* v = g->initializers[i];
    ASSAY_TRY(check_value(c, g, v, "the initializers"));
    if (!v->constant) return BAD("initializer '%s' of graph '%s' has no tensor", v->name, g->name);
    if (v->producer) return BAD("initializer '%s' is made by '%s'", v->name, v->producer->label);
    if (!v->is_input && c->defined[v->id])
      return BAD("graph '%s' lists its initializer '%s' twice", g->name, v->name);
    c->defined[v->id] = true;
  }
  return NULL;
}

static assay_status_t check_sinks(check_t* c, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    if (!v) return BAD("graph '%s': output %zu is NULL", g->name, i);
    ASSAY_TRY(check_read(c, g, v, "output"));
    if (v->graph == g && !v->is_output)
      return BAD("output '%s' of graph '%s' is not marked", v->name, g->name);
  }
  for (size_t i = 0; i < g->n_value_info; i++)
    ASSAY_TRY(check_value(c, g, g->value_info[i], "value_info"));
  return NULL;
}

static assay_status_t check_graph(check_t* c, const assay_graph_t* g) {
  if (g->model != c->model || !has(c->graphs, c->model->n_graphs, g))
    return BAD("graph '%s' is not of the model that holds it", g->name);
  ASSAY_TRY(check_sources(c, g));
  assay_map_t labels = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; i < g->n_nodes && !st; i++) st = check_node(c, g, g->nodes[i], &labels);
  assay_map_deinit(&labels);
  return st ? st : check_sinks(c, g);
}

// A graph around which there is none.
static assay_status_t check_root(check_t* c, const assay_graph_t* g, const char* what) {
  if (!g) return BAD("%s has no graph", what);
  if (g->outer || g->owner) return BAD("the graph of %s lies within another", what);
  return check_graph(c, g);
}

static assay_status_t check_function(check_t* c, const assay_function_t* f) {
  if (!f || !f->name) return BAD("a function is NULL or has no name");
  ASSAY_TRY(check_root(c, f->body, f->name));
  if (f->body->n_inputs != f->n_inputs || f->body->n_outputs != f->n_outputs)
    return BAD("function '%s' has %zu inputs and %zu outputs, its body %zu and %zu", f->name,
               f->n_inputs, f->n_outputs, f->body->n_inputs, f->body->n_outputs);
  for (size_t i = 0; i < f->n_inputs; i++)
    if (strcmp(f->inputs[i], f->body->inputs[i]->name) != 0)
      return BAD("function '%s': input '%s' is '%s' in its body", f->name, f->inputs[i],
                 f->body->inputs[i]->name);
  return NULL;
}

static assay_status_t check_model(check_t* c) {
  const assay_model_t* m = c->model;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *c->seen, &c->seen));
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *c->defined, &c->defined));
  ASSAY_TRY(sorted(m->functions, m->n_functions, &c->functions));
  ASSAY_TRY(sorted(m->tensors, m->n_tensors, &c->tensors));
  ASSAY_TRY(sorted(m->graphs, m->n_graphs, &c->graphs));
  ASSAY_TRY(check_root(c, m->graph, "the model"));
  for (size_t i = 0; i < m->n_functions; i++) ASSAY_TRY(check_function(c, m->functions[i]));
  return NULL;
}

assay_status_t assay_model_verify(const assay_model_t* model) {
  check_t c = {.model = model};
  assay_status_t st = check_model(&c);
  assay_free(c.seen);
  assay_free(c.defined);
  assay_free(c.functions);
  assay_free(c.tensors);
  assay_free(c.graphs);
  return assay_status_note(st, "the model is not consistent");
}
