// Changing a graph: what passes that rewrite nodes share.
#include "passes/edit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { MAX_ATTRS = 4 };

// ---- the change as a whole ----------------------------------------------------------------------

assay_status_t assay_edit_begin(assay_pass_context_t* c, assay_edit_t* out) {
  *out = (assay_edit_t){.c = c, .n_nodes = (size_t)c->model->n_node_ids};
  ASSAY_TRY(assay_uses_create(c->model, &out->uses));
  assay_status_t st = assay_new_array(out->n_nodes, sizeof *out->dead, &out->dead);
  if (!st) st = assay_new_array((size_t)c->model->n_values, sizeof(assay_value_t*), &out->to);
  return st ? assay_edit_end(out, st) : NULL;
}

static void redirect_readers(assay_edit_t* e) {
  assay_model_t* m = e->c->model;
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      assay_node_t* n = m->graphs[k]->nodes[i];
      for (size_t j = 0; j < n->n_inputs; j++)
        if (n->inputs[j]) n->inputs[j] = assay_edit_value(e, n->inputs[j]);
    }
}

assay_status_t assay_edit_end(assay_edit_t* e, assay_status_t st) {
  if (!st) redirect_readers(e);
  if (!st) assay_pass_remove(e->c, e->dead, e->n_nodes);
  assay_uses_deinit(&e->uses);
  assay_free(e->dead);
  assay_free(e->to);
  *e = (assay_edit_t){0};
  return st;
}

assay_status_t assay_edit_each(assay_pass_context_t* c,
                               assay_status_t (*visit)(assay_edit_t* e, assay_node_t* n)) {
  assay_edit_t e = {0};
  ASSAY_TRY(assay_edit_begin(c, &e));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++)
      if (!assay_edit_is_dead(&e, c->model->graphs[k]->nodes[i]))
        st = visit(&e, c->model->graphs[k]->nodes[i]);
  return assay_edit_end(&e, st);
}

bool assay_edit_is_dead(const assay_edit_t* e, const assay_node_t* node) {
  return (size_t)node->id < e->n_nodes && e->dead[node->id];
}

void assay_edit_kill(assay_edit_t* e, assay_node_t* node) {
  assay_uses_forget(&e->uses, node);
  if ((size_t)node->id < e->n_nodes) e->dead[node->id] = true;
}

// ---- values in place of others ------------------------------------------------------------------

assay_value_t* assay_edit_value(const assay_edit_t* e, assay_value_t* v) {
  while (v->id < e->uses.n_values && e->to[v->id]) v = e->to[v->id];
  return v;
}

// Graph outputs among the reads of a value: of its own graph, or of a body that hands it on.
static bool leaves_a_body(const assay_edit_t* e, const assay_value_t* v) {
  const assay_model_t* m = e->c->model;
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; m->graphs[k] != v->graph && i < m->graphs[k]->n_outputs; i++)
      if (m->graphs[k]->outputs[i] == v) return true;
  return false;
}

static bool same_type(const assay_valtype_t* a, const assay_valtype_t* b) {
  if (!a || !b || a->kind != b->kind || a->elem != b->elem) return false;
  return a->kind == ASSAY_KIND_TENSOR || a == b || !a->of || same_type(a->of, b->of);
}

bool assay_edit_can_redirect(const assay_edit_t* e, const assay_value_t* from,
                             const assay_value_t* to) {
  if (from->id >= e->uses.n_values || !same_type(from->type, to->type) || leaves_a_body(e, from))
    return false;
  if (!from->is_output) return true;
  // The name of the output has to be kept: what made `to` makes it.
  return to->graph == from->graph && to->producer && !to->is_output && !to->is_input &&
         !to->constant && to->id < e->uses.n_values && !leaves_a_body(e, to) &&
         !assay_edit_is_dead(e, to->producer);
}

