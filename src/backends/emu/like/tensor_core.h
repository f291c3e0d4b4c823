// Sums of products of float32, fp16, bf16 and tf32 numbers as a GPU makes them: float32 by fused
// multiply-adds, others by tensor cores (gpus.h), in ascending order.
#ifndef ASSAY_BACKENDS_EMU_LIKE_TENSOR_CORE_H_
#define ASSAY_BACKENDS_EMU_LIKE_TENSOR_CORE_H_

#include <stdint.h>

#include "backends/emu/like/gpus.h"
#include "base/status.h"
#include "formats/format.h"

typedef struct emu_arithmetic {
  bool fma;         // one chain of fused multiply-adds in float32
  bool split;       // of many terms several chains, as kernels of products have them
  bool tf32;        // operands are rounded to it
  int terms;        // of a step
  int up;           // places by which a product's mantissa moves to its place in a step
  int fraction;     // of the step
  int bits, least;  // of an operand: behind the point, and the smallest exponent
} emu_arithmetic_t;

// For operands of a format: FP32, TF32, FP16 or BF16.
emu_arithmetic_t emu_arithmetic(const emu_gpu_t* gpu, assay_format_t format);

// Rows of numbers in that format, taken apart, with zeros up to whole steps.
typedef struct emu_rows {
  int64_t n, k, step;  // step: between rows
  int32_t *mantissa, *exponent;
  float* value;
  bool* finite;  // of each row
} emu_rows_t;

assay_status_t emu_rows_create(const emu_arithmetic_t* a, int64_t n, int64_t k,
                               emu_rows_t* out) ASSAY_MUST_USE;
void emu_rows_deinit(emu_rows_t* r);
// Row i, of k numbers; tf32: rounded to it.
void emu_rows_set(const emu_arithmetic_t* a, emu_rows_t* r, int64_t i, const float* x);

// y[j] += row i of x times row j of w, for each of w's rows.
void emu_rows_multiply(const emu_arithmetic_t* a, const emu_rows_t* x, int64_t i,
                       const emu_rows_t* w, float* y);

#endif  // ASSAY_BACKENDS_EMU_LIKE_TENSOR_CORE_H_
