// What a backend is: something that runs the layers of a plan.
#include "exec/backend.h"

#include <string.h>

bool assay_tactic_is_emulated(const char* tactic) {
  return strcmp(tactic, assay_backend_emu.name) == 0;
}

assay_status_t assay_backend_output(const assay_backend_t* backend, void* state,
                                    const assay_value_t* value, assay_tensor_t** out) {
  assay_tensor_t* stored = NULL;
  *out = backend->get(state, value);
  if (*out || !backend->packed) return NULL;
  ASSAY_TRY(backend->packed(state, value, &stored));
  return stored ? assay_status_no_memory() : NULL;
}
