// GraphProto and FunctionProto to graphs of the IR.
//
// A graph is read in this order: inputs, initializers, the values that nodes make; then the nodes'
// inputs and attributes (subgraphs see all values of the graphs around them by then); then outputs
// and value_info; then the nodes are sorted if the file did not.
#include <string.h>

#include "formats/format.h"
#include "onnx/read.h"

// A graph being read, within others.
typedef struct scope {
  assay_graph_t* graph;
  struct scope* outer;
  onnx_capture_t* captures;
  size_t n_captures, cap_captures;
} scope_t;

static assay_status_t read_graph_in(onnx_reader_t* r, const Onnx__GraphProto* p, scope_t* outer,
                                    assay_node_t* owner, assay_graph_t** out);

// ---- values -----------------------------------------------------------------------------------

// What makes a value, for messages about a second one of its name.
static assay_status_t defined_twice(const assay_value_t* v, const char* by) {
  if (v->producer)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "value '%s' is defined twice: by node '%s' (%s) and by %s; names must be "
                       "unique in a graph",
                       v->name, v->producer->label, v->producer->op_type, by);
  return ASSAY_ERROR(
      ASSAY_CORRUPT,
      "value '%s' is defined twice: as %s and by %s; names must be unique in a graph", v->name,
      v->is_input ? "a graph input" : "an initializer", by);
}

// Type, documentation and metadata of a value, from its ValueInfoProto.
static assay_status_t read_value_info(onnx_reader_t* r, const Onnx__ValueInfoProto* p,
                                      assay_value_t* v) {
  bool opaque = false;
  const assay_valtype_t* type = NULL;
  assay_bytes_t extra;
  r->value = v->name;
  if (p->type)
    ASSAY_TRY(assay_status_note(onnx_read_type(r, p->type, &opaque, &type), "type of value '%s'",
                                v->name));
  r->value = NULL;
  if (type && !v->declared) v->declared = type;
  if (!*v->doc) ASSAY_TRY(onnx_text(r, p->doc_string, &v->doc));
  if (!v->n_props)
    ASSAY_TRY(onnx_read_props(r, p->n_metadata_props, p->metadata_props, &v->props, &v->n_props));
  ASSAY_TRY(onnx_carried(r, &p->base, &extra));
  if (extra.len && !v->extra.len) v->extra = extra;
  if (!opaque || v->extra.len) return NULL;
  // A type that the IR does not have goes along as the field that it was.
  onnx_collector_t c = {0};
  assay_status_t st = onnx_collect_message(&c, 2, &p->type->base);
  return assay_status_join(st, onnx_collected(r, &c, &v->extra));
}

static assay_status_t add_input(onnx_reader_t* r, assay_graph_t* g, const char* name,
                                assay_value_t** out) {
  if (!name || !*name)
    return ASSAY_ERROR(ASSAY_CORRUPT, "input %zu of graph '%s' has no name", g->n_inputs, g->name);
  const assay_value_t* old = assay_graph_find(g, name);
  if (old) return defined_twice(old, "another graph input");
  (void)r;
  ASSAY_TRY(assay_graph_add_value(g, name, out));
  (*out)->is_input = true;
  g->inputs[g->n_inputs++] = *out;
  return NULL;
}

