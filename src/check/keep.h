// Which nodes to keep in higher precision: chosen from the account of a run, or from what truth
// predicts.
#ifndef ASSAY_CHECK_KEEP_H_
#define ASSAY_CHECK_KEEP_H_

#include "check/check.h"

// A set of nodes of the model as it was given: plans cut it into layers each in its own way.
typedef struct assay_keep {
  const assay_check_t* check;  // its model, plan, account and options are looked at
  bool* chosen;                // by node id: in fp32
  size_t n_chosen;
  double* time;  // by node id: how much longer it takes in fp32
  // The sum in which values lose most by cancelling, of the plan's nodes; NULL: none does.
  const assay_node_t* cancels;
  double cancels_from, cancels_to;  // RMS of what it adds, of the sum
} assay_keep_t;

// Empty. Borrows the check.
assay_status_t assay_keep_create(const assay_check_t* check, assay_keep_t* out) ASSAY_MUST_USE;
void assay_keep_deinit(assay_keep_t* k);
void assay_keep_empty(assay_keep_t* k);

// Adds one layer of a plan of the model.
void assay_keep_layer(assay_keep_t* k, const assay_plan_t* plan, const assay_layer_t* layer);
// Adds layers that make or read values past the format's range and that values need which are
// within it. all: also those where that does no harm, and what the engine was seen to fail in.
void assay_keep_by_range(assay_keep_t* k, bool all);
// Adds layers that store or read large values which cancel behind them so far that rounding these
// by itself makes a larger relative RMS error in an output than is tolerated. From what truth
// predicts.
assay_status_t assay_keep_by_loss(assay_keep_t* k, double tolerated) ASSAY_MUST_USE;
// Adds layers whose choices flipped, and those with most error of their own, until so little of the
// sum is left. For outputs that are no floats, whose error has no shares.
void assay_keep_by_error(assay_keep_t* k, double rest);
// Adds the layers with most share of the outputs' error for their time, until so little of it
// should be left; shares and outputs are of a run of `plan`. few: where layers with large shares
// have nearly all of it, no others, whose small shares then say little; another run will.
assay_status_t assay_keep_by_share(assay_keep_t* k, const assay_plan_t* plan,
                                   const assay_shares_t* shares,
                                   const assay_output_check_t* outputs, double rest,
                                   bool few) ASSAY_MUST_USE;
// The part of the error's energy that may stay.
double assay_keep_room(const assay_check_t* c, const assay_output_check_t* outputs);

// The precision of the check with these nodes in fp32; borrows both.
assay_precision_t assay_keep_precision(const assay_keep_t* k);
// Writes the nodes into a fix, in the order of the model.
assay_status_t assay_keep_record(const assay_keep_t* k, assay_fix_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_KEEP_H_
