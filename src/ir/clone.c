// Deep copies of models. Tensors and mappings are shared, everything else is the copy's own.
//
// A value is copied when it is first met: on the way through a graph that is an input, an
// initializer or the output of a node. Values of the graphs around are found by id, as they were
// met before.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ir/internal.h"

typedef struct pair {
  const void* from;
  void* to;
} pair_t;

typedef struct clone {
  const assay_model_t* from;
  assay_model_t* to;
  assay_value_t** values;  // by id
  pair_t* functions;       // by address
} clone_t;

// The graphs around the one that is being copied, innermost first.
typedef struct frame {
  const assay_graph_t* from;
  assay_graph_t* to;
  const struct frame* outer;
} frame_t;

static assay_status_t clone_graph(clone_t* c, const assay_graph_t* from, const frame_t* outer,
                                  assay_node_t* owner, assay_graph_t** out);

// ---- plain things -----------------------------------------------------------------------------

static assay_status_t text(clone_t* c, const char* from, const char** out) {
  if (from && !*from) return *out = "", NULL;
  return from ? assay_arena_strdup(c->to->arena, from, out) : NULL;
}

// Bytes that lie in a mapping are shared, as the copy keeps the mapping.
static assay_status_t bytes(clone_t* c, assay_bytes_t from, assay_bytes_t* out) {
  if (!from.len) return NULL;
  uintptr_t at = (uintptr_t)from.data;
  for (size_t i = 0; i < c->from->n_mappings; i++) {
    uintptr_t start = (uintptr_t)assay_mapping_data(c->from->mappings[i]);
    if (at >= start && at - start < assay_mapping_size(c->from->mappings[i]))
      return *out = from, NULL;
  }
  uint8_t* copy = NULL;
  ASSAY_TRY(assay_arena_new(c->to->arena, from.len, 1, &copy));
  memcpy(copy, from.data, from.len);
  *out = (assay_bytes_t){copy, from.len};
  return NULL;
}

// n elements as they are; NULL for none.
static assay_status_t array(clone_t* c, const void* from, size_t n, size_t size, void* out) {
  if (!from) return NULL;
  void* copy = NULL;
  ASSAY_TRY(assay_arena_new(c->to->arena, n, size, &copy));
  if (n) memcpy(copy, from, n * size);
  memcpy(out, &copy, sizeof copy);
  return NULL;
}

static assay_status_t props(clone_t* c, const assay_prop_t* from, size_t n, assay_prop_t** out,
                            size_t* out_n) {
  assay_prop_t* copy = NULL;
  if (!n) return NULL;
  ASSAY_TRY(assay_arena_new(c->to->arena, n, sizeof *copy, &copy));
  for (size_t i = 0; i < n; i++) {
    ASSAY_TRY(text(c, from[i].key, &copy[i].key));
    ASSAY_TRY(text(c, from[i].value, &copy[i].value));
  }
  *out = copy;
  *out_n = n;
  return NULL;
}

static assay_status_t opsets(clone_t* c, const assay_opset_t* from, size_t n, assay_opset_t** out,
                             size_t* out_n) {
  if (!n) return NULL;
  assay_opset_t* copy = NULL;
  ASSAY_TRY(array(c, from, n, sizeof *copy, &copy));
  for (size_t i = 0; i < n; i++) ASSAY_TRY(text(c, from[i].domain, &copy[i].domain));
  *out = copy;
  *out_n = n;
  return NULL;
}

static assay_status_t names(clone_t* c, const char* const* from, size_t n, const char*** out,
                            size_t* out_n) {
  if (!n) return NULL;
  const char** copy = NULL;
  ASSAY_TRY(array(c, from, n, sizeof *copy, &copy));
  for (size_t i = 0; i < n; i++) ASSAY_TRY(text(c, from[i], &copy[i]));
  *out = copy;
  *out_n = n;
  return NULL;
}

static assay_status_t string(clone_t* c, assay_string_t from, assay_string_t* out) {
  ASSAY_TRY(assay_arena_strndup(c->to->arena, from.text, from.len, &out->text));
  out->len = from.len;
  return NULL;
}

