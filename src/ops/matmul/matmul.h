// What the operators of the MatMul kind share: operands as stacks of matrices with NumPy's
// broadcasting of the leading dimensions.
#ifndef ASSAY_OPS_MATMUL_MATMUL_H_
#define ASSAY_OPS_MATMUL_MATMUL_H_

#include "ops/matmul/gemm.h"

// How an operand of rank 2 or more is read: [batch..., rows, cols] by default.
typedef struct assay_matmul_form {
  bool swap;        // [batch..., cols, rows]
  bool rows_first;  // [rows, batch..., cols] (before `swap`)
} assay_matmul_form_t;

typedef struct assay_matmul {
  int64_t m, n, k, batch;
  int rank;  // of the output
  int64_t dims[ASSAY_MAX_RANK];
  assay_matrix_t a, b;             // of the first element of the batch
  int64_t *a_offsets, *b_offsets;  // `batch` of each; NULL where the output has no elements
} assay_matmul_t;

// Shapes and strides of a x b; 1-D operands are a row (a) or a column (b) whose dimension is not in
// the output. Errors: INVALID_ARGUMENT if the shapes do not fit.
assay_status_t assay_matmul_init(const assay_eval_t* c, const assay_tensor_t* a,
                                 assay_matmul_form_t a_form, const assay_tensor_t* b,
                                 assay_matmul_form_t b_form, assay_matmul_t* out) ASSAY_MUST_USE;
void assay_matmul_deinit(assay_matmul_t* p);

// The product of float operands (assay_gemm's arithmetic) and of canonical integers (modulo 2^64,
// to be wrapped to a type by the caller).
assay_status_t assay_matmul_f64(const assay_eval_t* c, const assay_matmul_t* p,
                                double* out) ASSAY_MUST_USE;
void assay_matmul_i64(const assay_matmul_t* p, int64_t* out);

// Output shape of the inputs ia and ib; unknown where one of them is.
assay_status_t assay_matmul_shape(const assay_infer_t* c, size_t ia, assay_matmul_form_t a_form,
                                  size_t ib, assay_matmul_form_t b_form,
                                  assay_shape_t* out) ASSAY_MUST_USE;

// 2 flops a product and 0 for what comes after.
void assay_matmul_cost(const assay_eval_t* c, size_t ia, assay_matmul_form_t a_form, size_t ib,
                       assay_matmul_form_t b_form, assay_cost_t* out);

#endif  // ASSAY_OPS_MATMUL_MATMUL_H_
