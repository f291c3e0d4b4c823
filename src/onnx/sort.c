// Puts the nodes of a graph into an order in which each finds its inputs made.
#include <string.h>

#include "onnx/read.h"

enum { NOT_SEEN = 0, OPEN, DONE };

// A node whose inputs are being gone through.
typedef struct visit {
  assay_node_t* node;
  size_t next;  // input, then capture, that comes next
} visit_t;

typedef struct sorter {
  assay_graph_t* graph;
  assay_node_t** sorted;
  size_t n_sorted;
  uint8_t* state;  // by the node's place in the graph
  visit_t* stack;
  size_t depth;
  // The captures of the node at place i: captures[starts[i] .. starts[i + 1]).
  size_t* starts;
  assay_value_t** captures;
} sorter_t;

// Nodes are numbered by their index, which is their place in the file.
static size_t place(const assay_node_t* n) { return (size_t)n->index; }

static assay_value_t* dependency(const sorter_t* s, const visit_t* v) {
  if (v->next < v->node->n_inputs) return v->node->inputs[v->next];
  return s->captures[s->starts[place(v->node)] + v->next - v->node->n_inputs];
}

static size_t n_dependencies(const sorter_t* s, const assay_node_t* n) {
  return n->n_inputs + s->starts[place(n) + 1] - s->starts[place(n)];
}

static assay_status_t cycle_error(const sorter_t* s, const assay_node_t* again) {
  enum { SHOWN = 8 };
  assay_str_t text = {0};
  size_t from = s->depth;  // one past the place of the node on the stack
  while (s->stack[from - 1].node != again) from--;
  // Each node on the stack reads from the one above it, and the last one from the first again.
  for (size_t i = from - 1; i < s->depth && i < from - 1 + SHOWN; i++)
    assay_str_printf(&text, "'%s' reads from ", s->stack[i].node->label);
  assay_str_printf(&text, "%s'%s'", s->depth - (from - 1) > SHOWN ? "... reads from " : "",
                   again->label);
  assay_status_t st = assay_str_status(&text);
  if (!st)
    st = ASSAY_ERROR(ASSAY_CORRUPT, "graph '%s' is cyclic: node %s", s->graph->name,
                     assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

// Goes depth-first from one node, without recursion.
static assay_status_t visit(sorter_t* s, assay_node_t* from) {
  if (s->state[place(from)] == DONE) return NULL;
  s->stack[s->depth++] = (visit_t){from, 0};
  s->state[place(from)] = OPEN;
  while (s->depth) {
    visit_t* v = &s->stack[s->depth - 1];
    if (v->next == n_dependencies(s, v->node)) {
      s->state[place(v->node)] = DONE;
      s->sorted[s->n_sorted++] = v->node;
      s->depth--;
      continue;
    }
    const assay_value_t* x = dependency(s, v);
    v->next++;
    if (!x || x->graph != s->graph || !x->producer) continue;
    uint8_t* state = &s->state[place(x->producer)];
    if (*state == OPEN) return cycle_error(s, x->producer);
    if (*state == DONE) continue;
    *state = OPEN;
    s->stack[s->depth++] = (visit_t){x->producer, 0};
  }
  return NULL;
}

static bool in_order(const assay_graph_t* g, const onnx_capture_t* captures, size_t n_captures) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    for (size_t k = 0; k < n->n_inputs; k++) {
      const assay_value_t* x = n->inputs[k];
      if (x && x->graph == g && x->producer && x->producer->index >= n->index) return false;
    }
  }
  for (size_t i = 0; i < n_captures; i++) {
    const assay_value_t* x = captures[i].value;
    if (x->producer && x->producer->index >= captures[i].node->index) return false;
  }
  return true;
}

// Groups the captures by node.
static void group(sorter_t* s, const onnx_capture_t* captures, size_t n) {
  size_t n_nodes = s->graph->n_nodes;
  for (size_t i = 0; i < n; i++) s->starts[place(captures[i].node) + 1]++;
  for (size_t i = 0; i < n_nodes; i++) s->starts[i + 1] += s->starts[i];
  // Each start moves to its end while its group is filled, and is moved back then.
  for (size_t i = 0; i < n; i++)
    s->captures[s->starts[place(captures[i].node)]++] = captures[i].value;
  memmove(s->starts + 1, s->starts, n_nodes * sizeof *s->starts);
  s->starts[0] = 0;
}

assay_status_t onnx_sort_nodes(assay_graph_t* g, const onnx_capture_t* captures,
                               size_t n_captures) {
  if (in_order(g, captures, n_captures)) return NULL;
  sorter_t s = {.graph = g};
  assay_status_t st = assay_new_array(g->n_nodes, sizeof *s.sorted, &s.sorted);
  if (!st) st = assay_new_array(g->n_nodes, 1, &s.state);
  if (!st) st = assay_new_array(g->n_nodes, sizeof *s.stack, &s.stack);
  if (!st) st = assay_new_array(g->n_nodes + 1, sizeof *s.starts, &s.starts);
  if (!st) st = assay_new_array(n_captures, sizeof *s.captures, &s.captures);
  if (!st) group(&s, captures, n_captures);
  for (size_t i = 0; !st && i < g->n_nodes; i++) st = visit(&s, g->nodes[i]);
  if (!st) memcpy(g->nodes, s.sorted, g->n_nodes * sizeof *g->nodes);
  assay_free(s.sorted);
  assay_free(s.state);
  assay_free(s.stack);
  assay_free(s.starts);
  assay_free(s.captures);
  return st;
}

// ---- a model that was changed -------------------------------------------------------------------

typedef struct captures {
  const assay_graph_t* of;
  onnx_capture_t* list;
  size_t n, cap;
} captures_t;

static assay_status_t add_capture(captures_t* c, assay_node_t* owner, assay_value_t* v) {
  if (!v || v->graph != c->of) return NULL;
  ASSAY_TRY(assay_grow(&c->list, &c->cap, c->n + 1, sizeof *c->list));
  c->list[c->n++] = (onnx_capture_t){owner, v};
  return NULL;
}

static assay_status_t capture_bodies(captures_t* c, assay_node_t* owner, const assay_node_t* n);

static assay_status_t capture_graph(captures_t* c, assay_node_t* owner, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      ASSAY_TRY(add_capture(c, owner, g->nodes[i]->inputs[k]));
    ASSAY_TRY(capture_bodies(c, owner, g->nodes[i]));
  }
  for (size_t i = 0; i < g->n_outputs; i++) ASSAY_TRY(add_capture(c, owner, g->outputs[i]));
  return NULL;
}

static assay_status_t capture_bodies(captures_t* c, assay_node_t* owner, const assay_node_t* n) {
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    if (*attr->ref) continue;
    if (attr->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(capture_graph(c, owner, attr->u.g));
    for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
      ASSAY_TRY(capture_graph(c, owner, attr->u.graphs[k]));
  }
  return NULL;
}

assay_status_t assay_onnx_sort(assay_model_t* m) {
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    captures_t c = {.of = g};
    for (size_t i = 0; i < g->n_nodes; i++) g->nodes[i]->index = (int)i;
    for (size_t i = 0; !st && i < g->n_nodes; i++)
      st = capture_bodies(&c, g->nodes[i], g->nodes[i]);
    if (!st) st = onnx_sort_nodes(g, c.list, c.n);
    for (size_t i = 0; i < g->n_nodes; i++) g->nodes[i]->index = (int)i;
    assay_free(c.list);
  }
  return st;
}
