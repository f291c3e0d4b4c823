// Functions of the user's Python scripts, each called in a child process of its own.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DATA_SCRIPT_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DATA_SCRIPT_H_

#include "frontends/polygraphy/job.h"
#include "io/set.h"

enum { PG_SCRIPT_MAX_SETS = 2 };

typedef struct pg_script_call {
  const char* flag;      // for messages: "--data-loader-script"
  const char* script;    // FILE.py[:FUNCTION]
  const char* function;  // where the script's word names none
  // Python that calls `function` and writes what it gives to `out` as JSON. It has array(), which
  // makes JSON of an array, and `sets`: dicts of arrays by name, with a runner_name.
  const char* driver;
  const assay_set_t* sets[PG_SCRIPT_MAX_SETS];
  const char* runners[PG_SCRIPT_MAX_SETS];  // whose they are
  size_t n_sets;
  const char* instead;  // what does without Python, for messages
} pg_script_call_t;

// Appends what the driver wrote. The Python is `python3`, or ASSAY_PYTHON.
// Errors: NOT_FOUND no such file; DEVICE no Python, or the function failed
assay_status_t pg_script_call(pg_job_t* j, const pg_script_call_t* call,
                              assay_str_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DATA_SCRIPT_H_
