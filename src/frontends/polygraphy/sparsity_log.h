// What inspect sparsity, surgeon prune and surgeon weight-strip say of weights.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_SPARSITY_LOG_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_SPARSITY_LOG_H_

#include "edit/weights/sparsity.h"
#include "frontends/polygraphy/job.h"

// Weights that can be sparse, those that cannot being told.
assay_status_t pg_sparsity_find(assay_model_t* m, assay_sparse_weight_t** out,
                                size_t* out_n) ASSAY_MUST_USE;
// Says of each whether it is.
assay_status_t pg_sparsity_report(assay_model_t* m) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_SPARSITY_LOG_H_
