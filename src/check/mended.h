// Constants that the format cannot hold as culprits, and numbers in their place that mend the
// outputs: an alternative to layers in fp32.
#ifndef ASSAY_CHECK_MENDED_H_
#define ASSAY_CHECK_MENDED_H_

#include "account/runs.h"
#include "diagnose/constants/lost_constants.h"

struct assay_check;

// Starts as {0}.
typedef struct assay_mended {
  assay_lost_constants_t lost;  // culprits point into it
  // Changes with which the outputs meet what is required, by truth of the model as it is; verified
  // by a run. Nodes are those of the model as it was given.
  assay_repair_t* repairs;
  const assay_lost_constant_t** of;  // by repair: the constant
  size_t n, capacity, capacity_of;
  assay_output_check_t* outputs;  // of that run; NULL: no change does
  int attempt;                    // of the numbers (assay_mended_number)
  int runs;
} assay_mended_t;
void assay_mended_deinit(assay_mended_t* m);

// After the culprits of a run that does not do: those whose layer reads a constant that explains
// it name the constant.
assay_status_t assay_mended_blame(struct assay_check* check) ASSAY_MUST_USE;
// Runs the model with other numbers in place of the constants. Where that mends the outputs, or
// takes all NaN and infinities from them, the constants are the first culprits: those without
// which it does not. At most max_runs + 2 runs.
assay_status_t assay_mended_find(struct assay_check* check, assay_runs_t* runs,
                                 size_t max_runs) ASSAY_MUST_USE;
// Puts the numbers into a model as it was read.
assay_status_t assay_mended_apply(const assay_mended_t* m, assay_model_t* model) ASSAY_MUST_USE;

#endif  // ASSAY_CHECK_MENDED_H_
