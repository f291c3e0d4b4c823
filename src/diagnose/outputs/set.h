// Repairs of several nodes as one: tried together, on all samples.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_SET_H_
#define ASSAY_DIAGNOSE_OUTPUTS_SET_H_

#include "diagnose/search_trial.h"

// Up to ASSAY_SEARCH_FAULTS repairs, one a node.
typedef struct assay_repair_set {
  assay_repair_t* at;
  size_t n, capacity;
} assay_repair_set_t;

void assay_repair_set_deinit(assay_repair_set_t* s);
// Takes a repair over; of a node that is there already its edits are added to that one's. *out_fits
// false: there is no room for it, and it is released.
assay_status_t assay_repair_set_add(assay_repair_set_t* s, assay_repair_t* take,
                                    bool* out_fits) ASSAY_MUST_USE;

// Tries them together; no repair is adopted. *out_restored: golden is restored in all samples.
// What they leave is in t->remains; NAN: they cannot be evaluated.
assay_status_t assay_trials_try_set(assay_trials_t* t, const assay_repair_set_t* s,
                                    bool* out_restored) ASSAY_MUST_USE;

// Hands the repairs over as faults.
void assay_repair_set_report(const assay_trials_t* t, assay_repair_set_t* s, assay_fault_t* out,
                             size_t* out_n);

// Of repairs that were found on one sample whether they restore golden of all; else *out_n is 0,
// and they are released.
assay_status_t assay_repair_set_confirm(assay_trials_t* t, assay_fault_t* out,
                                        size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_SET_H_
