// The CUDA driver's functions, by declarations of our own: a program that was built without
// anything of NVIDIA's opens libcuda.so.1 where a device is asked for.
#ifndef ASSAY_BACKENDS_CUDA_API_H_
#define ASSAY_BACKENDS_CUDA_API_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef int cuda_result_t;     // CUresult
typedef int cuda_device_id_t;  // CUdevice
typedef uint64_t cuda_pointer_t;
typedef struct cuda_context* cuda_context_t;
typedef struct cuda_pool* cuda_pool_t;
typedef struct cuda_stream* cuda_stream_t;
typedef struct cuda_event* cuda_event_t;
typedef struct cuda_graph* cuda_graph_t;
typedef struct cuda_exec* cuda_exec_t;
typedef struct cuda_module* cuda_module_t;
typedef struct cuda_kernel* cuda_kernel_t;  // CUfunction

// Numbers of cuda.h.
enum {
  CUDA_SUCCESS_RESULT = 0,
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_NO_DEVICE = 100,
  CUDA_VERSION_NEEDED = 12000,  // of the driver: 12.0, from 525.60 on
  CUDA_CAPABILITY_NEEDED = 80,  // 8.0: Ampere
  CUDA_STREAM_NON_BLOCKING = 1,
  CUDA_HOST_PORTABLE = 1,
  CUDA_HOST_DEVICE_MAP = 2,
  CUDA_CAPTURE_THREAD_LOCAL = 1,  // calls of other threads do not disturb a capture
  CUDA_POOL_RELEASE_THRESHOLD = 4,
  CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
  CUDA_ATTRIBUTE_MAJOR = 75,
  CUDA_ATTRIBUTE_MINOR = 76,
  CUDA_ATTRIBUTE_SHARED_BYTES = 97,  // that a block may ask for
  CUDA_ATTRIBUTE_POOLS = 115,
  CUDA_FUNCTION_DYNAMIC_SHARED = 8,
  CUDA_LAUNCH_CLUSTER = 4,
  CUDA_LAUNCH_DEPENDENT = 6,  // programmatic stream serialization
  CUDA_MAP_UINT8 = 0,         // CUtensorMapDataType
  CUDA_MAP_FLOAT16 = 6,
  CUDA_MAP_FLOAT32 = 7,
  CUDA_MAP_BFLOAT16 = 9,
  CUDA_MAP_TFLOAT32 = 11,   // rounded to nearest, ties to even
  CUDA_MAP_SWIZZLE_64 = 2,  // CUtensorMapSwizzle
  CUDA_MAP_SWIZZLE_128 = 3,
  CUDA_MAP_PROMOTION_256 = 3,  // CUtensorMapL2promotion
};

// CUlaunchAttribute and CUlaunchConfig.
typedef struct cuda_launch_attribute {
  int id;
  union {
    char all[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int on;
    uint64_t alignment;
  } value;
} cuda_launch_attribute_t;
typedef struct cuda_launch_config {
  unsigned blocks[3], threads[3], shared_bytes;
  cuda_stream_t stream;
  cuda_launch_attribute_t* attributes;
  unsigned n_attributes;
} cuda_launch_config_t;

typedef struct cuda_api {
#define CUDA_FUNCTION(name, parameters) cuda_result_t(*name) parameters;
#include "backends/cuda/api.inc"
#undef CUDA_FUNCTION
  int version;  // of the driver: 1000 * major + 10 * minor
} cuda_api_t;

// The functions of the driver that is installed; opened once in a process and never closed, since
// the driver cannot be started again. Searched: the folders ASSAY_CUDA_PATH names, then where the
// loader looks. Errors: DEVICE with what is missing, and where it was looked for
assay_status_t cuda_api_get(const cuda_api_t** out) ASSAY_MUST_USE;

// NULL where a call succeeded; else DEVICE, or NO_MEMORY, with the function's name and what the
// driver says of it.
assay_status_t cuda_check(const cuda_api_t* api, cuda_result_t result,
                          const char* function) ASSAY_MUST_USE;

// Calls a function of `api` (a cuda_api_t*) and returns from the caller where that failed.
#define CUDA_TRY(api, function, ...) \
  ASSAY_TRY(cuda_check(api, (api)->function(__VA_ARGS__), #function))

#endif  // ASSAY_BACKENDS_CUDA_API_H_
