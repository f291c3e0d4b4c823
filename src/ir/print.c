// The text form of a model, for people and golden tests.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/internal.h"

enum { MAX_ELEMS = 16, MAX_STRING = 64 };  // of a list or text that are shown

static void put_indent(assay_str_t* s, int depth) {
  for (int i = 0; i < depth; i++) assay_str_append(s, "  ");
}

// Text with control characters and quotes escaped, so that a line stays a line.
static void put_escaped(assay_str_t* s, const char* text, size_t n) {
  for (size_t i = 0; i < n; i++) {
    unsigned char ch = (unsigned char)text[i];
    if (ch == '\\' || ch == '"')
      assay_str_printf(s, "\\%c", ch);
    else if (ch < 0x20 || ch == 0x7f)
      assay_str_printf(s, "\\x%02x", ch);
    else
      assay_str_append_n(s, text + i, 1);
  }
}

static void put_name(assay_str_t* s, const char* name) { put_escaped(s, name, strlen(name)); }

static void put_string(assay_str_t* s, assay_string_t text) {
  bool cut = text.len > MAX_STRING;
  assay_str_append(s, "\"");
  put_escaped(s, text.text, cut ? MAX_STRING : text.len);
  assay_str_append(s, cut ? "...\"" : "\"");
}

static void put_type(assay_str_t* s, const assay_valtype_t* t) {
  char buffer[4096];
  put_name(s, assay_valtype_text(t, buffer, sizeof buffer));
}

static void put_float(assay_str_t* s, double x, int digits) {
  // %g prints the sign of NaN, which means nothing and differs between machines.
  if (isnan(x))
    assay_str_append(s, "nan");
  else
    assay_str_printf(s, "%.*g", digits, x);
}

// ---- tensors ----------------------------------------------------------------------------------

static void put_elem(assay_str_t* s, const assay_tensor_t* t, int64_t i) {
  int digits = t->type == ASSAY_TYPE_DOUBLE || t->type == ASSAY_TYPE_COMPLEX128 ? 17 : 9;
  switch (t->store) {
    case ASSAY_STORE_F64:
      put_float(s, assay_f64(t)[i], digits);
      return;
    case ASSAY_STORE_I64:
      if (t->type == ASSAY_TYPE_UINT64)
        assay_str_printf(s, "%llu", (unsigned long long)assay_i64(t)[i]);
      else
        assay_str_printf(s, "%lld", (long long)assay_i64(t)[i]);
      return;
    case ASSAY_STORE_C128:
      put_float(s, assay_c128(t)[2 * i], digits);
      assay_str_append(s, "+");
      put_float(s, assay_c128(t)[2 * i + 1], digits);
      assay_str_append(s, "i");
      return;
    case ASSAY_STORE_STR:
      put_string(s, assay_strings(t)[i]);
      return;
    case ASSAY_STORE_PACKED:
    case ASSAY_STORE_LATE:
    case ASSAY_STORE_NARROW:
      return;
  }
}

// The type and shape of a tensor, and its elements if they are few.
static assay_status_t put_tensor(assay_str_t* s, assay_tensor_t* t) {
  if (!t) return assay_str_append(s, "?"), NULL;
  if (t->kind != ASSAY_KIND_TENSOR)
    return assay_str_printf(s, "container of %lld", (long long)t->n_items), NULL;
  assay_str_printf(s, "%s%s", assay_type_name(t->type), ASSAY_DIMS_TEXT(t));
  if (t->size > MAX_ELEMS) return NULL;
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_str_append(s, " {");
  for (int64_t i = 0; i < wide->size; i++) {
    if (i) assay_str_append(s, ", ");
    put_elem(s, wide, i);
  }
  assay_str_append(s, "}");
  assay_tensor_release(wide);
  return NULL;
}

// ---- attributes -------------------------------------------------------------------------------

static void put_graph_name(assay_str_t* s, const assay_graph_t* g) {
  assay_str_append(s, "graph ");
  if (g) put_name(s, g->name);
}

