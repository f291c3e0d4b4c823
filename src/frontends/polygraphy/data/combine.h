// Statistics of saved tensors beside those of a model: --combine-tensor-info.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMBINE_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMBINE_H_

#include "frontends/polygraphy/job.h"
#include "report/tensor_info.h"

// Reads the file that the line names, if it does. Starts as {0}; assay_tensor_info_deinit.
assay_status_t pg_read_tensor_info(const pg_job_t* j, assay_tensor_info_t* out) ASSAY_MUST_USE;
// Warns of tensors that a model has not, or that do not pass between the layers of a plan.
// NOT_FOUND: it is all of them.
assay_status_t pg_match_model(const pg_job_t* j, const assay_model_t* m,
                              assay_tensor_info_t* info) ASSAY_MUST_USE;
assay_status_t pg_match_plan(const pg_job_t* j, const assay_engine_t* engine,
                             assay_tensor_info_t* info) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMBINE_H_
