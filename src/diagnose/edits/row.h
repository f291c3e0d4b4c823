// What a kind of edit is: how it is tried on one node, and how it is made in a model.
#ifndef ASSAY_DIAGNOSE_EDITS_ROW_H_
#define ASSAY_DIAGNOSE_EDITS_ROW_H_

#include "diagnose/repair.h"
#include "eval/evaluator.h"

// A node that is tried: a copy, whose attributes and inputs may be changed.
typedef struct assay_tried_node {
  assay_node_t node;
  assay_attr_t* attrs;  // node.n_attrs, with room for one more an edit
  assay_tensor_t** in;  // retained; n_in
  size_t n_in;
  assay_evaluator_t* m;     // truth, with the slots of the whole model
  assay_tensor_t* instead;  // retained: what output 0 is, the node being left out; NULL: it runs
} assay_tried_node_t;

// A NULL function does nothing.
typedef struct assay_edit_row {
  // Changes the node before it runs, and what it has given, in out[].
  assay_status_t (*before)(assay_tried_node_t* t, const assay_repair_edit_t* e);
  assay_status_t (*after)(assay_tried_node_t* t, const assay_repair_edit_t* e,
                          assay_tensor_t** out);
  // Makes the edit in a model that is going to be written. `was`: the node in the model that was
  // checked, whose values have types.
  assay_status_t (*put)(assay_graph_t* g, assay_node_t* n, const assay_node_t* was,
                        const assay_repair_edit_t* e);
  // Sets a fitted number, and what r->text says of it. NULL: it has none.
  assay_status_t (*fit)(assay_repair_t* r, double value);
  bool adds_input;  // `input` may be one that the node does not have
} assay_edit_row_t;

#define ASSAY_EDIT_KIND(NAME, name) extern const assay_edit_row_t assay_edit_row_##name;
#include "diagnose/edits/edit_kinds.inc"
#undef ASSAY_EDIT_KIND

const assay_edit_row_t* assay_edit_row(assay_edit_kind_t kind);

// ---- for rows ----------------------------------------------------------------------------------

size_t assay_repair_position(const assay_graph_t* g, const assay_node_t* n);
// A constant of a name that begins with `hint`.
assay_status_t assay_repair_new_constant(assay_graph_t* g, const char* hint, assay_tensor_t* t,
                                         assay_value_t** out) ASSAY_MUST_USE;

// Room for an input that was left out.
assay_status_t assay_repair_grow_inputs(assay_node_t* n, size_t input) ASSAY_MUST_USE;
// Edit 0's tensor as it was at first times value, which is the fitted parameter then.
assay_status_t assay_repair_scale_tensor(assay_repair_t* r, double value) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_EDITS_ROW_H_
