// One node of a model by itself: checked, inferred and run on tensors that its inputs were found to
// have. So a fault is put to the node that has it, and the nodes beside it can be looked at.
#ifndef ASSAY_EDIT_ONE_NODE_H_
#define ASSAY_EDIT_ONE_NODE_H_

#include "ir/ir.h"

typedef struct assay_one_node assay_one_node_t;

// model: as it was read, not prepared; borrowed, and not changed.
assay_status_t assay_one_node_create(const assay_model_t* model,
                                     assay_one_node_t** out) ASSAY_MUST_USE;
void assay_one_node_destroy(assay_one_node_t* o);  // NULL is allowed

// The values of the main graph that a node of it depends on, bodies and all, in any order;
// constants are not among them. Valid until the next call.
assay_status_t assay_one_node_inputs(assay_one_node_t* o, const assay_node_t* n,
                                     assay_value_t* const** out, size_t* out_n) ASSAY_MUST_USE;

// A model of that node alone, prepared: it reads what assay_one_node_inputs says, with these types
// (of any model; NULL entries: as the file declares).
// Errors: what is wrong with the node: CORRUPT, INVALID_ARGUMENT, UNSUPPORTED.
assay_status_t assay_one_node_prepare(assay_one_node_t* o, const assay_node_t* n,
                                      const assay_valtype_t* const* types,
                                      assay_model_t** out) ASSAY_MUST_USE;
// Checks the node against the standard only, whatever the types of its inputs.
assay_status_t assay_one_node_check(assay_one_node_t* o, const assay_node_t* n) ASSAY_MUST_USE;
// What such an error says, without the node's name in front.
const char* assay_one_node_reason(assay_status_t status);
// Runs such a model in the types that it declares: in[] as above, out[] one a graph output of it,
// retained.
assay_status_t assay_one_node_run(const assay_model_t* one, assay_tensor_t* const* in,
                                  assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_ONE_NODE_H_
