// --compare-func-script: a function of the user's in place of the metrics.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMPARE_SCRIPT_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMPARE_SCRIPT_H_

#include "compare/comparison.h"
#include "frontends/polygraphy/job.h"

// Has the function of --compare-func-script compare one iteration of a pair, prints its verdicts
// and adds them to the only result of `c`. *out_failed: one of them is no.
//   pair   its number, of assay_comparing_add_pair
//   a, b   outputs of the first and second runner
// Errors: as of pg_script_call; INVALID_ARGUMENT the function gave no dict
assay_status_t pg_compare_by_script(pg_job_t* j, assay_comparing_t* c, size_t pair,
                                    const assay_set_t* a, const assay_set_t* b,
                                    bool* out_failed) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMPARE_SCRIPT_H_
