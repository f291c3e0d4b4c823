// Means over all places of quantized images become layers on integers (quantized_mean.h).
//
// A DequantizeLinear that others read, too, as gates do, is repeated: inside the layer it costs
// nothing.
#include "passes/edit.h"
#include "passes/int8/quantized_mean.h"
#include "passes/int8/quantizers.h"

enum { N_NODES = ASSAY_QUANTIZED_MEAN_NODES };

static bool is_mean(const assay_node_t* n) {
  const int rank = n->n_inputs && n->inputs[0] ? assay_rank_of(n->inputs[0]) : -1;
  bool axes[ASSAY_MAX_RANK];
  if (n->n_outputs != 1 || rank < 3) return false;
  if (assay_is(n, "GlobalAveragePool")) return true;
  if (!assay_is(n, "ReduceMean") || !assay_reduced_axes(n, rank, axes)) return false;
  for (int i = 0; i < rank; i++)
    if (axes[i] != (i >= 2)) return false;
  return true;
}

bool assay_quantized_mean_read(const assay_node_t* const* nodes, size_t n,
                               assay_quantized_mean_t* out) {
  if (n != N_NODES || !assay_int8_is_dequantizer(nodes[0]) || !is_mean(nodes[1]) ||
      !assay_int8_is_quantizer(nodes[2]) || nodes[1]->inputs[0] != nodes[0]->outputs[0] ||
      nodes[2]->inputs[0] != nodes[1]->outputs[0])
    return false;
  *out = (assay_quantized_mean_t){.x = nodes[0]->inputs[0],
                                  .y = nodes[2]->outputs[0],
                                  .x_type = assay_elem_of(nodes[0]->inputs[0]),
                                  .type = assay_elem_of(nodes[2]->outputs[0])};
  return !assay_pass_constant(out->x) &&
         assay_quantizer_numbers(nodes[0], &out->x_scale, &out->x_zero) &&
         assay_quantizer_numbers(nodes[2], &out->scale, &out->zero);
}

// ---- of the graph -------------------------------------------------------------------------------

static assay_status_t group(assay_pass_context_t* c, assay_uses_t* uses, assay_node_t* last) {
  assay_node_t* mean = last->n_inputs && last->inputs[0] ? last->inputs[0]->producer : NULL;
  assay_node_t* first = mean && is_mean(mean) ? mean->inputs[0]->producer : NULL;
  assay_quantized_mean_t read;
  if (!first || !assay_pass_may_group(c, last) || !assay_pass_may_group(c, mean) ||
      !assay_pass_may_group(c, first) || !assay_uses_once(uses, mean->outputs[0]) ||
      !assay_quantized_mean_read((const assay_node_t* const[]){first, mean, last}, N_NODES, &read))
    return NULL;
  if (!assay_uses_once(uses, first->outputs[0]))
    ASSAY_TRY(
        assay_node_repeat_for(c, uses, first, (const assay_node_t* const[]){mean}, 1, &first));
  return assay_pass_group(c, (assay_node_t* const[]){first, mean, last}, N_NODES,
                          "a mean of integers");
}

static assay_status_t run(assay_pass_context_t* c) {
  const assay_graph_t* g = c->model->graph;
  assay_uses_t uses = {0};
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  assay_status_t st = NULL;
  for (size_t i = g->n_nodes; !st && i-- > 0;) {
    const size_t n = g->n_nodes;
    st = group(c, &uses, g->nodes[i]);
    i += g->n_nodes - n;
  }
  assay_uses_deinit(&uses);
  return st;
}

const assay_pass_t assay_pass_quantized_means = {
    .name = "quantized_means",
    .summary = "means over places of quantized images become layers on integers",
    .run = run,
};
