// Other samples: whether a repair that was found on one sample holds on those whose
// outputs golden knows, too. None of them took part in finding it.
#ifndef ASSAY_DIAGNOSE_SOLVE_HOLDOUT_H_
#define ASSAY_DIAGNOSE_SOLVE_HOLDOUT_H_

#include "diagnose/export.h"
#include "diagnose/search.h"

typedef struct assay_holdout assay_holdout_t;

typedef enum assay_holdout_answer {
  ASSAY_HOLDOUT_SILENT,  // there is no other sample, or none that can be run with the repair
  ASSAY_HOLDOUT_HOLDS,   // next to nothing of the outputs' difference is left
  ASSAY_HOLDOUT_FAILS,
} assay_holdout_answer_t;

// options->others are the samples. outputs: targets of the sample at hand that are outputs of the
// graph; borrowed. *out NULL: there are no samples.
assay_status_t assay_holdout_create(const assay_export_options_t* options,
                                    const assay_model_t* model, assay_evaluator_t* truth,
                                    const assay_search_target_t* outputs, size_t n,
                                    assay_holdout_t** out) ASSAY_MUST_USE;
void assay_holdout_destroy(assay_holdout_t* w);  // NULL is allowed

// Whether a repair holds on them; w NULL: silent.
assay_status_t assay_holdout_ask(assay_holdout_t* w, const assay_repair_t* r,
                                 assay_holdout_answer_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SOLVE_HOLDOUT_H_
