// Code on a GPU: modules, their kernels, and launches of these.
#ifndef ASSAY_BACKENDS_CUDA_LAUNCH_H_
#define ASSAY_BACKENDS_CUDA_LAUNCH_H_

#include <stdbool.h>

#include "backends/cuda/api.h"
#include "exec/device.h"

// What a GPU is, for the tactics: 10 * major + minor; multiprocessors; bytes of shared memory that
// a block may ask for.
typedef struct cuda_properties {
  int capability, multiprocessors, shared_bytes;
  int driver_version;  // 1000 * major + 10 * minor
} cuda_properties_t;
cuda_properties_t cuda_device_properties(const assay_device_t* d);

// Loads compiled code; it stays until it is unloaded. Errors: DEVICE, with what the driver says:
// code of another architecture, or damaged.
assay_status_t cuda_module_load(assay_device_t* d, const void* code, size_t bytes,
                                cuda_module_t* out) ASSAY_MUST_USE;
void cuda_module_unload(assay_device_t* d, cuda_module_t m);  // NULL is allowed
// A kernel of a module, which may ask for so many bytes of dynamic shared memory.
assay_status_t cuda_module_kernel(assay_device_t* d, cuda_module_t m, const char* name,
                                  int shared_bytes, cuda_kernel_t* out) ASSAY_MUST_USE;

typedef struct cuda_grid {
  int64_t blocks;          // at least 1, at most 2^31 - 1
  int blocks_y, blocks_z;  // 0: 1; at most 65535
  int threads;             // of a block
  int shared_bytes;        // dynamic
  int cluster;             // blocks (of x) that share a cluster; 0: none
  bool dependent;          // may start before the kernel before it has ended (WAIT_FOR_INPUTS)
} cuda_grid_t;

// Puts a launch into a queue; args is the struct that the kernel takes, and is copied.
assay_status_t cuda_queue_launch(assay_queue_t* q, cuda_kernel_t k, const cuda_grid_t* grid,
                                 const void* args) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_LAUNCH_H_
