// What a model says of itself: attributes of nodes, shapes and types of inputs and outputs, the
// operator set.
#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "edit/editor.h"
#include "edit/names.h"
#include "edit/types.h"
#include "formats/format.h"
#include "ops/infer.h"

// ---- attributes ---------------------------------------------------------------------------------

// Splits "1,2,3" and hands each part to `add`.
static assay_status_t each_part(const char* text, void* user,
                                bool (*add)(void* user, const char* part)) {
  char part[64];
  for (const char* p = text;; p++) {
    const char* end = strchr(p, ',');
    const size_t n = end ? (size_t)(end - p) : strlen(p);
    if (n >= sizeof part)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is too long for a number", p);
    memcpy(part, p, n);
    part[n] = 0;
    if (!add(user, part))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is not a number of that kind", part);
    if (!end) return NULL;
    p = end;
  }
}

typedef struct numbers {
  int64_t* ints;
  float* floats;
  size_t n;
} numbers_t;

static bool add_int(void* user, const char* part) {
  numbers_t* list = user;
  char* end;
  errno = 0;
  list->ints[list->n++] = strtoll(part, &end, 10);
  return end != part && !*end && !errno;
}

static bool add_float(void* user, const char* part) {
  numbers_t* list = user;
  char* end;
  list->floats[list->n++] = strtof(part, &end);
  return end != part && !*end;
}

static assay_status_t parse_value(assay_model_t* m, assay_attr_type_t type, const char* text,
                                  assay_attr_t* a) {
  numbers_t list = {NULL, NULL, 0};
  size_t max = 1;
  for (const char* p = text; *p; p++) max += *p == ',';
  ASSAY_TRY(assay_arena_new(m->arena, max, sizeof *list.ints, &list.ints));
  ASSAY_TRY(assay_arena_new(m->arena, max, sizeof *list.floats, &list.floats));
  a->type = type;
  a->n = 1;
  switch (type) {
    case ASSAY_ATTR_INT:
    case ASSAY_ATTR_INTS:
      ASSAY_TRY(each_part(text, &list, add_int));
      a->n = list.n;
      if (type == ASSAY_ATTR_INTS) return a->u.ints = list.ints, NULL;
      a->u.i = list.ints[0];
      return list.n == 1 ? NULL : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "it is one integer");
    case ASSAY_ATTR_FLOAT:
    case ASSAY_ATTR_FLOATS:
      ASSAY_TRY(each_part(text, &list, add_float));
      a->n = list.n;
      if (type == ASSAY_ATTR_FLOATS) return a->u.floats = list.floats, NULL;
      a->u.f = list.floats[0];
      return list.n == 1 ? NULL : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "it is one number");
    case ASSAY_ATTR_STRING:
      ASSAY_TRY(assay_arena_strdup(m->arena, text, &a->u.s.text));
      a->u.s.len = strlen(text);
      return NULL;
    default:
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "attributes that hold tensors, graphs or lists of texts cannot be set");
  }
}

static void drop_attr(assay_node_t* n, const char* name) {
  size_t kept = 0;
  for (size_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, name) != 0) n->attrs[kept++] = n->attrs[i];
  n->n_attrs = kept;
}

static assay_status_t set_attr(assay_model_t* m, assay_node_t* n, const char* name,
                               const char* value) {
  const assay_attr_t* old = assay_node_attr(n, name);
  const assay_attr_spec_t* spec = n->schema ? assay_schema_attr(n->schema, name) : NULL;
  assay_attr_t a = {.name = name, .doc = "", .ref = ""};
  if (!old && !spec)
    return ASSAY_NODE_ERROR(n, ASSAY_NOT_FOUND, "the operator has no attribute '%s'", name);
  if (!*value) return drop_attr(n, name), NULL;
  assay_status_t st = parse_value(m, spec ? spec->type : old->type, value, &a);
  if (st)
    return assay_status_note(st, "node '%s' (%s): attribute '%s'", n->label, n->op_type, name);
  drop_attr(n, name);
  assay_attr_t* all = NULL;
  ASSAY_TRY(assay_arena_new(m->arena, n->n_attrs + 1, sizeof *all, &all));
  if (n->n_attrs) memcpy(all, n->attrs, n->n_attrs * sizeof *all);
  all[n->n_attrs++] = a;
  n->attrs = all;
  return NULL;
}

