// The CPU backend's kernels, for backends whose devices leave a layer to the host.
#ifndef ASSAY_BACKENDS_HOST_KERNELS_H_
#define ASSAY_BACKENDS_HOST_KERNELS_H_

#include "exec/choice/choice.h"

// Chooses among them, and holds what they make of constants; freed with assay_choice_destroy().
assay_status_t assay_host_kernels_create(assay_choice_t** out) ASSAY_MUST_USE;

// The kernel by which the CPU backend would run a layer; its operands lie in the host's memory.
// *out NULL: it has none for it. Threads: any.
assay_status_t assay_host_kernel_make(assay_choice_t* kernels, const assay_sized_layer_t* l,
                                      assay_kernel_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_HOST_KERNELS_H_
