// A tuning that is going on: what tune.c and the files below work on.
#ifndef ASSAY_TUNE_JOB_H_
#define ASSAY_TUNE_JOB_H_

#include "tune/model.h"

enum { ASSAY_TUNE_MAX_RUNS = 8 };  // of assignments that were searched for, by default
#define ASSAY_TUNE_FASTER 0.995    // of the best's price: what is worth another run
#define ASSAY_TUNE_PROBE_PART 8    // how many times the budgets a look past them goes

typedef struct assay_tune_job {
  const assay_tune_setting_t* options;
  const assay_samples_t* inputs;
  assay_runs_t* runs;
  assay_tune_model_t model;
  assay_tuned_t* out;
  assay_tune_state_t state, scratch;
  assay_format_t* given;  // by node id
  size_t reference;       // the trial that forecasts start from
  double *cap, *refused;  // by output: errors that commands of the user's leave, have refused
  size_t searched;        // runs of assignments that were searched for
  size_t probes;          // of them: past the budgets
  double part;            // of the budgets, to look within
  bool learned;           // there is nothing left to learn from commands of the user's
} assay_tune_job_t;

assay_tune_problem_t* assay_tune_job_problem(assay_tune_job_t* j);
void assay_tune_job_progress(const assay_tune_job_t* j, const char* what);

// ---- trials.c ----

void assay_tune_trial_deinit(assay_tune_trial_t* t);
// Fills a trial's formats, numbers of layers and time.
assay_status_t assay_tune_job_describe(const assay_tune_job_t* j, const uint8_t* format,
                                       assay_tune_trial_t* t) ASSAY_MUST_USE;
// What the problem says of the state, in statistics; the reference is the run that they start from.
assay_status_t assay_tune_job_predict(assay_tune_job_t* j, const assay_tune_state_t* s,
                                      assay_output_check_t** out) ASSAY_MUST_USE;
// Runs the state, and adds it to the trials.
assay_status_t assay_tune_job_try(assay_tune_job_t* j, const assay_tune_state_t* s,
                                  bool forecast) ASSAY_MUST_USE;
// The trial of these formats; SIZE_MAX: they have not been run.
size_t assay_tune_job_find(const assay_tune_job_t* j, const uint8_t* format);
// What is to be made small.
double assay_tune_job_price(assay_tune_job_t* j, const uint8_t* format);
// Notes the trial with the lowest price that meets the requirements.
void assay_tune_job_choose(assay_tune_job_t* j);

// ---- budgets.c ----

void assay_tune_job_set_budgets(assay_tune_job_t* j);
// Sets the forecast right by a trial of the job's state.
void assay_tune_job_correct(assay_tune_job_t* j, const assay_tune_trial_t* t);
bool assay_tune_statistics_hold(const assay_tune_trial_t* t, size_t n);
bool assay_tune_job_has_commands(const assay_tune_job_t* j);
// A command of the user's has spoken on a trial. False: there is nothing left to learn.
bool assay_tune_job_ask_commands(assay_tune_job_t* j, const assay_tune_trial_t* t);

// ---- proposals.c ----

// The next assignment that is worth a run, in the job's state; *out_more false: there is none.
assay_status_t assay_tune_job_next(assay_tune_job_t* j, size_t max, bool* out_more) ASSAY_MUST_USE;
// Whether its price is lower than that of the best trial.
bool assay_tune_job_is_faster(assay_tune_job_t* j, const uint8_t* format);
// Runs it, and takes in what came of it.
assay_status_t assay_tune_job_verify(assay_tune_job_t* j) ASSAY_MUST_USE;
// How many assignments may be run in all: more where runs cost little.
size_t assay_tune_job_affordable(const assay_tune_job_t* j);

// ---- fewest_layers.c ----

// ASSAY_TUNE_LAYERS: the assignments that are worth a run, and then without some of their layers in
// the highest format (diagnose/fewest.h).
assay_status_t assay_tune_job_fewest_layers(assay_tune_job_t* j) ASSAY_MUST_USE;

#endif  // ASSAY_TUNE_JOB_H_