static assay_status_t tensor(clone_t* c, assay_tensor_t* from, assay_tensor_t** out) {
  if (!from) return NULL;
  ASSAY_TRY(assay_model_take_tensor(c->to, assay_tensor_retain(from)));
  *out = from;
  return NULL;
}

// ---- types and contents -----------------------------------------------------------------------

static assay_status_t dims(clone_t* c, const assay_dim_t* const* from, size_t n,
                           const assay_dim_t*** out) {
  if (!from) return NULL;
  const assay_dim_t** copy = NULL;
  ASSAY_TRY(assay_arena_new(c->to->arena, n, sizeof *copy, &copy));
  for (size_t i = 0; i < n; i++) copy[i] = assay_dim_copy(c->to->dims, from[i]);
  *out = copy;
  return NULL;
}

static assay_status_t type(clone_t* c, const assay_valtype_t* from, const assay_valtype_t** out) {
  if (!from) return NULL;
  assay_valtype_t* t = NULL;
  ASSAY_TRY(array(c, from, 1, sizeof *t, &t));
  ASSAY_TRY(dims(c, from->dims, (size_t)from->rank, &t->dims));
  if (from->denotations) {
    size_t n;
    ASSAY_TRY(names(c, from->denotations, (size_t)from->rank, &t->denotations, &n));
  }
  ASSAY_TRY(type(c, from->of, &t->of));
  ASSAY_TRY(text(c, from->denotation, &t->denotation));
  *out = t;
  return NULL;
}

static assay_status_t content(clone_t* c, const assay_content_t* from,
                              const assay_content_t** out) {
  if (!from) return NULL;
  assay_content_t* copy = NULL;
  ASSAY_TRY(array(c, from, 1, sizeof *copy, &copy));
  ASSAY_TRY(dims(c, from->elems, (size_t)from->n, &copy->elems));
  *out = copy;
  return NULL;
}

// ---- values -----------------------------------------------------------------------------------

static assay_status_t fill_value(clone_t* c, const assay_value_t* from, assay_value_t* v) {
  v->id = from->id;
  v->output_index = from->output_index;
  ASSAY_TRY(type(c, from->type, &v->type));
  if (from->declared == from->type)
    v->declared = v->type;
  else
    ASSAY_TRY(type(c, from->declared, &v->declared));
  ASSAY_TRY(type(c, from->open, &v->open));
  ASSAY_TRY(content(c, from->content, &v->content));
  ASSAY_TRY(tensor(c, from->constant, &v->constant));
  v->is_input = from->is_input;
  v->is_output = from->is_output;
  v->in_value_info = from->in_value_info;
  v->is_sparse_initializer = from->is_sparse_initializer;
  v->is_stripped = from->is_stripped;
  ASSAY_TRY(text(c, from->doc, &v->doc));
  ASSAY_TRY(text(c, from->tensor_doc, &v->tensor_doc));
  ASSAY_TRY(text(c, from->external_location, &v->external_location));
  ASSAY_TRY(bytes(c, from->tensor_extra, &v->tensor_extra));
  ASSAY_TRY(bytes(c, from->extra, &v->extra));
  return props(c, from->props, from->n_props, &v->props, &v->n_props);
}

// The copy of a value that the graph of the frame sees; NULL for NULL.
static assay_status_t value(clone_t* c, const frame_t* f, const assay_value_t* from,
                            assay_value_t** out) {
  if (!from) return *out = NULL, NULL;
  if (from->id < 0 || from->id >= c->from->n_values)
    return ASSAY_ERROR(ASSAY_INTERNAL, "value '%s' has the id %d of %d", from->name, from->id,
                       c->from->n_values);
  assay_value_t** known = &c->values[from->id];
  if (!*known) {
    while (f && f->from != from->graph) f = f->outer;
    if (!f) return ASSAY_ERROR(ASSAY_INTERNAL, "value '%s' is used outside its graph", from->name);
    ASSAY_TRY(assay_graph_add_value(f->to, from->name, known));
    ASSAY_TRY(fill_value(c, from, *known));
  }
  *out = *known;
  return NULL;
}

