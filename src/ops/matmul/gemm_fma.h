// The inner loops of the emulated matrix products: chains of fused multiply-adds whose bits are the
// same on every machine, with or without FMA instructions.
#ifndef ASSAY_OPS_MATMUL_GEMM_FMA_H_
#define ASSAY_OPS_MATMUL_GEMM_FMA_H_

#include <stdint.h>

// The largest block that any variant has; for buffers on the stack.
enum { ASSAY_FMA_MAX_MR = 8, ASSAY_FMA_MAX_NR = 64 };

typedef struct assay_fma_kernels {
  const char* name;
  int mr, nr;
  // c[i][j] = fmaf(a[l][i], b[l][j], c[i][j]) for l = 0 .. k-1 in that order; a is [k][mr], b is
  // [k][nr], c is [mr][nr].
  void (*block)(int64_t k, const float* a, const float* b, float* c);
  // y[j] = fma(a, b[j], s[j]) for j < n; y may be s.
  void (*row)(int64_t n, double a, const double* b, const double* s, double* y);
} assay_fma_kernels_t;

// The fastest variant of this machine.
const assay_fma_kernels_t* assay_fma_kernels(void);
// All variants that this machine can run, for tests: NULL past the last.
const assay_fma_kernels_t* assay_fma_kernels_at(int i);

#endif  // ASSAY_OPS_MATMUL_GEMM_FMA_H_
