// Which graph pass changes the result: what `debug passes` finds.
//
// The passes that did something to the model are switched on one after the other, in their order:
// what changes from one prefix to the next is the work of the pass that came. Truth (float64) is
// held against truth of the prefix before, value by value, where one rounding of every stored
// constant explains so much and no more (export.h), on the first sample; the engine's outputs, on
// all samples, against truth of the model as it was given.
#ifndef ASSAY_DEBUG_PASS_DEBUG_H_
#define ASSAY_DEBUG_PASS_DEBUG_H_

#include <assay/debug.h>

#include "check/check.h"

// One pass, switched on after those before it in the list.
typedef struct assay_pass_account {
  const assay_pass_t* pass;  // NULL: no pass at all, the first of the list
  size_t n_entries;          // what it did, with all passes on
  size_t n_layers;           // of the plan
  double truth_moved;        // largest difference of an output, as a part of its largest magnitude
  int64_t truth_mismatched;  // elements that are finite on one side only, or integers that differ
  assay_output_check_t* outputs;  // of the engine, against truth of the model as it was given
  bool faithful;
  assay_pass_effect_t effect;
} assay_pass_account_t;

typedef struct assay_pass_blame {
  assay_pass_account_t* at;
  size_t n;
  const assay_pass_account_t* guilty;  // the first whose effect is ENGINE or TRUTH; NULL: none
  // Of the guilty pass: what it did where the result changes.
  assay_pass_action_t action;
  const assay_node_t** nodes;  // of the model as it was given
  size_t n_nodes;
  assay_str_t did;    // as the pass says it
  assay_str_t value;  // the first value that changes; "": not known
  assay_str_t why;    // how much, and what rounding explains
  assay_model_t* model;
  size_t n_outputs;
} assay_pass_blame_t;

// The options are those of a check with a fused plan; passes that are off there stay so. Borrowed.
assay_status_t assay_pass_debug(assay_model_t* model, const assay_check_setting_t* options,
                                const assay_samples_t* inputs, const assay_samples_t* golden,
                                assay_pass_blame_t* out) ASSAY_MUST_USE;
void assay_pass_blame_deinit(assay_pass_blame_t* b);

#endif  // ASSAY_DEBUG_PASS_DEBUG_H_
