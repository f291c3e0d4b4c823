// The other samples of a repair search: truth of each, beside golden.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_OTHERS_H_
#define ASSAY_DIAGNOSE_OUTPUTS_OTHERS_H_

#include "diagnose/export.h"
#include "diagnose/search.h"

typedef struct assay_others {
  assay_search_t at[ASSAY_OTHER_SAMPLES];
  size_t n;
} assay_others_t;

// Puts searches of the other samples that the options have into s, as far as they can be run and
// golden has the same targets; those of `out` live until assay_others_deinit.
assay_status_t assay_others_init(const assay_export_options_t* options, assay_search_t* s,
                                 assay_others_t* out) ASSAY_MUST_USE;
void assay_others_deinit(assay_others_t* o);

#endif  // ASSAY_DIAGNOSE_OUTPUTS_OTHERS_H_
