// What the operators with bodies share: control.c and control_scan.c.
#ifndef ASSAY_OPS_DATA_CONTROL_H_
#define ASSAY_OPS_DATA_CONTROL_H_

#include "ops/op.h"

// A body and how the node's inputs and outputs map to its own.
typedef struct assay_body {
  assay_graph_t* graph;
  size_t n_inputs;   // of the body, as the node's inputs say
  size_t first_in;   // body input of state variable 0
  size_t first_out;  // body output of state variable 0
  size_t n_states;
  size_t n_scans;  // outputs of the body after the states: collected over the iterations
} assay_body_t;

// Checks that the body has n_inputs inputs, and outputs for the states and for every output that
// the node wants; sets n_scans.
assay_status_t assay_body_check(const assay_node_t* node, assay_body_t* body) ASSAY_MUST_USE;
// The numbers of inputs and outputs of the graphs of an If, Loop, Scan or SequenceMap against those
// of the node and of each other; nodes of other operators are fine, and so are graphs that are a
// function's attribute, which is known where the function is called. The schema must be known.
assay_status_t assay_control_check(const assay_node_t* node) ASSAY_MUST_USE;
// The part of it for Scan.
assay_status_t assay_scan_check(const assay_node_t* node) ASSAY_MUST_USE;

// Infers the body again and again, with the given types of its inputs, until the types of the state
// variables cover what comes in at first and what comes round. types[] is changed accordingly.
assay_status_t assay_body_settle(assay_infer_t* c, const assay_body_t* body,
                                 const assay_valtype_t** types) ASSAY_MUST_USE;

// The type of the node's output for state i once the body has settled.
const assay_valtype_t* assay_body_state_type(const assay_body_t* body,
                                             const assay_valtype_t* const* types, size_t i);
// Brings a final state to that kind: a body may take optional(T) and give T.
assay_status_t assay_body_final_state(assay_eval_t* c, size_t i, assay_tensor_t* t) ASSAY_MUST_USE;

// The shape of what the body would have made for a scan output, where no iteration did: what
// inference knows of the body's output, names taken from the sizes of the node's inputs; unknown
// dimensions are 0.
int assay_body_empty_shape(const assay_eval_t* c, const assay_value_t* output, int64_t* dims);

// Copies `n` elements between canonical tensors of one store; strings are duplicated.
assay_status_t assay_copy_elems(const assay_tensor_t* from, int64_t from_at, assay_tensor_t* to,
                                int64_t to_at, int64_t n) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_DATA_CONTROL_H_
