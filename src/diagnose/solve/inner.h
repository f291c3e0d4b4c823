// Where golden holds inner values: what it tells of one node, whose inputs and output it knows.
#ifndef ASSAY_DIAGNOSE_SOLVE_INNER_H_
#define ASSAY_DIAGNOSE_SOLVE_INNER_H_

#include "diagnose/golden/walk.h"
#include "diagnose/search.h"
#include "diagnose/solve/holdout.h"

// What golden knows of a value, and truth of it.
assay_search_target_t assay_inner_target(const assay_golden_walk_t* w, const assay_value_t* v);

// A repair (taken over) that restores golden, in place of what was found before.
void assay_inner_take(const assay_node_t* node, const assay_repair_t* r, assay_fault_t* found,
                      size_t* n_found);
// Whether a repair of the target's node gives what the target knows.
assay_status_t assay_inner_restores(assay_golden_walk_t* w, const assay_repair_t* r,
                                    const assay_search_target_t* target, bool* out) ASSAY_MUST_USE;
// What mended another output of the same node, another reader of a value that the node reads, or a
// constant like one of the node's, among the faults before this one.
assay_status_t assay_inner_repeat(assay_golden_walk_t* w, const assay_search_target_t* target,
                                  size_t fault, assay_fault_t* found,
                                  size_t* n_found) ASSAY_MUST_USE;

// The scale of a quantizer whose integers and what they stand for golden knows: integers alone
// leave an interval open, in which many a usual number lies.
assay_status_t assay_inner_quantizer(assay_golden_walk_t* w, const assay_search_target_t* target,
                                     assay_fault_t* found, size_t* n_found) ASSAY_MUST_USE;

// An array of golden that no value of the model has, in the place of an input, which an operator of
// two values gives that nobody reads: it was lost, and nothing needs to be searched.
assay_status_t assay_inner_unread(assay_golden_walk_t* w, const assay_search_target_t* target,
                                  assay_fault_t* found, size_t* n_found) ASSAY_MUST_USE;
// Solves for the constants of the target's node, its settings, or a node that is missing beside it,
// unless what was found stands on other samples, too.
assay_status_t assay_inner_solve(assay_golden_walk_t* w, const assay_search_target_t* target,
                                 double deadline, assay_fault_t* found,
                                 size_t* n_found) ASSAY_MUST_USE;

// Several faults were each found on this sample alone. Whether their repairs hold together on the
// others; true where there are none, or a fault has no repair.
assay_status_t assay_inner_holds(assay_golden_walk_t* w, bool* out) ASSAY_MUST_USE;
// The same as an answer: silent where there are none.
assay_status_t assay_inner_ask(assay_golden_walk_t* w, assay_holdout_answer_t* out) ASSAY_MUST_USE;

// Where several nodes are at fault and nothing was found for some: constants that this sample tells
// element by element, without a test, if all repairs hold together on the others.
assay_status_t assay_inner_together(assay_golden_walk_t* w) ASSAY_MUST_USE;
// Where the repairs do not hold on the other samples: what mends one node, at all that have the
// same part, also where this sample shows no fault.
assay_status_t assay_inner_twins(assay_golden_walk_t* w) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SOLVE_INNER_H_
