// The CPU's kernels for other backends.
#include "backends/host_kernels.h"

#include "backends/cpu/shared.h"
#include "backends/cpu/tactic.h"

assay_status_t assay_host_kernels_create(assay_choice_t** out) {
  return cpu_choice_create(NULL, out);
}

assay_status_t assay_host_kernel_make(assay_choice_t* kernels, const assay_sized_layer_t* l,
                                      assay_kernel_t** out) {
  assay_candidate_t candidates[ASSAY_MAX_CANDIDATES];
  int n;
  assay_sized_layer_t here = *l;
  *out = NULL;
  if (!cpu_takes(l->layer)) return NULL;
  here.resident = NULL;
  here.own = NULL;
  for (size_t i = 0; i < here.n_in; i++) here.in[i].store = kernels->store;
  return assay_choose(kernels, &here, out, candidates, &n);
}