static assay_status_t put_attr_elem(assay_str_t* s, const assay_attr_t* a, size_t i) {
  switch (a->type) {
    case ASSAY_ATTR_FLOATS:
      return put_float(s, (double)a->u.floats[i], 9), NULL;
    case ASSAY_ATTR_INTS:
      return assay_str_printf(s, "%lld", (long long)a->u.ints[i]), NULL;
    case ASSAY_ATTR_STRINGS:
      return put_string(s, a->u.strings[i]), NULL;
    case ASSAY_ATTR_TENSORS:
    case ASSAY_ATTR_SPARSE_TENSORS:
      return put_tensor(s, a->u.tensors[i]);
    case ASSAY_ATTR_GRAPHS:
      return put_graph_name(s, a->u.graphs[i]), NULL;
    case ASSAY_ATTR_TYPE_PROTOS:
      return put_type(s, a->u.types[i]), NULL;
    default:
      return NULL;
  }
}

static assay_status_t put_attr(assay_str_t* s, const assay_attr_t* a) {
  put_name(s, a->name);
  assay_str_append(s, "=");
  if (a->ref && *a->ref) {
    assay_str_append(s, "@");
    return put_name(s, a->ref), NULL;
  }
  switch (a->type) {
    case ASSAY_ATTR_UNDEFINED:
      return assay_str_append(s, "?"), NULL;
    case ASSAY_ATTR_FLOAT:
      return put_float(s, (double)a->u.f, 9), NULL;
    case ASSAY_ATTR_INT:
      return assay_str_printf(s, "%lld", (long long)a->u.i), NULL;
    case ASSAY_ATTR_STRING:
      return put_string(s, a->u.s), NULL;
    case ASSAY_ATTR_TENSOR:
    case ASSAY_ATTR_SPARSE_TENSOR:
      return put_tensor(s, a->u.t);
    case ASSAY_ATTR_GRAPH:
      return put_graph_name(s, a->u.g), NULL;
    case ASSAY_ATTR_TYPE_PROTO:
      return put_type(s, a->u.type), NULL;
    default:
      break;
  }
  assay_str_append(s, "[");
  for (size_t i = 0; i < a->n && i < MAX_ELEMS; i++) {
    if (i) assay_str_append(s, ", ");
    ASSAY_TRY(put_attr_elem(s, a, i));
  }
  if (a->n > MAX_ELEMS) assay_str_printf(s, ", ... (%zu)", a->n);
  assay_str_append(s, "]");
  return NULL;
}

// ---- nodes and graphs -------------------------------------------------------------------------

static assay_status_t put_graph(assay_str_t* s, const assay_graph_t* g, int depth);

static void put_values(assay_str_t* s, assay_value_t* const* values, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (i) assay_str_append(s, ", ");
    if (values[i])
      put_name(s, values[i]->name);
    else
      assay_str_append(s, "\"\"");
  }
}

static void put_content(assay_str_t* s, const assay_content_t* c) {
  char buffer[1024];
  assay_str_append(s, " {");
  for (int64_t i = 0; i < c->n && i < MAX_ELEMS; i++) {
    if (i) assay_str_append(s, ", ");
    put_name(s, assay_dim_text(c->elems[i], buffer, sizeof buffer));
  }
  assay_str_append(s, c->n > MAX_ELEMS ? ", ...}" : "}");
}

// What inference found out about the outputs, after the node.
static void put_output_types(assay_str_t* s, const assay_node_t* n) {
  const char* before = "  # ";
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    const assay_valtype_t* t = !v ? NULL : v->type ? v->type : v->declared;
    if (!t) continue;
    assay_str_append(s, before);
    put_type(s, t);
    if (v->content) put_content(s, v->content);
    before = ", ";
  }
}

static assay_status_t put_node(assay_str_t* s, const assay_node_t* n, int depth) {
  put_indent(s, depth);
  put_name(s, n->label);
  assay_str_append(s, ": ");
  put_values(s, n->outputs, n->n_outputs);
  assay_str_append(s, " = ");
  if (*n->domain) {
    put_name(s, n->domain);
    assay_str_append(s, ".");
  }
  put_name(s, n->op_type);
  if (*n->overload) {
    assay_str_append(s, ":");
    put_name(s, n->overload);
  }
  for (size_t i = 0; i < n->n_attrs; i++) {
    assay_str_append(s, i ? ", " : "<");
    ASSAY_TRY(put_attr(s, &n->attrs[i]));
  }
  assay_str_append(s, n->n_attrs ? ">(" : "(");
  put_values(s, n->inputs, n->n_inputs);
  assay_str_append(s, ")");
  put_output_types(s, n);
  assay_str_append(s, "\n");
  for (size_t i = 0; i < n->n_attrs; i++) {
    const assay_attr_t* a = &n->attrs[i];
    if (a->ref && *a->ref) continue;
    if (a->type == ASSAY_ATTR_GRAPH && a->u.g) ASSAY_TRY(put_graph(s, a->u.g, depth + 1));
    for (size_t j = 0; a->type == ASSAY_ATTR_GRAPHS && j < a->n; j++)
      if (a->u.graphs[j]) ASSAY_TRY(put_graph(s, a->u.graphs[j], depth + 1));
  }
  return NULL;
}