static assay_status_t add_initializer(onnx_reader_t* r, assay_graph_t* g, const char* name,
                                      const Onnx__TensorProto* dense,
                                      const Onnx__SparseTensorProto* sparse) {
  assay_tensor_t* t = NULL;
  onnx_tensor_info_t info = {0};
  if (!name || !*name)
    return ASSAY_ERROR(ASSAY_CORRUPT, "initializer %zu of graph '%s' has no name",
                       g->n_initializers, g->name);
  assay_value_t* v = assay_graph_find(g, name);
  if (v && v->constant) return defined_twice(v, "another initializer");
  if (!v) ASSAY_TRY(assay_graph_add_value(g, name, &v));
  r->may_narrow = r->data_given && dense;
  assay_status_t st =
      dense ? onnx_read_tensor(r, dense, &info, &t) : onnx_read_sparse(r, sparse, &info, &t);
  r->may_narrow = false;
  if (st) return assay_status_note(st, "initializer '%s'", name);
  ASSAY_TRY(assay_graph_set_initializer(v, t));
  v->tensor_extra = info.extra;
  v->external_location = info.external_location;
  v->is_stripped = info.is_stripped;
  if (dense) return onnx_text(r, dense->doc_string, &v->tensor_doc);
  // A sparse one is written again as it was; external data would have to move with it.
  v->is_sparse_initializer = !info.external_location;
  if (v->is_sparse_initializer) v->tensor_extra = onnx_self(r, &sparse->base);
  return NULL;
}

// The value of a name, here or in the graphs around; the node there that holds this graph then
// depends on it. NULL: nothing defines it.
static assay_status_t resolve(scope_t* s, const char* name, assay_value_t** out) {
  *out = NULL;
  assay_node_t* owner = NULL;
  for (; s; owner = s->graph->owner, s = s->outer) {
    assay_value_t* v = assay_graph_find(s->graph, name);
    if (!v) continue;
    *out = v;
    if (!owner) return NULL;
    ASSAY_TRY(assay_grow(&s->captures, &s->cap_captures, s->n_captures + 1, sizeof *s->captures));
    s->captures[s->n_captures++] = (onnx_capture_t){owner, v};
    return NULL;
  }
  return NULL;
}

// ---- attributes -------------------------------------------------------------------------------

// Which of its fields an attribute has, and that it is no more than one.
static assay_status_t present_type(const Onnx__AttributeProto* p, assay_attr_type_t* out) {
  const struct {
    bool there;
    assay_attr_type_t type;
  } fields[] = {
      {p->has_f, ASSAY_ATTR_FLOAT},
      {p->has_i, ASSAY_ATTR_INT},
      {p->has_s, ASSAY_ATTR_STRING},
      {p->t != NULL, ASSAY_ATTR_TENSOR},
      {p->g != NULL, ASSAY_ATTR_GRAPH},
      {p->sparse_tensor != NULL, ASSAY_ATTR_SPARSE_TENSOR},
      {p->tp != NULL, ASSAY_ATTR_TYPE_PROTO},
      {p->n_floats > 0, ASSAY_ATTR_FLOATS},
      {p->n_ints > 0, ASSAY_ATTR_INTS},
      {p->n_strings > 0, ASSAY_ATTR_STRINGS},
      {p->n_tensors > 0, ASSAY_ATTR_TENSORS},
      {p->n_graphs > 0, ASSAY_ATTR_GRAPHS},
      {p->n_sparse_tensors > 0, ASSAY_ATTR_SPARSE_TENSORS},
      {p->n_type_protos > 0, ASSAY_ATTR_TYPE_PROTOS},
  };
  *out = ASSAY_ATTR_UNDEFINED;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (!fields[i].there) continue;
    if (*out) return ASSAY_ERROR(ASSAY_CORRUPT, "holds more than one value");
    *out = fields[i].type;
  }
  return NULL;
}

static assay_status_t copy_string(onnx_reader_t* r, const ProtobufCBinaryData* p,
                                  assay_string_t* out) {
  ASSAY_TRY(assay_arena_strndup(r->arena, (const char*)p->data, p->len, &out->text));
  out->len = p->len;
  return NULL;
}

static assay_status_t read_strings(onnx_reader_t* r, const Onnx__AttributeProto* p,
                                   assay_attr_t* a) {
  assay_string_t* s = NULL;
  a->n = p->n_strings;
  ASSAY_TRY(assay_arena_new(r->arena, a->n, sizeof *s, &s));
  for (size_t i = 0; i < a->n; i++) ASSAY_TRY(copy_string(r, &p->strings[i], &s[i]));
  a->u.strings = s;
  return NULL;
}

