// What the subcommands of `data` share.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DATA_DATA_FILES_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DATA_DATA_FILES_H_

#include "frontends/polygraphy/job.h"
#include "io/run_results.h"

// Inputs or results of a file or folder. An array that its file gives no name is refused.
assay_status_t pg_data_read(const char* path, assay_run_results_t* out) ASSAY_MUST_USE;
// Says what is saved, and saves it under --output.
assay_status_t pg_data_write(pg_job_t* j, const assay_run_results_t* r) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DATA_DATA_FILES_H_
