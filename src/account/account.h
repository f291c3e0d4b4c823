// The account of a run: for each layer, what it did to the numbers and what came in.
//
//   own error        engine's output minus float64 truth of the layer on the engine's own inputs
//   inherited error  that truth minus the truth on true inputs
//
// Of a layer of several nodes the values that it hides count for neither: what leaves it is judged.
// The truth meant here is that of the plan's model; passes keep truth.
//
// The engine runs layer by layer with taps; truth follows one layer behind. Where a discrete choice
// of the engine's (an index, a comparison, a shape) differs from truth's because of what came in,
// the layer is flipped and truth goes on with the engine's choice.
#ifndef ASSAY_ACCOUNT_ACCOUNT_H_
#define ASSAY_ACCOUNT_ACCOUNT_H_

#include <assay/check.h>  // the verdicts

#include "account/gated.h"
#include "account/injected.h"
#include "account/judge.h"
#include "account/perturb.h"
#include "account/risks.h"
#include "account/stored.h"
#include "formats/error_sum.h"
#include "plan/plan.h"

typedef struct assay_layer_account {
  const assay_layer_t* layer;
  const assay_node_t* node;  // of a layer of several: the last
  assay_verdict_t verdict;
  int64_t runs;                             // 1 a sample; more inside loops
  assay_error_sum_t own, inherited, total;  // total = own + inherited, element by element
  assay_judgement_t judged;                 // own error element by element, against the bounds
  bool bounded;                             // every operator of the layer has a bound
  int64_t suspected;         // runs whose error was held against reruns of the emulated layer
  int64_t outlying;          // of them: those whose error lies outside what the reruns show
  int64_t shape_mismatches;  // elements of outputs of another shape than truth on the same inputs
  double outlying_by;        // the largest ratio of an error's RMS to that of the reruns
  int64_t flipped;           // discrete elements
  double truth_max;          // largest |output| in truth
  double truth_max_in;       // largest |float input| in truth, constants included
  double local_max;          // largest finite |output| of the layer's truth on the engine's inputs
  double own_worst_rms;      // largest RMS of a single run, for loops
  // How much larger, relative to the values, an error left a run than it came in; 0 where none
  // came in.
  double condition;
  double perturbation;  // the largest relative RMS error of an input
  // Where the condition is past what is harmless: each input's error by itself, of the run with
  // the largest condition.
  assay_perturbations_t perturbations;
  double perturbed_at;     // that condition; 0: none
  assay_cost_t cost;       // of one run
  bool stores_float;       // has an output that --precision changes
  assay_format_t storage;  // of its float outputs: the layer's, or a declared one; NONE
  // Values hidden in the layer, recomputed in float64 from what entered it: finite ones past its
  // format's range. This engine keeps them wider; another one may not.
  assay_risk_t at_risk;
  int64_t past_range;  // runs in which true inputs pass the format's range; of them:
  int64_t absorbed;  // where infinities in their place change nothing (absorb.h); none is looked at
                     // after one that does not absorb them
  assay_gated_t gated;        // the tactic that ran it, where it needed an accuracy gate
  assay_injected_t injected;  // of a fault that was injected here
} assay_layer_account_t;

typedef struct assay_account assay_account_t;

// Sees every float output of every layer that the engine and truth give the same shape, as its
// error is split: own = engine - local, inherited = local - truth. Tensors are borrowed.
typedef struct assay_account_watch {
  void (*value)(void* user, const assay_layer_account_t* layer, const assay_value_t* value,
                const assay_tensor_t* engine, const assay_tensor_t* local,
                const assay_tensor_t* truth);
  void* user;
} assay_account_watch_t;

typedef struct assay_account_options {
  bool unquantized;
  assay_account_watch_t watch;  // value NULL: nobody
  bool outputs_only;            // no own and inherited errors: for verifying a fix
  // Own errors alone: no truth beside the engine, so nothing inherited, no flips by what came in,
  // and no truth of the outputs.
  bool own_only;
  assay_tap_t tap;  // sees what is judged, before it is; layer NULL: nobody. Not with outputs_only
  // No engine: what truth by itself tells of the layers, before any has run in its format. Nothing
  // is judged; truth_max, truth_max_in, past_range, absorbed, stores_float, storage and cost are
  // set.
  bool predict;
  void (*progress)(void* user, double fraction);
  void* user;
} assay_account_options_t;

// Borrows the plan. Errors: DEVICE etc. of the backend.
assay_status_t assay_account_create(const assay_plan_t* plan, const assay_backend_t* backend,
                                    const assay_account_options_t* options,
                                    assay_account_t** out) ASSAY_MUST_USE;
void assay_account_destroy(assay_account_t* a);  // NULL is allowed

// Runs one sample: inputs in the order of the graph's inputs, NULL for those with an initializer.
assay_status_t assay_account_run(assay_account_t* a, assay_tensor_t* const* inputs) ASSAY_MUST_USE;
// Of the last sample: graph output i of the engine (NULL: there is none) and of truth, canonical;
// borrowed until the next run.
assay_tensor_t* assay_account_engine_output(const assay_account_t* a, size_t i);
assay_tensor_t* assay_account_truth_output(const assay_account_t* a, size_t i);

// Layers that ran, in the order in which they first ended.
size_t assay_account_layer_count(const assay_account_t* a);
const assay_layer_account_t* assay_account_layer(const assay_account_t* a, size_t i);
const assay_layer_account_t* assay_account_of_node(const assay_account_t* a,
                                                   const assay_node_t* node);
// Foreseen: what a value of the top graph loses in its layer's format, in the last sample; of one
// that no node makes, in that of its last reader. Zeros where nothing was predicted.
assay_storage_loss_t assay_account_stored(const assay_account_t* a, const assay_value_t* value);

// The account as bytes, and back: accounts of parts of the samples, added in the order of the
// samples to one of the same plan (here: one that has run none of them), are the account of all of
// them, to the bit. Errors: CORRUPT it is of another plan, or damaged; then the account is of no
// use any more.
struct assay_packing;
assay_status_t assay_account_save_part(const assay_account_t* a,
                                       struct assay_packing* to) ASSAY_MUST_USE;
assay_status_t assay_account_add_part(assay_account_t* a,
                                      struct assay_packing* from) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_ACCOUNT_H_
