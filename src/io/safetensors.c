// Source: huggingface/safetensors, README.md "Format" and safetensors/src/tensor.rs (0.6).
#include "io/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/json.h"
#include "io/stored.h"

enum { MAX_HEADER = 100000000, LENGTH_BYTES = 8, ALIGN = 8 };

static const struct {
  const char* name;
  assay_type_t type;
  int64_t bytes;
} dtypes[] = {
    {"F64", ASSAY_TYPE_DOUBLE, 8},
    {"F32", ASSAY_TYPE_FLOAT, 4},
    {"F16", ASSAY_TYPE_FLOAT16, 2},
    {"BF16", ASSAY_TYPE_BFLOAT16, 2},
    {"F8_E4M3", ASSAY_TYPE_FLOAT8E4M3FN, 1},
    {"F8_E5M2", ASSAY_TYPE_FLOAT8E5M2, 1},
    {"F8_E8M0", ASSAY_TYPE_FLOAT8E8M0, 1},
    {"I64", ASSAY_TYPE_INT64, 8},
    {"I32", ASSAY_TYPE_INT32, 4},
    {"I16", ASSAY_TYPE_INT16, 2},
    {"I8", ASSAY_TYPE_INT8, 1},
    {"U64", ASSAY_TYPE_UINT64, 8},
    {"U32", ASSAY_TYPE_UINT32, 4},
    {"U16", ASSAY_TYPE_UINT16, 2},
    {"U8", ASSAY_TYPE_UINT8, 1},
    {"BOOL", ASSAY_TYPE_BOOL, 1},
    {"C64", ASSAY_TYPE_COMPLEX64, 8},
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

// ---- reading ----------------------------------------------------------------------------------

static uint64_t length_of(const uint8_t* data) {
  uint64_t n;
  memcpy(&n, data, sizeof n);  // little-endian, as this machine is
  return n;
}

bool assay_safetensors_is(const uint8_t* data, size_t size) {
  return size > LENGTH_BYTES && data[LENGTH_BYTES] == '{' && length_of(data) >= 2 &&
         length_of(data) <= size - LENGTH_BYTES;
}

// A tensor of the header.
typedef struct entry {
  const char* name;  // the header's
  size_t dtype;      // of the table
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  uint64_t begin, end;  // in the bytes after the header
} entry_t;

static assay_status_t read_dtype(const json_t* j, size_t* out) {
  const char* name = json_string_value(json_object_get(j, "dtype"));
  if (!name) return ASSAY_ERROR(ASSAY_CORRUPT, "it has no dtype");
  for (*out = 0; *out < N_DTYPES; ++*out)
    if (strcmp(dtypes[*out].name, name) == 0) return NULL;
  return ASSAY_ERROR(
      ASSAY_UNSUPPORTED,
      "its type is '%s'; F64, F32, F16, BF16, F8_E4M3, F8_E5M2, integers and BOOL can be "
      "read",
      name);
}

static assay_status_t read_shape(const json_t* j, entry_t* e) {
  const json_t* shape = json_object_get(j, "shape");
  if (!json_is_array(shape)) return ASSAY_ERROR(ASSAY_CORRUPT, "it has no shape");
  if (json_array_size(shape) > ASSAY_MAX_RANK)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "it has %zu dimensions; at most %d can be read",
                       json_array_size(shape), (int)ASSAY_MAX_RANK);
  e->rank = (int)json_array_size(shape);
  for (int i = 0; i < e->rank; i++) {
    const json_t* d = json_array_get(shape, (size_t)i);
    if (!json_is_integer(d) || json_integer_value(d) < 0)
      return ASSAY_ERROR(ASSAY_CORRUPT, "dimension %d of its shape is not a size", i);
    e->dims[i] = json_integer_value(d);
  }
  return NULL;
}