static void put_typed(assay_str_t* s, const char* what, const assay_value_t* v, int depth) {
  put_indent(s, depth);
  assay_str_append(s, what);
  put_name(s, v->name);
  assay_str_append(s, ": ");
  put_type(s, v->type ? v->type : v->declared);
}

static assay_status_t put_graph(assay_str_t* s, const assay_graph_t* g, int depth) {
  put_indent(s, depth);
  put_graph_name(s, g);
  assay_str_append(s, "\n");
  depth++;
  for (size_t i = 0; i < g->n_inputs; i++) {
    put_typed(s, "input ", g->inputs[i], depth);
    assay_str_append(s, "\n");
  }
  for (size_t i = 0; i < g->n_initializers; i++) {
    const assay_value_t* v = g->initializers[i];
    put_indent(s, depth);
    assay_str_append(s, "initializer ");
    put_name(s, v->name);
    assay_str_append(s, ": ");
    ASSAY_TRY(put_tensor(s, v->constant));
    if (v->external_location) {
      assay_str_append(s, " in ");
      put_string(s, (assay_string_t){v->external_location, strlen(v->external_location)});
    }
    assay_str_append(s, "\n");
  }
  for (size_t i = 0; i < g->n_nodes; i++) ASSAY_TRY(put_node(s, g->nodes[i], depth));
  for (size_t i = 0; i < g->n_outputs; i++) {
    put_typed(s, "output ", g->outputs[i], depth);
    assay_str_append(s, "\n");
  }
  return NULL;
}

// ---- functions and models ---------------------------------------------------------------------

static void put_opsets(assay_str_t* s, const assay_opset_t* opsets, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const char* domain = ir_domain(opsets[i].domain);
    assay_str_append(s, i ? ", " : " opset ");
    put_name(s, *domain ? domain : "ai.onnx");
    assay_str_printf(s, " %lld", (long long)opsets[i].version);
  }
}

static void put_names(assay_str_t* s, const char* const* names, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (i) assay_str_append(s, ", ");
    put_name(s, names[i]);
  }
}

static assay_status_t put_function(assay_str_t* s, const assay_function_t* f) {
  assay_str_append(s, "function ");
  if (*f->domain) {
    put_name(s, f->domain);
    assay_str_append(s, ".");
  }
  put_name(s, f->name);
  if (*f->overload) {
    assay_str_append(s, ":");
    put_name(s, f->overload);
  }
  if (f->n_attr_names + f->n_attr_defaults) {
    assay_str_append(s, "<");
    put_names(s, f->attr_names, f->n_attr_names);
    for (size_t i = 0; i < f->n_attr_defaults; i++) {
      if (i + f->n_attr_names) assay_str_append(s, ", ");
      ASSAY_TRY(put_attr(s, &f->attr_defaults[i]));
    }
    assay_str_append(s, ">");
  }
  assay_str_append(s, "(");
  put_names(s, f->inputs, f->n_inputs);
  assay_str_append(s, ") -> ");
  put_names(s, f->outputs, f->n_outputs);
  put_opsets(s, f->opsets, f->n_opsets);
  assay_str_append(s, "\n");
  return f->body ? put_graph(s, f->body, 1) : NULL;
}

assay_status_t assay_model_print(const assay_model_t* model, assay_str_t* out) {
  assay_str_printf(out, "model ir %lld", (long long)model->ir_version);
  put_opsets(out, model->opsets, model->n_opsets);
  assay_str_append(out, "\n");
  if (model->graph) ASSAY_TRY(put_graph(out, model->graph, 0));
  for (size_t i = 0; i < model->n_functions; i++) ASSAY_TRY(put_function(out, model->functions[i]));
  return assay_str_status(out);
}