static assay_status_t set_attrs(assay_editing_t* e) {
  const assay_words_t* attrs = &e->requests->attrs;
  size_t n = 0;
  if (attrs->n && !e->requests->nodes.n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--attr needs --nodes: say whose attribute it is");
  for (size_t k = 0; attrs->n && k < e->out->n_graphs; k++)
    for (size_t i = 0; i < e->out->graphs[k]->n_nodes; i++) {
      assay_node_t* node = e->out->graphs[k]->nodes[i];
      if (!assay_editing_wants(e, node)) continue;
      for (size_t a = 0; a < attrs->n; a++) {
        const char* equals = strchr(attrs->items[a], '=');
        const char* name = NULL;
        if (!equals || equals == attrs->items[a])
          return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--attr '%s' is not NAME=VALUE",
                             attrs->items[a]);
        ASSAY_TRY(assay_arena_strndup(e->out->arena, attrs->items[a],
                                      (size_t)(equals - attrs->items[a]), &name));
        ASSAY_TRY(set_attr(e->out, node, name, equals + 1));
        n++;
      }
    }
  assay_editing_did(e, "attributes", n);
  return NULL;
}

// ---- shapes -------------------------------------------------------------------------------------

static assay_status_t parse_shape(assay_model_t* m, const char* text, const assay_dim_t** dims,
                                  int* rank) {
  char part[64];
  *rank = 0;
  for (const char* p = text; *p;) {
    // Sizes are separated by 'x' where numbers meet it, and by ','.
    size_t n = strcspn(p, ",x");
    if (!n || n >= sizeof part || *rank == ASSAY_MAX_RANK)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is not a list of sizes, such as Nx3x224x224",
                         text);
    memcpy(part, p, n);
    part[n] = 0;
    char* end;
    errno = 0;
    const long long x = strtoll(part, &end, 10);
    if (*end)
      dims[*rank] = strcmp(part, "?") ? assay_dim_symbol(m->dims, part) : NULL;
    else if (errno || x < 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is not a size", part);
    else
      dims[*rank] = assay_dim_const(m->dims, x);
    ++*rank;
    p += n;
    if (*p) p++;
  }
  return assay_dims_status(m->dims);
}

static assay_status_t find_end(const assay_model_t* m, const char* option, const char* name,
                               bool inputs_only, assay_value_t** out) {
  assay_value_t* v = NULL;
  ASSAY_TRY(assay_status_note(assay_names_value(m, name, &v), "%s", option));
  if (!v->is_input && (inputs_only || !v->is_output))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is not an input%s of the model", option,
                       name, inputs_only ? "" : " and no output");
  return *out = v, NULL;
}

static assay_status_t set_shapes(assay_editing_t* e) {
  const assay_words_t* shapes = &e->requests->shapes;
  assay_model_t* m = e->out;
  for (size_t i = 0; i < shapes->n; i++) {
    const char *name = NULL, *text = NULL;
    const assay_dim_t* dims[ASSAY_MAX_RANK];
    assay_value_t* v = NULL;
    int rank = 0;
    ASSAY_TRY(assay_names_pair(m, "--shape", shapes->items[i], &name, &text));
    ASSAY_TRY(find_end(m, "--shape", name, true, &v));
    const assay_valtype_t* t = v->declared;
    if (!t || t->kind != ASSAY_KIND_TENSOR)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--shape: input '%s' is not a tensor", name);
    ASSAY_TRY(parse_shape(m, text, dims, &rank));
    ASSAY_TRY(assay_valtype_tensor(m, t->elem, rank, dims, &v->declared));
    v->open = NULL;
  }
  if (shapes->n) assay_types_forget(m);
  assay_editing_did(e, "shapes", shapes->n);
  return NULL;
}

// ---- types --------------------------------------------------------------------------------------

// "float16", or "int8*0.0078": codes with a scale, which is 0 else.
static assay_status_t parse_type(const char* text, assay_type_t* out, float* out_scale) {
  char* end;
  *out_scale = 0;
  if (strncmp(text, "int8*", 5) == 0) {
    *out_scale = strtof(text + 5, &end);
    if (*end || end == text + 5 || !(*out_scale > 0) || *out_scale > FLT_MAX)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--type: '%s' has no scale above 0 after its '*'",
                         text);
    return *out = ASSAY_TYPE_INT8, NULL;
  }
  for (int t = 1; t < 32; t++) {
    const char* name = assay_type_name((assay_type_t)t);
    if (name && strcmp(name, text) == 0) return *out = (assay_type_t)t, NULL;
  }
  return ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "--type: '%s' is not a type; say float, float16, bfloat16, double, uint8, int64 ...", text);
}

