// External data: files beside the model, mapped, and kept inside its folder.
// Source: onnx-ml.proto, TensorProto.external_data; ONNX documentation 'External Data'.
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

static _Atomic bool hard_links_allowed;

void assay_onnx_allow_hard_links(bool allow) { hard_links_allowed = allow; }

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
  if (!r->beneath) ASSAY_TRY(assay_folder_open(r->folder, &r->beneath));
  const char* name = NULL;
  ASSAY_TRY(onnx_text(r, location, &name));
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_status_note(
      assay_mapping_open_beneath(r->beneath, location,
                                 hard_links_allowed ? ASSAY_BENEATH_HARD_LINKS : 0, &m),
      "external data below '%s'", r->folder));
  r->externals[r->n_externals++] = (onnx_external_t){name, m};
  *out = m;
  return NULL;
}

assay_status_t onnx_give_external(onnx_reader_t* r, const char* location, assay_mapping_t* data) {
  ASSAY_TRY(assay_grow(&r->externals, &r->cap_externals, r->n_externals + 1, sizeof *r->externals));
  assay_mapping_retain(data);
  r->data_given = true;
  r->externals[r->n_externals++] = (onnx_external_t){location, data};
  return NULL;
}

// The type as which elements lie in data that were given; UNDEFINED: no plan says so.
static assay_type_t type_there(const onnx_reader_t* r, assay_type_t type, const char* narrow) {
  const bool can_be = r->may_narrow && type == ASSAY_TYPE_FLOAT;
  if (!narrow) return type;
  if (can_be && strcmp(narrow, assay_type_name(ASSAY_TYPE_FLOAT16)) == 0) return ASSAY_TYPE_FLOAT16;
  if (can_be && strcmp(narrow, assay_type_name(ASSAY_TYPE_BFLOAT16)) == 0)
    return ASSAY_TYPE_BFLOAT16;
  return r->data_given ? ASSAY_TYPE_UNDEFINED : type;
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
  const char* narrow = NULL;
  for (size_t i = 0; i < p->n_external_data; i++) {
    const char *key = p->external_data[i]->key, *value = p->external_data[i]->value;
    if (!key) continue;
    if (strcmp(key, "location") == 0) location = value ? value : "";
    if (strcmp(key, "offset") == 0) offset_text = value ? value : "";
    if (strcmp(key, "length") == 0) length_text = value ? value : "";
    if (strcmp(key, ASSAY_ONNX_NARROW) == 0) narrow = value ? value : "";
  }
  if (!location) return ASSAY_ERROR(ASSAY_CORRUPT, "external data without a location");
  if (type == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_CORRUPT, "strings cannot be external data");
  const assay_type_t there = type_there(r, type, narrow);
  if (!there)
    return ASSAY_ERROR(ASSAY_CORRUPT, "external data: elements of %s do not lie as '%s'",
                       assay_type_name(type), narrow);
  int64_t size, need = 0, offset = 0, length;
  ASSAY_TRY(onnx_check_dims(type, (size_t)rank, dims, &size));
  assay_type_packed_bytes(there, size, &need);
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
                       (long long)length, assay_type_name(there),
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
  if (there != type && offset % (int64_t)sizeof(uint16_t))
    return ASSAY_ERROR(ASSAY_CORRUPT, "external data: elements of 16 bits lie at an odd offset");
  assay_mapping_retain(m);
  return there == type ? assay_tensor_wrap_packed(type, rank, dims, data + offset, need,
                                                  assay_mapping_release_owner, m, out)
                       : assay_tensor_wrap_narrow(there, rank, dims, data + offset, need,
                                                  assay_mapping_release_owner, m, out);
}
