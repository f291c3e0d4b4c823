// What contexts of a plan share on the CPU.
#ifndef ASSAY_BACKENDS_CPU_SHARED_H_
#define ASSAY_BACKENDS_CPU_SHARED_H_

#include "exec/choice/choice.h"

// The choice between the CPU's tactics, timed on this machine with as many threads as the caller's.
assay_status_t cpu_choice_create(const assay_backend_options_t* options,
                                 assay_choice_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CPU_SHARED_H_
