// Nodes that a model lacks, where golden knows what goes into a node and what has to come out of
// it.
//
// What is tried stands in place of the node's output or of one of its inputs: an activation;
// another value of the model added, multiplied or taken instead (a residual, a gate, a mask, the
// right source of a skip, a state that was left out); a bias, a scale or both, by element, channel
// or as one number, fitted; a normalization; elements of a value in another order; an operator of
// values that the model has. A candidate is handed over if with it the node gives golden within
// what rounding explains. What is fitted has at least twice as many equations as unknowns. Where
// other samples are known (holdout.h), what fails on them is handed over only if nothing else is
// found.
#ifndef ASSAY_DIAGNOSE_SOLVE_MISSING_H_
#define ASSAY_DIAGNOSE_SOLVE_MISSING_H_

#include "account/golden/golden.h"
#include "diagnose/repair.h"
#include "diagnose/search.h"
#include "diagnose/solve/holdout.h"

// golden: all of it; arrays that no value of the model has are looked for where a node is missing.
// faulty: by node id; what hangs on a node at fault that comes later takes no part: its repair may
// read what this one makes. NULL: not known. holdout: NULL: there is none.
// *out_found false: nothing fits, or the deadline (of assay_clock_seconds) has passed.
assay_status_t assay_solve_missing(assay_evaluator_t* m, const assay_node_t* node,
                                   const assay_search_target_t* target,
                                   const assay_golden_t* golden, const bool* faulty,
                                   assay_holdout_t* holdout, double deadline, assay_repair_t* out,
                                   bool* out_found) ASSAY_MUST_USE;

// The same by arrays of golden that no value of the model has alone: what stood before an input is
// looked for among limits, activations and other values; unread: among operators of two values that
// nobody reads.
assay_status_t assay_solve_array(assay_evaluator_t* m, const assay_node_t* node,
                                 const assay_search_target_t* target, const assay_golden_t* golden,
                                 const bool* faulty, assay_holdout_t* holdout, double deadline,
                                 bool unread, assay_repair_t* out, bool* out_found) ASSAY_MUST_USE;

// ---- for the parts of the solver ---------------------------------------------------------------

// Another value that may take part.
typedef struct assay_missing_other {
  const assay_value_t* value;
  assay_tensor_t* tensor;  // canonical
  bool varies;             // with the model's inputs
} assay_missing_other_t;

// A value that the model has not for this node, and what makes it: one that golden has and the
// model lost, or what hangs on the node.
typedef struct assay_missing_made {
  assay_value_t value;  // stands for it in the list of others; it is in no model
  assay_formula_t* formula;
  char text[64];  // what it is: its name
} assay_missing_made_t;

enum { ASSAY_MISSING_MADE = 12 };

typedef struct assay_missing_search {
  assay_evaluator_t* m;
  const assay_node_t* node;
  const assay_search_target_t* target;
  const assay_golden_t* golden;
  const bool* faulty;  // by node id; NULL: not known
  double deadline;
  size_t output;
  assay_tensor_t** in;  // canonical, by input of the node; NULL: left out
  size_t n_in;
  assay_missing_other_t* others;  // made before the node, nearest first
  size_t n_others, cap_others;
  assay_holdout_t* holdout;  // NULL: there is none
  assay_repair_t* out;
  // `out` is what was found, or, of those that do not hold on other samples, what leaves least
  // there.
  bool found, has_refuted;
  double refuted_left;
  assay_missing_made_t made[ASSAY_MISSING_MADE];
  size_t n_made;
  size_t n_unread;   // of the others: those that nobody reads come first
  bool arrays_only;  // assay_solve_array
  bool unread_only;  // the same
  // Only what makes a place's `want` is looked for: it is put here. NULL: what restores the node.
  assay_formula_t** collect;
  const assay_repair_edit_t* also;  // an edit that goes with every formula; NULL: none
  char collected[64];               // what it is
} assay_missing_search_t;

// What a formula stands for: an output or an input of the node.
typedef struct assay_missing_place {
  assay_edit_kind_t kind;  // ASSAY_EDIT_AFTER or _INPUT
  size_t index;
  assay_tensor_t* x;            // what is there, or what is taken instead; canonical
  const assay_value_t* source;  // of x; NULL: it is what is there
  assay_tensor_t* want;  // what has to be there, canonical; NULL: only the node's output is known
} assay_missing_place_t;

