// Products of matrices in float64, for truth: by AVX-512 where the CPU has it, else by BLAS.
// OpenBLAS takes AVX2 on CPUs whose AVX-512 it does not know, at half the rate, and packs small
// tiles dearly.
#ifndef ASSAY_OPS_MATMUL_PRODUCT_F64_H_
#define ASSAY_OPS_MATMUL_PRODUCT_F64_H_

#include <stdbool.h>
#include <stdint.h>

// y[m, n] = a[m, k] b[k, n], or with `add` y += a b: rows lie lda, ldb, ldy elements apart; all of
// these are at most INT_MAX. What y holds without `add` is not read.
void assay_product_f64(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
                       const double* b, int64_t ldb, bool add, double* y, int64_t ldy);

#endif
