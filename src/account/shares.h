// Which layers an output's error comes from.
//
// H(p) is what the outputs are when the engine computes the layers before p and truth those from p
// on: H(0) is truth, H(N) the engine. H(q) - H(p) is what the layers from p to q did to the
// outputs, through everything after them, exactly and not to first order; such differences add up
// to the whole error, however the layers are cut into layer ranges. Ranges with large shares are
// cut further, down to single layers.
#ifndef ASSAY_ACCOUNT_SHARES_H_
#define ASSAY_ACCOUNT_SHARES_H_

#include "exec/backend.h"
#include "plan/plan.h"

// Layers [first, end) of the plan's top graph.
typedef struct assay_layer_range {
  size_t first, end;
  double* share;  // by graph output: the part of its error, signed; they add up to 1 over all
                  // layer ranges, or are all 0 where the output has no error
} assay_layer_range_t;

typedef struct assay_shares {
  assay_layer_range_t* at;  // in the order of the layers
  size_t n, capacity;
  size_t n_outputs;
  int runs;  // evaluations of truth from some layer on
} assay_shares_t;

typedef struct assay_shares_options {
  bool unquantized;
  int runs;         // at most so many evaluations; 0: 32
  double smallest;  // layer ranges below it are not cut further; 0: 0.02
} assay_shares_options_t;

// One sample, inputs in the order of the graph's. Shares are <H(q) - H(p), error> / <error, error>
// over the finite elements; where the engine has NaN or infinities that truth lacks, they are parts
// of the number of those.
assay_status_t assay_shares_run(const assay_plan_t* plan, const assay_backend_t* backend,
                                assay_tensor_t* const* inputs,
                                const assay_shares_options_t* options,
                                assay_shares_t* out) ASSAY_MUST_USE;
// The same in two steps, for a run of the caller's: what the engine makes while the tap is given to
// it, until the end, which the shares are then of.
typedef struct assay_taken assay_taken_t;
assay_status_t assay_taken_create(const assay_plan_t* plan, assay_taken_t** out) ASSAY_MUST_USE;
void assay_taken_destroy(assay_taken_t* t);  // NULL is allowed
const assay_tap_t* assay_taken_tap(const assay_taken_t* t);
void assay_taken_end(assay_taken_t* t);
// Runs the plan on a backend and takes what it makes.
assay_status_t assay_taken_run(assay_taken_t* t, const assay_backend_t* backend,
                               assay_tensor_t* const* inputs) ASSAY_MUST_USE;
// What was taken of a value, perhaps packed; borrowed; NULL: no layer has shown it.
assay_tensor_t* assay_taken_get(const assay_taken_t* t, const assay_value_t* value);
assay_status_t assay_shares_of(const assay_taken_t* taken, assay_tensor_t* const* inputs,
                               const assay_shares_options_t* options,
                               assay_shares_t* out) ASSAY_MUST_USE;
void assay_shares_deinit(assay_shares_t* s);
// The largest |share| of the layer range's layers in an output, if the layer range is a single
// layer; else 0.
double assay_shares_of_layer(const assay_shares_t* s, size_t layer);

#endif  // ASSAY_ACCOUNT_SHARES_H_