// The elements of a list of numbers.
static assay_status_t copy_numbers(onnx_reader_t* r, size_t n, const void* from, size_t size,
                                   void* out) {
  void* to = NULL;
  ASSAY_TRY(assay_arena_new(r->arena, n, size, &to));
  if (n) memcpy(to, from, n * size);
  memcpy(out, &to, sizeof to);
  return NULL;
}

// A tensor of an attribute; what the IR has no place for stays as it was read in a->wire.
static assay_status_t read_attr_tensor(onnx_reader_t* r, const Onnx__TensorProto* p, bool* named,
                                       assay_tensor_t** out) {
  onnx_tensor_info_t info = {0};
  assay_tensor_t* t = NULL;
  ASSAY_TRY(onnx_read_tensor(r, p, &info, &t));
  ASSAY_TRY(assay_model_take_tensor(r->model, t));
  if ((p->name && *p->name) || (p->doc_string && *p->doc_string) || info.extra.len) *named = true;
  if (info.external_location) *named = false;
  *out = t;
  return NULL;
}

static assay_status_t read_tensors(onnx_reader_t* r, const Onnx__AttributeProto* p,
                                   assay_attr_t* a) {
  bool named = false, any = false;
  a->n = p->n_tensors;
  ASSAY_TRY(assay_arena_new(r->arena, a->n, sizeof *a->u.tensors, &a->u.tensors));
  for (size_t i = 0; i < a->n; i++) {
    ASSAY_TRY(read_attr_tensor(r, p->tensors[i], &named, &a->u.tensors[i]));
    any = any || named;
  }
  onnx_collector_t wire = {0};
  for (size_t i = 0; any && i < a->n; i++) {
    assay_bytes_t self = onnx_self(r, &p->tensors[i]->base);
    onnx_collect(&wire, self.data, self.len);
  }
  return onnx_collected(r, &wire, &a->wire);
}

static assay_status_t read_sparse_tensors(onnx_reader_t* r, size_t n,
                                          Onnx__SparseTensorProto** protos, assay_attr_t* a,
                                          assay_tensor_t** out) {
  onnx_collector_t wire = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) {
    assay_tensor_t* t = NULL;
    st = onnx_read_sparse(r, protos[i], NULL, &t);
    if (!st) st = assay_model_take_tensor(r->model, t);
    if (!st) out[i] = t;
    assay_bytes_t self = onnx_self(r, &protos[i]->base);
    onnx_collect(&wire, self.data, self.len);
  }
  return assay_status_join(st, onnx_collected(r, &wire, &a->wire));
}

static assay_status_t read_attr_type(onnx_reader_t* r, const Onnx__TypeProto* p,
                                     const assay_valtype_t** out) {
  bool opaque;
  ASSAY_TRY(onnx_read_type(r, p, &opaque, out));
  if (opaque) return ASSAY_ERROR(ASSAY_UNSUPPORTED, "opaque types cannot be handled");
  if (!*out) return ASSAY_ERROR(ASSAY_CORRUPT, "holds a type that says nothing");
  return NULL;
}

