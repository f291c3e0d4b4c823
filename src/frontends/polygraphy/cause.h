// Why a comparison failed, in one line, and the command that tells more.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_CAUSE_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_CAUSE_H_

#include "frontends/polygraphy/runners.h"

// What two runners disagree about. NULL: results from a file, or inputs that are not known.
typedef struct pg_disputed {
  pg_runner_t *first, *second;
  const assay_set_t* inputs;
  const assay_set_t *a, *b;
} pg_disputed_t;
void pg_cause(pg_job_t* j, const pg_disputed_t* d);

// The same of a runner that gave NaN or infinity.
void pg_cause_invalid(pg_job_t* j, pg_runner_t* r, const assay_set_t* inputs);

// The 'assay check' that looks at what the line runs, or a runner of it (NULL: as the flags say).
// Its inputs are the line's files, or the one that the line writes, or, where pg_saves_inputs()
// says that there is none, this one.
#define PG_INPUTS_FILE "inputs.json"
assay_status_t pg_put_check(pg_job_t* j, const pg_runner_t* r, assay_str_t* out) ASSAY_MUST_USE;
bool pg_saves_inputs(const pg_job_t* j);

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_CAUSE_H_
