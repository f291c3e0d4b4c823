// --set-unbounded-dds-upper-bound, --list-unbounded-dds.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_SURGEON_BOUNDS_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_SURGEON_BOUNDS_H_

#include "frontends/polygraphy/job.h"

// Bounds sizes that depend on data, as the line says; *m becomes another model.
assay_status_t pg_set_bounds(pg_job_t* j, assay_model_t** m) ASSAY_MUST_USE;
// Says which values have none.
assay_status_t pg_list_unbounded(const assay_model_t* m) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_SURGEON_BOUNDS_H_
