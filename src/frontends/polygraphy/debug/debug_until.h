// --until of debug build and debug repeat: when it is enough.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_UNTIL_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_UNTIL_H_

#include "frontends/polygraphy/debug/debug_loop.h"

typedef struct pg_until {
  bool good, bad;  // until the first such iteration
  size_t n;        // else so many
  bool reached;
} pg_until_t;

assay_status_t pg_until_read(const pg_job_t* j, pg_until_t* out) ASSAY_MUST_USE;
// As a loop's `advance`, with the pg_until_t as user.
assay_status_t pg_until_advance(void* until, const pg_iteration_t* i,
                                bool* out_stop) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DEBUG_DEBUG_UNTIL_H_
