// Tactics of the CPU: exec/kernel.h says what a tactic and a kernel are.
#ifndef ASSAY_BACKENDS_CPU_TACTIC_H_
#define ASSAY_BACKENDS_CPU_TACTIC_H_

#include "exec/choice/costs.h"
#include "exec/kernel.h"
#include "exec/segment/sizes.h"

// The rounding of a tactic that sums float32 by fused multiply-adds, as the operator's definition
// says; subnormals may be zeros. A row says what else is true of it after this.
#define CPU_FLOAT_SUMS                                                         \
  .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .fma = true, \
  .by_definition = true, .flushes = true, .function_ulps = 4

// Whether any may compute in the layer's format. What sums are kept in is fp32 in all of them; tf32
// is not a format of a CPU.
static inline bool cpu_takes(const assay_layer_t* l) {
  return l->format != ASSAY_FORMAT_TF32 && l->accumulator == ASSAY_FORMAT_FP32;
}

// All tactics; of those that fit a layer the first one runs it.
extern const assay_tactic_t* const cpu_tactics[];
extern const size_t cpu_n_tactics;

// As assay_backend_t.each_tactic.
assay_status_t cpu_each_tactic(const assay_layers_t* layers, size_t i, const assay_sizes_t* sizes,
                               assay_tensor_t* const* in, bool timed,
                               assay_tactic_runs_t* out) ASSAY_MUST_USE;

// By which tactics are ranked on this machine; NULL: by the table alone.
const assay_costs_t* cpu_costs(void);
// Bytes of a core's second cache, or what most have where that is not known.
int64_t cpu_second_cache(void);
// Libraries, their versions and the instruction sets that kernels are made for.
void cpu_describe_machine(assay_str_t* out);

#endif  // ASSAY_BACKENDS_CPU_TACTIC_H_
