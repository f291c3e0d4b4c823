// The fewest layers in higher precision with which the outputs are right: one search, its
// strategies as rows.
//
// A strategy proposes a set of layers; the search runs all samples with these in fp32; the strategy
// takes in what came of it and proposes the next, until there is nothing more to try. A set is
// handed over with the run that verified it. The rows are in fewest.c: which is apt depends on what
// is known before, and on what the user asked for.
//
// Where a strategy finds no set that does, all layers in fp32 are run (but of sets that the caller
// proposes); if they do, that is the set.
//
// From a set that does, layers are taken out again as long as it still does (fewest_removal.c): by
// groups, those with the least share of the error first, down to single layers; then, of at
// most 16 layers and where the runs are enough, all sets of one layer less are tried, until none
// does. Layers whose values pass the format's range are tried where runs are
// plenty. That takes at most `max_removals` more runs.
#ifndef ASSAY_DIAGNOSE_FEWEST_H_
#define ASSAY_DIAGNOSE_FEWEST_H_

#include "account/runs.h"
#include "diagnose/fp32_set.h"

typedef enum assay_fewest_strategy {
  // A run as asked has been accounted for. First: layers that make or read values past the format's
  // range and that values need which are within it; where none do, those with the largest shares of
  // the error for their time, as many as the requirements ask for. If that does not do, what else
  // passes the range, and the shares of the error that is left, add layers for a second run.
  ASSAY_FEWEST_OBSERVED = 0,
  // Nothing ran: truth alone predicts what passes the range and where large values cancel; where
  // nothing does, one run shows the shares of the error. At most three runs until a set does.
  ASSAY_FEWEST_PREDICTED,
  // The shortest prefix (or suffix) of the graph that does, each length tried by a run: by halves,
  // or one more node each time. Nothing is taken out of these.
  ASSAY_FEWEST_BISECT,
  ASSAY_FEWEST_LINEAR,
  // Sets that the caller proposes, who may learn from each run; the smallest that does counts.
  ASSAY_FEWEST_PROPOSED,
} assay_fewest_strategy_t;

typedef struct assay_fewest_setting {
  assay_fewest_strategy_t strategy;
  assay_fp32_subject_t subject;
  const assay_backend_t* backend;
  bool unquantized;
  const assay_samples_t* inputs;
  // Shares of the first sample's error as asked. Empty: not known; PREDICTED fills them.
  assay_shares_t* shares;
  // OBSERVED: statistics of the run as asked.
  const assay_output_check_t* outputs;
  // PREDICTED: the owner of the subject's account, which gives way to that of a run where the error
  // has no shares; where ranges told what to keep, `as_asked` runs the model without, too: it may
  // do as it is, since what passes a range need not show in the outputs.
  assay_account_t** account;
  bool as_asked;
  bool from_end;  // BISECT, LINEAR: suffixes
  // Runs without some layers of a set that does: at most max_removals, and at most eight where a
  // command of the user's judges; min_removals, if more, where more than a quarter of all layers
  // are in the set. The fewest near all in fp32 take 24 at least.
  size_t max_removals, min_removals;
  // By layer of the subject's plan: how much the outputs are likely to need it in fp32, INFINITY:
  // it is never taken out. NULL: the largest share of the error, where ranges do not tell.
  const double* need;
  // Also all layers in fp32, and the fewest that come near it (assay_fewest_found_t).
  bool best;

  // Runs all samples in a precision. out_taken: what was made of the first one; NULL: nobody asks.
  assay_status_t (*run)(void* runner, const assay_precision_t* precision, assay_run_result_t* out,
                        assay_plan_t** out_plan, assay_taken_t** out_taken);
  // PROPOSED: makes the next set of the last one (empty at first). *out_more false: there is none.
  assay_status_t (*propose)(void* runner, assay_fp32_set_t* set, bool* out_more);
  void* runner;
  void (*progress)(void* user, const char* what, double fraction);  // NULL: nobody asks
  void* user;
} assay_fewest_setting_t;

// A prefix that was tried.
typedef struct assay_fewest_trial {
  size_t n_layers;
  bool faithful;
} assay_fewest_trial_t;

typedef struct assay_fewest_found {
  bool has_fix;
  assay_fix_t fix;
  // Of a run as asked that the search made (PREDICTED, BISECT, LINEAR).
  bool ran_as_asked, faithful;
  assay_output_check_t* outputs;
  assay_str_t unmet;  // of the last run: what commands of the user's have against it
  size_t runs;        // over all samples, accounts of runs among them
  size_t removals;    // of them: without some layers of a set that did
  // Outputs with all layers in fp32; NULL: not run. Those that are wrong there no set mends: `fix`
  // is verified if it mends all others.
  assay_output_check_t* wide;
  // The setting's `best`: the fewest layers that do and come near `wide`: their error is at most 3
  // dB larger, of integers no more differ. best_is_fewest: `fix` does that already, and best is
  // empty.
  bool has_best, best_is_fewest;
  assay_fix_t best;
  size_t n_prefix;  // nodes of the prefix that did; 0: not by prefixes, or none did
  assay_fewest_trial_t* trials;
  size_t n_trials, cap_trials;
  // The sum in which values lose most by cancelling (fp32_set.h).
  const assay_node_t* cancels;
  double cancels_from, cancels_to;
} assay_fewest_found_t;
void assay_fewest_found_deinit(assay_fewest_found_t* f);

// How many runs of the samples take so much work (operations, and bytes moved), by the costs of an
// account; at most `max`.
size_t assay_fewest_affordable(const assay_account_t* account, size_t n_samples, double work,
                               size_t max);

// Not finding anything is not an error: fix.verified is false then.
assay_status_t assay_fewest_find(const assay_fewest_setting_t* setting,
                                 assay_fewest_found_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_FEWEST_H_