static assay_status_t read_entry(const json_t* j, uint64_t data_bytes, entry_t* e) {
  const json_t* offsets = json_object_get(j, "data_offsets");
  const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
  int64_t n = 0, bytes = 0;
  ASSAY_TRY(read_dtype(j, &e->dtype));
  ASSAY_TRY(read_shape(j, e));
  if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
      json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
    return ASSAY_ERROR(ASSAY_CORRUPT, "its data_offsets are not [begin, end]");
  e->begin = (uint64_t)json_integer_value(begin);
  e->end = (uint64_t)json_integer_value(end);
  if (e->end > data_bytes)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "it ends at byte %" PRIu64 " of the data, which have %" PRIu64
                       ": the file is cut off, or damaged",
                       e->end, data_bytes);
  if (!assay_dims_size(e->rank, e->dims, &n) || !assay_mul_i64(n, dtypes[e->dtype].bytes, &bytes) ||
      (uint64_t)bytes != e->end - e->begin)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "shape %s of %s does not take the %" PRIu64 " bytes that it has",
                       assay_dims_text(e->rank, e->dims, (char[512]){0}, 512),
                       dtypes[e->dtype].name, e->end - e->begin);
  return NULL;
}

static int by_begin(const void* a, const void* b) {
  const entry_t *const *x = a, *const *y = b;
  if ((*x)->begin != (*y)->begin) return (*x)->begin < (*y)->begin ? -1 : 1;
  return (*x)->end < (*y)->end ? -1 : (*x)->end > (*y)->end;
}

// Every byte of the data belongs to one tensor.
static assay_status_t check_layout(const entry_t* entries, size_t n, uint64_t data_bytes) {
  const entry_t** sorted = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *sorted, &sorted));
  for (size_t i = 0; i < n; i++) sorted[i] = &entries[i];
  qsort(sorted, n, sizeof *sorted, by_begin);
  assay_status_t st = NULL;
  uint64_t at = 0;
  for (size_t i = 0; !st && i < n; at = sorted[i++]->end)
    if (sorted[i]->begin != at)
      st = ASSAY_ERROR(
          ASSAY_CORRUPT, "tensor '%s' begins at byte %" PRIu64 " of the data, %s %" PRIu64,
          sorted[i]->name, sorted[i]->begin,
          sorted[i]->begin < at ? "within the one that ends at" : "after a gap from", at);
  if (!st && at != data_bytes)
    st = ASSAY_ERROR(ASSAY_CORRUPT,
                     "the tensors take %" PRIu64 " bytes of data, and there are %" PRIu64, at,
                     data_bytes);
  assay_free(sorted);
  return st;
}

// The header's entries but for its metadata.
static assay_status_t read_entries(json_t* header, uint64_t data_bytes, entry_t* entries,
                                   size_t* out_n) {
  const char* name;
  json_t* j;
  json_object_foreach(header, name, j) {
    if (strcmp(name, "__metadata__") == 0) continue;
    entries[*out_n] = (entry_t){.name = name};
    ASSAY_TRY(assay_status_note(read_entry(j, data_bytes, &entries[*out_n]), "tensor '%s'", name));
    ++*out_n;
  }
  return check_layout(entries, *out_n, data_bytes);
}

static assay_status_t check_metadata(json_t* metadata) {
  const char* key;
  json_t* value;
  if (metadata && !json_is_object(metadata))
    return ASSAY_ERROR(ASSAY_CORRUPT, "'__metadata__' is not an object");
  json_object_foreach(metadata, key, value) {
    if (!json_is_string(value))
      return ASSAY_ERROR(ASSAY_CORRUPT, "'%s' of '__metadata__' is not a string", key);
  }
  return NULL;
}

static assay_status_t wrap(assay_mapping_t* file, size_t start, const entry_t* e,
                           assay_set_t* set) {
  assay_tensor_t* t = NULL;
  assay_mapping_retain(file);
  ASSAY_TRY(assay_tensor_wrap_packed(
      dtypes[e->dtype].type, e->rank, e->dims, assay_mapping_data(file) + start + e->begin,
      (int64_t)(e->end - e->begin), assay_mapping_release_owner, file, &t));
  return assay_set_add(set, e->name, t);
}

