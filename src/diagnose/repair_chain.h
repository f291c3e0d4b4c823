// Chains: new nodes that a repair puts after a node's output, or before one of its inputs.
#ifndef ASSAY_DIAGNOSE_REPAIR_CHAIN_H_
#define ASSAY_DIAGNOSE_REPAIR_CHAIN_H_

#include "diagnose/repair.h"
#include "eval/evaluator.h"

// What the chain makes of `start`: retained. in[n_in]: of the node. Errors of evaluation mean that
// the chain does not fit.
assay_status_t assay_chain_evaluate(assay_evaluator_t* m, const assay_node_t* node,
                                    const assay_repair_edit_t* edit, size_t n_in,
                                    assay_tensor_t* const* in, assay_tensor_t* start,
                                    assay_tensor_t** out) ASSAY_MUST_USE;

// Puts the chain's nodes into the graph of a model as it was read. Values are found by their names.
assay_status_t assay_chain_apply(assay_graph_t* g, assay_node_t* n,
                                 const assay_repair_edit_t* edit) ASSAY_MUST_USE;

// Whether an operator takes inputs of these types: evaluation relies on it. NULL: left out.
bool assay_chain_takes(const assay_schema_t* schema, size_t n_in, assay_tensor_t* const* in);

// Whether an edit is a chain after the node, which stays as it is.
static inline bool assay_chain_follows(const assay_repair_edit_t* edit) {
  return edit->kind == ASSAY_EDIT_CHAIN && !edit->at_input;
}

#endif  // ASSAY_DIAGNOSE_REPAIR_CHAIN_H_
