// The front end `assay polygraphy`, also by a link named `polygraphy`.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_POLYGRAPHY_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_POLYGRAPHY_H_

#include "cli/verbs.h"

// Runs what stands after the program's name; returns the exit code: 0 passed, 1 failed, 2 misused.
int assay_polygraphy(int argc, char** argv);
// The subcommands and their flags, for completion scripts.
assay_status_t assay_polygraphy_complete(completion_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_POLYGRAPHY_H_
