// One array as NumPy saves it.

#include "io/npy.h"

#include <string.h>

#include "data/tensor_formats/tensor_format.h"

static bool is_npy(const assay_tensor_file_t* f) {
  return f->size >= 6 && memcmp(f->data, "\x93NUMPY", 6) == 0;
}

static assay_status_t read_npy(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_file_value(f->request, &v));
  ASSAY_TRY(assay_npy_read(f->request->path, &t));
  return assay_tensor_file_add(f, v, t, out);
}

static assay_status_t write_npy(const char* path, const assay_saved_t* s, const char* runner,
                                assay_str_t* notes) {
  assay_tensor_t* t = NULL;
  (void)runner, (void)notes;
  ASSAY_TRY(assay_tensor_file_single(s, "npy", &t));
  return assay_npy_write(path, t);
}

const assay_tensor_format_t assay_tensor_format_npy = {.name = "npy",
                                                       .listed = "npy",
                                                       .endings = {".npy"},
                                                       .in_sample_folders = true,
                                                       .is = is_npy,
                                                       .read = read_npy,
                                                       .write = write_npy};