static assay_status_t read_attr_value(onnx_reader_t* r, const Onnx__AttributeProto* p,
                                      scope_t* scope, assay_node_t* node, assay_attr_t* a) {
  bool named = false;
  a->n = 1;
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      a->u.f = p->f;
      return NULL;
    case ASSAY_ATTR_INT:
      a->u.i = p->i;
      return NULL;
    case ASSAY_ATTR_STRING:
      return copy_string(r, &p->s, &a->u.s);
    case ASSAY_ATTR_TENSOR:
      if (!p->t) break;
      ASSAY_TRY(read_attr_tensor(r, p->t, &named, &a->u.t));
      if (named) a->wire = onnx_self(r, &p->t->base);
      return NULL;
    case ASSAY_ATTR_GRAPH:
      if (!p->g) break;
      return read_graph_in(r, p->g, scope, node, &a->u.g);
    case ASSAY_ATTR_FLOATS:
      a->n = p->n_floats;
      return copy_numbers(r, a->n, p->floats, sizeof *p->floats, &a->u.floats);
    case ASSAY_ATTR_INTS:
      a->n = p->n_ints;
      return copy_numbers(r, a->n, p->ints, sizeof *p->ints, &a->u.ints);
    case ASSAY_ATTR_STRINGS:
      return read_strings(r, p, a);
    case ASSAY_ATTR_TENSORS:
      return read_tensors(r, p, a);
    case ASSAY_ATTR_GRAPHS:
      a->n = p->n_graphs;
      ASSAY_TRY(assay_arena_new(r->arena, a->n, sizeof *a->u.graphs, &a->u.graphs));
      for (size_t i = 0; i < a->n; i++)
        ASSAY_TRY(read_graph_in(r, p->graphs[i], scope, node, &a->u.graphs[i]));
      return NULL;
    case ASSAY_ATTR_SPARSE_TENSOR:
      if (!p->sparse_tensor) break;
      return read_sparse_tensors(r, 1, (Onnx__SparseTensorProto*[]){p->sparse_tensor}, a, &a->u.t);
    case ASSAY_ATTR_SPARSE_TENSORS:
      a->n = p->n_sparse_tensors;
      ASSAY_TRY(assay_arena_new(r->arena, a->n, sizeof *a->u.tensors, &a->u.tensors));
      return read_sparse_tensors(r, a->n, p->sparse_tensors, a, a->u.tensors);
    case ASSAY_ATTR_TYPE_PROTO:
      if (!p->tp) break;
      return read_attr_type(r, p->tp, &a->u.type);
    case ASSAY_ATTR_TYPE_PROTOS:
      a->n = p->n_type_protos;
      ASSAY_TRY(assay_arena_new(r->arena, a->n, sizeof *a->u.types, &a->u.types));
      for (size_t i = 0; i < a->n; i++)
        ASSAY_TRY(read_attr_type(r, p->type_protos[i], &a->u.types[i]));
      return NULL;
    default:
      break;
  }
  return ASSAY_ERROR(ASSAY_CORRUPT, "says that it is of type %d, and holds no such value",
                     (int)a->type);
}

static assay_status_t read_attr(onnx_reader_t* r, const Onnx__AttributeProto* p, scope_t* scope,
                                assay_node_t* node, assay_attr_t* a) {
  assay_attr_type_t present;
  ASSAY_TRY(onnx_text(r, p->name, &a->name));
  ASSAY_TRY(onnx_text(r, p->doc_string, &a->doc));
  ASSAY_TRY(onnx_text(r, p->ref_attr_name, &a->ref));
  ASSAY_TRY(onnx_carried(r, &p->base, &a->extra));
  if (!*a->name) return ASSAY_ERROR(ASSAY_CORRUPT, "has no name");
  ASSAY_TRY(present_type(p, &present));
  a->type = p->has_type && p->type ? (assay_attr_type_t)p->type : present;
  if (a->type < ASSAY_ATTR_UNDEFINED || a->type > ASSAY_ATTR_TYPE_PROTOS)
    return ASSAY_ERROR(ASSAY_CORRUPT, "is of type %d, which ONNX does not have", (int)a->type);
  if (*a->ref) return NULL;
  if (present && present != a->type)
    return ASSAY_ERROR(ASSAY_CORRUPT, "says that it is of type %d, and holds a value of type %d",
                       (int)a->type, (int)present);
  return read_attr_value(r, p, scope, node, a);
}

