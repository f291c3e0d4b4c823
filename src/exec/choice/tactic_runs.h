// What each of the tactics that take a layer made of the same inputs.
#ifndef ASSAY_EXEC_CHOICE_TACTIC_RUNS_H_
#define ASSAY_EXEC_CHOICE_TACTIC_RUNS_H_

#include "ops/bound.h"
#include "tensor/tensor.h"

typedef struct assay_tactic_run {
  const char *name, *source;
  const char* numerics;  // as in assay_tactic_t
  assay_rounding_t rounding;
  double microseconds;  // NAN: not measured
  size_t n_out;
  assay_tensor_t** out;  // of the layer's last node, canonical, as stored; NULL: left out
} assay_tactic_run_t;

typedef struct assay_tactic_runs {
  assay_tactic_run_t* at;  // in the table's order
  size_t n, capacity;
} assay_tactic_runs_t;

void assay_tactic_run_deinit(assay_tactic_run_t* r);
void assay_tactic_runs_deinit(assay_tactic_runs_t* r);

#endif  // ASSAY_EXEC_CHOICE_TACTIC_RUNS_H_