static assay_status_t values(clone_t* c, const frame_t* f, assay_value_t* const* from, size_t n,
                             assay_value_t*** out, size_t* out_n) {
  if (!n) return NULL;
  assay_value_t** copy = NULL;
  ASSAY_TRY(assay_arena_new(c->to->arena, n, sizeof *copy, &copy));
  for (size_t i = 0; i < n; i++) ASSAY_TRY(value(c, f, from[i], &copy[i]));
  *out = copy;
  *out_n = n;
  return NULL;
}

// ---- nodes ------------------------------------------------------------------------------------

// The elements of the list forms of attributes that are more than numbers.
static assay_status_t attr_list(clone_t* c, const frame_t* f, assay_node_t* owner,
                                const assay_attr_t* from, assay_attr_t* a) {
  assay_arena_t* arena = c->to->arena;
  if (from->type == ASSAY_ATTR_STRINGS) {
    assay_string_t* list = NULL;
    ASSAY_TRY(assay_arena_new(arena, from->n, sizeof *list, &list));
    for (size_t i = 0; i < from->n; i++) ASSAY_TRY(string(c, from->u.strings[i], &list[i]));
    a->u.strings = list;
  } else if (from->type == ASSAY_ATTR_TYPE_PROTOS) {
    const assay_valtype_t** list = NULL;
    ASSAY_TRY(assay_arena_new(arena, from->n, sizeof *list, &list));
    for (size_t i = 0; i < from->n; i++) ASSAY_TRY(type(c, from->u.types[i], &list[i]));
    a->u.types = list;
  } else if (from->type == ASSAY_ATTR_GRAPHS) {
    assay_graph_t** list = NULL;
    ASSAY_TRY(assay_arena_new(arena, from->n, sizeof *list, &list));
    for (size_t i = 0; i < from->n; i++)
      ASSAY_TRY(clone_graph(c, from->u.graphs[i], f, owner, &list[i]));
    a->u.graphs = list;
  } else {
    assay_tensor_t** list = NULL;
    ASSAY_TRY(assay_arena_new(arena, from->n, sizeof *list, &list));
    for (size_t i = 0; i < from->n; i++) ASSAY_TRY(tensor(c, from->u.tensors[i], &list[i]));
    a->u.tensors = list;
  }
  return NULL;
}

static assay_status_t attr(clone_t* c, const frame_t* f, assay_node_t* owner,
                           const assay_attr_t* from, assay_attr_t* a) {
  *a = *from;
  ASSAY_TRY(text(c, from->name, &a->name));
  ASSAY_TRY(text(c, from->doc, &a->doc));
  ASSAY_TRY(text(c, from->ref, &a->ref));
  ASSAY_TRY(bytes(c, from->wire, &a->wire));
  ASSAY_TRY(bytes(c, from->extra, &a->extra));
  if (from->ref && *from->ref) return NULL;  // has no value of its own
  switch (from->type) {
    case ASSAY_ATTR_UNDEFINED:
    case ASSAY_ATTR_FLOAT:
    case ASSAY_ATTR_INT:
      return NULL;
    case ASSAY_ATTR_STRING:
      return string(c, from->u.s, &a->u.s);
    case ASSAY_ATTR_TENSOR:
    case ASSAY_ATTR_SPARSE_TENSOR:
      return tensor(c, from->u.t, &a->u.t);
    case ASSAY_ATTR_GRAPH:
      return from->u.g ? clone_graph(c, from->u.g, f, owner, &a->u.g) : NULL;
    case ASSAY_ATTR_TYPE_PROTO:
      return type(c, from->u.type, &a->u.type);
    case ASSAY_ATTR_FLOATS:
      return array(c, from->u.floats, from->n, sizeof(float), &a->u.floats);
    case ASSAY_ATTR_INTS:
      return array(c, from->u.ints, from->n, sizeof(int64_t), &a->u.ints);
    case ASSAY_ATTR_STRINGS:
    case ASSAY_ATTR_TENSORS:
    case ASSAY_ATTR_GRAPHS:
    case ASSAY_ATTR_SPARSE_TENSORS:
    case ASSAY_ATTR_TYPE_PROTOS:
      return attr_list(c, f, owner, from, a);
  }
  return ASSAY_ERROR(ASSAY_INTERNAL, "attribute '%s' has the type %d", from->name, (int)from->type);
}

