// --postprocess and --postprocess-func-script: outputs made into others before they are compared.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DATA_POSTPROCESS_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DATA_POSTPROCESS_H_

#include "frontends/polygraphy/job.h"
#include "io/set.h"

// Applies "[out:]top-K[,axis=A]": in place of each output that it names, the indices of its K
// largest along the axis (the last one unless said), the largest first; of equal ones the first.
// Tensors are shared where nothing is asked of them. Where a script is given, what its function
// makes of them instead.
//   runner  whose outputs they are
assay_status_t pg_postprocess(pg_job_t* j, const char* runner, const assay_set_t* from,
                              assay_set_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DATA_POSTPROCESS_H_
