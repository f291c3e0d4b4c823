// Runs row pipelines (exec/segment/row_pipeline.h) on the CPU: threads share the rows of the last
// output.
#ifndef ASSAY_BACKENDS_CPU_ROW_PIPELINE_H_
#define ASSAY_BACKENDS_CPU_ROW_PIPELINE_H_

#include "exec/segment/row_pipeline.h"

// Where a kernel's operands lie.
typedef struct cpu_operands {
  const void* in[ASSAY_KERNEL_OPERANDS];
  void* out[ASSAY_KERNEL_OPERANDS];
} cpu_operands_t;

// Settles how pipeline->n kernels run; false: one by one they are faster.
bool cpu_pipeline_couple(assay_kernel_t* const* kernels, assay_pipeline_t* pipeline);
// memory: max_parts * thread_bytes, aligned.
void cpu_pipeline_run(const assay_pipeline_t* pipeline, assay_kernel_t* const* kernels,
                      const cpu_operands_t* operands, void* memory);

#endif  // ASSAY_BACKENDS_CPU_ROW_PIPELINE_H_
