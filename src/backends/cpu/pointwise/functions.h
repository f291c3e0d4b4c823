// Pointwise functions over arrays of float32, and under which operator's name programs find them.
#ifndef ASSAY_BACKENDS_CPU_POINTWISE_FUNCTIONS_H_
#define ASSAY_BACKENDS_CPU_POINTWISE_FUNCTIONS_H_

#include <stdint.h>

#include "backends/vmath/vmath.h"
#include "formats/format.h"

// y[i] = f(a[i], b[i], c[i]) for n elements; those that the function does not take are not read. y
// may be a, b or c. Booleans are 0 and 1.
typedef void cpu_function_t(const float* a, const float* b, const float* c, const float* param,
                            int64_t n, float* y);

typedef struct cpu_known {
  const char* op;
  cpu_function_t* function;
  int n_in;
  struct {
    const char* attribute;  // NULL: none
    float value;            // unless it is given
  } param[2];
  const char* domain;  // NULL: ai.onnx
  int cost;            // about how many simple operations; 0: one
} cpu_known_t;

// Functions of one node that are nothing but attributes and inputs; ends with op NULL.
extern const cpu_known_t cpu_known_functions[];

// Those that nodes are made of besides.
cpu_function_t cpu_f_add, cpu_f_sub, cpu_f_mul, cpu_f_quotient, cpu_f_larger, cpu_f_smaller,
    cpu_f_identity, cpu_f_clip, cpu_f_square, cpu_f_root, cpu_f_reciprocal, cpu_f_divide_by,
    cpu_f_select, cpu_f_is_true;
cpu_function_t* cpu_vector_function(cpu_vmath_id_t id);

// What takes f's place after sums, where a function may be off by some ulps: within 2.5.
cpu_function_t* cpu_short_function(cpu_function_t* f);

// What takes f's place where the result is narrowed to `type`: so that it is rounded as if once.
cpu_function_t* cpu_function_before(cpu_function_t* f, assay_type_t type);

#endif  // ASSAY_BACKENDS_CPU_POINTWISE_FUNCTIONS_H_
