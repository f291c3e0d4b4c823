// The layers of an engine that is not ours, told from the values that it hands out.
//
// A layer ends in a node of which the record holds an output. It takes in, going back from there,
// every node that makes a value which is read in the layer and is not in the recorded: the engine
// may have fused them, or just not told. A value that several layers need is computed in each of
// them, so that every layer is judged on values that the engine has shown, and on nothing else.
// Nodes that no held value needs are in no layer.
#ifndef ASSAY_PLAN_CONE_H_
#define ASSAY_PLAN_CONE_H_

#include "ir/ir.h"

typedef struct assay_cone {
  const assay_node_t** nodes;  // in the graph's order, the one that it ends in last
  size_t n_nodes;
} assay_cone_t;

// The layers in the order of the nodes that they end in.
//   holds  by value id
// Errors: INVALID_ARGUMENT a graph output that a node makes, a tensor, is not held.
assay_status_t assay_cones_create(const assay_model_t* model, const bool* holds,
                                  assay_arena_t* arena, assay_cone_t** out,
                                  size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_PLAN_CONE_H_
