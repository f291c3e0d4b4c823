// Whether two models are the same but for the elements of their constants.
#include "ir/compare.h"

#include <string.h>

#include "formats/format.h"

typedef struct comparer {
  const assay_compare_t* options;
  assay_str_t* out;
} comparer_t;

static bool is_reported(const comparer_t* c) { return c->out->len > 0; }

static assay_status_t compare_graphs(const comparer_t* c, const assay_graph_t* a,
                                     const assay_graph_t* b);

// ---- tensors ------------------------------------------------------------------------------------

static bool same_strings(const assay_string_t* a, const assay_string_t* b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (a[i].len != b[i].len || (a[i].len && memcmp(a[i].text, b[i].text, a[i].len) != 0))
      return false;
  return true;
}

static bool same_form(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != b->kind || a->type != b->type || a->n_items != b->n_items) return false;
  if (a->kind != ASSAY_KIND_TENSOR) return true;
  return a->rank == b->rank &&
         (!a->rank || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

assay_status_t assay_tensor_same(assay_tensor_t* a, assay_tensor_t* b, bool* out) {
  assay_tensor_t *x = NULL, *y = NULL;
  int64_t bytes = 0;
  *out = a == b;
  if (*out || !same_form(a, b)) return NULL;
  if (a->kind != ASSAY_KIND_TENSOR) {
    *out = true;
    for (int64_t i = 0; *out && i < a->n_items; i++)
      ASSAY_TRY(assay_tensor_same(a->items[i], b->items[i], out));
    return NULL;
  }
  if (a->store == ASSAY_STORE_STR) {
    *out = b->store == ASSAY_STORE_STR &&
           same_strings(assay_strings(a), assay_strings(b), (size_t)a->size);
    return NULL;
  }
  assay_status_t st = assay_tensor_pack(a, &x);
  if (!st) st = assay_tensor_pack(b, &y);
  if (!st && assay_type_packed_bytes(x->type, x->size, &bytes))
    *out = x->data == y->data || !bytes || memcmp(x->data, y->data, (size_t)bytes) == 0;
  assay_tensor_release(x);
  assay_tensor_release(y);
  return st;
}

// ---- attributes ---------------------------------------------------------------------------------

static assay_status_t same_tensors(assay_tensor_t* const* a, assay_tensor_t* const* b, size_t n,
                                   bool* out) {
  *out = true;
  for (size_t i = 0; *out && i < n; i++) ASSAY_TRY(assay_tensor_same(a[i], b[i], out));
  return NULL;
}

static bool same_types(const assay_valtype_t* const* a, const assay_valtype_t* const* b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(ASSAY_VALTYPE_TEXT(a[i]), ASSAY_VALTYPE_TEXT(b[i])) != 0) return false;
  return true;
}

static assay_status_t same_attr(const assay_attr_t* a, const assay_attr_t* b, bool* out) {
  *out = false;
  if (strcmp(a->name, b->name) != 0 || a->type != b->type || a->n != b->n ||
      strcmp(a->ref, b->ref) != 0)
    return NULL;
  *out = true;
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      *out = memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
      break;
    case ASSAY_ATTR_INT:
      *out = a->u.i == b->u.i;
      break;
    case ASSAY_ATTR_STRING:
      *out = same_strings(&a->u.s, &b->u.s, 1);
      break;
    case ASSAY_ATTR_FLOATS:
      *out = !a->n || memcmp(a->u.floats, b->u.floats, a->n * sizeof *a->u.floats) == 0;
      break;
    case ASSAY_ATTR_INTS:
      *out = !a->n || memcmp(a->u.ints, b->u.ints, a->n * sizeof *a->u.ints) == 0;
      break;
    case ASSAY_ATTR_STRINGS:
      *out = same_strings(a->u.strings, b->u.strings, a->n);
      break;
    case ASSAY_ATTR_TENSOR:
    case ASSAY_ATTR_SPARSE_TENSOR:
      return same_tensors(&a->u.t, &b->u.t, 1, out);
    case ASSAY_ATTR_TENSORS:
    case ASSAY_ATTR_SPARSE_TENSORS:
      return same_tensors(a->u.tensors, b->u.tensors, a->n, out);
    case ASSAY_ATTR_TYPE_PROTO:
      *out = same_types(&a->u.type, &b->u.type, 1);
      break;
    case ASSAY_ATTR_TYPE_PROTOS:
      *out = same_types(a->u.types, b->u.types, a->n);
      break;
    case ASSAY_ATTR_UNDEFINED:
    case ASSAY_ATTR_GRAPH:  // compared by themselves
    case ASSAY_ATTR_GRAPHS:
      break;
  }
  return NULL;
}

// ---- nodes --------------------------------------------------------------------------------------

static void report(const comparer_t* c, const assay_node_t* n, const char* what) {
  assay_str_printf(c->out, "node '%s' (%s): %s", n->label, n->op_type, what);
}

