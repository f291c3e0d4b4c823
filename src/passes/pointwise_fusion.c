// Pointwise nodes of one shape become one layer, as long as one value is all that leaves it. A
// BatchNormalization with constants only is one of them.
//
// A layer grows from its last node upwards: a node whose readers are all in the layer may join it.
// So may, in the end, a Slice or Split whose parts are read in the layer alone: gates of linear
// units (GLU, SwiGLU, GeGLU) read their halves where they lie. And so may nodes that move whole
// rows of an operand: residual sums read windows (Swin) where they lie.
#include <string.h>

#include "base/alloc.h"
#include "passes/edit.h"
#include "passes/parts.h"
#include "passes/row_moves.h"

enum { MAX_NODES = 16 };

typedef struct chain {
  const assay_uses_t* uses;
  const bool* of_sizes;            // by node id
  assay_node_t* nodes[MAX_NODES];  // the last one of the layer first
  size_t n;
} chain_t;

static bool contains(const chain_t* l, const assay_node_t* n) {
  for (size_t i = 0; i < l->n; i++)
    if (l->nodes[i] == n) return true;
  return false;
}

// In inference a number a channel is taken off, one multiplied and one added.
static bool is_batchnorm(const assay_node_t* n) {
  if (*n->domain || strcmp(n->op_type, "BatchNormalization") != 0 || !n->schema ||
      n->schema->since < 7 || assay_attr_i64(n, "training_mode", 0) ||
      !assay_attr_i64(n, "spatial", 1) || n->n_inputs != 5 || !n->outputs[0])
    return false;
  for (size_t i = 1; i < 5; i++)
    if (!assay_pass_constant(n->inputs[i])) return false;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return false;
  const assay_valtype_t *x = n->inputs[0] ? n->inputs[0]->type : NULL, *y = n->outputs[0]->type;
  return x && y && x->kind == ASSAY_KIND_TENSOR && y->kind == ASSAY_KIND_TENSOR &&
         x->elem == y->elem && assay_type_is_float(y->elem);
}

static bool is_member(const assay_node_t* n) { return assay_pass_is_fusible(n) || is_batchnorm(n); }

static bool is_tensor_of(const assay_value_t* v, assay_type_t t) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem == t;
}

// Sums of integers (MatMulInteger, ConvInteger) as floats: they are rounded where they are read,
// and what scales them reads them so. A layer may begin with it and is none by itself.
static bool is_sums_as_floats(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "Cast") == 0 && n->n_inputs == 1 && n->n_outputs == 1 &&
         is_tensor_of(n->inputs[0], ASSAY_TYPE_INT32) &&
         is_tensor_of(n->outputs[0], ASSAY_TYPE_FLOAT);
}

static bool may_join(const assay_pass_context_t* c, const chain_t* l, const assay_node_t* n) {
  if (!n || n->graph != l->nodes[0]->graph || contains(l, n) || assay_pass_is_grouped(c, n) ||
      !(is_member(n) || is_sums_as_floats(n)) ||
      !assay_same_static_shape(n->outputs[0], l->nodes[0]->outputs[0]))
    return false;
  const assay_value_t* v = n->outputs[0];
  int inside = 0;
  for (size_t i = 0; i < l->n; i++)
    for (size_t k = 0; k < l->nodes[i]->n_inputs; k++) inside += l->nodes[i]->inputs[k] == v;
  return inside == l->uses->n_reads[v->id];
}

// Adds one node that may join; false if there is none.
static bool grow(const assay_pass_context_t* c, chain_t* l) {
  for (size_t i = 0; i < l->n && l->n < MAX_NODES; i++) {
    for (size_t k = 0; k < l->nodes[i]->n_inputs; k++) {
      const assay_value_t* v = l->nodes[i]->inputs[k];
      if (!v || !may_join(c, l, v->producer)) continue;
      l->nodes[l->n++] = v->producer;
      return true;
    }
  }
  return false;
}

// ---- cuts ---------------------------------------------------------------------------------------

static bool reads_all_of(const chain_t* l, const assay_node_t* n) {
  for (size_t o = 0; o < n->n_outputs; o++) {
    const assay_value_t* v = n->outputs[o];
    int inside = 0;
    if (!v) continue;
    if (v->is_output) return false;
    for (size_t i = 0; i < l->n; i++)
      for (size_t k = 0; k < l->nodes[i]->n_inputs; k++) inside += l->nodes[i]->inputs[k] == v;
    if (inside != l->uses->n_reads[v->id]) return false;
  }
  return true;
}

