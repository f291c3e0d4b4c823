// Whether a quantized model's error is of near ties alone.
//
// A quantizer that float32 reaches half a rounding beside truth takes the other one of two integers
// where the number lies next to the middle between them. That is not an error of the engine's: the
// model itself is not defined any closer, and one such step may move what comes after it by far
// more than rounding does. So truth is run once more and takes over the engine's integer wherever
// it is one step from truth's and truth lies next to the middle: what is left is the engine's.
#ifndef ASSAY_ACCOUNT_VERDICT_NEAR_TIES_H_
#define ASSAY_ACCOUNT_VERDICT_NEAR_TIES_H_

#include "account/outputs.h"
#include "data/samples.h"
#include "exec/backend.h"
#include "plan/plan.h"

typedef struct assay_near_ties {
  int64_t elements;   // that are a step off, next to a tie
  size_t quantizers;  // nodes that have some
} assay_near_ties_t;

// All samples by the backend and by the truth that follows its steps; outputs: statistics of a
// model, empty, which are filled (golden is not compared). Only what layers show is followed: a
// step within a fused layer is not seen.
assay_status_t assay_near_ties_run(const assay_plan_t* plan, const assay_backend_t* backend,
                                   const assay_samples_t* inputs, uint64_t seed,
                                   assay_output_check_t* outputs,
                                   assay_near_ties_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_VERDICT_NEAR_TIES_H_