void assay_edit_redirect(assay_edit_t* e, assay_value_t* from, assay_value_t* to) {
  if (from->is_output) {
    assay_node_t* maker = to->producer;
    if (from->producer) assay_node_set_output(from->producer, (size_t)from->output_index, NULL);
    assay_node_set_output(maker, (size_t)to->output_index, from);
    assay_value_t* t = from;
    from = to;
    to = t;
  }
  e->to[from->id] = to;
  if (to->id < e->uses.n_values) e->uses.n_reads[to->id] += e->uses.n_reads[from->id];
  e->uses.n_reads[from->id] = 0;
  e->c->changed = true;
}

// ---- nodes --------------------------------------------------------------------------------------

assay_status_t assay_edit_join(assay_edit_t* e, const assay_match_t* m, const char* why, ...) {
  char text[256];
  va_list args;
  va_start(args, why);
  vsnprintf(text, sizeof text, why, args);
  va_end(args);
  const assay_node_t* const* nodes = (const assay_node_t* const*)m->nodes;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, m->n_nodes, "%s", text));
  for (size_t i = 1; i < m->n_nodes; i++) {
    ASSAY_TRY(assay_pass_absorb(e->c, m->nodes[i], m->nodes[0]));
    assay_edit_kill(e, m->nodes[i]);
  }
  return NULL;
}

// The operator as of the model's opset, or of the first later one that has it, where later ones may
// be had.
static void find_op(const assay_pass_context_t* c, const char* op_type, const assay_op_t** op,
                    const assay_schema_t** schema) {
  int64_t version = assay_model_opset(c->model, "");
  int64_t newest = assay_schema_newest("");
  *op = NULL;
  *schema = NULL;
  if (version < 1) version = newest;
  if (c->rewrite->within_opset) newest = version;
  for (; version <= newest && (!*op || !*schema); version++) {
    *op = assay_op_find("", op_type, version);
    *schema = assay_schema_find("", op_type, version, NULL);
  }
}

static bool is_wanted(const assay_rewrite_t* r, const char* op_type) {
  for (size_t i = 0; i < r->n_made_ops; i++)
    if (strcmp(r->made_ops[i], op_type) == 0) return true;
  return !r->n_made_ops;
}

bool assay_edit_allows(const assay_edit_t* e, const char* op_type, const assay_value_t* v) {
  const assay_op_t* op;
  const assay_schema_t* schema;
  if (!is_wanted(e->c->rewrite, op_type)) return false;
  find_op(e->c, op_type, &op, &schema);
  const assay_param_t* x = op && schema ? assay_schema_input(schema, 0) : NULL;
  return x && v->type && assay_typeset_has(&x->types, v->type);
}

static assay_status_t resolve(const assay_pass_context_t* c, assay_node_t* node) {
  const assay_op_t* op;
  const assay_schema_t* schema;
  find_op(c, node->op_type, &op, &schema);
  if (!op || !schema)
    return c->rewrite->within_opset
               ? ASSAY_ERROR(ASSAY_UNSUPPORTED, "operator set %lld of ai.onnx has no %s",
                             (long long)assay_model_opset(c->model, ""), node->op_type)
               : ASSAY_ERROR(ASSAY_INTERNAL, "no version of ai.onnx has %s", node->op_type);
  node->op = op;
  node->schema = schema;
  return NULL;
}

static assay_status_t set_up(assay_edit_t* e, assay_node_t* node, size_t n,
                             assay_value_t* const* inputs) {
  assay_arena_t* a = e->c->model->arena;
  assay_value_t** copy = NULL;
  assay_attr_t* attrs = NULL;
  ASSAY_TRY(assay_arena_new(a, n, sizeof *copy, &copy));
  ASSAY_TRY(assay_arena_new(a, MAX_ATTRS, sizeof *attrs, &attrs));
  ASSAY_TRY(resolve(e->c, node));
  memcpy(copy, inputs, n * sizeof *copy);
  node->inputs = copy;
  node->n_inputs = n;
  node->attrs = attrs;
  node->n_attrs = 0;
  e->c->changed = true;
  return NULL;
}

