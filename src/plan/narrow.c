// Constants that a plan file may hold in 16 bits: those that are rounded wherever they are read.
#include "plan/narrow.h"

#include "base/alloc.h"

static assay_type_t type_of(assay_format_t format) {
  if (format == ASSAY_FORMAT_FP16) return ASSAY_TYPE_FLOAT16;
  return format == ASSAY_FORMAT_BF16 ? ASSAY_TYPE_BFLOAT16 : ASSAY_TYPE_UNDEFINED;
}

static bool is_constant(const assay_value_t* v) {
  const assay_tensor_t* t = v ? v->constant : NULL;
  return t && !v->producer && !v->is_input && t->kind == ASSAY_KIND_TENSOR &&
         t->type == ASSAY_TYPE_FLOAT && !v->is_sparse_initializer && !v->is_stripped;
}

// Whether a node passes elements on as they are, and each of them is rounded as it is stored:
// rounding them before is the same.
static bool is_moved(const assay_layers_t* l, const assay_node_t* n) {
  const uint32_t other = ASSAY_OP_SELECTS | ASSAY_OP_CONTROL | ASSAY_OP_RANDOM;
  if (!(n->op->flags & ASSAY_OP_MOVES) || n->op->flags & other) return false;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v) continue;
    const assay_valtype_t* t = v->type;
    if (l->hidden_value[v->id] || !t || t->kind != ASSAY_KIND_TENSOR || t->elem != ASSAY_TYPE_FLOAT)
      return false;
  }
  return true;
}

// Whether a node fetches elements of its input i, as of a table.
static bool is_fetched(const assay_node_t* n, size_t i) {
  const uint32_t fetches = ASSAY_OP_MOVES | ASSAY_OP_PACKED;
  return i == 0 && n->op && (n->op->flags & fetches) == fetches;
}

// The type to which input i of a node is rounded first of all.
static assay_type_t read_as(const assay_layers_t* l, const assay_node_t* n, size_t i) {
  const int at = l->layer_of_node[n->id];
  const assay_layer_t* layer = at < 0 ? NULL : &l->layers[at];
  const uint32_t own = ASSAY_OP_KEEPS_TYPE | ASSAY_OP_QUANTIZES;  // formats of their own
  if (!layer || layer->int8 || !n->op || n->op->flags & own) return ASSAY_TYPE_UNDEFINED;
  const assay_format_t entering = assay_layer_operand(l, layer, n, i, n->inputs[i]->constant);
  if (entering != ASSAY_FORMAT_NONE) return type_of(entering);
  return is_moved(l, n) ? type_of(assay_layer_storage(layer, ASSAY_TYPE_FLOAT))
                        : ASSAY_TYPE_UNDEFINED;
}

typedef struct finder {
  const assay_layers_t* layers;
  assay_narrow_t* found;
  bool* wide;  // by value id: some reader wants float32
} finder_t;

static void note_read(const finder_t* f, const assay_node_t* n, size_t i) {
  const assay_value_t* v = n->inputs[i];
  if (!is_constant(v) || f->wide[v->id]) return;
  assay_narrow_t* found = &f->found[v->id];
  const assay_type_t type = read_as(f->layers, n, i);
  const bool factor = assay_node_multiplies(n, i) || is_fetched(n, i);
  f->wide[v->id] = !type || (found->type && found->type != type);
  found->factor = factor && (!found->type || found->factor);
  found->type = type;
}

assay_status_t assay_narrow_find(const assay_layers_t* l, assay_narrow_t** out) {
  const assay_model_t* m = l->model;
  finder_t f = {.layers = l};
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *f.found, &f.found));
  assay_status_t st = assay_new_array((size_t)m->n_values, sizeof *f.wide, &f.wide);
  if (st) return assay_free(f.found), st;
  for (size_t g = 0; g < m->n_graphs; g++) {
    const assay_graph_t* graph = m->graphs[g];
    for (size_t k = 0; k < graph->n_nodes; k++)
      for (size_t i = 0; i < graph->nodes[k]->n_inputs; i++) note_read(&f, graph->nodes[k], i);
    for (size_t i = 0; i < graph->n_outputs; i++) f.wide[graph->outputs[i]->id] = true;
  }
  for (int i = 0; i < m->n_values; i++)
    if (f.wide[i] || l->recorded) f.found[i] = (assay_narrow_t){0};
  assay_free(f.wide);
  *out = f.found;
  return NULL;
}
