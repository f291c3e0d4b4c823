// Tactics of the CPU: backends/kernel.h says what a tactic and a kernel are.
#ifndef ASSAY_BACKENDS_CPU_TACTIC_H_
#define ASSAY_BACKENDS_CPU_TACTIC_H_

#include "backends/kernel.h"

// All tactics; of those that fit a layer the first one runs it.
extern const assay_tactic_t* const cpu_tactics[];
extern const size_t cpu_n_tactics;

// Bytes of a core's second cache, or what most have where that is not known.
int64_t cpu_second_cache(void);
// Libraries, their versions and the instruction sets that kernels are made for.
void cpu_describe_machine(assay_str_t* out);

#endif  // ASSAY_BACKENDS_CPU_TACTIC_H_