static assay_status_t read_attrs(onnx_reader_t* r, size_t n, Onnx__AttributeProto** p,
                                 scope_t* scope, assay_node_t* node, assay_attr_t* attrs) {
  assay_map_t seen = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) {
    bool old = false;
    st = read_attr(r, p[i], scope, node, &attrs[i]);
    if (!st && n > 1) st = assay_map_put(&seen, attrs[i].name, i, &old);
    if (!st && old) st = ASSAY_ERROR(ASSAY_CORRUPT, "is set twice");
    if (st) st = assay_status_note(st, "attribute '%s'", p[i]->name ? p[i]->name : "");
  }
  assay_map_deinit(&seen);
  return st;
}

// ---- nodes ------------------------------------------------------------------------------------

#define NODE_NOTE(node, st) \
  assay_status_note((st), "node '%s' (%s)", (node)->label, (node)->op_type)

// The node and the values that it makes.
static assay_status_t add_node(onnx_reader_t* r, assay_graph_t* g, const Onnx__NodeProto* p,
                               size_t i) {
  if (!p->op_type || !*p->op_type)
    return ASSAY_ERROR(ASSAY_CORRUPT, "node %zu of graph '%s' ('%s') has no op_type", i, g->name,
                       p->name ? p->name : "");
  assay_node_t* n = NULL;
  ASSAY_TRY(assay_node_create(g, p->domain ? p->domain : "", p->op_type, p->name ? p->name : "",
                              p->n_input, p->n_output, p->n_attribute, &n));
  ASSAY_TRY(onnx_text(r, p->overload, &n->overload));
  ASSAY_TRY(onnx_text(r, p->doc_string, &n->doc));
  ASSAY_TRY(onnx_read_props(r, p->n_metadata_props, p->metadata_props, &n->props, &n->n_props));
  ASSAY_TRY(onnx_carried(r, &p->base, &n->extra));
  for (size_t k = 0; k < p->n_output; k++) {
    const char* name = p->output[k];
    if (!*name) continue;
    assay_value_t* v = assay_graph_find(g, name);
    if (v) {
      const char* by = NULL;
      ASSAY_TRY(assay_arena_printf(r->arena, &by, "node '%s' (%s)", n->label, n->op_type));
      return defined_twice(v, by);
    }
    ASSAY_TRY(assay_graph_add_value(g, name, &v));
    assay_node_set_output(n, k, v);
  }
  return assay_graph_insert(g, n, g->n_nodes);
}

// The content of a Constant node, so that inference sees it. Source: ONNX Constant-1 to -25.
assay_status_t onnx_set_constant(assay_model_t* m, const assay_node_t* n) {
  if (strcmp(n->op_type, "Constant") != 0 || *n->domain || n->n_outputs != 1 || !n->outputs[0] ||
      n->n_attrs != 1 || *n->attrs[0].ref)
    return NULL;
  const assay_attr_t* a = &n->attrs[0];
  assay_tensor_t* t = NULL;
  int64_t dims[1] = {(int64_t)a->n};
  int rank = 1;
  switch (a->type) {
    case ASSAY_ATTR_TENSOR:
    case ASSAY_ATTR_SPARSE_TENSOR:
      n->outputs[0]->constant = a->u.t;
      return NULL;
    case ASSAY_ATTR_FLOAT:
      ASSAY_TRY(assay_tensor_scalar_f64(ASSAY_TYPE_FLOAT, (double)a->u.f, &t));
      break;
    case ASSAY_ATTR_INT:
      ASSAY_TRY(assay_tensor_scalar_i64(ASSAY_TYPE_INT64, a->u.i, &t));
      break;
    case ASSAY_ATTR_INTS:
      ASSAY_TRY(assay_tensor_vector_i64(ASSAY_TYPE_INT64, dims[0], a->u.ints, &t));
      break;
    case ASSAY_ATTR_FLOATS:
      ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, rank, dims, &t));
      for (size_t i = 0; i < a->n; i++) assay_f64(t)[i] = (double)a->u.floats[i];
      break;
    case ASSAY_ATTR_STRING:
    case ASSAY_ATTR_STRINGS: {
      const assay_string_t* s = a->type == ASSAY_ATTR_STRING ? &a->u.s : a->u.strings;
      if (a->type == ASSAY_ATTR_STRING) rank = 0;
      ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_STRING, rank, dims, &t));
      assay_status_t st = NULL;
      for (size_t i = 0; !st && i < a->n; i++)
        st = assay_tensor_set_string(t, (int64_t)i, s[i].text, s[i].len);
      if (st) return assay_tensor_release(t), st;
      break;
    }
    default:
      return NULL;
  }
  ASSAY_TRY(assay_model_take_tensor(m, t));
  n->outputs[0]->constant = t;
  return NULL;
}

