// A folder of samples: test_data_set_0, test_data_set_1, ... as ONNX's models have them, or a file
// of arrays each, in the order of their names.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "data/tensor_formats/tensor_format.h"

static const char set_name[] = "test_data_set_";

static int is_set(const struct dirent* e) {
  return strncmp(e->d_name, set_name, sizeof set_name - 1) == 0;
}
static int is_shown(const struct dirent* e) { return e->d_name[0] != '.'; }

typedef struct entries {
  struct dirent** at;
  size_t n;
} entries_t;

static void entries_free(entries_t* e) {
  for (size_t i = 0; i < e->n; i++) free(e->at[i]);
  free(e->at);
  *e = (entries_t){0};
}

// Sets go by their numbers. *out_sets: that is what they are.
static entries_t list_entries(const char* path, bool* out_sets) {
  entries_t e = {0};
  int n = scandir(path, &e.at, is_set, versionsort);
  *out_sets = n > 0;
  if (n == 0) free(e.at);
  if (n <= 0) n = scandir(path, &e.at, is_shown, alphasort);
  if (n == 0) free(e.at);
  if (n <= 0) return (entries_t){0};
  e.n = (size_t)n;
  return e;
}

static assay_status_t path_within(const char* folder, const char* name, assay_str_t* out) {
  assay_str_printf_raw(out, "%s/%s", folder, name);
  return assay_str_status(out);
}

// Whether the file is of a format of which a folder has a file a sample.
static bool is_sample(const assay_tensor_request_t* folder, const char* path) {
  assay_tensor_request_t request = *folder;
  assay_tensor_file_t f = {.request = &request};
  request.path = path;
  assay_status_t st = assay_mapping_open(path, &f.mapping);
  if (!st) {
    f.data = assay_mapping_data(f.mapping);
    f.size = assay_mapping_size(f.mapping);
  }
  const assay_tensor_format_t* format = st ? NULL : assay_tensor_format_of(&f);
  assay_status_free(st);
  assay_mapping_release(f.mapping);
  return format && format->in_sample_folders;
}

static bool is_sample_folder(const assay_tensor_file_t* f) {
  const assay_tensor_request_t* r = f->request;
  bool is;
  if (f->mapping) return false;
  entries_t e = list_entries(r->path, &is);
  if (!is && e.n) {
    assay_str_t path = {0};
    assay_status_t st = path_within(r->path, e.at[0]->d_name, &path);
    is = !st && is_sample(r, assay_str_get(&path));
    assay_status_free(st);
    assay_str_deinit(&path);
  }
  entries_free(&e);
  return is;
}

static assay_status_t add_runs(assay_saved_t* from, assay_saved_t* to) {
  for (size_t i = 0; i < from->n; i++) {
    assay_set_t* run = NULL;
    ASSAY_TRY(assay_saved_add_run(to, &run));
    *run = from->runs[i];
    from->runs[i] = (assay_set_t){0};
  }
  return NULL;
}

static assay_status_t read_sample_folder(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_tensor_request_t* r = f->request;
  bool sets;
  entries_t e = list_entries(r->path, &sets);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < e.n; i++) {
    assay_str_t path = {0};
    assay_saved_t one = {0};
    assay_tensor_request_t within = *r;
    st = path_within(r->path, e.at[i]->d_name, &path);
    within.path = assay_str_get(&path);
    if (!st) st = assay_tensor_file_read(&within, &one);
    if (!st) st = add_runs(&one, out);
    out->results |= one.results;
    assay_saved_deinit(&one);
    assay_str_deinit(&path);
  }
  entries_free(&e);
  return st;
}

const assay_tensor_format_t assay_tensor_format_sample_folder = {.name = "folder of samples",
                                                                 .listed = "a folder of samples",
                                                                 .folder = {"test_data_set_0"},
                                                                 .is = is_sample_folder,
                                                                 .read = read_sample_folder};
