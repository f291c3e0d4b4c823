// Which nodes to keep in higher precision: chosen from the account of a run, or from what truth
// predicts.
#ifndef ASSAY_DIAGNOSE_FP32_SET_H_
#define ASSAY_DIAGNOSE_FP32_SET_H_

#include "account/account.h"
#include "account/outputs.h"
#include "account/shares.h"

// What a search looks at: a model in the precision that was asked for, and what is known of its
// layers. All is borrowed.
typedef struct assay_fp32_subject {
  const assay_model_t* model;  // as it was given
  const assay_plan_t* plan;    // of the model in `precision`
  // Of a run of that plan, or what truth alone predicts of it; NULL: nothing is known.
  const assay_account_t* account;
  const assay_precision_t* precision;   // that was asked for
  const assay_requirements_t* require;  // NULL: the default
} assay_fp32_subject_t;

// A fix: the nodes to be kept in a higher format.
typedef struct assay_fix {
  const assay_node_t** nodes;
  size_t n_nodes;
  assay_format_t format;
  bool verified;                  // ran, and every output was faithful
  assay_output_check_t* outputs;  // of the verifying run; NULL: none ran
  int runs;                       // verification runs made
} assay_fix_t;
void assay_fix_deinit(assay_fix_t* f);

// A set of nodes of the model as it was given: plans cut it into layers each in its own way.
typedef struct assay_fp32_set {
  const assay_fp32_subject_t* subject;
  bool* chosen;  // by node id: in fp32
  size_t n_chosen;
  double* time;  // by node id: how much longer it takes in fp32
  // The sum in which values lose most by cancelling, of the plan's nodes; NULL: none does.
  const assay_node_t* cancels;
  double cancels_from, cancels_to;  // RMS of what it adds, of the sum
} assay_fp32_set_t;

// Empty. Borrows the subject, which is read again whenever layers are chosen.
assay_status_t assay_fp32_set_create(const assay_fp32_subject_t* subject,
                                     assay_fp32_set_t* out) ASSAY_MUST_USE;
void assay_fp32_set_deinit(assay_fp32_set_t* k);
void assay_fp32_set_empty(assay_fp32_set_t* k);

// Adds one layer of a plan of the model.
void assay_fp32_set_add(assay_fp32_set_t* k, const assay_plan_t* plan, const assay_layer_t* layer);
// Adds layers that make or read values past the format's range and that values need which are
// within it. all: also those where that does no harm, and what the engine was seen to fail in.
void assay_fp32_set_add_by_range(assay_fp32_set_t* k, bool all);
// Adds layers that store or read large values which cancel after them so far that rounding these
// by itself makes a larger relative RMS error in an output than is tolerated. From what truth
// predicts.
assay_status_t assay_fp32_set_add_by_loss(assay_fp32_set_t* k, double tolerated) ASSAY_MUST_USE;
// Adds layers whose choices flipped, and those with most error of their own, until so little of the
// sum is left. For outputs that are not floats, whose error has no shares.
void assay_fp32_set_add_by_error(assay_fp32_set_t* k, double rest);
// Adds the layers with most share of the outputs' error for their time, until so little of it
// should be left; shares and outputs are of a run of `plan`. few: where layers with large shares
// have nearly all of it, no others, whose small shares then say little; another run will.
assay_status_t assay_fp32_set_add_by_share(assay_fp32_set_t* k, const assay_plan_t* plan,
                                           const assay_shares_t* shares,
                                           const assay_output_check_t* outputs, double rest,
                                           bool few) ASSAY_MUST_USE;
// The part of the error's energy that may stay.
double assay_fp32_set_tolerated(const assay_fp32_subject_t* subject,
                                const assay_output_check_t* outputs);

// The precision that was asked for with these nodes in fp32; borrows both.
assay_precision_t assay_fp32_set_precision(const assay_fp32_set_t* k);
// Writes the nodes into a fix, in the order of the model.
assay_status_t assay_fp32_set_record(const assay_fp32_set_t* k, assay_fix_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_FP32_SET_H_
