// The same slip at several nodes: an exporter that takes SAME padding or an epsilon wrongly does so
// at every node of the kind, and no single repair brings golden near. By attributes alone: what
// belongs together in another way is found by alike.h.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_SLIPS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_SLIPS_H_

#include "diagnose/search.h"
#include "diagnose/search_predict.h"

// Repairs of attributes, likeliest first.
typedef struct assay_slips {
  assay_repair_t* at;
  assay_forecast_t* forecasts;  // of each
  size_t n, capacity, cap_forecasts;
} assay_slips_t;

// Keeps a repair if it changes attributes only, and nothing is to be fitted.
//   forecast  NULL: there is none
assay_status_t assay_slips_add(assay_slips_t* a, const assay_repair_t* r,
                               const assay_forecast_t* forecast) ASSAY_MUST_USE;
void assay_slips_deinit(assay_slips_t* a);

// Looks for a set of repairs of nodes of one operator, one for each node, that restores golden
// together; until the time `end`. out: room for ASSAY_SEARCH_FAULTS; *out_n 0: there is none. s has
// no repairs adopted.
assay_status_t assay_search_slips(const assay_search_t* s, const assay_slips_t* a, double end,
                                  assay_fault_t* out, size_t* out_n, size_t* trials) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_SLIPS_H_
