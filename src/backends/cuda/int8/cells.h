// What a function and a quantizer behind it make of one float, as a table: where the nodes behind a
// sum read nothing but the sum's float f, its byte is constant between some 250 floats at which it
// changes. The line of floats from the first of those to the last is cut into cells of one width,
// each with one change at most; the byte is found by a lookup and a comparison, in place of a
// function and a division. A cell is
//
//   bits(fl32(within(f) * step + shift)) - bits(2^23)    the product and the sum rounded once
//
// which is monotone in f, so that all that counts are the floats at which bytes change. These are
// found by the definition itself (ops/quant/int8.h): functions here rise, or fall up to one turning
// point and rise from there on, what float64 makes of them is off by 2^-48 at most, and what
// float32 and the quotient are rounded by is less than 2^-22. So only floats whose result lies that
// near to a boundary between two bytes can be where one changes; all of them are tried, one by one.
#ifndef ASSAY_BACKENDS_CUDA_INT8_CELLS_H_
#define ASSAY_BACKENDS_CUDA_INT8_CELLS_H_

#include "backends/cuda/kernels/int8_args.h"
#include "ops/quant/int8.h"

enum { CUDA_INT8_MAX_CELLS = 1024 };

typedef struct cuda_int8_cells {
  int n;                        // 0: the layer has none
  float step, shift, from, to;  // of the formula above; within: from `from` to `to`
  int8_cell_t cells[CUDA_INT8_MAX_CELLS];
} cuda_int8_cells_t;

// Whether a layer may have cells: one function that is known here, of finite floats alone.
bool cuda_int8_may_have_cells(const assay_int8_t* q);
// The cells; none where changes lie too close together, or are too many to be tried. Errors:
// NO_MEMORY
assay_status_t cuda_int8_cells_find(const assay_int8_t* q, cuda_int8_cells_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_INT8_CELLS_H_
