// Tactics that an accuracy gate lets serve a layer: how its weights are judged, and what is made of
// that.
#ifndef ASSAY_BACKENDS_LAYERS_JUDGED_H_
#define ASSAY_BACKENDS_LAYERS_JUDGED_H_

#include "exec/choice/accuracy_gate.h"
#include "exec/kernel.h"
#include "exec/weights.h"
#include "ops/sum_account.h"

// Judges weights, an assay_sum_account_t at `to`.
typedef assay_status_t assay_judge_t(const void* user, const float* weights,
                                     assay_sum_account_t* to);

// The account of weights. It is kept with them, by a key that is taken: a plan that is read asks
// nobody again.
assay_status_t assay_judged(const assay_operand_t* w, assay_str_t* take_key, assay_judge_t* judge,
                            const void* user, assay_sum_account_t* out) ASSAY_MUST_USE;
// The gate of a tactic whose weights have that account; the caller says `fits` and `pays`.
assay_accuracy_gate_t assay_judged_gate(const char* tactic, assay_fp32_t asks,
                                        const assay_sum_account_t* a);

#endif  // ASSAY_BACKENDS_LAYERS_JUDGED_H_
