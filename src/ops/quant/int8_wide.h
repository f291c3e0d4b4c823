// The epilogue of simple int8 layers (int8.h) by AVX-512, and tables of bytes. The bits are those
// of int8_epilogue.c.
#ifndef ASSAY_OPS_QUANT_INT8_WIDE_H_
#define ASSAY_OPS_QUANT_INT8_WIDE_H_

#include "ops/quant/int8.h"

// One operand of n elements.
typedef struct int8_wide_operand {
  const int32_t* sums;  // fl32(sum) * factor + shift
  const float *factor, *shift;
  const uint8_t* bytes;  // or (byte - zero) * scale
  bool is_signed;
  float zero, scale;
  const float* floats;  // or these
  float number;         // or, where all are NULL, this
} int8_wide_operand_t;

typedef struct int8_wide {
  int8_wide_operand_t a, b;
  bool has_b;
  assay_int8_operation_t operation;
  float low, high;  // limits of the result
  // Of the output; ASSAY_TYPE_FLOAT: it is not a quantized one.
  assay_type_t type;
  float scale, zero;
} int8_wide_t;

bool int8_has_wide(void);  // whether the CPU has the instructions
void int8_wide_run(const int8_wide_t* w, int64_t n, void* out);

// out[i] = table[x[i]].
bool int8_has_wide_table(void);
void int8_wide_table(const uint8_t table[256], const uint8_t* x, int64_t n, uint8_t* out);

#endif  // ASSAY_OPS_QUANT_INT8_WIDE_H_
