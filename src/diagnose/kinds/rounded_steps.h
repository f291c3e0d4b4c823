// Quantizers that a graph spells out: divided by a step, rounded, and multiplied by it again.
#ifndef ASSAY_DIAGNOSE_KINDS_ROUNDED_STEPS_H_
#define ASSAY_DIAGNOSE_KINDS_ROUNDED_STEPS_H_

#include "diagnose/kinds/rounded_made.h"

// Which values such quantizers make at run, in steps, before they are multiplied: is[value id].
// What is made of constants alone is a weight, and no such value.
assay_status_t assay_rounded_steps_list(const assay_model_t* model, assay_rounded_made_t* made,
                                        bool* is, size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_ROUNDED_STEPS_H_
