// Libraries of NVIDIA's.
#include "backends/cuda/library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"

// Below `folder`/`below`; "": the loader's own way.
static void* open_in(const char* folder, const char* below, const char* const* names) {
  void* library = NULL;
  for (size_t i = 0; !library && names[i]; i++) {
    assay_str_t path = {0};
    assay_str_printf_raw(&path, "%s%s%s", folder, below, names[i]);
    if (!assay_str_status(&path)) library = dlopen(assay_str_get(&path), RTLD_NOW | RTLD_LOCAL);
    assay_str_deinit(&path);
  }
  return library;
}

// In the folders of a list, "A:B".
static void* open_in_list(const char* list, const char* const* names) {
  void* library = NULL;
  for (size_t at = 0, length; !library && list[at]; at += length + (list[at + length] == ':')) {
    length = strcspn(list + at, ":");
    assay_str_t folder = {0};
    assay_str_printf_raw(&folder, "%.*s", (int)length, list + at);
    if (length && !assay_str_status(&folder)) library = open_in(assay_str_get(&folder), "/", names);
    assay_str_deinit(&folder);
  }
  return library;
}

void* cuda_library_open(const char* const* names, assay_str_t* looked) {
  static const char* const toolkits[] = {"CUDA_PATH", "CUDA_HOME"};
  const char* folders = getenv("ASSAY_CUDA_PATH");
  void* library = NULL;
  if (folders && *folders) {
    library = open_in_list(folders, names);
    assay_str_printf(looked, "in ASSAY_CUDA_PATH ('%s'), ", folders);
  }
  if (!library) library = open_in("", "", names);
  for (size_t i = 0; i < sizeof toolkits / sizeof *toolkits; i++) {
    const char* toolkit = getenv(toolkits[i]);
    if (!toolkit || !*toolkit) continue;
    if (!library) library = open_in(toolkit, "/lib64/", names);
    assay_str_printf(looked, "in %s ('%s') ", toolkits[i], toolkit);
  }
  assay_str_append(looked, "and where the system's loader looks");
  return library;
}

void* cuda_library_symbol(void* library, const char* name) { return dlsym(library, name); }