static int compare_pairs(const void* a, const void* b) {
  uintptr_t x = (uintptr_t)((const pair_t*)a)->from, y = (uintptr_t)((const pair_t*)b)->from;
  return x < y ? -1 : x > y;
}

static assay_status_t node(clone_t* c, const frame_t* f, const assay_node_t* from,
                           assay_node_t** out) {
  assay_node_t* n = NULL;
  ASSAY_TRY(ir_node_alloc(f->to, from->domain, from->op_type, from->name, from->n_inputs,
                          from->n_outputs, from->n_attrs, &n));
  ASSAY_TRY(text(c, from->label, &n->label));
  ASSAY_TRY(text(c, from->overload, &n->overload));
  ASSAY_TRY(text(c, from->doc, &n->doc));
  ASSAY_TRY(assay_map_put(&f->to->labels, n->label, 1, NULL));
  for (size_t i = 0; i < from->n_inputs; i++)
    ASSAY_TRY(value(c, f, from->inputs[i], &n->inputs[i]));
  for (size_t i = 0; i < from->n_attrs; i++)
    ASSAY_TRY(attr(c, f, n, &from->attrs[i], &n->attrs[i]));
  for (size_t i = 0; i < from->n_outputs; i++) {
    assay_value_t* v = NULL;
    ASSAY_TRY(value(c, f, from->outputs[i], &v));
    assay_node_set_output(n, i, v);
  }
  n->op = from->op;
  n->schema = from->schema;
  n->index = from->index;
  n->id = from->id;
  if (from->function) {
    pair_t key = {.from = from->function};
    const pair_t* found = c->from->n_functions ? bsearch(&key, c->functions, c->from->n_functions,
                                                         sizeof key, compare_pairs)
                                               : NULL;
    if (!found)
      return ASSAY_ERROR(ASSAY_INTERNAL, "node '%s' calls a function that its model lacks",
                         from->label);
    n->function = found->to;
  }
  ASSAY_TRY(bytes(c, from->extra, &n->extra));
  *out = n;
  return props(c, from->props, from->n_props, &n->props, &n->n_props);
}

// ---- graphs and functions ---------------------------------------------------------------------

static assay_status_t clone_graph(clone_t* c, const assay_graph_t* from, const frame_t* outer,
                                  assay_node_t* owner, assay_graph_t** out) {
  assay_graph_t* g = NULL;
  if (!from) return NULL;
  ASSAY_TRY(assay_graph_create(c->to, outer ? outer->to : NULL, &g));
  frame_t f = {from, g, outer};
  g->owner = owner;
  g->n_created = from->n_created;
  ASSAY_TRY(text(c, from->name, &g->name));
  ASSAY_TRY(text(c, from->doc, &g->doc));
  ASSAY_TRY(values(c, &f, from->inputs, from->n_inputs, &g->inputs, &g->n_inputs));
  ASSAY_TRY(values(c, &f, from->initializers, from->n_initializers, &g->initializers,
                   &g->n_initializers));
  g->cap_initializers = g->n_initializers;
  if (from->n_nodes)
    ASSAY_TRY(assay_arena_new(c->to->arena, from->n_nodes, sizeof *g->nodes, &g->nodes));
  g->cap_nodes = from->n_nodes;
  for (; g->n_nodes < from->n_nodes; g->n_nodes++)
    ASSAY_TRY(node(c, &f, from->nodes[g->n_nodes], &g->nodes[g->n_nodes]));
  ASSAY_TRY(values(c, &f, from->outputs, from->n_outputs, &g->outputs, &g->n_outputs));
  ASSAY_TRY(values(c, &f, from->value_info, from->n_value_info, &g->value_info, &g->n_value_info));
  ASSAY_TRY(bytes(c, from->extra, &g->extra));
  *out = g;
  return props(c, from->props, from->n_props, &g->props, &g->n_props);
}