static assay_status_t add_constant(assay_model_t* m, const char* name, assay_tensor_t* take_tensor,
                                   assay_value_t** out) {
  assay_value_t* v = NULL;
  assay_status_t st = assay_graph_new_value(m->graph, name, &v);
  if (st) return assay_tensor_release(take_tensor), st;
  ASSAY_TRY(assay_graph_set_initializer(v, take_tensor));
  *out = v;
  return NULL;
}

// The scale of codes and their zero point, 0, beside the value that is one of them.
static assay_status_t add_scale(assay_model_t* m, const char* of, float scale,
                                assay_value_t** out_scale, assay_value_t** out_zero) {
  const char *scale_name = NULL, *zero_name = NULL;
  assay_tensor_t *s = NULL, *z = NULL;
  ASSAY_TRY(assay_arena_printf(m->arena, &scale_name, "%s_io_scale", of));
  ASSAY_TRY(assay_arena_printf(m->arena, &zero_name, "%s_io_zero_point", of));
  ASSAY_TRY(assay_tensor_scalar_f64(ASSAY_TYPE_FLOAT, (double)scale, &s));
  ASSAY_TRY(add_constant(m, scale_name, s, out_scale));
  ASSAY_TRY(assay_tensor_scalar_i64(ASSAY_TYPE_INT8, 0, &z));
  return add_constant(m, zero_name, z, out_zero);
}

// What turns one type of an input or output into the other: a Cast, or with a scale a quantizer or
// its inverse.
static assay_status_t make_cast(assay_model_t* m, assay_value_t* from, assay_value_t* to,
                                assay_type_t type, float scale, size_t at) {
  assay_node_t* n = NULL;
  const char* name = NULL;
  if (scale > 0) {
    const bool codes = type == ASSAY_TYPE_INT8;
    const char* op = codes ? "QuantizeLinear" : "DequantizeLinear";
    ASSAY_TRY(assay_arena_printf(m->arena, &name, "%s_%s", to->name, op));
    ASSAY_TRY(assay_node_create(m->graph, "", op, name, 3, 1, 0, &n));
    n->inputs[0] = from;
    ASSAY_TRY(add_scale(m, codes ? to->name : from->name, scale, &n->inputs[1], &n->inputs[2]));
    assay_node_set_output(n, 0, to);
    return assay_graph_insert(m->graph, n, at);
  }
  ASSAY_TRY(assay_arena_printf(m->arena, &name, "%s_cast", to->name));
  ASSAY_TRY(assay_node_create(m->graph, "", "Cast", name, 1, 1, 1, &n));
  n->inputs[0] = from;
  n->attrs[0] = (assay_attr_t){
      .name = "to", .doc = "", .ref = "", .type = ASSAY_ATTR_INT, .n = 1, .u.i = type};
  assay_node_set_output(n, 0, to);
  return assay_graph_insert(m->graph, n, at);
}

static assay_status_t with_elem(assay_model_t* m, const assay_valtype_t* t, assay_type_t elem,
                                const assay_valtype_t** out) {
  return t->has_shape ? assay_valtype_tensor(m, elem, t->rank, t->dims, out)
                      : assay_valtype_unranked(m, elem, out);
}

// Readers of an input read a Cast of it to the type that it had.
static assay_status_t retype_input(assay_model_t* m, assay_value_t* v, assay_type_t elem,
                                   float scale) {
  const assay_type_t was = v->declared->elem;
  assay_value_t* inner = NULL;
  const char* name = NULL;
  ASSAY_TRY(assay_arena_printf(m->arena, &name, "%s_%s", v->name, assay_type_name(was)));
  ASSAY_TRY(assay_graph_new_value(m->graph, name, &inner));
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t j = 0; j < g->nodes[i]->n_inputs; j++)
        if (g->nodes[i]->inputs[j] == v) g->nodes[i]->inputs[j] = inner;
    for (size_t i = 0; i < g->n_outputs; i++)
      if (g->outputs[i] == v) g->outputs[i] = inner;
  }
  inner->is_output = v->is_output;
  v->is_output = false;
  inner->type = inner->declared = v->declared;
  ASSAY_TRY(with_elem(m, v->declared, elem, &v->declared));
  v->open = NULL;
  return make_cast(m, v, inner, was, scale, 0);
}

