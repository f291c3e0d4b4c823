// Nodes evaluated once, before any run: in float64, each output rounded once to its declared type.
// What constant folding does when a plan is built, and a segment for contents that follow from
// sizes, when sizes are known: both give the same numbers.
#ifndef ASSAY_PASSES_FOLD_H_
#define ASSAY_PASSES_FOLD_H_

#include "eval/evaluator.h"

// The machine that folds: sums are in the order of the documentation, so that plans and what emu
// makes of them are the same on every CPU.
extern const assay_evaluator_config_t assay_fold_config;

enum { ASSAY_FOLD_OPERANDS = 16, ASSAY_FOLD_BYTES = 64 << 20 };

// Whether a node's outputs may be computed once, its inputs known: nothing random, no bodies, no
// quantizers, no graph outputs, no formats of 8 bits.
bool assay_fold_allows(const assay_node_t* n);
// Whether a tensor of that many elements is small enough.
bool assay_fold_is_small(int64_t elems);
// out[] is filled with tensors that share nothing with the inputs; NULL for those that are left
// out. *out_fits false, and nothing in out[]: evaluating fails (where it runs is where that is
// reported), or rounding would change an output more than truth allows.
assay_status_t assay_fold(assay_evaluator_t* m, const assay_node_t* n, assay_tensor_t* const* in,
                          assay_tensor_t** out, bool* out_fits) ASSAY_MUST_USE;

#endif  // ASSAY_PASSES_FOLD_H_
