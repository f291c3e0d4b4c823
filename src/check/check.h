// The main job: run a model in a precision beside its truth, say what went wrong, and find a
// verified fix.
#ifndef ASSAY_CHECK_CHECK_H_
#define ASSAY_CHECK_CHECK_H_

#include <assay/check.h>

#include "account/account.h"
#include "account/outputs.h"
#include "account/pictures.h"
#include "account/require.h"
#include "account/shares.h"
#include "account/verdict/near_ties.h"
#include "check/fix_front.h"
#include "check/mended.h"
#include "data/samples.h"
#include "diagnose/culprits.h"
#include "diagnose/export.h"
#include "diagnose/fp32_set.h"
#include "diagnose/kinds/undone.h"
#include "diagnose/quantizers/quantizers.h"
#include "ranges/broadcasts.h"
#include "ranges/constants.h"

typedef struct assay_check_setting {
  assay_precision_t precision;
  assay_plan_options_t plan;
  const char* precision_name;  // as the user wrote it, for the report
  const assay_backend_t* backend;
  bool unquantized, no_fix;
  assay_fix_choice_t fix;
  const assay_golden_t* golden;  // outputs and inner values, as given; NULL: none
  const assay_samples_t*
      whole_batch;        // what the samples were cut from, since it does not run; NULL
  double search_seconds;  // for repairs of the export; 0: as assay_export_options_t
  const assay_requirements_t* require;  // none: cosine at least 0.999, the same NaN and infinities
  bool shares;                          // of the error by layers, also where the model is faithful
  assay_pictures_t* pictures;           // filled by the run; NULL: none are wanted
  uint64_t seed;
  void (*progress)(void* user, const char* what, double fraction);
  // Called once all but the fix is known. NULL: nobody asks.
  void (*judged)(void* user, const assay_check_t* check);
  void* user;
} assay_check_setting_t;

struct assay_check {
  assay_model_t* model;  // prepared; retained
  assay_plan_t* plan;    // made by the run, if it is not there before
  assay_account_t* account;
  assay_check_setting_t options;  // with the precision taken over
  size_t n_samples;
  size_t n_added;  // samples whose account is here before the run (check_part.c)
  bool parts_have_golden;
  bool faithful;
  assay_blame_t blame;
  assay_output_check_t* outputs;  // by graph output
  size_t n_outputs;
  assay_culprits_t culprits;
  size_t n_defects;       // layers with more error than rounding explains
  size_t n_absorbed;      // layers with overflow, underflow or flips that no output shows
  assay_export_t export;  // truth against golden
  // What quantizers lose against golden of the network before; n_outputs 0: not measured.
  assay_quantizers_t quantizers;
  double seconds_of_quantizers;  // that the search for wrong ones took
  bool dead;                     // an output has slices that are constant, and not in truth
  assay_near_ties_t steps;       // near ties that explain what outputs are off by; 0: they do not
  assay_shares_t shares;         // of the first sample's errors; empty: not asked
  assay_str_t unmet;             // requirements that do not hold
  bool open;                     // some of them cannot be judged, in whatever precision
  bool undecided;                // open, and nothing that could be judged failed
  bool* met;  // what commands of the user's said, by requirement; NULL: there are none
  assay_str_t unfinite_inputs;  // NaN and infinities of the inputs, in words; "": none
  bool has_fix;
  assay_fix_t fix;
  assay_fix_front_t front;        // the two that it was chosen from
  size_t constants_out_of_range;  // initializers with finite elements past the format's range
  const char* first_constant_out_of_range;
  assay_mended_t mended;                // constants at fault, and what mends them
  assay_odd_constants_t odd_constants;  // all that the formats cannot hold, with what it means
  assay_broadcasts_t
      broadcasts;        // operands that are stretched, batch sizes that are written into the model
  assay_risks_t folded;  // constants that passes computed, past the format of what reads them
  // Fused: truth of the rewritten model against truth of the model as it was given, on the first
  // sample.
  double rewriting;  // largest difference of an output, as a part of its largest magnitude
  int64_t rewriting_mismatched;  // elements that are finite in one of them only, or integers that
                                 // differ
  bool has_golden;
  bool golden_quantized;  // golden is of a network that quantizes, as the model does
  assay_undone_t undone;  // inner values that differ from golden, which no output shows
  assay_golden_arithmetic_t
      golden_arithmetic;            // that golden was computed in, where it is not float32
  bool golden_rounded;              // golden is of the network before its weights were rounded
  assay_rounded_weights_t rounded;  // then: these
  struct assay_check_job* job;      // of public checks (check_public.h); NULL: not public
};

// Runs all samples; golden may be NULL. The options' precision moves into the result. Unfaithful is
// no error.
assay_status_t assay_check_model(assay_model_t* model, assay_check_setting_t* options,
                                 const assay_samples_t* inputs, const assay_samples_t* golden,
                                 assay_check_t** out) ASSAY_MUST_USE;
// Whether truth without quantizers is what the check holds against golden.
bool assay_check_compares_unquantized(const assay_check_t* c);
// Finds golden_quantized. outputs: golden as samples, may be NULL.
assay_status_t assay_check_find_golden_kind(assay_check_t* c, const assay_samples_t* inputs,
                                            const assay_golden_t* golden,
                                            const assay_samples_t* outputs) ASSAY_MUST_USE;
// The two halves: a check without findings, which may be given a plan before it runs; one run,
// after which (also where it failed) assay_check_clear() drops what was found.
assay_status_t assay_check_make(assay_model_t* model, assay_check_setting_t* options,
                                assay_check_t** out) ASSAY_MUST_USE;
// Makes an empty account, and statistics of outputs; golden as of the run.
assay_status_t assay_check_begin(assay_check_t* c, const assay_samples_t* inputs,
                                 const assay_samples_t* golden) ASSAY_MUST_USE;
assay_status_t assay_check_run_samples(assay_check_t* c, const assay_samples_t* inputs,
                                       const assay_samples_t* golden) ASSAY_MUST_USE;
void assay_check_clear(assay_check_t* c);

#endif  // ASSAY_CHECK_CHECK_H_
