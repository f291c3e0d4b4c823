// What an engine that is not ours made of its runs: values by name, for the recorded backend.
#ifndef ASSAY_PLAN_RECORDED_H_
#define ASSAY_PLAN_RECORDED_H_

#include "ir/ir.h"

typedef struct assay_recorded {
  // By value id: every run gives it. All tensors among the outputs of the graph, and any values of
  // the top graph that nodes make.
  const bool* holds;
  // Fetches what the engine made of sample k: out[id], retained, of the declared type, for every
  // value that it holds; all are NULL before. Samples are asked for in order, the first may be
  // again.
  assay_status_t (*fetch)(void* user, size_t k, assay_tensor_t** out);
  void* user;
} assay_recorded_t;

#endif  // ASSAY_PLAN_RECORDED_H_
