// The first link of the chain golden -> truth -> engine: truth against golden, sample by sample.
#ifndef ASSAY_DIAGNOSE_CHAIN_H_
#define ASSAY_DIAGNOSE_CHAIN_H_

#include "data/samples.h"
#include "diagnose/export.h"

// Holds truth against golden on the samples, until one shows faults (8 samples at most), and
// searches for repairs there. Where golden has fewer rows than the batch, the batch is cut to them.
assay_status_t assay_chain_run(const assay_model_t* model, const assay_samples_t* inputs,
                               const assay_golden_t* golden, const assay_export_options_t* options,
                               assay_export_t* out) ASSAY_MUST_USE;

// Makes all repairs that restore golden in a model as it was read. *out_n: how many.
assay_status_t assay_chain_repair(const assay_export_t* e, assay_model_t* model,
                                  size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_CHAIN_H_