assay_status_t assay_edit_become(assay_edit_t* e, assay_node_t* node, const char* op_type,
                                 size_t n_inputs, assay_value_t* const* inputs) {
  assay_uses_forget(&e->uses, node);
  ASSAY_TRY(assay_arena_strdup(e->c->model->arena, op_type, &node->op_type));
  node->domain = "";
  ASSAY_TRY(set_up(e, node, n_inputs, inputs));
  assay_uses_add(&e->uses, node);
  return NULL;
}

// Tables by node id have room for nodes that a pass makes.
static assay_status_t grow_tables(assay_rewrite_t* r, const assay_node_t* node) {
  const size_t need = (size_t)node->id + 1;
  if (need <= r->n_origins) return NULL;
  const size_t n = need + need / 2;
  assay_origins_t* origins = NULL;
  int* groups = NULL;
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *origins, &origins));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *groups, &groups));
  memcpy(origins, r->origins, r->n_origins * sizeof *origins);
  memcpy(groups, r->group_of_node, r->n_origins * sizeof *groups);
  for (size_t i = r->n_origins; i < n; i++) groups[i] = -1;
  r->origins = origins;
  r->group_of_node = groups;
  r->n_origins = n;
  return NULL;
}

static size_t place_of(const assay_edit_t* e, const assay_node_t* node) {
  const assay_graph_t* g = node->graph;
  // Nodes only ever move back, by as many as were put in before them.
  size_t i = node->id < e->uses.n_nodes ? (size_t)e->uses.position[node->id] : 0;
  while (i < g->n_nodes && g->nodes[i] != node) i++;
  return i;
}

assay_status_t assay_edit_insert_bare(assay_edit_t* e, const assay_node_t* before,
                                      const char* op_type, size_t n_inputs,
                                      assay_value_t* const* inputs, size_t n_outputs,
                                      assay_node_t** out) {
  assay_graph_t* g = before->graph;
  assay_node_t* n = NULL;
  const char* label = NULL;
  ASSAY_TRY(assay_arena_printf(e->c->model->arena, &label, "%s/%s", before->label, op_type));
  ASSAY_TRY(assay_node_create(g, "", op_type, label, 0, n_outputs, 0, &n));
  ASSAY_TRY(set_up(e, n, n_inputs, inputs));
  ASSAY_TRY(grow_tables(e->c->rewrite, n));
  ASSAY_TRY(assay_pass_absorb(e->c, before, n));
  ASSAY_TRY(assay_graph_insert(g, n, place_of(e, before)));
  assay_uses_add(&e->uses, n);
  *out = n;
  return NULL;
}

assay_status_t assay_edit_insert(assay_edit_t* e, const assay_node_t* before, const char* op_type,
                                 size_t n_inputs, assay_value_t* const* inputs, const char* name,
                                 const assay_valtype_t* type, assay_node_t** out) {
  assay_node_t* n = NULL;
  assay_value_t* y = NULL;
  ASSAY_TRY(assay_graph_new_value(before->graph, name, &y));
  ASSAY_TRY(assay_edit_insert_bare(e, before, op_type, n_inputs, inputs, 1, &n));
  y->type = type;
  assay_node_set_output(n, 0, y);
  *out = n;
  return NULL;
}

assay_status_t assay_edit_set_input(assay_edit_t* e, assay_node_t* node, size_t i,
                                    assay_value_t* v) {
  assay_uses_forget(&e->uses, node);
  if (i >= node->n_inputs) {
    assay_value_t** inputs = NULL;
    ASSAY_TRY(assay_arena_new(e->c->model->arena, i + 1, sizeof *inputs, &inputs));
    if (node->n_inputs) memcpy(inputs, node->inputs, node->n_inputs * sizeof *inputs);
    node->inputs = inputs;
    node->n_inputs = i + 1;
  }
  node->inputs[i] = v;
  assay_uses_add(&e->uses, node);
  e->c->changed = true;
  return NULL;
}

