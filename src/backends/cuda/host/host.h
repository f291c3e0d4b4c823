// What layers on the host share: all contexts of an engine.
#ifndef ASSAY_BACKENDS_CUDA_HOST_HOST_H_
#define ASSAY_BACKENDS_CUDA_HOST_HOST_H_

#include "base/status.h"

typedef struct cuda_host cuda_host_t;

// Nothing is prepared until there is such a layer.
assay_status_t cuda_host_create(cuda_host_t** out) ASSAY_MUST_USE;
void cuda_host_destroy(cuda_host_t* h);  // NULL is allowed

#endif  // ASSAY_BACKENDS_CUDA_HOST_HOST_H_
