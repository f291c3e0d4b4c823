// Halves of a quantized tensor that are multiplied become one layer (quantized_gate.h).
#include "passes/edit.h"
#include "passes/gate.h"
#include "passes/int8/quantized_gate.h"
#include "passes/int8/quantizers.h"

enum { N_NODES = ASSAY_QUANTIZED_GATE_NODES };

typedef struct gate {
  const assay_node_t *split, *dequantizers[2], *product, *last;
  assay_quantized_gate_t read;
} gate_t;

// One half, which the Split makes as its output number i.
static bool read_half(gate_t* g, const assay_value_t* v, int i) {
  const assay_node_t* n = v ? v->producer : NULL;
  if (!n || !assay_int8_is_dequantizer(n)) return false;
  const assay_value_t* part = n->inputs[0];
  const assay_node_t* split = part->producer;
  if (!split || !assay_is(split, "Split") || split->n_outputs != 2 || (i && split != g->split))
    return false;
  const int half = part == split->outputs[1];
  g->split = split;
  g->dequantizers[half] = n;
  return assay_quantizer_numbers(n, &g->read.scale[half], &g->read.zero[half]);
}

static bool read_split(gate_t* g) {
  assay_quantized_gate_t* r = &g->read;
  r->x = g->split->inputs[0];
  r->x_type = assay_elem_of(r->x);
  return assay_split_is_halves(g->split, &r->rank, &r->axis);
}

// From the last quantizer back.
static bool read_back(gate_t* g, const assay_node_t* last) {
  assay_quantized_gate_t* r = &g->read;
  *g = (gate_t){.last = last};
  if (!assay_int8_is_quantizer(last) || !assay_quantizer_numbers(last, &r->y_scale, &r->y_zero))
    return false;
  const assay_node_t* product = last->inputs[0]->producer;
  if (!product || !assay_is(product, "Mul") || product->n_inputs != 2) return false;
  g->product = product;
  r->y = last->outputs[0];
  r->type = assay_elem_of(r->y);
  return read_half(g, product->inputs[0], 0) && read_half(g, product->inputs[1], 1) &&
         g->dequantizers[0] && g->dequantizers[1] && read_split(g);
}

static bool is_one_of(const assay_node_t* n, const assay_node_t* const* nodes, size_t n_nodes) {
  for (size_t i = 0; i < n_nodes; i++)
    if (nodes[i] == n) return true;
  return false;
}

bool assay_quantized_gate_read(const assay_node_t* const* nodes, size_t n,
                               assay_quantized_gate_t* out) {
  gate_t g;
  if (n != N_NODES || !read_back(&g, nodes[n - 1]) || !is_one_of(g.split, nodes, n) ||
      !is_one_of(g.product, nodes, n) || !is_one_of(g.dequantizers[0], nodes, n) ||
      !is_one_of(g.dequantizers[1], nodes, n))
    return false;
  *out = g.read;
  return true;
}

// ---- of the graph -------------------------------------------------------------------------------

static bool is_apart(const assay_pass_context_t* c, const assay_uses_t* uses, const gate_t* g) {
  bool ok = assay_pass_may_group(c, g->last) && assay_pass_may_group(c, g->product) &&
            assay_pass_may_group(c, g->split) && assay_uses_once(uses, g->product->outputs[0]);
  for (int i = 0; i < 2; i++)
    ok = ok && assay_pass_may_group(c, g->dequantizers[i]) &&
         assay_uses_once(uses, g->split->outputs[i]) &&
         assay_uses_once(uses, g->dequantizers[i]->outputs[0]);
  return ok;
}

static assay_status_t run(assay_pass_context_t* c) {
  const assay_graph_t* graph = c->model->graph;
  assay_uses_t uses = {0};
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < graph->n_nodes; i++) {
    gate_t g;
    if (!read_back(&g, graph->nodes[i]) || !is_apart(c, &uses, &g)) continue;
    const bool turned = uses.position[g.dequantizers[1]->id] < uses.position[g.dequantizers[0]->id];
    const assay_node_t* const nodes[N_NODES] = {g.split, g.dequantizers[turned],
                                                g.dequantizers[!turned], g.product, g.last};
    assay_node_t* members[N_NODES];
    for (int k = 0; k < N_NODES; k++) members[k] = (assay_node_t*)(uintptr_t)nodes[k];
    st = assay_pass_group(c, members, N_NODES, "halves of a quantized tensor, multiplied");
  }
  assay_uses_deinit(&uses);
  return st;
}

const assay_pass_t assay_pass_quantized_gates = {
    .name = "quantized_gates",
    .summary = "halves of a quantized tensor that are multiplied become one layer",
    .run = run,
};
