// --save-tactics and --load-tactics: which tactic runs each layer of a plan.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_TACTICS_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_TACTICS_H_

#include "frontends/polygraphy/job.h"
#include "io/tactics.h"

// Before a build: what --load-tactics forces, as cli_build_t has it; NULL where it is not given.
// Errors: NOT_FOUND, CORRUPT the file; UNSUPPORTED it is TensorRT's.
assay_status_t pg_tactics_load(pg_job_t* j, const char** out_forced) ASSAY_MUST_USE;
// After it: writes --save-tactics, and holds the plan against --load-tactics.
//   tactics  by layer of the engine's plan
// Errors: INVALID_ARGUMENT a layer of the replay runs by another tactic.
assay_status_t pg_tactics_settle(pg_job_t* j, const assay_engine_t* engine,
                                 const char* const* tactics, size_t n) ASSAY_MUST_USE;

// An algorithm as Polygraphy shows it: "(Implementation: 1, Tactic: 5) | Inputs: ...".
void pg_put_algorithm(assay_str_t* out, const assay_tactic_entry_t* e);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_TACTICS_H_
