// The two fixes that a user can choose from: the fewest layers in fp32 that meet the requirements,
// and the fewest that come near what keeping all of them would give.
#ifndef ASSAY_CHECK_FIX_FRONT_H_
#define ASSAY_CHECK_FIX_FRONT_H_

#include <assay/check.h>

#include "diagnose/fewest.h"

// Starts as {0}: nobody asked for both.
typedef struct assay_fix_front {
  assay_fix_choice_t chosen;  // which one the fix is; ANY: nobody asked
  bool has_best;              // some layers come near all in fp32, and all in fp32 do
  bool differ;                // `other` is the one that is not chosen; else both are the same
  assay_fix_t other;
  assay_output_check_t* wide;  // outputs with all layers in fp32, also for ANY; NULL: not run
  // Of a run with each, estimated, over that of a run with all layers in fp32; 0: not known.
  double time_fewest, time_best;
} assay_fix_front_t;

// Takes the front out of what was found, whose fix becomes the chosen one if there is one. The plan
// and its account are as asked; account NULL: times are not known.
void assay_fix_front_take(assay_fix_choice_t choice, const assay_plan_t* plan,
                          const assay_account_t* account, assay_fewest_found_t* found,
                          assay_fix_front_t* out);
// Whether no precision mends an output: with all layers in fp32, what rounds there is off by so
// much more than a unit that values have cancelled. NULL: all layers in fp32 were not run.
bool assay_fix_front_is_ill(const assay_output_check_t* wide);
void assay_fix_front_deinit(assay_fix_front_t* f);
// One of the two; NULL: there is none. chosen: the fix that the front is beside.
const assay_fix_t* assay_fix_front_get(const assay_fix_front_t* f, const assay_fix_t* chosen,
                                       assay_fix_choice_t which);
// The estimated time of one of the two; 0: not known.
double assay_fix_front_time(const assay_fix_front_t* f, assay_fix_choice_t which);

#endif  // ASSAY_CHECK_FIX_FRONT_H_
