// Memory of a GPU that inputs and outputs lie in: by the CUDA driver, or by the one for tests
// without a GPU (tests/cuda/fake).
#include <dlfcn.h>

#include "inside.h"

typedef int find_fn_t(const char* name, void** out, int number, uint64_t flags, int* status);

static struct {
  bool is_open;
  void* stream;
  int (*init)(unsigned flags);
  int (*get)(int* out, int number);
  int (*retain)(void** out, int device);
  int (*push)(void* context);
  int (*create)(void** out, unsigned flags);
  int (*synchronize)(void* stream);
  int (*alloc)(uint64_t* out, size_t bytes, void* stream);
  int (*release)(uint64_t at, void* stream);
  int (*up)(uint64_t to, const void* from, size_t bytes, void* stream);
  int (*down)(void* to, uint64_t from, size_t bytes, void* stream);
} gpu;

static void* open_library(void) {
  char path[4096] = "libcuda.so.1";
  const char* folder = getenv("ASSAY_CUDA_PATH");
  if (folder) snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool find(find_fn_t* by, const char* name, void* out) {
  void* symbol = NULL;
  int status = 0;
  if (by(name, &symbol, 12000, 0, &status) || !symbol) return false;
  memcpy(out, &symbol, sizeof symbol);
  return true;
}

static bool find_all(find_fn_t* by) {
  return find(by, "cuInit", &gpu.init) && find(by, "cuDeviceGet", &gpu.get) &&
         find(by, "cuDevicePrimaryCtxRetain", &gpu.retain) &&
         find(by, "cuCtxPushCurrent", &gpu.push) && find(by, "cuStreamCreate", &gpu.create) &&
         find(by, "cuStreamSynchronize", &gpu.synchronize) &&
         find(by, "cuMemAllocAsync", &gpu.alloc) && find(by, "cuMemFreeAsync", &gpu.release) &&
         find(by, "cuMemcpyHtoDAsync", &gpu.up) && find(by, "cuMemcpyDtoHAsync", &gpu.down);
}

bool fake_gpu_open(void) {
  find_fn_t* by = NULL;
  void *context = NULL, *library = open_library();
  int device = 0;
  void* symbol = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  if (!symbol) return false;
  memcpy(&by, &symbol, sizeof symbol);
  gpu.is_open = find_all(by) && !gpu.init(0) && !gpu.get(&device, 0) &&
                !gpu.retain(&context, device) && !gpu.push(context) && !gpu.create(&gpu.stream, 1);
  return gpu.is_open;
}

bool fake_gpu_is_open(void) { return gpu.is_open; }

// Whoever calls them has the device's context in its thread: the one that has opened it.
void* fake_gpu_alloc(size_t bytes) {
  uint64_t at = 0;
  if (gpu.alloc(&at, bytes ? bytes : 1, gpu.stream) || gpu.synchronize(gpu.stream)) abort();
  return (void*)(uintptr_t)at;
}

void fake_gpu_free(void* at) {
  if (gpu.release((uint64_t)(uintptr_t)at, gpu.stream) || gpu.synchronize(gpu.stream)) abort();
}

void fake_gpu_write(void* to, const void* from, size_t bytes) {
  if (!bytes) return;
  if (gpu.up((uint64_t)(uintptr_t)to, from, bytes, gpu.stream) || gpu.synchronize(gpu.stream))
    abort();
}

void fake_gpu_read(void* to, const void* from, size_t bytes) {
  if (!bytes) return;
  if (gpu.down(to, (uint64_t)(uintptr_t)from, bytes, gpu.stream) || gpu.synchronize(gpu.stream))
    abort();
}
