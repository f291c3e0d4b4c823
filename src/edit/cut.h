// What some values of a model depend on, and the model without the rest.
#ifndef ASSAY_EDIT_CUT_H_
#define ASSAY_EDIT_CUT_H_

#include "ir/ir.h"

typedef struct assay_cut {
  assay_model_t* m;      // borrowed; changed by assay_cut_drop only
  bool* from;            // by value id: what makes these is not looked at
  bool* needed;          // by value id
  bool* kept;            // by node id
  assay_node_t** stack;  // nodes whose inputs have not been looked at
  size_t n_stack, cap_stack;
} assay_cut_t;

assay_status_t assay_cut_init(assay_model_t* m, assay_cut_t* out) ASSAY_MUST_USE;
void assay_cut_deinit(assay_cut_t* c);
// Marks a value of the main graph as needed, with all that it depends on.
assay_status_t assay_cut_need(assay_cut_t* c, const assay_value_t* v) ASSAY_MUST_USE;
// Marks what a node reads, bodies and all, and nothing that this depends on.
assay_status_t assay_cut_need_inputs(assay_cut_t* c, const assay_node_t* n) ASSAY_MUST_USE;
// Takes away nodes, constants, bodies, functions and types that are not needed. Graph inputs and
// outputs are the caller's.
assay_status_t assay_cut_drop(assay_cut_t* c) ASSAY_MUST_USE;

// All of it for the outputs that the model has: what no output depends on goes. Graph inputs stay.
assay_status_t assay_cut_clean(assay_model_t* m) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_CUT_H_
