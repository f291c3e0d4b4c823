// Type and shape inference over a whole model.
#ifndef ASSAY_OPS_INFER_H_
#define ASSAY_OPS_INFER_H_

#include "ops/op.h"

// Infers every value's type (assay_value_t.type) and content, graph by graph, from the declared
// types of inputs and the initializers. Nodes must be resolved (op, schema). Checks on the way that
// each input's type is one that the schema allows, that type variables agree, and that what the
// file declares does not contradict what is inferred. Nodes whose inputs are small constants are
// evaluated, so that computed shapes, scales and axes are known.
// Errors: CORRUPT or INVALID_ARGUMENT naming node, input, found and expected.
assay_status_t assay_infer_model(assay_model_t* model) ASSAY_MUST_USE;

// The same for one node, which need not stand in a graph of the model: sets its outputs' types and
// contents, which lie in the model, from those of its inputs. All its values have ids below
// n_values.
assay_status_t assay_infer_node(assay_model_t* model, size_t n_values,
                                assay_node_t* node) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_INFER_H_