// What is cut enters a layer as it is, what is computed with in the layer's format: one value
// cannot be both.
static bool computes_with(const chain_t* l, const assay_value_t* v) {
  for (size_t i = 0; i < l->n; i++)
    for (size_t k = 0; !assay_takes_parts(l->nodes[i]) && k < l->nodes[i]->n_inputs; k++)
      if (l->nodes[i]->inputs[k] == v) return true;
  return false;
}

// Nodes that only cut what the layer reads.
static void take_cuts(const assay_pass_context_t* c, chain_t* l) {
  for (size_t i = 0; i < l->n && l->n < MAX_NODES; i++)
    for (size_t k = 0; k < l->nodes[i]->n_inputs && l->n < MAX_NODES; k++) {
      const assay_value_t* v = l->nodes[i]->inputs[k];
      assay_node_t* n = v ? v->producer : NULL;
      if (n && n->graph == l->nodes[0]->graph && !contains(l, n) && assay_pass_may_group(c, n) &&
          assay_takes_parts(n) && reads_all_of(l, n) && !computes_with(l, n->inputs[0]))
        l->nodes[l->n++] = n;
    }
}

// ---- moved rows ---------------------------------------------------------------------------------

static bool reads(const chain_t* l, const assay_value_t* v) {
  for (size_t i = 0; i < l->n; i++)
    for (size_t k = 0; k < l->nodes[i]->n_inputs; k++)
      if (l->nodes[i]->inputs[k] == v) return true;
  return false;
}

// Whether the last dimensions of a value make rows that stay side by side where so many elements
// do.
static bool has_rows(const assay_value_t* v, int64_t columns) {
  int64_t n = 1;
  bool any = false;
  for (int d = assay_rank_of(v) - 1; d >= 0 && !any && n < columns; d--) {
    const int64_t size = assay_dim_of(v, d);
    if (size < 1) return false;
    n *= size;
    any = n >= ASSAY_ROW_COLUMNS && columns % n == 0;
  }
  return any;
}

// Operands of the output's shape that are other ones with their rows in other places. What is moved
// enters a layer as it is, as what is cut does.
static void take_moves(const assay_pass_context_t* c, chain_t* l) {
  const assay_value_t* y = l->nodes[0]->outputs[0];
  const size_t n = l->n;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < l->nodes[i]->n_inputs; k++) {
      const assay_value_t* v = l->nodes[i]->inputs[k];
      assay_row_moves_t m;
      if (!v || !v->producer || contains(l, v->producer) || !is_member(l->nodes[i]) ||
          v->producer->graph != l->nodes[0]->graph || !assay_same_static_shape(v, y))
        continue;
      assay_row_moves_above(c, l->uses, l->of_sizes, v, &m);
      if (!m.n || l->n + m.n > MAX_NODES || reads(l, m.source) || !has_rows(v, m.columns)) continue;
      memcpy(l->nodes + l->n, m.nodes, m.n * sizeof *m.nodes);
      l->n += m.n;
    }
}

// ---- of the graph -------------------------------------------------------------------------------

static assay_status_t run(assay_pass_context_t* c) {
  assay_graph_t* g = c->model->graph;
  assay_uses_t uses = {0};
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  bool* of_sizes = NULL;
  assay_status_t st = assay_row_moves_sizes(c, &of_sizes);
  for (size_t i = g->n_nodes; !st && i-- > 0;) {
    assay_node_t* last = g->nodes[i];
    if (assay_pass_is_grouped(c, last) || !is_member(last)) continue;
    chain_t l = {.uses = &uses, .of_sizes = of_sizes, .nodes = {last}, .n = 1};
    while (grow(c, &l)) continue;
    take_cuts(c, &l);
    take_moves(c, &l);
    if (l.n < 2) continue;
    assay_uses_sort(&uses, l.nodes, l.n);
    st = assay_pass_group(c, l.nodes, l.n, "pointwise nodes of one shape");
  }
  assay_uses_deinit(&uses);
  assay_free(of_sizes);
  return st;
}

const assay_pass_t assay_pass_pointwise_fusion = {
    .name = "pointwise_fusion",
    .summary =
        "chains of pointwise nodes become one layer, with the Slices, Splits and moves of rows "
        "before them",
    .run = run,
};
