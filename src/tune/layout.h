// How the layers of a plan hang together: which float values pass between them.
//
// Units are the layers of the top graph, in their order; bodies belong to the node that has them.
// Plans of one model by the same passes have the same units and values, whatever the format of all.
#ifndef ASSAY_TUNE_LAYOUT_H_
#define ASSAY_TUNE_LAYOUT_H_

#include "plan/plan.h"
#include "tune/problem.h"

typedef struct assay_tune_layout {
  size_t n_units, n_outputs;
  assay_tune_problem_t problem;  // its values and links; times and energies are for others to fill
  int* value_ids;                // by value of the problem: its id in the plan's model
  int* value_of_id;              // the way back; -1: none
  size_t n_ids;
  bool* floats;  // by unit: reads or makes float values
} assay_tune_layout_t;

assay_status_t assay_tune_layout_create(const assay_plan_t* plan, size_t n_formats,
                                        assay_tune_layout_t* out) ASSAY_MUST_USE;
void assay_tune_layout_deinit(assay_tune_layout_t* l);
// The unit of a node of the top graph or of a body; ASSAY_TUNE_OUTSIDE: none.
size_t assay_tune_unit_of(const assay_plan_t* plan, const assay_node_t* node);

#endif  // ASSAY_TUNE_LAYOUT_H_
