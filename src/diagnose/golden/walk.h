// Truth of a model and a run with everything rounded move through it side by side, held against
// golden: where they differ by more than rounding explains, there is a fault.
#ifndef ASSAY_DIAGNOSE_GOLDEN_WALK_H_
#define ASSAY_DIAGNOSE_GOLDEN_WALK_H_

#include "diagnose/export.h"
#include "diagnose/golden/printed.h"
#include "diagnose/golden/search_watch.h"
#include "eval/evaluator.h"

// What the walk found of a value that golden knows.
typedef struct assay_golden_met {
  bool compared;   // held against golden
  bool stands_in;  // golden took its place
  bool from_zero;  // nothing below 0 counts (compare.c)
  bool unlike;     // golden that took its place has another shape
  bool barred;   // golden of another shape may not take its place: what comes after cannot read it
  bool follows;  // was made of a barred one: it may differ since that does
} assay_golden_met_t;

typedef struct assay_golden_walk {
  const assay_model_t* model;
  const assay_export_options_t* options;
  assay_golden_t golden;  // as it was given, and as it is held against the model's values
  assay_golden_tensor_t** golden_of;  // by value id
  assay_printed_t* printed;           // by value id: digits of its golden
  assay_evaluator_t *truth, *noisy;
  uint64_t draw;  // which roundings the noisy run makes
  // By value id: what golden's next nodes may have read is so far off what it has; NULL: is that.
  const double* apart;
  assay_golden_met_t* met;        // by value id
  assay_tensor_t** noisy_out;     // by value id: of the noisy run, until truth has been there
  assay_tensor_t** missed;        // by value id: truth of faults, of outputs and after Casts
  assay_difference_t* explained;  // by value id: of the noisy run from truth
  assay_export_t* out;
  assay_fault_t* idle;  // of nodes that no output hangs on
  size_t n_idle;
  bool* faulty;  // by node id; NULL: only outputs are known
  assay_search_watch_t watch;
  bool walking;
  int restarts;   // of the walk, with golden of another shape barred
  bool bars_all;  // wherever it has another shape
  bool full;      // truth's slots hold every value, golden in its place
} assay_golden_walk_t;

// model, options and out are set by the caller. inputs: in the order of the graph's inputs.
assay_status_t assay_golden_walk_create(assay_golden_walk_t* w, const assay_golden_t* golden,
                                        assay_tensor_t* const* inputs) ASSAY_MUST_USE;
void assay_golden_walk_deinit(assay_golden_walk_t* w);
// Fills out->faults. Values are freed after their last reader: a healthy model's truth is never in
// memory as a whole.
assay_status_t assay_golden_walk_run(assay_golden_walk_t* w,
                                     assay_tensor_t* const* inputs) ASSAY_MUST_USE;
// Runs truth again, for those who look at all of its values: w->truth keeps them.
assay_status_t assay_golden_walk_fill(assay_golden_walk_t* w,
                                      assay_tensor_t* const* inputs) ASSAY_MUST_USE;

// The walk alone, for assay_golden_walk_run.
assay_status_t assay_golden_walk_on(assay_golden_walk_t* w,
                                    assay_tensor_t* const* inputs) ASSAY_MUST_USE;
// Takes out the faults that more noisy runs explain: of few elements, and where golden's inner
// values are not quite what was computed from them.
assay_status_t assay_golden_draw_again(assay_golden_walk_t* w,
                                       assay_tensor_t* const* inputs) ASSAY_MUST_USE;

// Golden of a value that is known, canonical; borrowed, as long as the walk is there.
assay_status_t assay_golden_hold(assay_golden_walk_t* w, const assay_value_t* v,
                                 assay_tensor_t** out) ASSAY_MUST_USE;

// Takes out the faults of nodes that no output hangs on.
assay_status_t assay_golden_drop_idle(assay_golden_walk_t* w) ASSAY_MUST_USE;
// Puts those behind the others that what a repair reads hangs on.
assay_status_t assay_golden_revive_idle(assay_golden_walk_t* w,
                                        const assay_repair_t* r) ASSAY_MUST_USE;

// How far truth may lie from golden of this size where so much is explained: several times that.
double assay_golden_allowed(double explained, const assay_tensor_t* golden, double size);

// ---- for the parts of the walk -----------------------------------------------------------------

// Bars the golden of another shape that a node which cannot be run hangs on; all: and any other.
// *out_any: whether there was some.
assay_status_t assay_golden_bar(assay_golden_walk_t* w, size_t failed, bool all,
                                bool* out_any) ASSAY_MUST_USE;
// Whether what a node makes follows from what is barred; before its values are held against golden.
void assay_golden_find_followers(assay_golden_walk_t* w, const assay_node_t* n);
// The hooks of the noisy run.
assay_status_t assay_golden_before_noisy(void* user, const assay_node_t* n, size_t n_in,
                                         assay_tensor_t** in) ASSAY_MUST_USE;
assay_status_t assay_golden_after_noisy(void* user, const assay_node_t* n, size_t n_in,
                                        assay_tensor_t* const* in, size_t n_out,
                                        assay_tensor_t** out) ASSAY_MUST_USE;
// Moves what a node made as far as engines' kernels are off where that is more than a rounding;
// from the first further draw on sums of numbers by their order, too.
assay_status_t assay_golden_move_as_engines(const assay_node_t* n, size_t n_in,
                                            assay_tensor_t* const* in, uint64_t draw,
                                            assay_tensor_t** t) ASSAY_MUST_USE;
// Holds a value that a node has made against golden, which takes its place.
assay_status_t assay_golden_compare(assay_golden_walk_t* w, const assay_node_t* n,
                                    const assay_value_t* v, assay_tensor_t** out) ASSAY_MUST_USE;
// Golden takes the place of a value once more, as it did when it was compared.
assay_status_t assay_golden_again(assay_golden_walk_t* w, const assay_value_t* v,
                                  assay_tensor_t** out) ASSAY_MUST_USE;
// Golden of a value as what was computed from it may have read it, in the noisy run (w->apart).
assay_status_t assay_golden_put_apart(assay_golden_walk_t* w, const assay_value_t* v,
                                      assay_tensor_t* golden) ASSAY_MUST_USE;
// What the noisy run made of a value is not asked for again.
void assay_golden_drop_noisy(assay_golden_walk_t* w, const assay_value_t* v);
// What the noisy run, which has made the value, explains of its truth. unfinite: golden may hold
// what is not finite.
assay_status_t assay_golden_explain(assay_golden_walk_t* w, const assay_value_t* v,
                                    const assay_tensor_t* truth, bool unfinite,
                                    assay_difference_t* out) ASSAY_MUST_USE;
bool assay_golden_is_fault(const assay_difference_t* d, const assay_difference_t* explained,
                           const assay_tensor_t* golden);

#endif  // ASSAY_DIAGNOSE_GOLDEN_WALK_H_
