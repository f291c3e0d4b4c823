// What the strategies of fewest.c share.
#ifndef ASSAY_DIAGNOSE_FEWEST_STRATEGIES_H_
#define ASSAY_DIAGNOSE_FEWEST_STRATEGIES_H_

#include "diagnose/fewest.h"

// What is to be run next.
typedef enum assay_fewest_step {
  ASSAY_FEWEST_STOP = 0,
  ASSAY_FEWEST_TRY,       // the set
  ASSAY_FEWEST_TRY_NONE,  // the model as asked, whatever is in the set
} assay_fewest_step_t;

// A search that is going on.
typedef struct assay_fewest {
  const assay_fewest_setting_t* setting;
  assay_fp32_subject_t subject;
  assay_fewest_found_t* found;
  assay_fix_t* fix;  // of `found`: what is searched for
  assay_fp32_set_t set;
  bool take;  // the next run is to be taken
  // What outputs have to come near, besides doing; NULL: nothing.
  const assay_output_check_t* reference;
  // With all layers in fp32: outputs that are wrong there are not asked to be right; NULL: all are.
  const assay_output_check_t* excused;

  // The last run: what it gave, until somebody takes it over; its plan and what it made.
  size_t n_runs, n_ran;  // n_ran: nodes in the set of the last one
  assay_run_result_t last;
  assay_plan_t* plan;
  assay_taken_t* taken;  // NULL: not taken

  void* state;  // the strategy's, zeroed at first
} assay_fewest_t;

typedef struct assay_fewest_row {
  size_t state_bytes;
  // Changes the set for the next run.
  assay_status_t (*propose)(assay_fewest_t* f, assay_fewest_step_t* out);
  // Takes in the last run; tried_none: it was of no layers in fp32.
  assay_status_t (*learn)(assay_fewest_t* f, bool tried_none);
  assay_status_t (*finish)(assay_fewest_t* f);
  void (*free_state)(void* state);  // what it holds on to; NULL: nothing
  bool fixed;                       // nothing is to be taken out of its set
  bool proposed;                    // by the caller, who has tried all layers where it wants to
} assay_fewest_row_t;

extern const assay_fewest_row_t assay_fewest_observed, assay_fewest_predicted, assay_fewest_bisect,
    assay_fewest_linear, assay_fewest_proposed;
// What follows a strategy whose set does: fewer layers.
extern const assay_fewest_row_t assay_fewest_removal;

void assay_fewest_progress(const assay_fewest_t* f, const char* what, double fraction);
// Whether the last run's outputs are what is asked for.
bool assay_fewest_does(const assay_fewest_t* f);
// Whether outputs come near others (assay_fewest_found_t).
bool assay_fewest_is_near(const assay_fewest_t* f, const assay_output_check_t* outputs,
                          const assay_output_check_t* others);
// The last run becomes that of the model as asked, or of the fix.
void assay_fewest_take_asked(assay_fewest_t* f);
void assay_fewest_take_fix(assay_fewest_t* f);

#endif  // ASSAY_DIAGNOSE_FEWEST_STRATEGIES_H_
