// What the rules of gradients have in common.
#include "eval/gradients/vjp.h"

bool assay_vjp_wants_from(const assay_vjp_t* c, size_t first) {
  for (size_t i = first; i < c->n_in; i++)
    if (c->in_g[i]) return true;
  return false;
}

assay_status_t assay_vjp_evaluate(const assay_vjp_t* c, const char* op_type, size_t n_attrs,
                                  assay_attr_t* attrs, size_t n_in, assay_tensor_t* const* in,
                                  size_t n_out, assay_tensor_t** out) {
  assay_node_t node = *c->node;
  if (attrs) {
    const int64_t version = assay_model_opset(node.graph->model, "");
    node.op_type = op_type;
    node.op = assay_op_find("", op_type, version);
    node.schema = assay_schema_find("", op_type, version, NULL);
    node.attrs = attrs;
    node.n_attrs = n_attrs;
    node.n_inputs = n_in;
  }
  return assay_evaluator_node(c->evaluator, &node, n_in, in, n_out, out);
}
