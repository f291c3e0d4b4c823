// What each of the tactics that take a layer made of the same inputs.
#include "exec/choice/tactic_runs.h"

#include "base/alloc.h"

void assay_tactic_run_deinit(assay_tactic_run_t* r) {
  for (size_t i = 0; i < r->n_out; i++) assay_tensor_release(r->out[i]);
  assay_free(r->out);
  *r = (assay_tactic_run_t){0};
}

void assay_tactic_runs_deinit(assay_tactic_runs_t* r) {
  for (size_t i = 0; i < r->n; i++) assay_tactic_run_deinit(&r->at[i]);
  assay_free(r->at);
  *r = (assay_tactic_runs_t){0};
}
