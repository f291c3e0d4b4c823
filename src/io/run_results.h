// What several runners gave, iteration by iteration: all that a file of Polygraphy's results holds.
#ifndef ASSAY_IO_RUN_RESULTS_H_
#define ASSAY_IO_RUN_RESULTS_H_

#include "base/str.h"
#include "io/saved.h"

typedef struct assay_runner_results {
  char* name;           // "": of inputs
  assay_saved_t saved;  // its iterations
  double* seconds;      // that each took; NaN: not known
  size_t cap;
} assay_runner_results_t;

// Starts as {0}. Fields are read freely.
typedef struct assay_run_results {
  assay_runner_results_t* runners;  // in order; names may come twice
  size_t n, cap;
  bool inputs;  // it holds what runners were given: one without name
} assay_run_results_t;

void assay_run_results_deinit(assay_run_results_t* r);
// A runner at the end, whose name is copied.
assay_status_t assay_run_results_add(assay_run_results_t* r, const char* name,
                                     assay_runner_results_t** out) ASSAY_MUST_USE;
// A new, empty iteration of a runner.
assay_status_t assay_runner_results_add(assay_runner_results_t* r, double seconds,
                                        assay_set_t** out) ASSAY_MUST_USE;
// An iteration with these tensors, which are shared.
assay_status_t assay_runner_results_append(assay_runner_results_t* to, const assay_set_t* from,
                                           double seconds) ASSAY_MUST_USE;
// Adds the iterations of `from` after those of runners of the same name; of inputs after those
// before. Tensors are shared.
assay_status_t assay_run_results_append(assay_run_results_t* to,
                                        const assay_run_results_t* from) ASSAY_MUST_USE;

// JSON: results of all runners, or inputs. Errors as of assay_saved_parse_json.
assay_status_t assay_run_results_parse_json(const void* data, size_t size,
                                            assay_run_results_t* out) ASSAY_MUST_USE;
// A folder of such files in the order of their names, appended one to the other.
assay_status_t assay_run_results_read_folder(const char* path,
                                             assay_run_results_t* out) ASSAY_MUST_USE;
// As Polygraphy writes it: a file, or where the name has no ending a folder of a file an iteration.
//   notes   lines for the user about types that are written as others; may be NULL
assay_status_t assay_run_results_write(const char* path, const assay_run_results_t* r,
                                       assay_str_t* notes) ASSAY_MUST_USE;

#endif  // ASSAY_IO_RUN_RESULTS_H_
