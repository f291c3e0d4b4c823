// Nodes evaluated once, before any run, each output rounded once to its declared type.
//
// Constant folding does it when a plan is built, and a segment for contents that follow from sizes,
// when sizes are known: in float64, so that both give the same numbers. Edits of a model fold as a
// runtime would compute.
#ifndef ASSAY_PASSES_FOLD_H_
#define ASSAY_PASSES_FOLD_H_

#include "eval/evaluator.h"
#include "passes/pass.h"

// The machine that folds: sums are in the order of the documentation, so that plans and what emu
// makes of them are the same on every CPU.
extern const assay_evaluator_config_t assay_fold_config;

enum { ASSAY_FOLD_OPERANDS = 16, ASSAY_FOLD_BYTES = 64 << 20 };

// Whether a node's outputs may be computed once, its inputs known: nothing random, no bodies, no
// quantizers, no graph outputs, no formats of 8 bits.
bool assay_fold_allows(const assay_node_t* n);
// The number of elements of a tensor of this shape. False: some size is not known, or there are too
// many.
bool assay_fold_elems(const assay_valtype_t* t, int64_t* out);
// Whether a tensor of that many elements is small enough.
bool assay_fold_is_small(int64_t elems);
// out[] is filled with tensors that share nothing with the inputs; NULL for those that are left
// out. *out_fits false, and nothing in out[]: evaluating fails (where it runs is where that is
// reported), or rounding would change an output more than truth allows.
assay_status_t assay_fold(assay_evaluator_t* m, const assay_node_t* n, assay_tensor_t* const* in,
                          assay_tensor_t** out, bool* out_fits) ASSAY_MUST_USE;

// What a pass folds, and how.
typedef struct assay_folding {
  const assay_evaluator_config_t* config;
  // Whether to fold a node, of those that read only constants.
  bool (*wants)(const assay_pass_context_t* c, const assay_node_t* n);
  const char* why;  // what is noted of a node that goes; NULL: that it reads only constants
} assay_folding_t;

// Folds the nodes of all graphs that read only constants: their outputs become constants, and they
// go. What assay_fold() refuses stays.
assay_status_t assay_fold_nodes(assay_pass_context_t* c, const assay_folding_t* f) ASSAY_MUST_USE;

#endif  // ASSAY_PASSES_FOLD_H_
