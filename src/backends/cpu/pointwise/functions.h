// Pointwise functions over arrays of float32.
#ifndef ASSAY_BACKENDS_CPU_POINTWISE_FUNCTIONS_H_
#define ASSAY_BACKENDS_CPU_POINTWISE_FUNCTIONS_H_

#include <stdint.h>

#include "backends/layers/pointwise_functions.h"
#include "formats/format.h"

// y[i] = f(a[i], b[i], c[i]) for n elements; those that the function does not take are not read. y
// may be a, b or c. Booleans are 0 and 1.
typedef void cpu_function_t(const float* a, const float* b, const float* c, const float* param,
                            int64_t n, float* y);

cpu_function_t* cpu_function_of(pointwise_function_t f);

// What takes f's place where the result is narrowed to `type`: so that it is rounded as if once.
cpu_function_t* cpu_function_before(cpu_function_t* f, assay_type_t type);

#endif  // ASSAY_BACKENDS_CPU_POINTWISE_FUNCTIONS_H_
