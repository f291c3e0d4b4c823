// Products with constant matrices of 8-bit integers by oneDNN, raw sums in 32 bits.
#ifndef ASSAY_BACKENDS_CPU_INT8_INT8_MATRIX_H_
#define ASSAY_BACKENDS_CPU_INT8_INT8_MATRIX_H_

#include "backends/cpu/tactic.h"

// y[m, n] = x[m, k] * w[part][k, n].
typedef struct int8_matrix_size {
  int64_t m, k, n, parts;
  assay_type_t type;  // of x: INT8 or UINT8
} int8_matrix_size_t;

typedef struct int8_matrix int8_matrix_t;

// *out stays NULL where oneDNN is not there, would saturate on this CPU, or has no implementation.
// w: [parts, k, n]; packed here.
assay_status_t int8_matrix_create(const int8_matrix_size_t* size, const int8_t* w,
                                  int8_matrix_t** out) ASSAY_MUST_USE;
void int8_matrix_destroy(int8_matrix_t* k);          // NULL is allowed
size_t int8_matrix_scratch(const int8_matrix_t* k);  // bytes, a multiple of 64
assay_status_t int8_matrix_run(const int8_matrix_t* k, const void* x, int64_t part, void* scratch,
                               int32_t* y) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CPU_INT8_INT8_MATRIX_H_