// A value that nothing makes stands for a name that nothing defines, where that is let pass.
static assay_status_t invent(onnx_reader_t* r, assay_graph_t* g, const char* name,
                             assay_value_t** out) {
  return r->options.undefined ? assay_graph_add_value(g, name, out) : NULL;
}

// Inputs and attributes, when all values of the graph are there.
static assay_status_t connect_node(onnx_reader_t* r, scope_t* scope, const Onnx__NodeProto* p,
                                   assay_node_t* n) {
  for (size_t k = 0; k < p->n_input; k++) {
    if (!*p->input[k]) continue;
    ASSAY_TRY(resolve(scope, p->input[k], &n->inputs[k]));
    if (!n->inputs[k]) ASSAY_TRY(invent(r, scope->graph, p->input[k], &n->inputs[k]));
    if (!n->inputs[k])
      return ASSAY_ERROR(ASSAY_CORRUPT, "node '%s' (%s) reads value '%s' that nothing defines",
                         n->label, n->op_type, p->input[k]);
  }
  assay_status_t st = read_attrs(r, p->n_attribute, p->attribute, scope, n, n->attrs);
  return st ? NODE_NOTE(n, st) : onnx_set_constant(r->model, n);
}

static assay_status_t read_nodes(onnx_reader_t* r, scope_t* scope, size_t n,
                                 Onnx__NodeProto** protos) {
  assay_graph_t* g = scope->graph;
  for (size_t i = 0; i < n; i++) ASSAY_TRY(add_node(r, g, protos[i], i));
  for (size_t i = 0; i < n; i++) ASSAY_TRY(connect_node(r, scope, protos[i], g->nodes[i]));
  return NULL;
}

// ---- graphs -----------------------------------------------------------------------------------

// The value that a graph output names.
static assay_status_t find_output(onnx_reader_t* r, scope_t* scope, const char* name,
                                  assay_value_t** out) {
  assay_graph_t* g = scope->graph;
  if (name && *name) ASSAY_TRY(resolve(scope, name, out));
  if (name && *name && !*out) ASSAY_TRY(invent(r, g, name, out));
  if (!name || !*name || !*out)
    return ASSAY_ERROR(ASSAY_CORRUPT, "output '%s' of graph '%s' is a value that nothing defines",
                       name ? name : "", g->name);
  if ((*out)->graph == g) (*out)->is_output = true;
  g->outputs[g->n_outputs++] = *out;
  return NULL;
}

// One ValueInfoProto of value_info. Those of values that the graph does not have are carried along.
static assay_status_t add_value_info(onnx_reader_t* r, assay_graph_t* g,
                                     const Onnx__ValueInfoProto* p, onnx_collector_t* strays) {
  assay_value_t* v = p->name ? assay_graph_find(g, p->name) : NULL;
  if (v) {
    ASSAY_TRY(read_value_info(r, p, v));
    if (v->in_value_info) return NULL;
    v->in_value_info = true;
    g->value_info[g->n_value_info++] = v;
    return NULL;
  }
  return onnx_collect_message(strays, 13, &p->base);
}

