// Inputs of layers on 8-bit integers.
#ifndef ASSAY_TESTS_CUDA_INT8_CASE_H_
#define ASSAY_TESTS_CUDA_INT8_CASE_H_

#include "cuda/product_case.h"

// All of a type's numbers, the ends more often.
static inline void int8_case_fill(assay_tensor_t* t, uint64_t* state) {
  for (int64_t i = 0; i < t->size; i++) {
    const double x = graph_case_random(state);
    const int64_t byte = (int64_t)((x + 1) * 160) - 32;  // -32 to 287
    const int64_t within = byte < 0 ? 0 : byte > 255 ? 255 : byte;
    if (t->store == ASSAY_STORE_F64)
      assay_f64(t)[i] = (double)(float)(x * 4);
    else
      assay_i64(t)[i] = t->type == ASSAY_TYPE_INT8 ? within - 128 : within;
  }
}

#endif  // ASSAY_TESTS_CUDA_INT8_CASE_H_
