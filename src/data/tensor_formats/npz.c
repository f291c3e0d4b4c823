// NumPy's archive of arrays, and a folder with inputs.npz and outputs.npz.

#include "io/npz.h"

#include <dirent.h>
#include <string.h>

#include "base/shown.h"
#include "data/tensor_formats/tensor_format.h"

static bool is_npz(const assay_tensor_file_t* f) {
  return f->size >= 4 && memcmp(f->data, "PK", 2) == 0 && (f->data[2] == 3 || f->data[2] == 5);
}

static assay_status_t read_npz(const assay_tensor_file_t* f, assay_saved_t* out) {
  assay_set_t* run = NULL;
  ASSAY_TRY(assay_saved_add_run(out, &run));
  return assay_npz_read(f->request->path, run);
}

static assay_status_t write_npz(const char* path, const assay_saved_t* s, const char* runner,
                                assay_str_t* notes) {
  (void)runner, (void)notes;
  return assay_npz_write(path, &s->runs[0], s->compress);
}

static assay_status_t npz_within(const assay_tensor_request_t* r, assay_str_t* out) {
  assay_str_printf_raw(out, "%s/%ss.npz", r->path, assay_tensor_file_stem(r));
  return assay_str_status(out);
}

static bool is_npz_folder(const assay_tensor_file_t* f) {
  const char* name = f->request->outputs ? "outputs.npz" : "inputs.npz";
  bool found = false;
  DIR* folder = f->mapping ? NULL : opendir(f->request->path);
  for (const struct dirent* e; !found && folder && (e = readdir(folder));)
    found = strcmp(e->d_name, name) == 0;
  if (folder) closedir(folder);
  return found;
}

static assay_status_t read_npz_folder(const assay_tensor_file_t* f, assay_saved_t* out) {
  assay_set_t* run = NULL;
  assay_str_t path = {0};
  assay_status_t st = npz_within(f->request, &path);
  if (!st) st = assay_saved_add_run(out, &run);
  if (!st) st = assay_npz_read(assay_str_get(&path), run);
  assay_str_deinit(&path);
  return st;
}

const assay_tensor_format_t assay_tensor_format_npz = {.name = "npz",
                                                       .listed = "npz",
                                                       .endings = {".npz"},
                                                       .in_sample_folders = true,
                                                       .is = is_npz,
                                                       .read = read_npz,
                                                       .write = write_npz};

const assay_tensor_format_t assay_tensor_format_npz_folder = {
    .name = "folder of npz",
    .folder = {"inputs.npz", "outputs.npz"},
    .is = is_npz_folder,
    .read = read_npz_folder};
