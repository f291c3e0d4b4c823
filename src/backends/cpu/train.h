// Runs trains (exec/segment/train.h) on the CPU: threads share the rows of the last output.
#ifndef ASSAY_BACKENDS_CPU_TRAIN_H_
#define ASSAY_BACKENDS_CPU_TRAIN_H_

#include "exec/segment/train.h"

// Where a kernel's operands lie.
typedef struct cpu_operands {
  const void* in[ASSAY_KERNEL_OPERANDS];
  void* out[ASSAY_KERNEL_OPERANDS];
} cpu_operands_t;

// Settles how train->n kernels run; false: one by one they are faster.
bool cpu_train_couple(assay_kernel_t* const* kernels, assay_train_t* train);
// memory: most_parts * thread_bytes, aligned.
void cpu_train_run(const assay_train_t* train, assay_kernel_t* const* kernels,
                   const cpu_operands_t* operands, void* memory);

#endif  // ASSAY_BACKENDS_CPU_TRAIN_H_
