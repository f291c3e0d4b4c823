// What passes that group quantizers with other nodes share.
#include "passes/int8/quantizers.h"

bool assay_quantizer_numbers(const assay_node_t* n, float* scale, float* zero) {
  double s = 0, z = 0;
  if (!assay_pass_number(n->inputs[1], &s) ||
      (n->n_inputs > 2 && n->inputs[2] && !assay_pass_number(n->inputs[2], &z)))
    return false;
  *scale = (float)s;
  *zero = (float)z;
  return s > 0 && (double)(float)s == s;
}

assay_status_t assay_node_repeat(assay_pass_context_t* c, const assay_node_t* n, size_t at,
                                 assay_node_t** out) {
  assay_graph_t* g = c->model->graph;
  assay_node_t* copy = NULL;
  assay_value_t* v = NULL;
  ASSAY_TRY(assay_node_create(g, n->domain, n->op_type, n->name, n->n_inputs, 1, 0, &copy));
  ASSAY_TRY(assay_graph_new_value(g, n->outputs[0]->name, &v));
  v->type = n->outputs[0]->type;
  for (size_t i = 0; i < n->n_inputs; i++) copy->inputs[i] = n->inputs[i];
  copy->attrs = n->attrs;
  copy->n_attrs = n->n_attrs;
  assay_node_set_output(copy, 0, v);
  ASSAY_TRY(assay_pass_insert(c, copy, n, at));
  *out = copy;
  return NULL;
}

assay_status_t assay_node_repeat_for(assay_pass_context_t* c, assay_uses_t* uses,
                                     const assay_node_t* n, const assay_node_t* const* readers,
                                     size_t n_readers, assay_node_t** out) {
  const assay_graph_t* g = c->model->graph;
  const assay_value_t* from = n->outputs[0];
  size_t at = 0;
  while (g->nodes[at] != n) at++;
  ASSAY_TRY(assay_node_repeat(c, n, at + 1, out));
  for (size_t i = 0; i < n_readers; i++)
    for (size_t k = 0; k < readers[i]->n_inputs; k++) {
      if (readers[i]->inputs[k] != from) continue;
      readers[i]->inputs[k] = (*out)->outputs[0];
      uses->n_reads[from->id]--;
    }
  return NULL;
}