static assay_status_t read_inputs(onnx_reader_t* r, assay_graph_t* g, const Onnx__GraphProto* p) {
  ASSAY_TRY(assay_arena_new(r->arena, p->n_input, sizeof *g->inputs, &g->inputs));
  for (size_t i = 0; i < p->n_input; i++) {
    assay_value_t* v = NULL;
    ASSAY_TRY(add_input(r, g, p->input[i]->name, &v));
    ASSAY_TRY(read_value_info(r, p->input[i], v));
  }
  for (size_t i = 0; i < p->n_initializer; i++)
    ASSAY_TRY(add_initializer(r, g, p->initializer[i]->name, p->initializer[i], NULL));
  for (size_t i = 0; i < p->n_sparse_initializer; i++) {
    const Onnx__SparseTensorProto* s = p->sparse_initializer[i];
    ASSAY_TRY(add_initializer(r, g, s->values ? s->values->name : NULL, NULL, s));
  }
  return NULL;
}

static assay_status_t read_outputs(onnx_reader_t* r, scope_t* scope, const Onnx__GraphProto* p) {
  assay_graph_t* g = scope->graph;
  ASSAY_TRY(assay_arena_new(r->arena, p->n_output, sizeof *g->outputs, &g->outputs));
  for (size_t i = 0; i < p->n_output; i++) {
    assay_value_t* v = NULL;
    ASSAY_TRY(find_output(r, scope, p->output[i]->name, &v));
    // A value of an outer graph is declared there.
    if (v->graph == g) ASSAY_TRY(read_value_info(r, p->output[i], v));
  }
  return NULL;
}

static assay_status_t read_infos(onnx_reader_t* r, assay_graph_t* g, size_t n,
                                 Onnx__ValueInfoProto** protos) {
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *g->value_info, &g->value_info));
  onnx_collector_t strays = {.run = g->extra};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) st = add_value_info(r, g, protos[i], &strays);
  return assay_status_join(st, onnx_collected(r, &strays, &g->extra));
}

static assay_status_t read_graph_in(onnx_reader_t* r, const Onnx__GraphProto* p, scope_t* outer,
                                    assay_node_t* owner, assay_graph_t** out) {
  assay_graph_t* g = NULL;
  ASSAY_TRY(assay_graph_create(r->model, outer ? outer->graph : NULL, &g));
  g->owner = owner;
  scope_t scope = {.graph = g, .outer = outer};
  assay_status_t st = onnx_text(r, p->name, &g->name);
  if (!st) st = onnx_text(r, p->doc_string, &g->doc);
  if (!st) st = onnx_read_props(r, p->n_metadata_props, p->metadata_props, &g->props, &g->n_props);
  if (!st) st = onnx_carried(r, &p->base, &g->extra);
  if (!st) st = read_inputs(r, g, p);
  if (!st) st = read_nodes(r, &scope, p->n_node, p->node);
  if (!st) st = read_outputs(r, &scope, p);
  if (!st) st = read_infos(r, g, p->n_value_info, p->value_info);
  if (!st) st = onnx_sort_nodes(g, scope.captures, scope.n_captures);
  assay_free(scope.captures);
  if (st) return st;
  *out = g;
  return NULL;
}

assay_status_t onnx_read_graph(onnx_reader_t* r, const Onnx__GraphProto* p, assay_graph_t** out) {
  return read_graph_in(r, p, NULL, NULL, out);
}

// ---- functions --------------------------------------------------------------------------------

static assay_status_t read_names(onnx_reader_t* r, size_t n, char** names, const char*** out,
                                 size_t* out_n) {
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof **out, out));
  for (size_t i = 0; i < n; i++) ASSAY_TRY(onnx_text(r, names[i], &(*out)[i]));
  *out_n = n;
  return NULL;
}

