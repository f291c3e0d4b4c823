// Images, and folders of them: a run each.

#include <dirent.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/shown.h"
#include "data/images.h"
#include "data/tensor_formats/tensor_format.h"

// The file itself or, in a folder, one of several: those are decoded again when they are needed.
static assay_status_t add_image(const assay_tensor_file_t* f, const char* path,
                                assay_saved_t* out) {
  assay_tensor_reading_t* r = f->request->reading;
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_file_value(f->request, &v));
  const bool prepared = r && !f->request->outputs;
  const assay_image_request_t* request = prepared ? &r->images : NULL;
  assay_str_t* notes = r ? &r->notes : NULL;
  ASSAY_TRY(f->mapping ? assay_image_tensor(f->data, f->size, path, v, request, notes, &t)
                       : assay_image_tensor_late(path, v, request, notes, &t));
  if (prepared) r->n_images++;
  return assay_tensor_file_add(f, v, t, out);
}

static bool is_image(const assay_tensor_file_t* f) {
  return f->mapping && assay_image_is(f->data, f->size);
}

static assay_status_t read_image(const assay_tensor_file_t* f, assay_saved_t* out) {
  return add_image(f, f->request->path, out);
}

static int not_hidden(const struct dirent* e) { return e->d_name[0] != '.'; }

// The files of a folder by their names; *out_n 0: there is none.
static struct dirent** list_files(const char* path, size_t* out_n) {
  struct dirent** list = NULL;
  const int n = scandir(path, &list, not_hidden, alphasort);
  *out_n = n > 0 ? (size_t)n : 0;
  if (n == 0) free(list);
  return n > 0 ? list : NULL;
}

static void free_list(struct dirent** list, size_t n) {
  for (size_t i = 0; i < n; i++) free(list[i]);
  free(list);
}

static assay_status_t open_within(const char* folder, const char* name, assay_str_t* path,
                                  assay_mapping_t** out) {
  assay_str_printf_raw(path, "%s/%s", folder, name);
  ASSAY_TRY(assay_str_status(path));
  return assay_mapping_open(assay_str_get(path), out);
}

// Whether the first file is an image: then all have to be.
static bool is_image_folder(const assay_tensor_file_t* f) {
  size_t n;
  struct dirent** list = f->mapping ? NULL : list_files(f->request->path, &n);
  assay_str_t path = {0};
  assay_mapping_t* m = NULL;
  if (!list) return false;
  assay_status_t st = open_within(f->request->path, list[0]->d_name, &path, &m);
  const bool is = !st && assay_image_is(assay_mapping_data(m), assay_mapping_size(m));
  assay_status_free(st);
  assay_mapping_release(m);
  assay_str_deinit(&path);
  free_list(list, n);
  return is;
}

// A run an image, in the order of their names.
static assay_status_t read_image_folder(const assay_tensor_file_t* f, assay_saved_t* out) {
  size_t n = 0;
  struct dirent** list = list_files(f->request->path, &n);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) {
    assay_str_t path = {0};
    assay_str_printf_raw(&path, "%s/%s", f->request->path, list[i]->d_name);
    st = assay_str_status(&path);
    if (!st) st = add_image(f, assay_str_get(&path), out);
    st = assay_status_note(st, "'%s'", list[i]->d_name);
    assay_str_deinit(&path);
  }
  if (list) free_list(list, n);
  return st;
}

const assay_tensor_format_t assay_tensor_format_image = {
    .name = "image", .listed = "images (PNG, JPEG, PPM)", .is = is_image, .read = read_image};

const assay_tensor_format_t assay_tensor_format_image_folder = {.name = "folder of images",
                                                                .folder = {"images"},
                                                                .is = is_image_folder,
                                                                .read = read_image_folder};
