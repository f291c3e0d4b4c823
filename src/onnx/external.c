// External data: files beside the model, mapped, and kept inside its folder.
// Source: onnx-ml.proto, TensorProto.external_data; ONNX documentation 'External Data'.
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "onnx/read.h"

// A number without sign, space or anything else around it.
static bool parse_number(const char* s, int64_t* out) {
  int64_t v = 0;
  if (!*s) return false;
  for (; *s; s++) {
    if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, 10, &v) ||
        __builtin_add_overflow(v, *s - '0', &v))
      return false;
  }
  *out = v;
  return true;
}

// Whether a location can only name something below the folder, as far as its text goes.
static bool is_inside_by_name(const char* location) {
  if (!*location || *location == '/') return false;
  for (const char* p = location; p;) {
    const char* end = strchr(p, '/');
    size_t n = end ? (size_t)(end - p) : strlen(p);
    if (n == 2 && p[0] == '.' && p[1] == '.') return false;
    p = end ? end + 1 : NULL;
  }
  return true;
}

static assay_status_t real_path(const char* path, char** out) {
  char* real = realpath(path, NULL);
  if (!real) return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s': %s", path, strerror(errno));
  size_t n = strlen(real);
  char* copy = assay_malloc(n + 1);
  if (copy) memcpy(copy, real, n + 1);
  free(real);
  if (!copy) return assay_status_no_memory();
  *out = copy;
  return NULL;
}

// Whether a real path lies below a real folder.
static bool is_below(const char* path, const char* folder) {
  size_t n = strlen(folder);
  while (n && folder[n - 1] == '/') n--;
  return strncmp(path, folder, n) == 0 && path[n] == '/';
}

static assay_status_t open_external(onnx_reader_t* r, const char* location, assay_mapping_t** out) {
  for (size_t i = 0; i < r->n_externals; i++) {
    if (strcmp(r->externals[i].location, location) != 0) continue;
    *out = r->externals[i].mapping;
    return NULL;
  }
  if (!is_inside_by_name(location))
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "external data in '%s' is outside of the model's folder; "
                       "expected a relative path without '..'",
                       location);
  if (!r->folder)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "its data lie in file '%s', and the model came without a folder", location);
  ASSAY_TRY(assay_grow(&r->externals, &r->cap_externals, r->n_externals + 1, sizeof *r->externals));
  if (!r->real_folder) ASSAY_TRY(real_path(r->folder, &r->real_folder));
  const char *name = NULL, *path = NULL;
  ASSAY_TRY(onnx_text(r, location, &name));
  ASSAY_TRY(assay_arena_printf(r->arena, &path, "%s/%s", r->folder, location));
  char* real = NULL;
  ASSAY_TRY(assay_status_note(real_path(path, &real), "external data"));
  assay_mapping_t* m = NULL;
  assay_status_t st = NULL;
  if (!is_below(real, r->real_folder))
    st = ASSAY_ERROR(ASSAY_CORRUPT,
                     "external data in '%s' is a link that leaves the model's folder", location);
  if (!st) st = assay_status_note(assay_mapping_open(real, &m), "external data");
  assay_free(real);
  if (st) return st;
  r->externals[r->n_externals++] = (onnx_external_t){name, m};
  *out = m;
  return NULL;
}

assay_status_t onnx_give_external(onnx_reader_t* r, const char* location, assay_mapping_t* data) {
  ASSAY_TRY(assay_grow(&r->externals, &r->cap_externals, r->n_externals + 1, sizeof *r->externals));
  assay_mapping_retain(data);
  r->externals[r->n_externals++] = (onnx_external_t){location, data};
  return NULL;
}

// Zeros in place of the elements.
static assay_status_t make_hollow(assay_type_t type, int rank, const int64_t* dims, int64_t bytes,
                                  assay_tensor_t** out) {
  void* zeros = assay_calloc((size_t)bytes + 1, 1);
  if (!zeros) return assay_status_no_memory();
  return assay_tensor_wrap_packed(type, rank, dims, zeros, bytes, assay_free, zeros, out);
}

assay_status_t onnx_read_external(onnx_reader_t* r, const Onnx__TensorProto* p, assay_type_t type,
                                  int rank, const int64_t* dims, const char** out_location,
                                  assay_tensor_t** out) {
  const char *location = NULL, *offset_text = NULL, *length_text = NULL;
  for (size_t i = 0; i < p->n_external_data; i++) {
    const char *key = p->external_data[i]->key, *value = p->external_data[i]->value;
    if (!key) continue;
    if (strcmp(key, "location") == 0) location = value ? value : "";
    if (strcmp(key, "offset") == 0) offset_text = value ? value : "";
    if (strcmp(key, "length") == 0) length_text = value ? value : "";
  }
  if (!location) return ASSAY_ERROR(ASSAY_CORRUPT, "external data without a location");
  if (type == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_CORRUPT, "strings cannot be external data");
  int64_t size, need = 0, offset = 0, length;
  ASSAY_TRY(onnx_check_dims(type, (size_t)rank, dims, &size));
  assay_type_packed_bytes(type, size, &need);
  if (offset_text && !parse_number(offset_text, &offset))
    return ASSAY_ERROR(ASSAY_CORRUPT, "external data: offset is '%s'; expected a number from 0 on",
                       offset_text);
  length = need;
  if (length_text && !parse_number(length_text, &length))
    return ASSAY_ERROR(ASSAY_CORRUPT, "external data: length is '%s'; expected a number from 0 on",
                       length_text);
  char shape[512];
  if (length != need)
    return ASSAY_ERROR(ASSAY_CORRUPT, "external data: length is %lld; %s%s needs %lld bytes",
                       (long long)length, assay_type_name(type),
                       assay_dims_text(rank, dims, shape, sizeof shape), (long long)need);
  if (r->options.hollow) {
    ASSAY_TRY(onnx_text(r, location, out_location));
    return make_hollow(type, rank, dims, need, out);
  }
  assay_mapping_t* m = NULL;
  ASSAY_TRY(open_external(r, location, &m));
  uint64_t file_size = assay_mapping_size(m);
  if ((uint64_t)offset > file_size || (uint64_t)need > file_size - (uint64_t)offset)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "external data: bytes %lld to %lld of '%s' are past its end at %llu",
                       (long long)offset, (long long)((uint64_t)offset + (uint64_t)need), location,
                       (unsigned long long)file_size);
  ASSAY_TRY(onnx_text(r, location, out_location));
  const uint8_t* data = assay_mapping_data(m);
  if (!data) data = (const uint8_t*)"";  // an empty file
  assay_mapping_retain(m);
  return assay_tensor_wrap_packed(type, rank, dims, data + offset, need,
                                  assay_mapping_release_owner, m, out);
}
