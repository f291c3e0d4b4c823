// cuBLASLt, NVIDIA's library of matrix products, by declarations of our own: it is opened where it
// is there, and nothing needs it.
#ifndef ASSAY_BACKENDS_CUDA_CUBLASLT_API_H_
#define ASSAY_BACKENDS_CUDA_CUBLASLT_API_H_

#include "backends/cuda/api.h"

typedef struct cublaslt_handle* cublaslt_handle_t;
typedef struct cublaslt_desc* cublaslt_desc_t;
typedef struct cublaslt_layout* cublaslt_layout_t;
typedef struct cublaslt_preference* cublaslt_preference_t;

// How a product is computed; only the library knows what the words mean.
typedef struct cublaslt_algorithm {
  uint64_t words[8];
} cublaslt_algorithm_t;

// cublasLtMatmulHeuristicResult_t
typedef struct cublaslt_result {
  cublaslt_algorithm_t algorithm;
  size_t workspace;  // bytes that it needs
  int status;        // not 0: it is of no use
  float waves;
  int reserved[4];
} cublaslt_result_t;

// Numbers of cublasLt.h, cublas_api.h and library_types.h.
enum {
  CUBLASLT_NOT_SUPPORTED = 15,
  CUBLASLT_R_32F = 0,
  CUBLASLT_R_16F = 2,
  CUBLASLT_R_16BF = 14,
  CUBLASLT_COMPUTE_32F = 68,
  CUBLASLT_COMPUTE_32F_PEDANTIC = 69,
  CUBLASLT_COMPUTE_32F_FAST_TF32 = 77,
  CUBLASLT_DESC_TRANSPOSE_A = 3,
  CUBLASLT_DESC_TRANSPOSE_B = 4,
  CUBLASLT_DESC_EPILOGUE = 7,
  CUBLASLT_DESC_BIAS_POINTER = 8,
  CUBLASLT_LAYOUT_BATCH = 5,
  CUBLASLT_LAYOUT_BATCH_STEP = 6,
  CUBLASLT_PREFERENCE_WORKSPACE = 1,
  CUBLASLT_EPILOGUE_NONE = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_ALGORITHM_ID = 0,
  CUBLASLT_ALGORITHM_TILE = 1,
  CUBLASLT_ALGORITHM_SPLITS = 2,
  CUBLASLT_ALGORITHM_REDUCTION = 3,
  CUBLASLT_ALGORITHM_SWIZZLE = 4,
  CUBLASLT_ALGORITHM_CUSTOM = 5,
  CUBLASLT_ALGORITHM_STAGES = 6,
  CUBLASLT_ALGORITHM_CLUSTER = 8,  // of 16 bits, the others of 32
};

typedef struct cublaslt_api {
#define CUBLASLT_FUNCTION(result, name, parameters) result(*name) parameters;
#include "backends/cuda/cublaslt.inc"
#undef CUBLASLT_FUNCTION
  int major, minor, patch;
} cublaslt_api_t;

// The library that is installed, opened once in a process and never closed; of the driver's major
// version, 13 or 12 (1000 * major + ...). Opening it takes a tenth of a second and more. Errors:
// DEVICE: there is none, and where it was looked for
assay_status_t cublaslt_api_get(int driver_version, const cublaslt_api_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_CUBLASLT_API_H_
