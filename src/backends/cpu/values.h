// Values that a run holds as tensors: what the caller gives, constants, what the emulated engine
// makes, and what passes from one stretch of layers to the next. All row-major.
#ifndef ASSAY_BACKENDS_CPU_VALUES_H_
#define ASSAY_BACKENDS_CPU_VALUES_H_

#include "tensor/tensor.h"

typedef struct cpu_value {
  assay_tensor_t* canonical;  // NULL: not in this form
  assay_tensor_t* packed;     // NULL: not in this form
  bool keep;                  // a constant, which the next run reads again
} cpu_value_t;

void cpu_value_clear(cpu_value_t* v);
bool cpu_value_is_set(const cpu_value_t* v);
// What it holds, in either form, for its shape; NULL if nothing.
const assay_tensor_t* cpu_value_any(const cpu_value_t* v);
// Empties the value and puts a tensor in: one reference is taken over.
void cpu_value_put(cpu_value_t* v, assay_tensor_t* take_tensor);
// In the canonical form with the declared type; borrowed.
assay_status_t cpu_value_canonical(cpu_value_t* v, assay_type_t declared, assay_tensor_t** out);
// Packed, with the elements at a multiple of their size; borrowed. UNSUPPORTED for what is no
// tensor of numbers.
assay_status_t cpu_value_packed(cpu_value_t* v, assay_type_t type, assay_tensor_t** out);

#endif  // ASSAY_BACKENDS_CPU_VALUES_H_
