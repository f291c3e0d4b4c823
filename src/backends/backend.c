#include "backends/backend.h"

#include <string.h>

static const assay_backend_t* const backends[] = {&assay_backend_emu, &assay_backend_cpu};

const assay_backend_t* assay_backend_find(const char* name) {
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
    if (strcmp(backends[i]->name, name) == 0) return backends[i];
  return NULL;
}
