// Opens the CUDA driver.
#include "backends/cuda/api.h"

#include <pthread.h>
#include <string.h>

#include "backends/cuda/library.h"
#include "base/shown.h"
#include "base/str.h"

#define LIBRARY "libcuda.so.1"

// CUresult cuGetProcAddress(symbol, out, version, flags, out_status), the version of CUDA 12.
typedef cuda_result_t get_address_t(const char* symbol, void** out, int version, uint64_t flags,
                                    int* out_status);

static struct {
  pthread_mutex_t lock;
  bool opened;
  cuda_api_t api;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

// ---- errors -------------------------------------------------------------------------------------

assay_status_t cuda_check(const cuda_api_t* api, cuda_result_t result, const char* function) {
  const char *name = NULL, *text = NULL;
  if (result == CUDA_SUCCESS_RESULT) return NULL;
  if (api->cuGetErrorName(result, &name) != CUDA_SUCCESS_RESULT || !name) name = "an error";
  if (api->cuGetErrorString(result, &text) != CUDA_SUCCESS_RESULT || !text)
    text = "the driver does not know it";
  return ASSAY_ERROR(result == CUDA_OUT_OF_MEMORY ? ASSAY_NO_MEMORY : ASSAY_DEVICE,
                     "the GPU's driver: %s gave %s (%d), %s", function, name, result, text);
}

// ---- opening ------------------------------------------------------------------------------------

// A function by its address: ISO C has no cast for it.
static get_address_t* find_get_address(void* library) {
  union {
    void* symbol;
    get_address_t* function;
  } found = {.symbol = cuda_library_symbol(library, "cuGetProcAddress_v2")};
  return found.function;
}

static assay_status_t missing(const char* name) {
  return ASSAY_ERROR(ASSAY_DEVICE,
                     "the driver has no function '%s': it is too old; CUDA 12.0 (driver "
                     "525.60) or later is needed",
                     name);
}

static assay_status_t find_all(get_address_t* get, cuda_api_t* api) {
#define CUDA_FUNCTION(name, parameters)                                                      \
  {                                                                                          \
    union {                                                                                  \
      void* symbol;                                                                          \
      cuda_result_t(*function) parameters;                                                   \
    } found = {NULL};                                                                        \
    int status = 0;                                                                          \
    if (get(#name, &found.symbol, CUDA_VERSION_NEEDED, 0, &status) != CUDA_SUCCESS_RESULT || \
        !found.symbol)                                                                       \
      return missing(#name);                                                                 \
    api->name = found.function;                                                              \
  }
#include "backends/cuda/api.inc"
#undef CUDA_FUNCTION
  return NULL;
}

static assay_status_t start(cuda_api_t* api) {
  int version = 0;
  CUDA_TRY(api, cuDriverGetVersion, &version);
  if (version < CUDA_VERSION_NEEDED)
    return ASSAY_ERROR(ASSAY_DEVICE,
                       "the driver is too old: it knows CUDA %d.%d, and 12.0 (driver 525.60) "
                       "or later is needed",
                       version / 1000, version % 1000 / 10);
  const cuda_result_t r = api->cuInit(0);
  if (r == CUDA_NO_DEVICE)
    return ASSAY_ERROR(ASSAY_DEVICE,
                       "there is a driver, and no device that it may use (is "
                       "CUDA_VISIBLE_DEVICES set?)");
  ASSAY_TRY(cuda_check(api, r, "cuInit"));
  api->version = version;
  return NULL;
}

static assay_status_t open_driver(cuda_api_t* api) {
  assay_str_t looked = {0};
  static const char* const names[] = {LIBRARY, NULL};
  void* library = cuda_library_open(names, &looked);
  assay_status_t st = assay_str_status(&looked);
  if (!st && !library)
    st = ASSAY_ERROR(ASSAY_DEVICE,
                     "no " LIBRARY
                     " was found (looked %s): is a driver of "
                     "NVIDIA's installed?",
                     assay_str_get(&looked));
  assay_str_deinit(&looked);
  get_address_t* get = st ? NULL : find_get_address(library);
  if (!st && !get) st = missing("cuGetProcAddress_v2");
  if (!st) st = find_all(get, api);
  if (!st) st = start(api);
  // A driver that could not be started is left open, too: threads of its own may run.
  return st;
}

assay_status_t cuda_api_get(const cuda_api_t** out) {
  assay_status_t st = NULL;
  pthread_mutex_lock(&driver.lock);
  if (!driver.opened) st = open_driver(&driver.api);
  driver.opened |= !st;
  pthread_mutex_unlock(&driver.lock);
  *out = st ? NULL : &driver.api;
  return st;
}