// A value's element where another of the shape that it is broadcast to has element `at`.
double assay_missing_element(const assay_tensor_t* t, const assay_tensor_t* to, int64_t at);
// Whether the search is over: something was found, or there is no time left.
bool assay_missing_is_over(const assay_missing_search_t* s);
// Whether two inputs of the node read the same value.
bool assay_missing_is_twin(const assay_missing_search_t* s, size_t input, size_t other);
// Whether the node with a repair gives golden.
assay_status_t assay_missing_restores(assay_missing_search_t* s, const assay_repair_t* r,
                                      bool* out) ASSAY_MUST_USE;
// Takes a repair that restores golden over: it is what was found unless it fails on others.
assay_status_t assay_missing_take(assay_missing_search_t* s, assay_repair_t* take) ASSAY_MUST_USE;
// Tries a formula; where it fits, it is what was found. `text` and `cause` say what it is.
assay_status_t assay_missing_try(assay_missing_search_t* s, const assay_missing_place_t* p,
                                 const assay_formula_terms_t* terms, const char* cause,
                                 const char* text) ASSAY_MUST_USE;

// The same of any repair of the node, which stays the caller's.
assay_status_t assay_missing_offer(assay_missing_search_t* s,
                                   const assay_repair_t* r) ASSAY_MUST_USE;

// All kinds at one place, in order, but for formulas of several values; of arrays alone the first
// few.
assay_status_t assay_missing_kinds(assay_missing_search_t* s,
                                   const assay_missing_place_t* p) ASSAY_MUST_USE;
assay_status_t assay_missing_formulas(assay_missing_search_t* s,
                                      const assay_missing_place_t* p) ASSAY_MUST_USE;
// What stood before an input and left its array in golden.
assay_status_t assay_missing_arrays(assay_missing_search_t* s,
                                    const assay_golden_t* golden) ASSAY_MUST_USE;
// Before several inputs of a Concat at once.
assay_status_t assay_missing_joined(assay_missing_search_t* s,
                                    const assay_tensor_t* want) ASSAY_MUST_USE;

// The kinds, each for one place. They do nothing where they do not apply.
assay_status_t assay_missing_activations(assay_missing_search_t* s,
                                         const assay_missing_place_t* p) ASSAY_MUST_USE;
// Limits that what is there does not go beyond.
assay_status_t assay_missing_bounds(assay_missing_search_t* s,
                                    const assay_missing_place_t* p) ASSAY_MUST_USE;
assay_status_t assay_missing_values(assay_missing_search_t* s,
                                    const assay_missing_place_t* p) ASSAY_MUST_USE;
assay_status_t assay_missing_channels(assay_missing_search_t* s,
                                      const assay_missing_place_t* p) ASSAY_MUST_USE;
// Weights that are a sum of known arrays times numbers.
assay_status_t assay_missing_blends(assay_missing_search_t* s,
                                    const assay_missing_place_t* p) ASSAY_MUST_USE;
// Weights each of whose elements is what is there, or 0, or its negative.
assay_status_t assay_missing_masked(assay_missing_search_t* s,
                                    const assay_missing_place_t* p) ASSAY_MUST_USE;
assay_status_t assay_missing_fits(assay_missing_search_t* s,
                                  const assay_missing_place_t* p) ASSAY_MUST_USE;
// Numbers after a formula: along one dimension, or along some. made: what the formula gives;
// before: its program and axes; name: what it is.
assay_status_t assay_missing_fits_after(assay_missing_search_t* s, const assay_missing_place_t* p,
                                        const assay_formula_terms_t* before, assay_tensor_t* made,
                                        const char* name) ASSAY_MUST_USE;
assay_status_t assay_missing_arranged(assay_missing_search_t* s,
                                      const assay_missing_place_t* p) ASSAY_MUST_USE;
assay_status_t assay_missing_slices(assay_missing_search_t* s,
                                    const assay_missing_place_t* p) ASSAY_MUST_USE;
// Which slice of x along an axis is slice j, of so many, of what is wanted; -1: none is.
int64_t assay_missing_slice_of(const assay_tensor_t* x, const assay_tensor_t* want, int axis,
                               int64_t slots, int64_t j);
assay_status_t assay_missing_functions(assay_missing_search_t* s,
                                       const assay_missing_place_t* p) ASSAY_MUST_USE;
// Running sums and products, differences, shares along an axis.
assay_status_t assay_missing_along(assay_missing_search_t* s,
                                   const assay_missing_place_t* p) ASSAY_MUST_USE;
assay_status_t assay_missing_norms(assay_missing_search_t* s,
                                   const assay_missing_place_t* p) ASSAY_MUST_USE;
