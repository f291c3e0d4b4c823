// Constants of products in a device's memory, in the order in which kernels read them.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_CONSTANTS_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_CONSTANTS_H_

#include "backends/cuda/tactic.h"

// A bias of n elements, or one for all, as n elements of float32.
assay_status_t cuda_bias_get(const assay_sized_layer_t* l, const assay_operand_t* bias, int64_t n,
                             assay_device_ptr_t* out) ASSAY_MUST_USE;

// The same as elements of a type that holds them.
assay_status_t cuda_typed_bias_get(const assay_sized_layer_t* l, const assay_operand_t* bias,
                                   int64_t n, assay_type_t type,
                                   assay_device_ptr_t* out) ASSAY_MUST_USE;

// Weights of a convolution, [m, cg, taps] (transposed: [groups * cg, mg, taps]), of the operand's
// type.
typedef struct cuda_taps {
  int64_t m, mg, cg, taps;
  bool transposed;
  bool terms_first;  // as [taps, cg, m], and else as [m, taps, cg]
  int64_t pitch;  // then: elements from a row of terms to the next, zeros behind them; 0: no more
} cuda_taps_t;    // than there are
assay_status_t cuda_taps_get(const assay_sized_layer_t* l, const assay_operand_t* weights,
                             const cuda_taps_t* t, assay_device_ptr_t* out) ASSAY_MUST_USE;

// A matrix with zeros behind each of its rows, from one of which to the next are `pitch` elements.
typedef struct cuda_rows {
  int64_t rows, columns, pitch;
} cuda_rows_t;
assay_status_t cuda_rows_get(const assay_sized_layer_t* l, const assay_operand_t* weights,
                             const cuda_rows_t* rows, assay_device_ptr_t* out) ASSAY_MUST_USE;

// Weights of a gate (PRODUCT_GATED of kernels/product_args.h), of the operand's type: of both
// halves so many columns in turn, each of `pitch` elements, zeros behind its taps * channels terms
// and for columns that are over. Elements of the operand are so far apart.
typedef struct cuda_halves {
  int64_t columns, taps, channels, pitch;  // columns of a half
  int64_t column_step, tap_step, channel_step;
} cuda_halves_t;
int64_t cuda_halves_columns(const cuda_halves_t* h);  // of both, and those that are over
assay_status_t cuda_halves_get(const assay_sized_layer_t* l, const assay_operand_t* weights,
                               const cuda_halves_t* halves, assay_device_ptr_t* out) ASSAY_MUST_USE;

// Weights of float32, rounded to tf32: [columns, pitch], zeros behind each row's taps * channels
// terms. With two parts what that leaves is rounded likewise, a matrix behind the first one.
// Elements of the operand are so far apart.
typedef struct cuda_parts {
  int parts;
  int64_t columns, taps, channels, pitch;
  int64_t column_step, tap_step, channel_step;
} cuda_parts_t;
assay_status_t cuda_parts_get(const assay_sized_layer_t* l, const assay_operand_t* weights,
                              const cuda_parts_t* parts, assay_device_ptr_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_CONSTANTS_H_
