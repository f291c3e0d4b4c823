// One slip in several nodes: an exporter that gets a kind of node wrong gets all of them wrong, or
// those that belong together: queries and keys, a product and its bias, a layer of every block.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_ALIKE_H_
#define ASSAY_DIAGNOSE_OUTPUTS_ALIKE_H_

#include "diagnose/causes/surroundings.h"
#include "diagnose/search_predict.h"
#include "diagnose/search_trial.h"

// What makes repairs of two nodes the same slip; 0: it is a matter of one node. Names of values do
// not count, nor does which axis it is along, but for whether it is that of what comes out.
uint64_t assay_alike_key(const assay_repair_t* r, size_t row);

// A repair that was offered, with the caller's number of it.
typedef struct assay_alike {
  uint64_t key;
  size_t position, input, number;
  size_t row;  // of the table of causes
  const assay_forecast_t* forecast;
} assay_alike_t;

// Makes the repair of a number again; *out without edits: it cannot be made.
typedef struct assay_alike_source {
  assay_status_t (*make)(void* user, size_t number, assay_repair_t* out);
  void* user;
} assay_alike_source_t;

// Tries sets of repairs of one slip until one restores golden or the time `end` comes: in turn the
// one that is forecast to leave least, and that of a row which offers few. out: room for
// ASSAY_SEARCH_FAULTS; *out_n 0: none does.
assay_status_t assay_search_alike(assay_trials_t* t, const assay_surroundings_t* around,
                                  assay_alike_t* offers, size_t n,
                                  const assay_alike_source_t* source, double end,
                                  assay_fault_t* out, size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_ALIKE_H_