static assay_status_t function(clone_t* c, const assay_function_t* from, assay_function_t* f) {
  ASSAY_TRY(text(c, from->name, &f->name));
  ASSAY_TRY(text(c, from->domain, &f->domain));
  ASSAY_TRY(text(c, from->overload, &f->overload));
  ASSAY_TRY(text(c, from->doc, &f->doc));
  ASSAY_TRY(names(c, from->inputs, from->n_inputs, &f->inputs, &f->n_inputs));
  ASSAY_TRY(names(c, from->outputs, from->n_outputs, &f->outputs, &f->n_outputs));
  ASSAY_TRY(names(c, from->attr_names, from->n_attr_names, &f->attr_names, &f->n_attr_names));
  if (from->n_attr_defaults)
    ASSAY_TRY(assay_arena_new(c->to->arena, from->n_attr_defaults, sizeof *f->attr_defaults,
                              &f->attr_defaults));
  f->n_attr_defaults = from->n_attr_defaults;
  for (size_t i = 0; i < from->n_attr_defaults; i++)
    ASSAY_TRY(attr(c, NULL, NULL, &from->attr_defaults[i], &f->attr_defaults[i]));
  ASSAY_TRY(opsets(c, from->opsets, from->n_opsets, &f->opsets, &f->n_opsets));
  ASSAY_TRY(clone_graph(c, from->body, NULL, NULL, &f->body));
  ASSAY_TRY(bytes(c, from->extra, &f->extra));
  return props(c, from->props, from->n_props, &f->props, &f->n_props);
}

// Functions may call functions that stand after them: all are there before any body is copied.
static assay_status_t functions(clone_t* c) {
  size_t n = c->from->n_functions;
  if (!n) return NULL;
  ASSAY_TRY(assay_arena_new(c->to->arena, n, sizeof *c->to->functions, &c->to->functions));
  ASSAY_TRY(assay_new_array(n, sizeof *c->functions, &c->functions));
  for (size_t i = 0; i < n; i++) {
    ASSAY_TRY(assay_arena_new(c->to->arena, 1, sizeof **c->to->functions, &c->to->functions[i]));
    c->functions[i] = (pair_t){c->from->functions[i], c->to->functions[i]};
  }
  c->to->n_functions = n;
  qsort(c->functions, n, sizeof *c->functions, compare_pairs);
  for (size_t i = 0; i < n; i++) ASSAY_TRY(function(c, c->from->functions[i], c->to->functions[i]));
  return NULL;
}

static assay_status_t clone_model(clone_t* c) {
  const assay_model_t* from = c->from;
  assay_model_t* m = c->to;
  ASSAY_TRY(assay_new_array((size_t)from->n_values, sizeof *c->values, &c->values));
  for (size_t i = 0; i < from->n_mappings; i++) {
    assay_mapping_retain(from->mappings[i]);
    ASSAY_TRY(assay_model_take_mapping(m, from->mappings[i]));
  }
  assay_dims_copy_names(m->dims, from->dims);
  ASSAY_TRY(text(c, from->path, &m->path));
  ASSAY_TRY(text(c, from->folder, &m->folder));
  m->ir_version = from->ir_version;
  m->model_version = from->model_version;
  ASSAY_TRY(text(c, from->producer_name, &m->producer_name));
  ASSAY_TRY(text(c, from->producer_version, &m->producer_version));
  ASSAY_TRY(text(c, from->domain, &m->domain));
  ASSAY_TRY(text(c, from->doc, &m->doc));
  ASSAY_TRY(opsets(c, from->opsets, from->n_opsets, &m->opsets, &m->n_opsets));
  ASSAY_TRY(props(c, from->props, from->n_props, &m->props, &m->n_props));
  ASSAY_TRY(bytes(c, from->extra, &m->extra));
  ASSAY_TRY(functions(c));
  ASSAY_TRY(clone_graph(c, from->graph, NULL, NULL, &m->graph));
  m->n_values = from->n_values;
  m->n_node_ids = from->n_node_ids;
  for (size_t i = 0; i < from->n_warnings; i++)
    ASSAY_TRY(assay_model_warn(m, "%s", from->warnings[i]));
  return assay_dims_status(m->dims);
}

assay_status_t assay_model_clone(const assay_model_t* model, assay_model_t** out) {
  clone_t c = {.from = model};
  ASSAY_TRY(assay_model_create(&c.to));
  assay_status_t st = clone_model(&c);
  assay_free(c.values);
  assay_free(c.functions);
  if (st) return assay_model_release(c.to), assay_status_note(st, "copying the model");
  *out = c.to;
  return NULL;
}
