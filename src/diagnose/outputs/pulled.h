// Golden of inner values, read backwards from outputs: what solves for a node whose output golden
// knows is asked then, though golden has outputs only.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_PULLED_H_
#define ASSAY_DIAGNOSE_OUTPUTS_PULLED_H_

#include "diagnose/search_trial.h"

// Tries what the solvers find at the outputs and at the values before them, the last first. Where
// an output is joined of several values that miss golden, or several outputs do, what each of them
// needs is tried together: out, as faults; *out_n 0: nothing of the kind restores golden.
// Nothing is tried where there are no other samples.
//   end  of assay_clock_seconds
assay_status_t assay_search_pulled(assay_trials_t* t, double end, assay_fault_t* out,
                                   size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_PULLED_H_
