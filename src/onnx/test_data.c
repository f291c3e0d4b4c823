// Folders of test data, as ONNX's operator tests and model zoo have them: input_0.pb, input_1.pb,
// ..., output_0.pb, ..., by position.
#include "onnx/test_data.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/shown.h"
#include "base/str.h"
#include "onnx/onnx.h"

enum { MAX_NUMBER = 1000000 };

// The number of a file STEM_J.pb; -1: another name.
static long number_of(const char* name, const char* stem) {
  const size_t n = strlen(stem);
  char* end;
  if (strncmp(name, stem, n) != 0 || name[n] != '_' || name[n + 1] < '0' || name[n + 1] > '9')
    return -1;
  const long k = strtol(name + n + 1, &end, 10);
  return strcmp(end, ".pb") == 0 && k < MAX_NUMBER ? k : -1;
}

// One more than the highest number there is.
static size_t count_places(const char* folder, const char* stem) {
  long max = -1;
  DIR* dir = opendir(folder);
  for (const struct dirent* e; dir && (e = readdir(dir));) {
    const long k = number_of(e->d_name, stem);
    if (k > max) max = k;
  }
  if (dir) closedir(dir);
  return (size_t)(max + 1);
}

bool assay_onnx_is_test_data(const char* folder, const char* stem) {
  return count_places(folder, stem) != 0;
}

static assay_status_t path_of(const char* folder, const char* stem, size_t k, assay_str_t* out) {
  out->len = 0;
  assay_str_printf_raw(out, "%s/%s_%zu.pb", folder, stem, k);
  return assay_str_status(out);
}

// Without a file there is no value. Nor with an empty one of a tensor, which is not valid; other
// messages may be empty: an optional without element is.
static bool is_there(const char* path, const assay_value_t* v) {
  struct stat info;
  const bool tensor = !v->declared || v->declared->kind == ASSAY_KIND_TENSOR;
  return stat(path, &info) == 0 && (info.st_size > 0 || !tensor);
}

assay_status_t assay_onnx_read_test_data(const char* folder, const char* stem,
                                         assay_value_t* const* values, size_t n_values,
                                         assay_tensor_t** out) {
  const size_t places = count_places(folder, stem);
  assay_str_t path = {0};
  assay_status_t st = NULL;
  size_t k = 0;
  for (size_t i = 0; i < n_values; i++) out[i] = NULL;
  for (size_t i = 0; !st && i < n_values && k < places; i++) {
    if (places < n_values && values[i]->constant) continue;
    st = path_of(folder, stem, k++, &path);
    if (!st && is_there(assay_str_get(&path), values[i]))
      st = assay_onnx_read_value(assay_str_get(&path), values[i]->declared, &out[i]);
  }
  if (!st && k < places)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' holds %s_%zu.pb; the model has %zu %ss", folder,
                     stem, places - 1, k, stem);
  assay_str_deinit(&path);
  for (size_t i = 0; st && i < n_values; i++) {
    assay_tensor_release(out[i]);
    out[i] = NULL;
  }
  return st;
}

assay_status_t assay_onnx_write_test_data(const char* folder, const char* stem, size_t n,
                                          assay_tensor_t* const* tensors,
                                          const char* const* names) {
  assay_str_t path = {0};
  assay_status_t st = assay_folder_make(folder);
  for (size_t i = 0; !st && i < n; i++) {
    if (!tensors[i]) continue;
    st = path_of(folder, stem, i, &path);
    if (!st) st = assay_onnx_write_value(assay_str_get(&path), tensors[i], names[i]);
  }
  assay_str_deinit(&path);
  return st;
}