static assay_status_t compare_attrs(const comparer_t* c, const assay_node_t* a,
                                    const assay_node_t* b) {
  // What a Constant holds is one of the model's constants.
  if (a->n_outputs && a->outputs[0] && a->outputs[0]->constant &&
      strcmp(a->op_type, "Constant") == 0)
    return NULL;
  if (a->n_attrs != b->n_attrs) return report(c, a, "it has other attributes"), NULL;
  for (size_t i = 0; !is_reported(c) && i < a->n_attrs; i++) {
    const assay_attr_t *x = &a->attrs[i], *y = &b->attrs[i];
    bool same;
    ASSAY_TRY(same_attr(x, y, &same));
    if (!same) {
      assay_str_printf(c->out, "node '%s' (%s): attribute '%s' is another one", a->label,
                       a->op_type, x->name);
      return NULL;
    }
    if (x->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(compare_graphs(c, x->u.g, y->u.g));
    for (size_t k = 0; x->type == ASSAY_ATTR_GRAPHS && k < x->n; k++)
      ASSAY_TRY(compare_graphs(c, x->u.graphs[k], y->u.graphs[k]));
  }
  return NULL;
}

static assay_status_t compare_values(const comparer_t* c, assay_value_t* a,
                                     const assay_value_t* b) {
  if (!a || !b) {
    if (a || b)
      assay_str_printf(c->out, "value '%s' is %s", a ? a->name : b->name,
                       a ? "left out" : "one more");
    return NULL;
  }
  if (strcmp(a->name, b->name) != 0) {
    assay_str_printf(c->out, "there is a value '%s' in the place of '%s'", b->name, a->name);
  } else if (!a->constant != !b->constant) {
    assay_str_printf(c->out, "value '%s' is %s constant", a->name, a->constant ? "no longer" : "a");
  } else if (a->constant && !same_form(a->constant, b->constant)) {
    assay_str_printf(c->out, "'%s' is %s%s, and was %s%s", a->name,
                     assay_type_name(b->constant->type), ASSAY_DIMS_TEXT(b->constant),
                     assay_type_name(a->constant->type), ASSAY_DIMS_TEXT(a->constant));
  } else if (c->options->types &&
             strcmp(ASSAY_VALTYPE_TEXT(a->type), ASSAY_VALTYPE_TEXT(b->type)) != 0) {
    assay_str_printf(c->out, "value '%s' becomes %s, and was %s", a->name,
                     ASSAY_VALTYPE_TEXT(b->type), ASSAY_VALTYPE_TEXT(a->type));
  }
  return NULL;
}

static assay_status_t give_constant(const comparer_t* c, assay_value_t* a, const assay_value_t* b) {
  if (is_reported(c) || !a || !a->constant || !c->options->constant) return NULL;
  return c->options->constant(c->options->user, a, b);
}

static assay_status_t compare_nodes(const comparer_t* c, const assay_node_t* a,
                                    const assay_node_t* b) {
  // A schema is one version of an operator.
  if (strcmp(a->op_type, b->op_type) != 0 || strcmp(a->domain, b->domain) != 0 ||
      a->schema != b->schema) {
    assay_str_printf(c->out, "node '%s' (%s) is %s%s", a->label, a->op_type,
                     strcmp(a->op_type, b->op_type) == 0 ? "of another version of " : "",
                     b->op_type);
    return NULL;
  }
  if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs)
    return report(c, a, "it has other inputs or outputs"), NULL;
  for (size_t i = 0; !is_reported(c) && i < a->n_inputs; i++)
    ASSAY_TRY(compare_values(c, a->inputs[i], b->inputs[i]));
  for (size_t i = 0; !is_reported(c) && i < a->n_outputs; i++) {
    ASSAY_TRY(compare_values(c, a->outputs[i], b->outputs[i]));
    ASSAY_TRY(give_constant(c, a->outputs[i], b->outputs[i]));
  }
  return is_reported(c) ? NULL : compare_attrs(c, a, b);
}

// ---- graphs -------------------------------------------------------------------------------------

static assay_status_t compare_initializers(const comparer_t* c, const assay_graph_t* a,
                                           const assay_graph_t* b) {
  for (size_t i = 0; !is_reported(c) && i < a->n_initializers; i++) {
    assay_value_t* v = a->initializers[i];
    const assay_value_t* w = assay_graph_find(b, v->name);
    if (!w || !w->constant || w->producer)
      assay_str_printf(c->out, "there is no weight '%s'", v->name);
    else
      ASSAY_TRY(compare_values(c, v, w));
    ASSAY_TRY(give_constant(c, v, w));
  }
  for (size_t i = 0; !is_reported(c) && i < b->n_initializers; i++) {
    const assay_value_t* v = assay_graph_find(a, b->initializers[i]->name);
    if (!v || !v->constant)
      assay_str_printf(c->out, "there is one more weight, '%s'", b->initializers[i]->name);
  }
  return NULL;
}

static assay_status_t compare_ends(const comparer_t* c, assay_value_t* const* a, size_t n,
                                   assay_value_t* const* b, size_t m, const char* what) {
  if (n != m) {
    assay_str_printf(c->out, "there are %zu %s, and were %zu", m, what, n);
    return NULL;
  }
  for (size_t i = 0; !is_reported(c) && i < n; i++) ASSAY_TRY(compare_values(c, a[i], b[i]));
  return NULL;
}

static assay_status_t compare_graphs(const comparer_t* c, const assay_graph_t* a,
                                     const assay_graph_t* b) {
  ASSAY_TRY(compare_ends(c, a->inputs, a->n_inputs, b->inputs, b->n_inputs, "inputs"));
  if (!is_reported(c)) ASSAY_TRY(compare_initializers(c, a, b));
  if (!is_reported(c) && a->n_nodes != b->n_nodes)
    assay_str_printf(c->out, "there are %zu nodes, and were %zu", b->n_nodes, a->n_nodes);
  for (size_t i = 0; !is_reported(c) && i < a->n_nodes; i++)
    ASSAY_TRY(compare_nodes(c, a->nodes[i], b->nodes[i]));
  if (is_reported(c)) return NULL;
  return compare_ends(c, a->outputs, a->n_outputs, b->outputs, b->n_outputs, "outputs");
}

assay_status_t assay_model_compare(const assay_model_t* a, const assay_model_t* b,
                                   const assay_compare_t* options, assay_str_t* out_difference) {
  const comparer_t c = {options, out_difference};
  ASSAY_TRY(compare_graphs(&c, a->graph, b->graph));
  return assay_str_status(out_difference);
}