static assay_status_t read_header(assay_mapping_t* file, json_t* header, size_t start,
                                  assay_set_t* out) {
  entry_t* entries = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(json_object_size(header), sizeof *entries, &entries));
  assay_status_t st = read_entries(header, assay_mapping_size(file) - start, entries, &n);
  for (size_t i = 0; !st && i < n; i++) st = wrap(file, start, &entries[i], out);
  assay_free(entries);
  return st;
}

static assay_status_t check_start(const uint8_t* data, size_t size) {
  if (size < LENGTH_BYTES)
    return ASSAY_ERROR(ASSAY_CORRUPT, "no safetensors file: it has %zu bytes", size);
  const uint64_t n = length_of(data);
  if (n > MAX_HEADER || n > size - LENGTH_BYTES)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "safetensors: the header has %" PRIu64
                       " bytes, and the file %zu; at most 100 MB are read",
                       n, size);
  if (!n || data[LENGTH_BYTES] != '{')
    return ASSAY_ERROR(ASSAY_CORRUPT, "safetensors: the header does not begin with '{'");
  return NULL;
}

static assay_status_t read_mapping(assay_mapping_t* file, assay_set_t* out,
                                   assay_str_t* out_metadata) {
  const uint8_t* data = assay_mapping_data(file);
  json_t* header = NULL;
  assay_set_t set = {0};
  ASSAY_TRY(check_start(data, assay_mapping_size(file)));
  const size_t n = (size_t)length_of(data);
  ASSAY_TRY(
      assay_status_note(assay_json_parse(data + LENGTH_BYTES, n, &header), "safetensors header"));
  json_t* metadata = json_object_get(header, "__metadata__");
  assay_status_t st = check_metadata(metadata);
  if (!st) st = read_header(file, header, LENGTH_BYTES + n, &set);
  if (!st && out_metadata && metadata) {
    assay_json_print(metadata, 0, out_metadata);
    st = assay_str_status(out_metadata);
  }
  json_decref(header);
  if (st) return assay_set_deinit(&set), st;
  *out = set;
  return NULL;
}

assay_status_t assay_safetensors_read(const char* path, assay_set_t* out,
                                      assay_str_t* out_metadata) {
  assay_mapping_t* file = NULL;
  ASSAY_TRY(assay_mapping_open(path, &file));
  assay_status_t st = read_mapping(file, out, out_metadata);
  assay_mapping_release(file);
  return assay_status_note(st, "'%s'", path);
}

assay_status_t assay_safetensors_parse(const void* data, size_t size, assay_set_t* out,
                                       assay_str_t* out_metadata) {
  assay_mapping_t* file = NULL;
  ASSAY_TRY(assay_mapping_copy(data, size, &file));
  assay_status_t st = read_mapping(file, out, out_metadata);
  assay_mapping_release(file);
  return st;
}

// ---- writing ----------------------------------------------------------------------------------

// A tensor on its way out.
typedef struct part {
  assay_stored_t stored;
  size_t dtype, index;  // of the table; of the set
  uint64_t begin, end;
} part_t;

static assay_status_t prepare(assay_tensor_t* t, size_t index, part_t* out) {
  part_t p = {.index = index};
  ASSAY_TRY(assay_stored_make(t, true, &p.stored));
  while (p.dtype < N_DTYPES && dtypes[p.dtype].type != p.stored.tensor->type) p.dtype++;
  if (p.dtype == N_DTYPES) {
    assay_stored_deinit(&p.stored);
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "safetensors has no type for %s; save it as npz",
                       assay_type_name(t->type));
  }
  *out = p;
  return NULL;
}

static int by_width(const void* a, const void* b) {
  const part_t *const *x = a, *const *y = b;
  const int64_t u = dtypes[(*x)->dtype].bytes, v = dtypes[(*y)->dtype].bytes;
  if (u != v) return u > v ? -1 : 1;
  return (*x)->index < (*y)->index ? -1 : (*x)->index > (*y)->index;
}

