// Matrix products for every operator that sums products: one place for their order and tiles.
#ifndef ASSAY_OPS_MATMUL_GEMM_H_
#define ASSAY_OPS_MATMUL_GEMM_H_

#include "ops/op.h"

// A matrix [rows, cols] somewhere in a tensor's elements: element (i, j) is number
// offset + i * row_stride + j * col_stride. F64 elements, or PACKED ones of `type`, which are
// converted tile by tile, so that weights are never held twice. Strides may be 0 or negative.
typedef struct assay_matrix {
  const void* data;
  assay_store_t store;  // F64 or PACKED
  assay_type_t type;    // of PACKED
  int64_t offset, row_stride, col_stride;
} assay_matrix_t;

// out[i * ld + j] (+)= sum over l of a(i, l) * b(l, j), for i < m, j < n, l < k.
//   add  the sum starts from out's elements instead of 0
// Arithmetic (c->arith):
//   F64     OpenBLAS dgemm, one thread a tile; the tiles depend on m, n, k only.
//           c->coarse: sgemm on operands rounded to float
//   F32     operands rounded to float; s = fmaf(a, b, s) for l = 0, 1, ... k-1, in that order
//   NARROW  s = round(a * b + s) in c->accumulator, same order; to FP64: s = fma(a, b, s)
//   DD   in double-double; out lies in output 0's elements, the low parts go where theirs are
// Threads: OpenMP over tiles; the same bits for any number of threads. May be called from inside a
// parallel region (then it runs on the calling thread alone).
// Errors: NO_MEMORY.
assay_status_t assay_gemm(const assay_eval_t* c, int64_t m, int64_t n, int64_t k,
                          const assay_matrix_t* a, const assay_matrix_t* b, double* out, int64_t ld,
                          bool add) ASSAY_MUST_USE;

// Whole tensors as stacks of matrices: out[batch, m, n] with a broadcast over the leading dims, as
// MatMul does. batch offsets in elements are given by the caller.
typedef struct assay_gemm_batch {
  int64_t n;
  const int64_t* a_offsets;
  const int64_t* b_offsets;
} assay_gemm_batch_t;
assay_status_t assay_gemm_batched(const assay_eval_t* c, int64_t m, int64_t n, int64_t k,
                                  const assay_matrix_t* a, const assay_matrix_t* b,
                                  const assay_gemm_batch_t* batch, double* out) ASSAY_MUST_USE;

// For code that calls the BLAS itself, on tiles of its own: from now on it runs on the calling
// thread alone.
void assay_gemm_prepare(void);

#endif  // ASSAY_OPS_MATMUL_GEMM_H_