// The output is a Cast of what made it.
static assay_status_t retype_output(assay_model_t* m, assay_value_t* v, assay_type_t elem,
                                    float scale) {
  assay_value_t* inner = NULL;
  const char* name = NULL;
  const assay_valtype_t* t = v->declared ? v->declared : v->type;
  if (!v->producer)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "--type: no node makes output '%s'", v->name);
  ASSAY_TRY(assay_arena_printf(m->arena, &name, "%s_%s", v->name, assay_type_name(t->elem)));
  ASSAY_TRY(assay_graph_new_value(m->graph, name, &inner));
  inner->type = t;
  assay_node_set_output(v->producer, (size_t)v->output_index, inner);
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      assay_node_t* n = m->graphs[k]->nodes[i];
      for (size_t j = 0; j < n->n_inputs; j++)
        if (n->inputs[j] == v) n->inputs[j] = inner;
    }
  ASSAY_TRY(with_elem(m, t, elem, &v->declared));
  return make_cast(m, inner, v, elem, scale, m->graph->n_nodes);
}

static assay_status_t set_types(assay_editing_t* e) {
  const assay_words_t* types = &e->requests->types;
  assay_model_t* m = e->out;
  for (size_t i = 0; i < types->n; i++) {
    const char *name = NULL, *text = NULL;
    assay_value_t* v = NULL;
    assay_type_t elem = ASSAY_TYPE_UNDEFINED;
    ASSAY_TRY(assay_names_pair(m, "--type", types->items[i], &name, &text));
    ASSAY_TRY(find_end(m, "--type", name, false, &v));
    float scale;
    ASSAY_TRY(parse_type(text, &elem, &scale));
    const assay_valtype_t* t = v->declared ? v->declared : v->type;
    if (!t || t->kind != ASSAY_KIND_TENSOR || assay_type_store(t->elem) == ASSAY_STORE_STR ||
        v->constant)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "--type: '%s' is not a tensor of numbers that is given anew each run",
                         name);
    if (assay_model_opset(m, "") < 6)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "--type: Casts need operator set 6; the model imports %lld",
                         (long long)assay_model_opset(m, ""));
    if (t->elem == elem) continue;
    if (scale > 0 && (t->elem != ASSAY_TYPE_FLOAT || assay_model_opset(m, "") < 10))
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "--type: codes with a scale are of float values, and need operator set "
                         "10; '%s' is %s",
                         name, assay_type_name(t->elem));
    if (!v->declared) v->declared = t;
    ASSAY_TRY(v->is_input ? retype_input(m, v, elem, scale) : retype_output(m, v, elem, scale));
  }
  assay_editing_did(e, "types", types->n);
  return NULL;
}

// ---- the operator set ---------------------------------------------------------------------------

// Another operator set is another number where no operator of the model changed in between.
static assay_status_t set_opset(assay_editing_t* e) {
  const int64_t to = e->requests->opset;
  assay_model_t* m = e->out;
  if (!to) return NULL;
  if (to < 1 || to > assay_schema_newest(""))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--opset %lld: operator sets of ai.onnx are 1 to %d",
                       (long long)to, assay_schema_newest(""));
  if (m->n_functions)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "--opset: the model's functions import operator sets of their own");
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[k]->nodes[i];
      if (*n->domain || !n->schema) continue;
      const assay_schema_t* s = assay_schema_find("", n->op_type, to, NULL);
      const assay_op_t *now = assay_op_find("", n->op_type, to), *was = n->op;
      // A version that only takes more types means the same.
      if (!s || now != was || s->n_attrs < n->schema->n_attrs ||
          s->min_inputs > n->schema->min_inputs)
        return ASSAY_NODE_ERROR(
            n, ASSAY_UNSUPPORTED,
            "it is another operator in operator set %lld; the model has to be converted, or "
            "exported anew",
            (long long)to);
    }
  for (size_t i = 0; i < m->n_opsets; i++)
    if (!*m->opsets[i].domain || strcmp(m->opsets[i].domain, "ai.onnx") == 0)
      m->opsets[i].version = to;
  assay_editing_did(e, "operator set", (size_t)to);
  return NULL;
}

static assay_status_t run(assay_editing_t* e) {
  const assay_edit_requests_t* w = e->requests;
  if (!w->attrs.n && !w->shapes.n && !w->types.n && !w->opset)
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "say what to set: --nodes NODE --attr NAME=VALUE, --shape, --type or --opset");
  ASSAY_TRY(assay_model_clone(e->model, &e->out));
  ASSAY_TRY(set_opset(e));
  ASSAY_TRY(set_attrs(e));
  ASSAY_TRY(set_types(e));
  return set_shapes(e);
}

const assay_editor_t assay_editor_set = {
    .name = "set",
    .summary = "attributes of nodes, shapes and types of inputs and outputs, the operator set",
    .promise = ASSAY_PROMISE_NONE,
    .keeps_functions = true,
    .run = run,
};