static assay_status_t read_body(onnx_reader_t* r, const Onnx__FunctionProto* p,
                                assay_function_t* f) {
  assay_graph_t* g = NULL;
  ASSAY_TRY(assay_graph_create(r->model, NULL, &g));
  f->body = g;
  g->name = f->name;
  ASSAY_TRY(assay_arena_new(r->arena, p->n_input, sizeof *g->inputs, &g->inputs));
  ASSAY_TRY(assay_arena_new(r->arena, p->n_output, sizeof *g->outputs, &g->outputs));
  for (size_t i = 0; i < p->n_input; i++) {
    assay_value_t* v = NULL;
    ASSAY_TRY(add_input(r, g, p->input[i], &v));
  }
  scope_t scope = {.graph = g};
  assay_status_t st = read_nodes(r, &scope, p->n_node, p->node);
  for (size_t i = 0; !st && i < p->n_output; i++) {
    assay_value_t* v = NULL;
    st = find_output(r, &scope, p->output[i], &v);
  }
  if (!st) st = read_infos(r, g, p->n_value_info, p->value_info);
  if (!st) st = onnx_sort_nodes(g, scope.captures, scope.n_captures);
  assay_free(scope.captures);
  return st;
}

assay_status_t onnx_read_opsets(onnx_reader_t* r, size_t n, Onnx__OperatorSetIdProto** p,
                                assay_opset_t** out) {
  assay_opset_t* opsets = NULL;
  assay_map_t seen = {0};
  assay_status_t st = assay_arena_new(r->arena, n, sizeof *opsets, &opsets);
  for (size_t i = 0; !st && i < n; i++) {
    const char* domain = p[i]->domain ? p[i]->domain : "";
    uint64_t first;
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    opsets[i].version = p[i]->version;
    st = onnx_text(r, domain, &opsets[i].domain);
    if (st) break;
    if (!assay_map_get(&seen, domain, &first))
      st = assay_map_put(&seen, opsets[i].domain, i, NULL);
    else if (opsets[first].version != opsets[i].version)
      st = ASSAY_ERROR(ASSAY_CORRUPT, "domain '%s' is imported as version %lld and as %lld",
                       *domain ? domain : "ai.onnx", (long long)opsets[first].version,
                       (long long)opsets[i].version);
  }
  assay_map_deinit(&seen);
  if (!st) *out = opsets;
  return st;
}

assay_status_t onnx_read_function(onnx_reader_t* r, const Onnx__FunctionProto* p,
                                  assay_function_t** out) {
  assay_function_t* f = NULL;
  ASSAY_TRY(assay_arena_new(r->arena, 1, sizeof *f, &f));
  const char* domain = p->domain && strcmp(p->domain, "ai.onnx") != 0 ? p->domain : "";
  ASSAY_TRY(onnx_text(r, p->name, &f->name));
  ASSAY_TRY(onnx_text(r, domain, &f->domain));
  ASSAY_TRY(onnx_text(r, p->overload, &f->overload));
  ASSAY_TRY(onnx_text(r, p->doc_string, &f->doc));
  if (!*f->name) return ASSAY_ERROR(ASSAY_CORRUPT, "a function has no name");
  ASSAY_TRY(read_names(r, p->n_input, p->input, &f->inputs, &f->n_inputs));
  ASSAY_TRY(read_names(r, p->n_output, p->output, &f->outputs, &f->n_outputs));
  ASSAY_TRY(read_names(r, p->n_attribute, p->attribute, &f->attr_names, &f->n_attr_names));
  f->n_attr_defaults = p->n_attribute_proto;
  ASSAY_TRY(
      assay_arena_new(r->arena, f->n_attr_defaults, sizeof *f->attr_defaults, &f->attr_defaults));
  ASSAY_TRY(read_attrs(r, p->n_attribute_proto, p->attribute_proto, NULL, NULL, f->attr_defaults));
  f->n_opsets = p->n_opset_import;
  ASSAY_TRY(onnx_read_opsets(r, p->n_opset_import, p->opset_import, &f->opsets));
  ASSAY_TRY(onnx_read_props(r, p->n_metadata_props, p->metadata_props, &f->props, &f->n_props));
  ASSAY_TRY(onnx_carried(r, &p->base, &f->extra));
  ASSAY_TRY(read_body(r, p, f));
  *out = f;
  return NULL;
}
