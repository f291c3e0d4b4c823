// Which axis of each input is the batch.
#ifndef ASSAY_DEBUG_BATCH_AXIS_H_
#define ASSAY_DEBUG_BATCH_AXIS_H_

#include "ir/ir.h"

// Axis `place` of all inputs that are open there; or, where `open` is not NULL, the axis of each
// input that has this size: `place` in the first of them.
typedef struct assay_batch_axis {
  int place;
  const assay_dim_t* open;
} assay_batch_axis_t;

// asked: "1", or the name of an open size; NULL: the open size that is named after a batch, else
// the first axis, else the first open one. Errors: INVALID_ARGUMENT no input has what is asked for.
assay_status_t assay_batch_axis_find(const assay_model_t* m, const char* asked,
                                     assay_batch_axis_t* out) ASSAY_MUST_USE;
// The axis of one input; -1: it is the same for all samples. batch: a size of so many is a batch,
// too; 0: only open ones are.
int assay_batch_axis_of(const assay_batch_axis_t* a, const assay_value_t* input, int64_t batch);

#endif  // ASSAY_DEBUG_BATCH_AXIS_H_
