// Memory of hosts and devices. The CUDA driver is opened when the first copy needs it: a server
// without GPUs runs without it.
#include "memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, MAX_DEVICES = 64, DRIVER_VERSION = 12000, NON_BLOCKING = 1 };

TRITONSERVER_Error* buffer_reserve(buffer_t* buffer, uint64_t bytes) {
  if (bytes > PTRDIFF_MAX - ALIGNMENT) return error_no_memory();
  if (buffer->data && buffer->capacity >= bytes) return NULL;
  const size_t capacity = ((size_t)bytes / ALIGNMENT + 1) * ALIGNMENT;
  void* data = NULL;
  if (posix_memalign(&data, ALIGNMENT, capacity)) return error_no_memory();
  free(buffer->data);
  *buffer = (buffer_t){data, capacity};
  return NULL;
}

void buffer_deinit(buffer_t* buffer) {
  free(buffer->data);
  *buffer = (buffer_t){0};
}

// ---- the driver
// ---------------------------------------------------------------------------------

typedef struct driver_context* driver_context_t;
typedef struct driver_stream* driver_stream_t;

// The functions that are used: result, name, parameters.
#define DRIVER_FUNCTIONS(F)                                                                   \
  F(cuInit, (unsigned flags))                                                                 \
  F(cuDeviceGet, (int* out, int number))                                                      \
  F(cuDevicePrimaryCtxRetain, (driver_context_t * out, int device))                           \
  F(cuDevicePrimaryCtxRelease, (int device))                                                  \
  F(cuCtxPushCurrent, (driver_context_t context))                                             \
  F(cuCtxPopCurrent, (driver_context_t * out))                                                \
  F(cuStreamCreate, (driver_stream_t * out, unsigned flags))                                  \
  F(cuStreamDestroy, (driver_stream_t stream))                                                \
  F(cuStreamSynchronize, (driver_stream_t stream))                                            \
  F(cuMemcpyHtoDAsync, (uint64_t to, const void* from, size_t bytes, driver_stream_t stream)) \
  F(cuMemcpyDtoHAsync, (void* to, uint64_t from, size_t bytes, driver_stream_t stream))

#define DECLARE(name, parameters) int(*name) parameters;
typedef struct driver {
  DRIVER_FUNCTIONS(DECLARE)
} driver_t;

// A device that something was copied to or from; its lock orders the copies of its stream.
typedef struct device {
  bool open;
  int id;
  driver_context_t context;
  driver_stream_t stream;
} device_t;

static struct {
  pthread_mutex_t lock;
  void* library;
  driver_t driver;
  device_t devices[MAX_DEVICES];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef int find_fn_t(const char* name, void** out, int version, uint64_t flags, int* status);

static bool find_functions(void* library, driver_t* driver) {
  union {
    void* symbol;
    find_fn_t* call;
  } find = {dlsym(library, "cuGetProcAddress_v2")};
  int status = 0;
  if (!find.symbol) return false;
#define FIND(name, parameters)                                                              \
  if (find.call(#name, (void**)&driver->name, DRIVER_VERSION, 0, &status) || !driver->name) \
    return false;
  DRIVER_FUNCTIONS(FIND)
  return true;
}

static TRITONSERVER_Error* open_driver(void) {
  char path[4096];
  const char* folder = getenv("ASSAY_CUDA_PATH");  // where Assay looks first, too
  if (state.library) return NULL;
  if (folder && *folder && snprintf(path, sizeof path, "%s/libcuda.so.1", folder) < 4096)
    state.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!state.library) state.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (state.library && find_functions(state.library, &state.driver) && !state.driver.cuInit(0))
    return NULL;
  if (state.library) dlclose(state.library);
  state.library = NULL;
  return error_new(
      TRITONSERVER_ERROR_UNAVAILABLE,
      "a tensor is in GPU memory, and there is no CUDA driver (12.0 or later) to copy it "
      "by");
}

static TRITONSERVER_Error* failed(const char* what, int64_t number, int result) {
  return error_new(TRITONSERVER_ERROR_UNAVAILABLE, "%s GPU %lld failed: CUDA error %d", what,
                   (long long)number, result);
}

static TRITONSERVER_Error* open_device(int64_t number, device_t** out) {
  TRITONSERVER_Error* error = open_driver();
  if (error) return error;
  if (number < 0 || number >= MAX_DEVICES) return failed("opening", number, 0);
  device_t* d = &state.devices[number];
  *out = d;
  if (d->open) return NULL;
  int result = state.driver.cuDeviceGet(&d->id, (int)number);
  if (!result) result = state.driver.cuDevicePrimaryCtxRetain(&d->context, d->id);
  if (result) return failed("opening", number, result);
  result = state.driver.cuCtxPushCurrent(d->context);
  if (!result) {
    driver_context_t popped = NULL;
    result = state.driver.cuStreamCreate(&d->stream, NON_BLOCKING);
    state.driver.cuCtxPopCurrent(&popped);
  }
  d->open = !result;
  if (d->open) return NULL;
  state.driver.cuDevicePrimaryCtxRelease(d->id);
  return failed("opening", number, result);
}

static int copy_now(const device_t* d, place_t to, place_t from, size_t bytes) {
  driver_context_t popped = NULL;
  int result = state.driver.cuCtxPushCurrent(d->context);
  if (result) return result;
  result = to.memory == TRITONSERVER_MEMORY_GPU
               ? state.driver.cuMemcpyHtoDAsync((uint64_t)(uintptr_t)to.data, from.data, bytes,
                                                d->stream)
               : state.driver.cuMemcpyDtoHAsync(to.data, (uint64_t)(uintptr_t)from.data, bytes,
                                                d->stream);
  if (!result) result = state.driver.cuStreamSynchronize(d->stream);
  state.driver.cuCtxPopCurrent(&popped);
  return result;
}

TRITONSERVER_Error* memory_copy(place_t to, place_t from, size_t bytes) {
  const bool up = to.memory == TRITONSERVER_MEMORY_GPU;
  if (bytes == 0) return NULL;
  if (!up && from.memory != TRITONSERVER_MEMORY_GPU) return memcpy(to.data, from.data, bytes), NULL;
  const int64_t number = up ? to.device : from.device;
  device_t* device = NULL;
  pthread_mutex_lock(&state.lock);
  TRITONSERVER_Error* error = open_device(number, &device);
  const int result = error ? 0 : copy_now(device, to, from, bytes);
  pthread_mutex_unlock(&state.lock);
  if (result) error = failed("copying to or from", number, result);
  return error;
}

void memory_close(void) {
  pthread_mutex_lock(&state.lock);
  for (int i = 0; i < MAX_DEVICES; i++) {
    device_t* d = &state.devices[i];
    driver_context_t popped = NULL;
    if (!d->open) continue;
    if (!state.driver.cuCtxPushCurrent(d->context)) {
      state.driver.cuStreamDestroy(d->stream);
      state.driver.cuCtxPopCurrent(&popped);
    }
    state.driver.cuDevicePrimaryCtxRelease(d->id);
    *d = (device_t){0};
  }
  if (state.library) dlclose(state.library);
  state.library = NULL;
  pthread_mutex_unlock(&state.lock);
}
