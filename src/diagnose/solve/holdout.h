// Other samples: whether a repair that was found on one sample holds on those whose
// outputs golden knows, too. None of them took part in finding it.
#ifndef ASSAY_DIAGNOSE_SOLVE_HOLDOUT_H_
#define ASSAY_DIAGNOSE_SOLVE_HOLDOUT_H_

#include "diagnose/export.h"
#include "diagnose/search.h"

typedef struct assay_holdout assay_holdout_t;

typedef enum assay_holdout_answer {
  ASSAY_HOLDOUT_SILENT,  // there is no other sample, or none that can be run with the repair
  ASSAY_HOLDOUT_HOLDS,   // outputs are within what is explained
  ASSAY_HOLDOUT_NEAR,    // next to nothing of their difference is left
  ASSAY_HOLDOUT_FAILS,
} assay_holdout_answer_t;

// options->others are the samples. outputs: targets of the sample at hand that are outputs of the
// graph; borrowed. *out NULL: there are no samples.
assay_status_t assay_holdout_create(const assay_export_options_t* options,
                                    const assay_model_t* model, assay_evaluator_t* truth,
                                    const assay_search_target_t* outputs, size_t n,
                                    assay_holdout_t** out) ASSAY_MUST_USE;
void assay_holdout_destroy(assay_holdout_t* h);  // NULL is allowed

// Takes a repair of another node as made in all that is asked from now on; borrowed. Those of one
// node are one repair. False: there is no room.
bool assay_holdout_adopt(assay_holdout_t* h, const assay_repair_t* r);

// Whether a repair holds on them, from sample `first` on; h NULL: silent.
assay_status_t assay_holdout_ask(assay_holdout_t* h, size_t first, const assay_repair_t* r,
                                 assay_holdout_answer_t* out) ASSAY_MUST_USE;

// RMS that the repair which was asked for last leaves of the outputs' difference, over what there
// was; NaN: it could not be told.
double assay_holdout_left(const assay_holdout_t* h);

// How many samples there are; h NULL: 0.
size_t assay_holdout_count(const assay_holdout_t* h);
// Calls `see` with each output of a sample as it is with a repair, and golden of it. *out_fits
// false: it cannot be evaluated.
typedef void assay_holdout_see_t(void* user, const assay_tensor_t* got,
                                 const assay_tensor_t* golden);
assay_status_t assay_holdout_run(assay_holdout_t* h, size_t sample, const assay_repair_t* r,
                                 assay_holdout_see_t* see, void* user,
                                 bool* out_fits) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SOLVE_HOLDOUT_H_