assay_status_t assay_missing_moves(assay_missing_search_t* s,
                                   const assay_missing_place_t* p) ASSAY_MUST_USE;
assay_status_t assay_missing_operators(assay_missing_search_t* s,
                                       const assay_missing_place_t* p) ASSAY_MUST_USE;
// Only of two of the others, the first `n`.
assay_status_t assay_missing_of_two(assay_missing_search_t* s, const assay_missing_place_t* p,
                                    size_t n) ASSAY_MUST_USE;
// Slices of values joined along one dimension: what stands at a border, what goes round.
assay_status_t assay_missing_pieces(assay_missing_search_t* s,
                                    const assay_missing_place_t* p) ASSAY_MUST_USE;
// What goes by lengths: rows turned round, the last step of each, what is beyond them.
assay_status_t assay_missing_lengths(assay_missing_search_t* s,
                                     const assay_missing_place_t* p) ASSAY_MUST_USE;
// What a condition chooses.
assay_status_t assay_missing_branches(assay_missing_search_t* s,
                                      const assay_missing_place_t* p) ASSAY_MUST_USE;
// A formula of two or three values.
assay_status_t assay_missing_pairs(assay_missing_search_t* s,
                                   const assay_missing_place_t* p) ASSAY_MUST_USE;
// An operator as another node has it, on other values or with constants that nobody reads.
assay_status_t assay_missing_likes(assay_missing_search_t* s,
                                   const assay_missing_place_t* p) ASSAY_MUST_USE;
// A quantizer: what is there, rounded to a grid.
assay_status_t assay_missing_grid(assay_missing_search_t* s,
                                  const assay_missing_place_t* p) ASSAY_MUST_USE;
// A pooling.
assay_status_t assay_missing_pooled(assay_missing_search_t* s,
                                    const assay_missing_place_t* p) ASSAY_MUST_USE;
// A reduction or a slice that an input went through; for places of which nothing is known.
assay_status_t assay_missing_reduced(assay_missing_search_t* s,
                                     const assay_missing_place_t* p) ASSAY_MUST_USE;
// Whether golden has another shape than what the node makes.
bool assay_missing_is_reshaped(const assay_missing_search_t* s);
// What input `input` has to be, canonical, where the node can be read backwards from its output
// `want`; *out NULL: it cannot, or the input is that.
assay_status_t assay_missing_inverse(assay_missing_search_t* s, size_t input,
                                     const assay_tensor_t* want,
                                     assay_tensor_t** out) ASSAY_MUST_USE;
// A factor, a bias or both that are missing, by several samples, where one tells too little.
assay_status_t assay_missing_numbers(assay_missing_search_t* s,
                                     assay_tensor_t* want) ASSAY_MUST_USE;
// Two inputs of the node that read other values.
assay_status_t assay_missing_rewired(assay_missing_search_t* s) ASSAY_MUST_USE;
// Constants that are one number everywhere, which is another one.
assay_status_t assay_missing_uniform(assay_missing_search_t* s,
                                     const assay_tensor_t* want) ASSAY_MUST_USE;
// Constants that are a function of what is there.
assay_status_t assay_missing_remade(assay_missing_search_t* s,
                                    const assay_tensor_t* want) ASSAY_MUST_USE;
// Whole numbers, words and thresholds that the node is told, by twos, too.
assay_status_t assay_missing_discrete(assay_missing_search_t* s) ASSAY_MUST_USE;
// Another operator in the node's place.
assay_status_t assay_missing_exchanged(assay_missing_search_t* s) ASSAY_MUST_USE;
// Outputs of the node under each other's names.
assay_status_t assay_missing_outputs(assay_missing_search_t* s) ASSAY_MUST_USE;
// Finds what makes the arrays of golden that no value of the model has: they become others.
assay_status_t assay_missing_lost(assay_missing_search_t* s,
                                  const assay_golden_t* golden) ASSAY_MUST_USE;
// What a formula (taken over) makes, called s->collected, becomes the first of the others: there
// has to be room in s->made.
assay_status_t assay_missing_add_made(assay_missing_search_t* s, assay_tensor_t* t,
                                      assay_formula_t* take_f) ASSAY_MUST_USE;
// Nodes that read the output and that nobody reads: what joined them is looked for. Comes before
// all that makes others.
assay_status_t assay_missing_hanging(assay_missing_search_t* s,
                                     assay_tensor_t* want) ASSAY_MUST_USE;
// Of the node itself: what it is told besides its weights.
assay_status_t assay_missing_settings(assay_missing_search_t* s,
                                      const assay_tensor_t* want) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SOLVE_MISSING_H_
