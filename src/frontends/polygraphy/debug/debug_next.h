// What comes after a search by precision.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_NEXT_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_NEXT_H_

#include "frontends/polygraphy/job.h"

// The command of 'assay' that finds the fewest layers for the line's model and format, with the
// inputs and the tolerance of its check. Nothing where there is none.
assay_status_t pg_put_fewest(pg_job_t* j, assay_str_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_NEXT_H_
