// Whether the sizes that a layer's outputs are said to have are those that its operators give them.
//
// A file may declare sizes that inference cannot check: a Reshape whose shape only a run brings, a
// Squeeze of axes that are an input. Kernels are fixed to sizes, so that one made for what is
// declared would run where the operator makes something else, or refuses. Only the operator's own
// rule, for the sizes at hand and the operands that are known before the run, counts here.
#ifndef ASSAY_EXEC_SEGMENT_IMPLIED_H_
#define ASSAY_EXEC_SEGMENT_IMPLIED_H_

#include "exec/kernel.h"
#include "exec/segment/sizes.h"

// Memory for many such questions; zeroed at first.
typedef struct assay_implied {
  assay_model_t* model;
  int n_asked;
} assay_implied_t;
void assay_implied_deinit(assay_implied_t* memory);

// *out false: the rule says otherwise, refuses, or needs elements that only the run brings; then
// the layer is to be evaluated. An operator without a rule has the sizes that are declared.
assay_status_t assay_sizes_are_implied(assay_implied_t* memory, const assay_sized_layer_t* l,
                                       const assay_sizes_t* sizes, bool* out) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_SEGMENT_IMPLIED_H_
