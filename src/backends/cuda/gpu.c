// GPUs as the driver describes them, without a context, which takes a fifth of a second to make.
#include "backends/cuda/cublaslt_api.h"
#include "backends/cuda/driver_internal.h"
#include "backends/cuda/nvrtc.h"

static assay_status_t read_properties(cuda_gpu_t* g) {
  const cuda_api_t* api = g->api;
  int major = 0, minor = 0, pools = 0;
  CUDA_TRY(api, cuDeviceGetName, g->name, (int)sizeof g->name, g->id);
  g->name[sizeof g->name - 1] = 0;
  CUDA_TRY(api, cuDeviceGetAttribute, &major, CUDA_ATTRIBUTE_MAJOR, g->id);
  CUDA_TRY(api, cuDeviceGetAttribute, &minor, CUDA_ATTRIBUTE_MINOR, g->id);
  CUDA_TRY(api, cuDeviceGetAttribute, &g->multiprocessors, CUDA_ATTRIBUTE_MULTIPROCESSORS, g->id);
  CUDA_TRY(api, cuDeviceGetAttribute, &g->shared_bytes, CUDA_ATTRIBUTE_SHARED_BYTES, g->id);
  CUDA_TRY(api, cuDeviceGetAttribute, &pools, CUDA_ATTRIBUTE_POOLS, g->id);
  g->capability = 10 * major + minor;
  if (g->capability < CUDA_CAPABILITY_NEEDED)
    return ASSAY_ERROR(ASSAY_DEVICE,
                       "GPU %d, %s, has compute capability %d.%d; 8.0 (Ampere) or later is "
                       "needed",
                       g->number, g->name, major, minor);
  if (!pools)
    return ASSAY_ERROR(ASSAY_DEVICE,
                       "the driver has no memory pools for GPU %d, %s: it is set up in a mode "
                       "that cannot be used",
                       g->number, g->name);
  return NULL;
}

assay_status_t cuda_gpu_find(int number, cuda_gpu_t* g) {
  int n = 0;
  ASSAY_TRY(cuda_api_get(&g->api));
  g->number = number;
  CUDA_TRY(g->api, cuDeviceGetCount, &n);
  if (number < 0 || number >= n)
    return ASSAY_ERROR(ASSAY_DEVICE, "there is no GPU %d: %d %s there that this process may use%s",
                       number, n, n == 1 ? "is" : "are", n ? ", counted from 0" : "");
  CUDA_TRY(g->api, cuDeviceGet, &g->id, number);
  return read_properties(g);
}

assay_status_t cuda_gpu_count(int* out) {
  const cuda_api_t* api;
  ASSAY_TRY(cuda_api_get(&api));
  CUDA_TRY(api, cuDeviceGetCount, out);
  return NULL;
}

assay_status_t cuda_gpu_want(int number) {
  cuda_gpu_t g = {.number = number};
  return cuda_gpu_find(number, &g);
}

// Compiled code is for one architecture.
assay_status_t cuda_gpu_describe_need(int number, assay_str_t* out) {
  cuda_gpu_t g = {.number = number};
  ASSAY_TRY(cuda_gpu_find(number, &g));
  assay_str_printf(out, "GPUs of compute capability %d.%d", g.capability / 10, g.capability % 10);
  return assay_str_status(out);
}

static void describe_compiler(int driver_version, assay_str_t* out) {
  const cuda_compiler_t* compiler;
  assay_status_t st = cuda_compiler_get(driver_version, &compiler);
  if (st)
    assay_str_append(out, assay_status_message(st));
  else
    assay_str_printf(out, "NVRTC %d.%d", compiler->major, compiler->minor);
  assay_status_free(st);
}

static void describe_products(int driver_version, assay_str_t* out) {
  const cublaslt_api_t* api;
  assay_status_t st = cublaslt_api_get(driver_version, &api);
  if (st)
    assay_str_append(out, assay_status_message(st));
  else
    assay_str_printf(out, "cuBLASLt %d.%d.%d", api->major, api->minor, api->patch);
  assay_status_free(st);
}

void cuda_describe_libraries(assay_str_t* out) {
  const cuda_api_t* api;
  assay_status_t st = cuda_api_get(&api);
  if (st) {
    assay_str_append(out, assay_status_message(st));
    assay_status_free(st);
    return;
  }
  describe_compiler(api->version, out);
  assay_str_append(out, "; ");
  describe_products(api->version, out);
}
