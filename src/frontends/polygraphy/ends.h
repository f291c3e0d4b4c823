// What --tensor-dtypes and --tensor-formats ask of inputs and outputs.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_ENDS_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_ENDS_H_

#include "frontends/polygraphy/job.h"

// Appends the value of trtexec's --inputIOFormats, or --outputIOFormats, for these inputs or
// outputs; nothing where no flag asks for anything. formats: whether layouts are asked for, too.
assay_status_t pg_put_ends(pg_job_t* j, assay_value_t* const* values, size_t n, bool formats,
                           assay_str_t* out) ASSAY_MUST_USE;
// Warns of names in these flags that no input and no output has.
assay_status_t pg_warn_of_ends(pg_job_t* j, const assay_graph_t* g) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_ENDS_H_
