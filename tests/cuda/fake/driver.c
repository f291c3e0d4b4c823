// The driver and its devices, and its table of functions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// A GPU that runs nothing is an H200.
enum { MAX_STACK = 8, MULTIPROCESSORS = 4, MULTIPROCESSORS_DRY = 132 };

// ---- the driver and its devices -----------------------------------------------------------------

cuda_result_t cuInit(unsigned flags) {
  (void)flags;
  CALLED(false);
  const char* times = getenv("ASSAY_FAKE_TIMES");
  fake_times_t* t = &fake.state.times;
  fake.state.dry = getenv("ASSAY_FAKE_DRY") != NULL;
  if (times && sscanf(times, "%d,%d,%d,%d", &t->launching, &t->calling, &t->kernel, &t->call) != 4)
    return INVALID_VALUE;
  return fake.state.devices ? 0 : CUDA_NO_DEVICE;
}

cuda_result_t cuDriverGetVersion(int* out) {
  CALLED(false);
  *out = fake.state.version;
  return 0;
}

cuda_result_t cuGetErrorName(cuda_result_t r, const char** out) {
  *out = r == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
         : r == LAUNCH_FAILED    ? "CUDA_ERROR_LAUNCH_FAILED"
         : r == ILLEGAL_ADDRESS  ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                 : "CUDA_ERROR_OF_THE_FAKE";
  return 0;
}

cuda_result_t cuGetErrorString(cuda_result_t r, const char** out) {
  // Of a kernel that failed the real one says less.
  *out = r == fake.state.broken && *fake.state.message ? fake.state.message : "as the test wanted";
  return 0;
}

cuda_result_t cuDeviceGetCount(int* out) {
  CALLED(false);
  *out = fake.state.devices;
  return 0;
}

cuda_result_t cuDeviceGet(cuda_device_id_t* out, int ordinal) {
  CALLED(false);
  if (ordinal < 0 || ordinal >= fake.state.devices) return INVALID_DEVICE;
  *out = ordinal;
  return 0;
}

cuda_result_t cuDeviceGetName(char* out, int bytes, cuda_device_id_t device) {
  (void)device;
  CALLED(false);
  snprintf(out, (size_t)bytes, "A GPU for tests");
  return 0;
}

static int count_multiprocessors(void) {
  return fake.state.dry ? MULTIPROCESSORS_DRY : MULTIPROCESSORS;
}

cuda_result_t cuDeviceGetAttribute(int* out, int attribute, cuda_device_id_t device) {
  (void)device;
  CALLED(false);
  *out = attribute == CUDA_ATTRIBUTE_MAJOR             ? fake.state.capability / 10
         : attribute == CUDA_ATTRIBUTE_MINOR           ? fake.state.capability % 10
         : attribute == CUDA_ATTRIBUTE_MULTIPROCESSORS ? count_multiprocessors()
         : attribute == CUDA_ATTRIBUTE_SHARED_BYTES    ? MAX_SHARED
         : attribute == CUDA_ATTRIBUTE_POOLS           ? !fake.state.no_pools
                                                       : -1;
  return 0;
}

cuda_result_t cuDevicePrimaryCtxRetain(cuda_context_t* out, cuda_device_id_t device) {
  CALLED(false);
  live(1);
  *out = (cuda_context_t)(uintptr_t)(device + 1);
  return 0;
}

cuda_result_t cuDevicePrimaryCtxRelease(cuda_device_id_t device) {
  (void)device;
  live(-1);
  CALLED(false);
  return 0;
}

cuda_result_t cuCtxPushCurrent(cuda_context_t context) {
  CALLED(false);
  if (!context || context_stack == MAX_STACK) return INVALID_CONTEXT;
  context_stack++;
  return 0;
}

cuda_result_t cuCtxPopCurrent(cuda_context_t* out) {
  *out = (cuda_context_t)(uintptr_t)context_stack;
  if (!context_stack) return INVALID_CONTEXT;
  context_stack--;
  return 0;
}

// ---- the table ----------------------------------------------------------------------------------

EXPORT cuda_result_t cuGetProcAddress_v2(const char* symbol, void** out, int version,
                                         uint64_t flags, int* out_status);
EXPORT cuda_result_t cuGetProcAddress_v2(const char* symbol, void** out, int version,
                                         uint64_t flags, int* out_status) {
  (void)version, (void)flags;
  *out = NULL;
  *out_status = 0;
  if (strcmp(symbol, fake.state.without) == 0) return 0;
#define CUDA_FUNCTION(name, parameters)    \
  if (strcmp(symbol, #name) == 0) {        \
    union {                                \
      cuda_result_t(*function) parameters; \
      void* symbol;                        \
    } found = {.function = name};          \
    *out = found.symbol;                   \
  }
#include "backends/cuda/api.inc"
#undef CUDA_FUNCTION
  return *out ? 0 : INVALID_VALUE;
}
