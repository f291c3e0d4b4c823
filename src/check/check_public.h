// Public checks (assay/check.h): what they hold on to besides what was found.
#ifndef ASSAY_CHECK_CHECK_PUBLIC_H_
#define ASSAY_CHECK_CHECK_PUBLIC_H_

#include "account/engine.h"
#include "check/check.h"

typedef struct assay_check_job {
  assay_requirements_t require;
  assay_pictures_t pictures;
  char** passes_off;  // texts of its own
  size_t n_passes_off;
  char* inject;
  bool ran;
  assay_str_t notes;
  // A batch that does not run is cut into these.
  assay_samples_t rows, golden_rows;
  // An engine that is not Assay's; NULL: the backend.
  assay_external_engine_t* engine;
  char *engine_name, *engine_model;
  const char* engine_precision;
  bool* dtype_used;
  size_t n_dtypes;
  assay_name_map_t engine_names;
  // Golden against the repaired model (assay_check_repair).
  size_t n_repairs;
  assay_export_t repaired;
  assay_str_t repair_error;  // why the model with the repairs cannot be run; empty: it can
} assay_check_job_t;

void assay_check_job_destroy(struct assay_check_job* job);  // NULL is allowed
// What reports call the target: a backend, a command or a file.
const char* assay_check_target_name(const assay_check_t* c);
// The sizes that a model was prepared with, of inputs that have a shape. The caller frees both
// arrays, also where this fails.
assay_status_t assay_check_input_shapes(const assay_model_t* m, assay_input_shape_t** out,
                                        int64_t** dims, size_t* out_n) ASSAY_MUST_USE;
// A number of the plan, the target, the machine and what is judged: parts are of one
// (check_part.c).
assay_status_t assay_check_identify(const assay_check_t* c, uint64_t* out) ASSAY_MUST_USE;
// Sets golden for a run of these samples.
assay_status_t assay_check_set_golden(assay_check_t* c, const assay_samples_t* inputs,
                                      assay_golden_t* golden) ASSAY_MUST_USE;
// INVALID_ARGUMENT before the run has ended well.
assay_status_t assay_check_want_run(const assay_check_t* c) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_CHECK_PUBLIC_H_