static json_t* entry_json(const part_t* p) {
  const assay_tensor_t* t = p->stored.tensor;
  json_t* shape = json_array();
  for (int i = 0; i < t->rank; i++) shape = assay_json_push(shape, json_integer(t->dims[i]));
  json_t* e = assay_json_put(json_object(), "dtype", json_string(dtypes[p->dtype].name));
  e = assay_json_put(e, "shape", shape);
  return assay_json_put(e, "data_offsets",
                        json_pack("[I, I]", (json_int_t)p->begin, (json_int_t)p->end));
}

// Length and header; spaces after it so that the data begin at a multiple of 8.
static assay_status_t make_header(const assay_set_t* set, const part_t* parts,
                                  json_t* take_metadata, assay_str_t* out) {
  json_t* header = json_object();
  if (take_metadata) header = assay_json_put(header, "__metadata__", take_metadata);
  for (size_t i = 0; i < set->n; i++)
    header = assay_json_put(header, set->names[i], entry_json(&parts[i]));
  if (!header) return assay_status_no_memory();
  assay_str_append_n(out, "........", LENGTH_BYTES);
  assay_json_print(header, 0, out);
  json_decref(header);
  ASSAY_TRY(assay_str_status(out));
  out->text[out->len - 1] = ' ';  // its line break
  while (!out->failed && out->len % ALIGN) assay_str_append(out, " ");
  ASSAY_TRY(assay_str_status(out));
  const uint64_t n = out->len - LENGTH_BYTES;
  if (n > MAX_HEADER)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "a safetensors header has at most 100 MB, not %" PRIu64,
                       n);
  memcpy(out->text, &n, sizeof n);
  return NULL;
}

static assay_status_t write_parts(const char* path, const assay_str_t* header,
                                  part_t* const* sorted, size_t n) {
  assay_writer_t* w = NULL;
  ASSAY_TRY(assay_writer_open(path, &w));
  assay_status_t st = assay_writer_write(w, header->text, header->len);
  for (size_t i = 0; !st && i < n; i++)
    st = assay_writer_write(w, sorted[i]->stored.tensor->data,
                            (size_t)(sorted[i]->end - sorted[i]->begin));
  if (st) return assay_writer_abandon(w), st;
  return assay_writer_commit(w);
}

static assay_status_t parse_metadata(const char* text, json_t** out) {
  if (!text || !*text) return NULL;
  ASSAY_TRY(assay_json_parse(text, strlen(text), out));
  return check_metadata(*out);
}

assay_status_t assay_safetensors_check_metadata(const char* metadata) {
  json_t* about = NULL;
  assay_status_t st = parse_metadata(metadata, &about);
  json_decref(about);
  return st;
}

assay_status_t assay_safetensors_write(const char* path, const assay_set_t* set,
                                       const char* metadata) {
  part_t* parts = NULL;
  part_t** sorted = NULL;
  json_t* about = NULL;
  assay_str_t header = {0};
  size_t n = 0;
  assay_status_t st = parse_metadata(metadata, &about);
  if (!st) st = assay_new_array(set->n, sizeof *parts, &parts);
  if (!st) st = assay_new_array(set->n, sizeof *sorted, &sorted);
  for (; !st && n < set->n; n += !st) {
    st = assay_status_note(prepare(set->tensors[n], n, &parts[n]), "array '%s'", set->names[n]);
    sorted[n] = &parts[n];
  }
  if (!st) qsort(sorted, n, sizeof *sorted, by_width);
  uint64_t at = 0;
  for (size_t i = 0; !st && i < n; i++, at = sorted[i - 1]->end) {
    sorted[i]->begin = at;
    sorted[i]->end = at + (uint64_t)sorted[i]->stored.bytes;
  }
  if (!st) st = make_header(set, parts, json_incref(about), &header);
  if (!st) st = write_parts(path, &header, sorted, n);
  for (size_t i = 0; i < n; i++) assay_stored_deinit(&parts[i].stored);
  json_decref(about);
  assay_free(sorted);
  assay_free(parts);
  assay_str_deinit(&header);
  return st;
}
