// Normalizations of rows with one scale and bias an element, many rows at a time.
#ifndef ASSAY_BACKENDS_CPU_NORM_NORM_ROWS_H_
#define ASSAY_BACKENDS_CPU_NORM_NORM_ROWS_H_

#include <stdbool.h>
#include <stdint.h>

#include "formats/format.h"

typedef struct cpu_norm_rows {
  int64_t size;   // elements of a row
  bool centered;  // the mean is taken off
  float epsilon;
  const float *scale, *bias;  // of `size` elements; NULL: none; no bias without a scale
  assay_type_t in, out;       // float32 or bfloat16
} cpu_norm_rows_t;

// Rows [from, to) of x into y, which may be x: with the bits of rows.c, whose lanes are two vectors
// here. False: the CPU has no AVX-512, or the types are others.
bool cpu_norm_rows(const cpu_norm_rows_t* k, const void* x, int64_t from, int64_t to, void* y);

#endif  // ASSAY_BACKENDS_CPU_NORM_NORM_ROWS_H_
