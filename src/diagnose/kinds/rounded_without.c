// A model without the quantizers that its nodes spell out.
#include "diagnose/kinds/rounded_without.h"

#include <string.h>

#include "base/alloc.h"

static bool scales(const assay_node_t* n) {
  return !*n->domain && (strcmp(n->op_type, "Mul") == 0 || strcmp(n->op_type, "Div") == 0);
}

// The copy's values by id: those of the top graph, and of graphs within.
static assay_status_t list_values(const assay_model_t* copy, assay_value_t*** out) {
  ASSAY_TRY(assay_new_array((size_t)copy->n_values + 1, sizeof **out, out));
  for (size_t g = 0; g < copy->n_graphs; g++) {
    const assay_graph_t* graph = copy->graphs[g];
    for (size_t i = 0; i < graph->n_inputs; i++) (*out)[graph->inputs[i]->id] = graph->inputs[i];
    for (size_t i = 0; i < graph->n_outputs; i++) (*out)[graph->outputs[i]->id] = graph->outputs[i];
    for (size_t i = 0; i < graph->n_nodes; i++) {
      const assay_node_t* n = graph->nodes[i];
      for (size_t k = 0; k < n->n_outputs; k++)
        if (n->outputs[k]) (*out)[n->outputs[k]->id] = n->outputs[k];
    }
  }
  return NULL;
}

// What scales a value in steps reads what was to be rounded.
static void read_before(assay_model_t* copy, const assay_rounded_weights_t* rounded,
                        assay_value_t* const* by_id) {
  for (size_t g = 0; g < copy->n_graphs; g++)
    for (size_t i = 0; i < copy->graphs[g]->n_nodes; i++) {
      assay_node_t* n = copy->graphs[g]->nodes[i];
      for (size_t k = 0; scales(n) && k < n->n_inputs; k++) {
        const assay_value_t* before = n->inputs[k] ? rounded->before[n->inputs[k]->id] : NULL;
        if (before && by_id[before->id]) n->inputs[k] = by_id[before->id];
      }
    }
}

static assay_status_t compare(const assay_model_t* copy, const assay_samples_t* inputs,
                              const assay_golden_t* golden, const assay_export_options_t* options,
                              assay_value_t* const* by_id, bool* out) {
  assay_golden_t of_copy = *golden;
  assay_export_options_t o = *options;
  assay_export_t found = {0};
  ASSAY_TRY(assay_new_array(golden->n, sizeof *of_copy.at, &of_copy.at));
  if (golden->n) memcpy(of_copy.at, golden->at, golden->n * sizeof *of_copy.at);
  for (size_t i = 0; i < golden->n; i++)
    if (of_copy.at[i].value) of_copy.at[i].value = by_id[of_copy.at[i].value->id];
  o.no_search = true;
  assay_status_t st = assay_chain_run(copy, inputs, &of_copy, &o, &found);
  *out = !st && !found.n && found.values_compared;
  assay_export_deinit(&found);
  assay_free(of_copy.at);
  return st;
}

assay_status_t assay_rounded_without(const assay_model_t* model, const assay_samples_t* inputs,
                                     const assay_golden_t* golden,
                                     const assay_export_options_t* options,
                                     const assay_rounded_weights_t* rounded, bool* out) {
  assay_model_t* copy = NULL;
  assay_value_t** by_id = NULL;
  *out = false;
  if (!rounded->n_before) return NULL;
  ASSAY_TRY(assay_model_clone(model, &copy));
  assay_status_t st = list_values(copy, &by_id);
  if (!st) {
    read_before(copy, rounded, by_id);
    st = compare(copy, inputs, golden, options, by_id, out);
  }
  assay_free(by_id);
  assay_model_release(copy);
  // What does not run so was no quantizer: shapes changed between.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
