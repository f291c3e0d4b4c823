// What optimizers fold over something that it does not go through: a summand past an activation, an
// offset of what is read under a border of zeros.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_FOLDED_H_
#define ASSAY_DIAGNOSE_OUTPUTS_FOLDED_H_

#include "diagnose/outputs/sketch.h"
#include "diagnose/search_predict.h"

// Lists the summands of an activation's channels that may stand on its other side, and the numbers
// that a border of each channel may lack.
assay_status_t assay_folded_list(assay_site_sketch_t* k, size_t position, const assay_tensor_t* y,
                                 int64_t elements) ASSAY_MUST_USE;
// Their equations, of probes [from, ASSAY_PROBES).
assay_status_t assay_folded_equations(assay_site_sketch_t* k, assay_site_t* site,
                                      const assay_search_t* s, const assay_predict_t* p,
                                      int from) ASSAY_MUST_USE;
// The repair with these numbers, one for each channel.
assay_status_t assay_folded_repair(const assay_search_t* s, const assay_site_t* site,
                                   const double* numbers, assay_repair_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_FOLDED_H_
