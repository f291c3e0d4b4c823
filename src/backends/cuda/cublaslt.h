// Products by cuBLASLt, where that is there: which of its algorithms suit one, and running them.
#ifndef ASSAY_BACKENDS_CUDA_CUBLASLT_H_
#define ASSAY_BACKENDS_CUDA_CUBLASLT_H_

#include "backends/cuda/cublaslt_api.h"
#include "exec/kernel.h"

typedef struct cublaslt cublaslt_t;

// Opens nothing yet: the library is opened, and a handle made, where a product is first asked for.
// The device outlives it.
assay_status_t cublaslt_create(assay_device_t* d, cublaslt_t** out) ASSAY_MUST_USE;
void cublaslt_destroy(cublaslt_t* lt);  // NULL is allowed

// y = x w for each of `matrices`, rows by rows; then a bias by column, then Relu. Made with {0}.
typedef struct cublaslt_product {
  int64_t m, n, k, matrices;
  int64_t x_row, w_row, y_row;     // steps of rows as they lie in memory
  int64_t x_step, w_step, y_step;  // of matrices
  bool x_turned, w_turned;         // x lies as [k, m], w as [n, k]
  bool tf32;                       // float32 may be rounded to that
  bool bias, relu;                 // the bias is of the output's type
  assay_type_t in, out;            // FLOAT, FLOAT16, BFLOAT16
} cublaslt_product_t;

typedef struct cublaslt_way {
  char name[ASSAY_VARIANT_BYTES];  // the library's version, and what describes the algorithm
  cublaslt_algorithm_t algorithm;
  size_t scratch;
  bool splits;  // sums are cut into parts
} cublaslt_way_t;

// The ways that the library proposes, the likeliest first; they live as long as lt. *out_n 0: it is
// not there, or takes no such product. Threads: any. Errors: NO_MEMORY
assay_status_t cublaslt_ways(cublaslt_t* lt, const cublaslt_product_t* p,
                             const cublaslt_way_t** out, size_t* out_n) ASSAY_MUST_USE;

// A product that is ready to run, for one thread at a time. Errors: DEVICE, NO_MEMORY
typedef struct cublaslt_call cublaslt_call_t;
assay_status_t cublaslt_call_create(cublaslt_t* lt, const cublaslt_product_t* p,
                                    const cublaslt_way_t* way,
                                    cublaslt_call_t** out) ASSAY_MUST_USE;
void cublaslt_call_destroy(cublaslt_call_t* c);  // NULL is allowed

typedef struct cublaslt_operands {
  assay_device_ptr_t x, w, y, bias, scratch;  // bias: 0 without
} cublaslt_operands_t;
// It may be captured. Errors: DEVICE, with the library's status
assay_status_t cublaslt_enqueue(const cublaslt_call_t* c, assay_queue_t* q,
                                const cublaslt_operands_t* at) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_CUBLASLT_H_
