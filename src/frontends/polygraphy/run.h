// Parts of polygraphy run.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_RUN_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_RUN_H_

#include "frontends/polygraphy/job.h"

// --show-native: the commands of 'assay' that do the same.
assay_status_t pg_run_print_native(pg_job_t* j) ASSAY_MUST_USE;
// --gen-script: the line as a Python script that runs it.
assay_status_t pg_run_write_script(pg_job_t* j) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_RUN_H_
