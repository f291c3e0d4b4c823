// The limits of an operator case (op_case.h), for tests of bound functions.
#ifndef ASSAY_TESTS_OPS_BOUND_CASE_H_
#define ASSAY_TESTS_OPS_BOUND_CASE_H_

#include "ops/bound.h"
#include "ops/op_case.h"

static inline assay_status_t bound_case_evaluate(assay_bound_t* b, bool coarse,
                                                 assay_tensor_t* const* in, assay_tensor_t** out) {
  (void)coarse;
  return assay_evaluator_node(b->driver, b->node, b->n_in, in, b->n_out, out);
}

// Limits of output 0 by the row's bound function for an engine that rounds so; the node is
// evaluated in truth. in_error: of the inputs; NULL: none. Gives the choices that these leave open.
static inline int64_t bound_case_limits(const op_case_t* row, const assay_rounding_t* rounding,
                                        const assay_limits_t* in_error, bool flips,
                                        assay_limits_t* out_limits) {
  assay_tensor_t *in[OP_CASE_VALUES] = {NULL}, *out[OP_CASE_VALUES] = {NULL};
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  assay_limits_t limits[OP_CASE_VALUES] = {{NULL, NULL}};
  const size_t n = op_case_count(row->in);
  for (size_t i = 0; i < n; i++)
    if (strcmp(row->in[i], "-") != 0) in[i] = op_case_tensor(row->in[i]);
  assay_model_t* model = op_case_model(row, OP_CASE_STATIC, in, values);
  op_case_ok(assay_infer_model(model));
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH};
  assay_evaluator_t* evaluator = NULL;
  op_case_ok(assay_evaluator_create(model, &config, &evaluator));
  const assay_node_t* node = model->graph->nodes[0];
  op_case_ok(assay_evaluator_node(evaluator, node, n, in, node->n_outputs, out));
  assay_bound_t bound = {.node = node,
                         .rounding = rounding,
                         .n_in = n,
                         .n_out = node->n_outputs,
                         .in = in,
                         .in_error = in_error,
                         .out = out,
                         .out_error = limits,
                         .flips = flips,
                         .evaluate = bound_case_evaluate,
                         .driver = evaluator};
  op_case_ok(assay_bound_node(&bound));
  *out_limits = limits[0];
  for (size_t i = 1; i < node->n_outputs; i++) assay_limits_deinit(&limits[i]);
  for (size_t i = 0; i < node->n_outputs; i++) assay_tensor_release(out[i]);
  for (size_t i = 0; i < n; i++) assay_tensor_release(in[i]);
  assay_evaluator_destroy(evaluator);
  assay_model_release(model);
  return bound.open;
}

#endif  // ASSAY_TESTS_OPS_BOUND_CASE_H_
