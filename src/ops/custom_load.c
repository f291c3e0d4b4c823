// Libraries of operators.
#include <assay/ops.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "base/str.h"

// Libraries that stay open: their operators are registered. A library is known by its handle,
// whatever path names it.
static void** open_libraries;
static size_t n_open, cap_open;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static bool is_open(const void* library) {
  for (size_t i = 0; i < n_open; i++)
    if (open_libraries[i] == library) return true;
  return false;
}

static assay_status_t register_from(void* library, const char* path) {
  union {
    void* symbol;
    assay_ops_fn_t* fn;
  } found = {.symbol = dlsym(library, ASSAY_OPS_SYMBOL)};
  assay_str_t origin = {0};
  if (!found.symbol)
    return ASSAY_ERROR(
        ASSAY_CORRUPT,
        "'%s' is not a library of operators: it has no function '%s' (see assay/ops.h)", path,
        ASSAY_OPS_SYMBOL);
  ASSAY_TRY(assay_grow(&open_libraries, &cap_open, n_open + 1, sizeof *open_libraries));
  assay_str_printf(&origin, "'%s'", path);
  assay_status_t st = assay_str_status(&origin);
  if (!st) st = assay_ops_register(found.fn, assay_str_get(&origin));
  if (!st) open_libraries[n_open++] = library;
  assay_str_deinit(&origin);
  return st;
}

static assay_status_t load(const char* file, const char* path) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return ASSAY_ERROR(ASSAY_CORRUPT, "'%s' cannot be opened as a library: %s", path,
                       why ? why : "for an unknown reason");
  }
  assay_status_t st = is_open(library) ? NULL : register_from(library, path);
  if (!is_open(library) || st) dlclose(library);
  return st;
}

assay_status_t assay_ops_load(const char* path) {
  assay_str_t file = {0};
  if (!path || !*path) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a library has no name");
  if (access(path, R_OK) != 0)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no library '%s' that can be read", path);
  // Without a folder the loader would look in the system's.
  assay_str_printf_raw(&file, "%s%s", strchr(path, '/') ? "" : "./", path);
  assay_status_t st = assay_str_status(&file);
  pthread_mutex_lock(&opening);
  if (!st) st = load(assay_str_get(&file), path);
  pthread_mutex_unlock(&opening);
  assay_str_deinit(&file);
  return st;
}
