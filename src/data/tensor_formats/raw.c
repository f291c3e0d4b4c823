// Raw bytes, in the type and shape of the value that they are for.

#include "base/file.h"
#include "data/tensor_formats/tensor_format.h"
#include "formats/format.h"

// Nothing tells raw bytes: whatever is nothing else, for a value that says what it is.
static bool is_raw(const assay_tensor_file_t* f) { return f->mapping && f->request->n_values; }

static assay_status_t read_raw(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(assay_tensor_file_value(f->request, &v));
  const int bits = assay_type_bits(assay_tensor_file_elem(v));
  if (bits < 8 || f->size % (size_t)(bits / 8)) {
    assay_str_t formats = {0};
    assay_status_t st = assay_tensor_file_list(&formats);
    if (!st)
      st =
          ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                      "it is in none of the formats %s; and as raw bytes its %zu do not make "
                      "elements of %s",
                      assay_str_get(&formats), f->size, assay_type_name(assay_tensor_file_elem(v)));
    assay_str_deinit(&formats);
    return st;
  }
  ASSAY_TRY(assay_status_note(
      assay_tensor_file_settle(v, (int64_t)(f->size / (size_t)(bits / 8)), dims), "as raw bytes"));
  const int rank = (v->type ? v->type : v->declared)->rank;
  assay_mapping_retain(f->mapping);
  ASSAY_TRY(assay_tensor_wrap_packed(assay_tensor_file_elem(v), rank, dims, f->data,
                                     (int64_t)f->size, assay_mapping_release_owner, f->mapping,
                                     &t));
  return assay_tensor_file_add(f, v, t, out);
}

static assay_status_t write_raw(const char* path, const assay_saved_t* s, const char* runner,
                                assay_str_t* notes) {
  assay_tensor_t *t = NULL, *packed = NULL;
  int64_t bytes = 0;
  (void)runner, (void)notes;
  ASSAY_TRY(assay_tensor_file_single(s, "a raw file", &t));
  if (t->kind != ASSAY_KIND_TENSOR || t->type == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "raw files hold tensors of numbers only");
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  assay_status_t st =
      assay_type_packed_bytes(packed->type, packed->size, &bytes) ? NULL : assay_status_no_memory();
  if (!st) st = assay_file_write(path, packed->data, (size_t)bytes);
  assay_tensor_release(packed);
  return st;
}

// Whatever no other row takes: the last one.
const assay_tensor_format_t assay_tensor_format_raw = {.name = "raw",
                                                       .listed = "raw",
                                                       .endings = {".raw", ".bin", ".dat"},
                                                       .is = is_raw,
                                                       .read = read_raw,
                                                       .write = write_raw};
