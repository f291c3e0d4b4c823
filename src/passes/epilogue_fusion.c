// Conv, ConvTranspose, Gemm and MatMul become one layer with what is done to each element of their
// output: bias, scale, activation.
//
// The region after the contraction grows over pointwise nodes of its shape; that takes in
// activations of one node (Relu, Clip, HardSwish, Gelu ...) and of several (Sigmoid and Mul; Erf or
// Tanh forms) without knowing them by name. Besides the region and constants they may read a few
// other values, such as the other term of a residual sum; not what the contraction itself reads,
// which has its own layout there. A layer ends where one value is all that leaves the region: then
// none of those other values depends on what the layer hides.
#include <string.h>

#include "base/alloc.h"
#include "ops/quant/coded_matrix.h"
#include "passes/pass.h"

enum { MAX_NODES = 16, MAX_OTHERS = 4 };

typedef struct region {
  const assay_uses_t* uses;
  const assay_node_t* anchor;  // the contraction
  assay_node_t* nodes[MAX_NODES];
  size_t n;
  const assay_value_t* others[MAX_OTHERS];  // values from elsewhere that its nodes read
  size_t n_others;
} region_t;

static bool contains(const region_t* r, const assay_node_t* n) {
  for (size_t i = 0; i < r->n; i++)
    if (r->nodes[i] == n) return true;
  return false;
}

static bool is_anchor(const assay_node_t* n) {
  static const char* const names[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
  assay_coded_matrix_t coded;
  if (!n->op || n->n_outputs != 1 || !n->outputs[0]) return false;
  for (size_t i = 0; !*n->domain && i < sizeof names / sizeof *names; i++)
    if (strcmp(n->op_type, names[i]) == 0) return true;
  return assay_coded_is_nbits(n, &coded);
}

// A node whose only output a region can have for itself, through which its second operand comes.
static assay_node_t* maker(const assay_pass_context_t* c, const assay_uses_t* uses,
                           const assay_node_t* of, const assay_value_t* v) {
  assay_node_t* n = v ? v->producer : NULL;
  const bool own = n && n->graph == of->graph && n->op && n->n_outputs == 1 &&
                   uses->n_reads[v->id] == 1 && !v->is_output && !assay_pass_is_grouped(c, n);
  return own ? n : NULL;
}

// Weights that a model stores in 4 or 8 bits stay codes: what dequantizes them is a part of the
// product.
static void take_weights(const assay_pass_context_t* c, assay_node_t* anchor, region_t* r) {
  assay_coded_matrix_t coded;
  assay_node_t* last = anchor->n_inputs < 2 ? NULL : maker(c, r->uses, anchor, anchor->inputs[1]);
  assay_node_t* first = !last || !last->n_inputs ? NULL : maker(c, r->uses, last, last->inputs[0]);
  if (last && assay_coded_is_dequantized(last, NULL, anchor, &coded)) {
    r->nodes[r->n++] = last;
  } else if (first && assay_coded_is_dequantized(first, last, anchor, &coded)) {
    r->nodes[r->n++] = first;
    r->nodes[r->n++] = last;
  }
}

static size_t reads_inside(const region_t* r, const assay_value_t* v) {
  size_t n = 0;
  for (size_t i = 0; i < r->n; i++)
    for (size_t k = 0; k < r->nodes[i]->n_inputs; k++) n += r->nodes[i]->inputs[k] == v;
  return n;
}

// Whether only the last node's output is read outside.
static bool is_closed(const region_t* r) {
  for (size_t i = 0; i + 1 < r->n; i++) {
    const assay_value_t* v = r->nodes[i]->outputs[0];
    if (reads_inside(r, v) != (size_t)r->uses->n_reads[v->id]) return false;
  }
  return true;
}

static bool reads(const assay_node_t* n, const assay_value_t* v) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] == v) return true;
  return false;
}

// A value from elsewhere: noted, if there is room for it.
static bool take_other(region_t* r, const assay_value_t* v) {
  const assay_valtype_t *t = v->type, *y = r->anchor->outputs[0]->type;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !y || t->elem != y->elem || !t->has_shape ||
      reads(r->anchor, v))
    return false;
  for (size_t i = 0; i < r->n_others; i++)
    if (r->others[i] == v) return true;
  if (r->n_others == MAX_OTHERS) return false;
  r->others[r->n_others++] = v;
  return true;
}

// Whether a node may be one of the region; then the other values that it reads are the region's.
static bool join(const assay_pass_context_t* c, region_t* r, const assay_node_t* n) {
  const size_t others = r->n_others;
  if (n->graph != r->anchor->graph || assay_pass_is_grouped(c, n) || !assay_pass_is_fusible(n) ||
      !assay_same_static_shape(n->outputs[0], r->anchor->outputs[0]))
    return false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (!v || assay_pass_constant(v) || (v->producer && contains(r, v->producer))) continue;
    if (take_other(r, v)) continue;
    r->n_others = others;
    return false;
  }
  return true;
}

// The first node in graph order that reads the region and is not in it; NULL if none.
static assay_node_t* next_reader(const region_t* r) {
  assay_node_t* next = NULL;
  for (size_t i = 0; i < r->n; i++) {
    int id = r->nodes[i]->outputs[0]->id;
    for (int k = r->uses->first[id]; k < r->uses->first[id + 1]; k++) {
      assay_node_t* n = r->uses->readers[k];
      if (n->graph != r->anchor->graph || contains(r, n)) continue;
      if (!next || r->uses->position[n->id] < r->uses->position[next->id]) next = n;
    }
  }
  return next;
}

static assay_status_t fuse(assay_pass_context_t* c, const assay_uses_t* uses,
                           assay_node_t* anchor) {
  region_t r = {.uses = uses, .anchor = anchor};
  take_weights(c, anchor, &r);
  r.nodes[r.n++] = anchor;
  size_t closed = r.n;
  while (r.n < MAX_NODES) {
    assay_node_t* n = next_reader(&r);
    if (!n || !join(c, &r, n)) break;
    r.nodes[r.n++] = n;
    if (is_closed(&r)) closed = r.n;
  }
  if (closed < 2) return NULL;
  return assay_pass_group(c, r.nodes, closed,
                          "a contraction and what is done to each of its elements");
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_graph_t* g = c->model->graph;
  assay_uses_t uses = {0};
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    if (is_anchor(g->nodes[i]) && !assay_pass_is_grouped(c, g->nodes[i]))
      st = fuse(c, &uses, g->nodes[i]);
  assay_uses_deinit(&uses);
  return st;
}

const assay_pass_t assay_pass_epilogue_fusion = {
    .name = "epilogue_fusion",
    .summary = "convolutions and matrix products take in bias, activation and residual sum",
    .run = run,
};
