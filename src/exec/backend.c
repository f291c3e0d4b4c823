// What a backend is: something that runs the layers of a plan.
#include "exec/backend.h"

#include <string.h>

#ifdef ASSAY_MOCK_BACKEND
// A device for tests (tests/device/mock): in what is linked with this file compiled so.
extern const assay_backend_t assay_backend_mock;
#define MOCK , &assay_backend_mock
#else
#define MOCK
#endif

static const assay_backend_t* const backends[] = {&assay_backend_emu, &assay_backend_cpu MOCK};

const assay_backend_t* assay_backend_find(const char* name) {
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
    if (strcmp(backends[i]->name, name) == 0) return backends[i];
  return NULL;
}

assay_status_t assay_backend_output(const assay_backend_t* backend, void* state,
                                    const assay_value_t* value, assay_tensor_t** out) {
  assay_tensor_t* stored = NULL;
  *out = backend->get(state, value);
  if (*out || !backend->packed) return NULL;
  ASSAY_TRY(backend->packed(state, value, &stored));
  return stored ? assay_status_no_memory() : NULL;
}
