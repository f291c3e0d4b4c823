// NumPy's archive of arrays: a zip file of npy members.
#include "io/npz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "io/npy.h"
#include "io/zip.h"

// The name of the array in a member; false: the member is not an array.
static bool array_name(const char* member, assay_str_t* out) {
  static const char suffix[] = ".npy";
  size_t n = strlen(member), tail = sizeof suffix - 1;
  if (n < tail || strcmp(member + n - tail, suffix) != 0) return false;
  assay_str_append_n(out, member, n - tail);
  return true;
}

static assay_status_t read_member(assay_mapping_t* file, const assay_zip_member_t* m,
                                  assay_str_t* name, assay_set_t* set) {
  const uint8_t* bytes = NULL;
  void* owned = NULL;
  assay_tensor_t* t = NULL;
  if (!array_name(m->name, name)) return NULL;
  ASSAY_TRY(assay_str_status(name));
  ASSAY_TRY(assay_zip_extract(assay_mapping_data(file), file, m, &bytes, &owned));
  if (!owned) assay_mapping_retain(file);
  assay_status_t st =
      owned ? assay_npy_parse(bytes, (size_t)m->size, assay_free, owned, &t)
            : assay_npy_parse(bytes, (size_t)m->size, assay_mapping_release_owner, file, &t);
  if (!st) st = assay_set_add(set, assay_str_get(name), t);
  return assay_status_note(st, "member '%s'", m->name);
}

static assay_status_t read_mapping(assay_mapping_t* file, assay_set_t* out) {
  assay_zip_t zip = {0};
  assay_set_t set = {0};
  assay_str_t name = {0};
  assay_status_t st = assay_zip_open(assay_mapping_data(file), assay_mapping_size(file), &zip);
  for (size_t i = 0; !st && i < zip.n; i++) {
    name.len = 0;
    st = read_member(file, &zip.members[i], &name, &set);
  }
  assay_str_deinit(&name);
  assay_zip_close(&zip);
  if (st) return assay_set_deinit(&set), st;
  *out = set;
  return NULL;
}

assay_status_t assay_npz_read(const char* path, assay_set_t* out) {
  assay_mapping_t* file = NULL;
  ASSAY_TRY(assay_mapping_open(path, &file));
  assay_status_t st = read_mapping(file, out);
  assay_mapping_release(file);
  return assay_status_note(st, "'%s'", path);
}

assay_status_t assay_npz_parse(const void* data, size_t size, assay_set_t* out) {
  assay_mapping_t* file = NULL;
  ASSAY_TRY(assay_mapping_copy(data, size, &file));
  assay_status_t st = read_mapping(file, out);
  assay_mapping_release(file);
  return st;
}

static assay_status_t write_member(assay_zip_writer_t* zip, const char* name, assay_tensor_t* t,
                                   bool compress) {
  assay_npy_image_t image;
  assay_str_t member = {0};
  ASSAY_TRY(assay_npy_image_make(t, &image));
  assay_str_printf_raw(&member, "%s.npy", name);
  assay_status_t st = assay_str_status(&member);
  if (!st)
    st = assay_zip_append(zip, assay_str_get(&member), compress, image.head.text, image.head.len,
                          image.body, image.body_len);
  assay_str_deinit(&member);
  assay_npy_image_deinit(&image);
  return st;
}

assay_status_t assay_npz_write(const char* path, const assay_set_t* set, bool compress) {
  assay_zip_writer_t zip = {0};
  ASSAY_TRY(assay_writer_open(path, &zip.writer));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < set->n; i++) {
    st = write_member(&zip, set->names[i], set->tensors[i], compress);
    if (st) st = assay_status_note(st, "array '%s'", set->names[i]);
  }
  assay_status_t finished = st ? NULL : assay_zip_finish(&zip);
  assay_str_deinit(&zip.directory);
  st = assay_status_join(st, finished);
  if (st) return assay_writer_abandon(zip.writer), st;
  return assay_writer_commit(zip.writer);
}
