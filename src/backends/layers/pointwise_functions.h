// Pointwise functions by number, and under which operator's name layers have them.
#ifndef ASSAY_BACKENDS_LAYERS_POINTWISE_FUNCTIONS_H_
#define ASSAY_BACKENDS_LAYERS_POINTWISE_FUNCTIONS_H_

#include "backends/vmath/vmath.h"
#include "formats/format.h"

typedef enum pointwise_function {
#define POINTWISE(name, n, expression) POINTWISE_##name,
#include "backends/layers/pointwise_functions.inc"
#undef POINTWISE
  POINTWISE_VMATH,  // + cpu_vmath_id_t: those of backends/vmath
  POINTWISE_COUNT = POINTWISE_VMATH + CPU_V_COUNT,
} pointwise_function_t;

// Functions on integers.
typedef enum pointwise_integer {
#define POINTWISE_INTEGER(name, expression) POINTWISE_INT_##name,
#include "backends/layers/pointwise_integers.inc"
#undef POINTWISE_INTEGER
  POINTWISE_INT_OF_FLOAT,  // of a stream of floats, towards zero
} pointwise_integer_t;

static inline pointwise_function_t pointwise_of_vmath(cpu_vmath_id_t id) {
  return (pointwise_function_t)(POINTWISE_VMATH + (int)id);
}

typedef struct pointwise_known {
  const char* op;
  pointwise_function_t function;
  int n_in;
  struct {
    const char* attribute;  // NULL: none
    float value;            // unless it is given
  } param[2];
  const char* domain;  // NULL: ai.onnx
  int cost;            // about how many simple operations; 0: one
} pointwise_known_t;

// Functions of one node that are nothing but attributes and inputs; ends with op NULL.
extern const pointwise_known_t pointwise_known[];

// What takes f's place after sums, where a function may be off by some ulps: within 2.5.
pointwise_function_t pointwise_short(pointwise_function_t f);

// How a result is narrowed that is stored in this type.
cpu_vmath_use_t pointwise_use(assay_type_t type);

#endif  // ASSAY_BACKENDS_LAYERS_POINTWISE_FUNCTIONS_H_
