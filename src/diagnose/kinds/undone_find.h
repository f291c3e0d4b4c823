// Faults that no output shows, since layers after them undo them.
#ifndef ASSAY_DIAGNOSE_KINDS_UNDONE_FIND_H_
#define ASSAY_DIAGNOSE_KINDS_UNDONE_FIND_H_

#include "diagnose/chain.h"
#include "diagnose/kinds/undone.h"

// Where golden has every output, truth agrees with all of them on all samples, and what differs
// inside is undone by later layers or does not matter on these inputs: takes the faults out of
// `found` and tells in *out which values differ. Nothing happens where golden has no inner values.
//   options   as for assay_chain_run
assay_status_t assay_undone_find(const assay_model_t* model, const assay_samples_t* inputs,
                                 const assay_golden_t* golden,
                                 const assay_export_options_t* options, assay_export_t* found,
                                 assay_undone_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_UNDONE_FIND_H_
