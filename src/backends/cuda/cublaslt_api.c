// cuBLASLt, opened where it is there.
#include "backends/cuda/cublaslt_api.h"

#include <pthread.h>

#include "backends/cuda/library.h"

static struct {
  pthread_mutex_t lock;
  bool opened;
  cublaslt_api_t api;
} library = {.lock = PTHREAD_MUTEX_INITIALIZER};

static assay_status_t find_all(void* opened, cublaslt_api_t* api) {
#define CUBLASLT_FUNCTION(result, name, parameters)                                            \
  {                                                                                            \
    union {                                                                                    \
      void* symbol;                                                                            \
      result(*function) parameters;                                                            \
    } found = {cuda_library_symbol(opened, #name)};                                            \
    if (!found.symbol)                                                                         \
      return ASSAY_ERROR(ASSAY_DEVICE, "cuBLASLt has no function '%s': it is too old", #name); \
    api->name = found.function;                                                                \
  }
#include "backends/cuda/cublaslt.inc"
#undef CUBLASLT_FUNCTION
  const int version = (int)api->cublasLtGetVersion();
  api->major = version / 10000;
  api->minor = version / 100 % 100;
  api->patch = version % 100;
  return NULL;
}

static assay_status_t open_library(int driver_version, cublaslt_api_t* api) {
  static const char* const newest[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
  const char* const* names = driver_version >= 13000 ? newest : newest + 1;
  assay_str_t looked = {0};
  void* opened = cuda_library_open(names, &looked);
  assay_status_t st = assay_str_status(&looked);
  if (!st && !opened)
    st = ASSAY_ERROR(ASSAY_DEVICE, "no cuBLASLt, which is optional: %s was not found (looked %s)",
                     names[0], assay_str_get(&looked));
  assay_str_deinit(&looked);
  return st ? st : find_all(opened, api);
}

assay_status_t cublaslt_api_get(int driver_version, const cublaslt_api_t** out) {
  assay_status_t st = NULL;
  pthread_mutex_lock(&library.lock);
  if (!library.opened) st = open_library(driver_version, &library.api);
  library.opened |= !st;
  pthread_mutex_unlock(&library.lock);
  *out = st ? NULL : &library.api;
  return st;
}