assay_status_t assay_edit_constant(assay_edit_t* e, assay_graph_t* g, const char* name,
                                   assay_tensor_t* take, assay_value_t** out) {
  assay_value_t* v = NULL;
  assay_status_t st = assay_graph_new_value(g, name, &v);
  if (st) return assay_tensor_release(take), st;
  ASSAY_TRY(assay_pass_set_constant(e->c, v, take));
  *out = v;
  return NULL;
}

assay_status_t assay_edit_ints(assay_edit_t* e, assay_graph_t* g, const char* name, int64_t n,
                               const int64_t* x, assay_value_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_vector_i64(ASSAY_TYPE_INT64, n, x, &t));
  return assay_edit_constant(e, g, name, t, out);
}

// ---- attributes ---------------------------------------------------------------------------------

static assay_status_t add_attr(assay_node_t* node, assay_attr_t a) {
  if (node->n_attrs == MAX_ATTRS)
    return ASSAY_NODE_ERROR(node, ASSAY_INTERNAL, "more than %d attributes", (int)MAX_ATTRS);
  a.doc = a.ref = "";
  if (a.type != ASSAY_ATTR_INTS) a.n = 1;
  node->attrs[node->n_attrs++] = a;
  return NULL;
}

assay_status_t assay_edit_attr_i(assay_edit_t* e, assay_node_t* node, const char* name, int64_t x) {
  (void)e;
  return add_attr(node, (assay_attr_t){.name = name, .type = ASSAY_ATTR_INT, .u.i = x});
}

assay_status_t assay_edit_attr_f(assay_edit_t* e, assay_node_t* node, const char* name, double x) {
  (void)e;
  return add_attr(node, (assay_attr_t){.name = name, .type = ASSAY_ATTR_FLOAT, .u.f = (float)x});
}

assay_status_t assay_edit_attr_s(assay_edit_t* e, assay_node_t* node, const char* name,
                                 const char* x) {
  (void)e;
  return add_attr(
      node, (assay_attr_t){
                .name = name, .type = ASSAY_ATTR_STRING, .u.s = {.text = x, .len = strlen(x)}});
}

assay_status_t assay_edit_attr_ints(assay_edit_t* e, assay_node_t* node, const char* name, size_t n,
                                    const int64_t* x) {
  int64_t* copy = NULL;
  ASSAY_TRY(assay_arena_new(e->c->model->arena, n, sizeof *copy, &copy));
  memcpy(copy, x, n * sizeof *copy);
  return add_attr(node,
                  (assay_attr_t){.name = name, .type = ASSAY_ATTR_INTS, .n = n, .u.ints = copy});
}

static assay_status_t set_attr(assay_edit_t* e, assay_node_t* n, assay_attr_t a) {
  assay_attr_t* attrs = NULL;
  ASSAY_TRY(assay_arena_new(e->c->model->arena, n->n_attrs + 1, sizeof *attrs, &attrs));
  size_t at = n->n_attrs;
  for (size_t i = 0; i < n->n_attrs; i++) {
    attrs[i] = n->attrs[i];
    if (strcmp(attrs[i].name, a.name) == 0) at = i;
  }
  a.doc = a.ref = "";
  attrs[at] = a;
  n->n_attrs += at == n->n_attrs;
  n->attrs = attrs;
  e->c->changed = true;
  return NULL;
}

assay_status_t assay_edit_set_i(assay_edit_t* e, assay_node_t* node, const char* name, int64_t x) {
  return set_attr(e, node, (assay_attr_t){.name = name, .type = ASSAY_ATTR_INT, .n = 1, .u.i = x});
}

assay_status_t assay_edit_set_ints(assay_edit_t* e, assay_node_t* node, const char* name, size_t n,
                                   const int64_t* x) {
  int64_t* copy = NULL;
  ASSAY_TRY(assay_arena_new(e->c->model->arena, n, sizeof *copy, &copy));
  memcpy(copy, x, n * sizeof *copy);
  return set_attr(e, node,
                  (assay_attr_t){.name = name, .type = ASSAY_ATTR_INTS, .n = n, .u.ints = copy});
}

