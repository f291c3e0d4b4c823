// Code on a GPU.
#include "backends/cuda/launch.h"

#include "backends/cuda/driver_internal.h"

cuda_properties_t cuda_device_properties(const assay_device_t* d) {
  const cuda_gpu_t* g = (const cuda_gpu_t*)d;
  return (cuda_properties_t){.capability = g->capability,
                             .multiprocessors = g->multiprocessors,
                             .shared_bytes = g->shared_bytes,
                             .driver_version = g->api->version};
}

assay_status_t cuda_module_load(assay_device_t* d, const void* code, size_t bytes,
                                cuda_module_t* out) {
  (void)bytes;  // code says itself how long it is
  *out = NULL;
  CUDA_CALL((cuda_gpu_t*)d, cuModuleLoadData, out, code);
  return NULL;
}

void cuda_module_unload(assay_device_t* d, cuda_module_t m) {
  if (m) CUDA_CALL_END((cuda_gpu_t*)d, cuModuleUnload, m);
}

assay_status_t cuda_module_kernel(assay_device_t* d, cuda_module_t m, const char* name,
                                  int shared_bytes, cuda_kernel_t* out) {
  *out = NULL;
  CUDA_CALL((cuda_gpu_t*)d, cuModuleGetFunction, out, m, name);
  // 48 KB without asking, for what the kernel declares and this together. Whoever got it before
  // from the same module has the same kernel, and may launch it with more.
  int most = 0;
  if (!shared_bytes) return NULL;
  CUDA_CALL((cuda_gpu_t*)d, cuFuncGetAttribute, &most, CUDA_FUNCTION_DYNAMIC_SHARED, *out);
  if (shared_bytes > most)
    CUDA_CALL((cuda_gpu_t*)d, cuFuncSetAttribute, *out, CUDA_FUNCTION_DYNAMIC_SHARED, shared_bytes);
  return NULL;
}

assay_status_t cuda_queue_launch(assay_queue_t* base, cuda_kernel_t k, const cuda_grid_t* grid,
                                 const void* args) {
  const cuda_queue_t* q = (const cuda_queue_t*)base;
  void* parameters[] = {(void*)(uintptr_t)args};
  cuda_launch_attribute_t attributes[2];
  unsigned n = 0;
  if (grid->blocks < 1 || grid->blocks > INT32_MAX)
    return ASSAY_ERROR(ASSAY_INTERNAL, "a launch of %lld blocks", (long long)grid->blocks);
  if (grid->cluster > 1)
    attributes[n++] = (cuda_launch_attribute_t){.id = CUDA_LAUNCH_CLUSTER,
                                                .value.cluster = {(unsigned)grid->cluster, 1, 1}};
  if (grid->dependent && q->gpu->capability >= 90)
    attributes[n++] = (cuda_launch_attribute_t){.id = CUDA_LAUNCH_DEPENDENT, .value.on = 1};
  const cuda_launch_config_t config = {
      .blocks = {(unsigned)grid->blocks, grid->blocks_y ? (unsigned)grid->blocks_y : 1,
                 grid->blocks_z ? (unsigned)grid->blocks_z : 1},
      .threads = {(unsigned)grid->threads, 1, 1},
      .shared_bytes = (unsigned)grid->shared_bytes,
      .stream = q->stream,
      .attributes = attributes,
      .n_attributes = n};
  CUDA_CALL(q->gpu, cuLaunchKernelEx, &config, k, parameters, NULL);
  return NULL;
}