void assay_edit_drop_attr(assay_node_t* node, const char* name) {
  size_t kept = 0;
  for (size_t i = 0; i < node->n_attrs; i++)
    if (strcmp(node->attrs[i].name, name) != 0) node->attrs[kept++] = node->attrs[i];
  node->n_attrs = kept;
}

// ---- asking -------------------------------------------------------------------------------------

bool assay_is(const assay_node_t* n, const char* op_type) {
  return n && !*n->domain && n->op && strcmp(n->op_type, op_type) == 0;
}

static const assay_valtype_t* tensor_type(const assay_value_t* v) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR ? v->type : NULL;
}

int assay_rank_of(const assay_value_t* v) {
  const assay_valtype_t* t = tensor_type(v);
  return t && t->has_shape ? t->rank : -1;
}

assay_type_t assay_elem_of(const assay_value_t* v) {
  const assay_valtype_t* t = tensor_type(v);
  return t ? t->elem : ASSAY_TYPE_UNDEFINED;
}

int64_t assay_dim_of(const assay_value_t* v, int i) {
  int64_t d;
  const int rank = assay_rank_of(v);
  return i >= 0 && i < rank && assay_dim_value(v->type->dims[i], &d) ? d : -1;
}

int assay_ints_of(const assay_value_t* v, int max, int64_t* out) {
  const assay_tensor_t* t = assay_pass_constant(v);
  if (!t || t->size > max || (t->type != ASSAY_TYPE_INT64 && t->type != ASSAY_TYPE_INT32))
    return -1;
  if (t->store == ASSAY_STORE_PACKED)
    assay_unpack(t->type, t->data, 0, t->size, out);
  else if (t->size)
    memcpy(out, t->data, (size_t)t->size * sizeof *out);
  return (int)t->size;
}

bool assay_reduced_axes(const assay_node_t* n, int rank, bool* out) {
  int64_t given[ASSAY_MAX_RANK];
  size_t count = 0;
  const int64_t* a = assay_attr_ints(n, "axes", &count);
  if (n->n_inputs > 1 && n->inputs[1]) {
    const int k = assay_ints_of(n->inputs[1], ASSAY_MAX_RANK, given);
    if (k < 0) return false;
    a = given;
    count = (size_t)k;
  }
  if (!count && assay_attr_i64(n, "noop_with_empty_axes", 0)) return false;
  for (int i = 0; i < rank; i++) out[i] = !count;
  for (size_t i = 0; i < count; i++) {
    const int64_t at = a[i] < 0 ? a[i] + rank : a[i];
    if (at < 0 || at >= rank) return false;
    out[at] = true;
  }
  return true;
}

bool assay_reshape_target(const assay_value_t* v, int64_t* out) {
  const int rank = assay_rank_of(v);
  int open = 0;
  for (int i = 0; i < rank; i++) {
    out[i] = assay_dim_of(v, i);
    if (out[i] == 0) return false;
    open += out[i] < 0;
  }
  return rank >= 0 && open <= 1;
}

bool assay_transpose_perm(const assay_node_t* n, int64_t* perm, int* out_rank) {
  size_t count = 0;
  if (!assay_is(n, "Transpose") || !n->inputs[0] || !n->outputs[0]) return false;
  const int64_t* given = assay_attr_ints(n, "perm", &count);
  const int rank = given ? (int)count : assay_rank_of(n->inputs[0]);
  if (rank < 0 || rank > ASSAY_MAX_RANK) return false;
  for (int i = 0; i < rank; i++) perm[i] = given ? given[i] : rank - 1 - i;
  for (int i = 0; i < rank; i++)
    if (perm[i] < 0 || perm[i] >= rank) return false;
  *out_rank = rank;
  return true;
}
