// TensorProto and SparseTensorProto to tensors.
//
// Elements that lie in the file as ONNX's raw_data would (raw_data itself, and float_data and
// double_data in one packed field) stay there: the tensor points into the mapped file. Others are
// decoded once, straight from the file. Source: onnx-ml.proto, TensorProto (IR version 14).
#include <string.h>

#include "formats/format.h"
#include "onnx/read.h"

// Field numbers of TensorProto.
enum {
  FLOAT_DATA = 4,
  INT32_DATA = 5,
  STRING_DATA = 6,
  INT64_DATA = 7,
  RAW_DATA = 9,
  DOUBLE_DATA = 10,
  UINT64_DATA = 11,
};

static const char* const data_names[] = {
    [FLOAT_DATA] = "float_data",  [INT32_DATA] = "int32_data", [STRING_DATA] = "string_data",
    [INT64_DATA] = "int64_data",  [RAW_DATA] = "raw_data",     [DOUBLE_DATA] = "double_data",
    [UINT64_DATA] = "uint64_data"};

static bool is_data_field(uint32_t number) {
  return number < sizeof data_names / sizeof *data_names && data_names[number];
}

// ---- the elements in the message --------------------------------------------------------------

// Where the elements of a TensorProto are.
typedef struct payload {
  uint32_t number;      // of the field that holds them; 0: none has any
  uint64_t n;           // elements of the field; bytes of raw_data
  size_t chunks;        // fields that they are spread over
  const uint8_t* data;  // of the last chunk with a length
} payload_t;

// Calls visit for each field that the message's tokens stand for.
typedef assay_status_t (*visit_fn)(void* user, const assay_wire_field_t* f,
                                   const uint8_t* field_start);
static assay_status_t visit_carried(const onnx_reader_t* r, const ProtobufCMessage* m,
                                    visit_fn visit, void* user) {
  for (unsigned i = 0; i < m->n_unknown_fields; i++) {
    assay_wire_span_t span;
    if (!assay_wire_token(&m->unknown_fields[i], ASSAY_WIRE_CARRIED, &span)) continue;
    const uint8_t* base = assay_mapping_data(r->file) + span.offset;
    assay_wire_field_t f;
    for (size_t pos = 0; assay_wire_next(base, (size_t)span.len, &pos, &f);)
      ASSAY_TRY(visit(user, &f, base + f.start));
  }
  return NULL;
}

// How many elements one field of repeated numbers has.
static assay_status_t count_elems(const assay_wire_field_t* f, uint64_t* out) {
  *out = 1;
  if (f->type != ASSAY_WIRE_LEN || f->number == STRING_DATA) return NULL;
  *out = f->len;
  if (f->number == RAW_DATA) return NULL;
  size_t bytes = f->number == FLOAT_DATA ? 4 : f->number == DOUBLE_DATA ? 8 : 1;
  if (bytes > 1) {
    if (f->len % bytes)
      return ASSAY_ERROR(ASSAY_CORRUPT, "%s has %zu bytes, no multiple of %zu",
                         data_names[f->number], f->len, bytes);
    *out = f->len / bytes;
    return NULL;
  }
  // As many numbers as bytes that end one.
  *out = 0;
  for (size_t i = 0; i < f->len; i++) *out += !(f->data[i] & 0x80);
  if (f->len && (f->data[f->len - 1] & 0x80))
    return ASSAY_ERROR(ASSAY_CORRUPT, "%s ends within a number", data_names[f->number]);
  return NULL;
}

typedef struct finder {
  payload_t payload;
  onnx_collector_t extra;
} finder_t;

static assay_status_t find_payload(void* user, const assay_wire_field_t* f, const uint8_t* start) {
  finder_t* s = user;
  if (!is_data_field(f->number)) {
    onnx_collect(&s->extra, start, f->end - f->start);
    return NULL;
  }
  uint64_t n;
  ASSAY_TRY(count_elems(f, &n));
  if (!n) return NULL;
  payload_t* p = &s->payload;
  if (p->number && p->number != f->number)
    return ASSAY_ERROR(ASSAY_CORRUPT, "holds both %s and %s; expected one of them",
                       data_names[p->number], data_names[f->number]);
  p->number = f->number;
  p->n = f->number == RAW_DATA ? n : p->n + n;  // of several raw_data the last one counts
  p->chunks++;
  p->data = f->data;
  return NULL;
}

// The field that a type's elements stand in, beside raw_data.
static uint32_t typed_field(assay_type_t type) {
  switch (type) {
    case ASSAY_TYPE_FLOAT:
    case ASSAY_TYPE_COMPLEX64:
      return FLOAT_DATA;
    case ASSAY_TYPE_DOUBLE:
    case ASSAY_TYPE_COMPLEX128:
      return DOUBLE_DATA;
    case ASSAY_TYPE_INT64:
      return INT64_DATA;
    case ASSAY_TYPE_UINT32:
    case ASSAY_TYPE_UINT64:
      return UINT64_DATA;
    case ASSAY_TYPE_STRING:
      return STRING_DATA;
    default:
      return INT32_DATA;
  }
}

// How many entries of its field n elements take: complex numbers two; of 4- and 2-bit elements, as
// many as fill a byte share an entry.
static uint64_t typed_entries(assay_type_t type, int64_t n) {
  if (assay_type_is_complex(type)) return 2 * (uint64_t)n;
  int bits = assay_type_bits(type);
  uint64_t each = bits == 4 ? 2 : bits == 2 ? 4 : 1;
  return ((uint64_t)n + each - 1) / each;
}

// ---- decoding of typed fields -----------------------------------------------------------------

typedef struct decoder {
  uint32_t number;
  assay_tensor_t* t;
  uint8_t* bytes;  // of t
  size_t at;       // entries, or bytes of fixed-width ones, or strings so far
  int bits;        // of an entry as it is packed
} decoder_t;

static assay_status_t decode_number(decoder_t* d, uint64_t v) {
  assay_type_t type = d->t->type;
  int64_t x = (int64_t)v;
  int b = d->bits;
  if (type == ASSAY_TYPE_BOOL) {
    v = x != 0;
  } else if (type == ASSAY_TYPE_UINT32
                 ? v > UINT32_MAX
                 : b < 64 && (x < -(INT64_C(1) << (b - 1)) || x >= INT64_C(1) << b)) {
    return ASSAY_ERROR(ASSAY_CORRUPT, "%s[%zu] is %lld; an element of %s has %d bits",
                       data_names[d->number], d->at, (long long)x, assay_type_name(type), b);
  }
  if (b == 6) {  // four elements in three bytes, lowest bits first
    size_t bit = 6 * d->at, byte = bit / 8;
    unsigned put = (unsigned)(v & 0x3f) << (bit % 8);
    d->bytes[byte] = (uint8_t)(d->bytes[byte] | put);
    if (put > 0xff) d->bytes[byte + 1] = (uint8_t)(d->bytes[byte + 1] | put >> 8);
  } else {
    memcpy(d->bytes + d->at * (size_t)(b / 8), &v, (size_t)(b / 8));
  }
  d->at++;
  return NULL;
}

static assay_status_t decode_field(void* user, const assay_wire_field_t* f, const uint8_t* start) {
  (void)start;
  decoder_t* d = user;
  if (f->number != d->number) return NULL;
  if (f->number == STRING_DATA)
    return assay_tensor_set_string(d->t, (int64_t)d->at++, (const char*)f->data, f->len);
  if (f->number == FLOAT_DATA || f->number == DOUBLE_DATA) {
    size_t n = f->type == ASSAY_WIRE_LEN ? f->len : f->type == ASSAY_WIRE_I32 ? 4 : 8;
    const void* from = f->type == ASSAY_WIRE_LEN ? (const void*)f->data : &f->value;
    if (n) memcpy(d->bytes + d->at, from, n);
    d->at += n;
    return NULL;
  }
  if (f->type != ASSAY_WIRE_LEN) return decode_number(d, f->value);
  uint64_t v;
  for (size_t pos = 0; pos < f->len;) {
    if (!assay_wire_varint(f->data, f->len, &pos, &v))
      return ASSAY_ERROR(ASSAY_CORRUPT, "%s has a number of more than 10 bytes",
                         data_names[f->number]);
    ASSAY_TRY(decode_number(d, v));
  }
  return NULL;
}

static assay_status_t decode_typed(onnx_reader_t* r, const Onnx__TensorProto* p, assay_type_t type,
                                   uint32_t number, assay_tensor_t** out) {
  decoder_t d = {.number = number};
  ASSAY_TRY(type == ASSAY_TYPE_STRING
                ? assay_tensor_create(type, (int)p->n_dims, p->dims, &d.t)
                : assay_tensor_create_packed(type, (int)p->n_dims, p->dims, &d.t));
  d.bytes = d.t->data;
  d.bits = assay_type_bits(type);
  if (d.bits == 4 || d.bits == 2) d.bits = 8;
  int64_t bytes = 0;
  if (d.bits == 6 && assay_type_packed_bytes(type, d.t->size, &bytes))
    memset(d.bytes, 0, (size_t)bytes);
  assay_status_t st = visit_carried(r, &p->base, decode_field, &d);
  if (st) return assay_tensor_release(d.t), st;
  *out = d.t;
  return NULL;
}

// ---- dense ------------------------------------------------------------------------------------

static assay_status_t wrap(onnx_reader_t* r, const Onnx__TensorProto* p, assay_type_t type,
                           const uint8_t* data, uint64_t bytes, assay_tensor_t** out) {
  assay_mapping_retain(r->file);
  return assay_tensor_wrap_packed(type, (int)p->n_dims, p->dims, data, (int64_t)bytes,
                                  assay_mapping_release_owner, r->file, out);
}

static assay_status_t read_payload(onnx_reader_t* r, const Onnx__TensorProto* p, assay_type_t type,
                                   int64_t size, const payload_t* found, assay_tensor_t** out) {
  char shape[512];
  assay_dims_text((int)p->n_dims, p->dims, shape, sizeof shape);
  const char* name = assay_type_name(type);
  uint32_t number = found->number ? found->number : RAW_DATA;
  if (type == ASSAY_TYPE_STRING && !found->number) number = STRING_DATA;
  if (number == RAW_DATA) {
    int64_t bytes = 0;
    if (type == ASSAY_TYPE_STRING)
      return ASSAY_ERROR(ASSAY_CORRUPT, "holds strings in raw_data; expected string_data");
    assay_type_packed_bytes(type, size, &bytes);
    if (found->n != (uint64_t)bytes)
      return ASSAY_ERROR(ASSAY_CORRUPT, "%s has %llu bytes; %s%s needs %lld",
                         found->number ? "raw_data" : "its data", (unsigned long long)found->n,
                         name, shape, (long long)bytes);
    return wrap(r, p, type, found->n ? found->data : assay_mapping_data(r->file), found->n, out);
  }
  if (number != typed_field(type))
    return ASSAY_ERROR(ASSAY_CORRUPT, "elements of %s stand in %s; expected %s%s", name,
                       data_names[number], data_names[typed_field(type)],
                       type == ASSAY_TYPE_STRING ? "" : " or raw_data");
  uint64_t want = typed_entries(type, size);
  if (found->n != want)
    return ASSAY_ERROR(ASSAY_CORRUPT, "%s has %llu elements; %s%s needs %llu", data_names[number],
                       (unsigned long long)found->n, name, shape, (unsigned long long)want);
  bool as_raw =
      (number == FLOAT_DATA || number == DOUBLE_DATA) && found->chunks == 1 && found->data;
  if (as_raw) return wrap(r, p, type, found->data, want * (number == FLOAT_DATA ? 4 : 8), out);
  return decode_typed(r, p, type, number, out);
}

// A tensor whose data were taken away on purpose, with a note in its documentation.
static bool is_stripped(const Onnx__TensorProto* p, assay_type_t type, int64_t size,
                        const payload_t* found) {
  return !found->n && size && type != ASSAY_TYPE_STRING && p->doc_string &&
         strncmp(p->doc_string, ASSAY_ONNX_STRIPPED, strlen(ASSAY_ONNX_STRIPPED)) == 0;
}

// Zeros stand for what was taken away, where that is let pass.
static assay_status_t read_stripped(const onnx_reader_t* r, const Onnx__TensorProto* p,
                                    assay_type_t type, int64_t size, assay_tensor_t** out) {
  int64_t bytes = 0;
  if (!r->options.stripped)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "its data were stripped from the model (" ASSAY_ONNX_STRIPPED
                       "): take the model with its weights, or fill in random ones with "
                       "'assay polygraphy surgeon weight-reconstruct'");
  ASSAY_TRY(assay_tensor_create_packed(type, (int)p->n_dims, p->dims, out));
  if (assay_type_packed_bytes(type, size, &bytes)) memset((*out)->data, 0, (size_t)bytes);
  return NULL;
}

assay_status_t onnx_read_tensor(onnx_reader_t* r, const Onnx__TensorProto* p,
                                onnx_tensor_info_t* info, assay_tensor_t** out) {
  finder_t found = {0};
  bool stripped = false;
  assay_bytes_t extra;
  const char* location = NULL;
  int64_t size;
  ASSAY_TRY(onnx_check_elem_type(p->has_data_type ? p->data_type : 0));
  assay_type_t type = (assay_type_t)p->data_type;
  ASSAY_TRY(onnx_check_dims(type, p->n_dims, p->dims, &size));
  if (p->segment)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the tensor is stored in segments, which no ONNX tool writes");
  assay_status_t st = visit_carried(r, &p->base, find_payload, &found);
  ASSAY_TRY(assay_status_join(st, onnx_collected(r, &found.extra, &extra)));
  if (p->has_data_location && p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
    ASSAY_TRY(onnx_read_external(r, p, type, (int)p->n_dims, p->dims, &location, out));
  } else if (p->has_data_location &&
             p->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT) {
    return ASSAY_ERROR(ASSAY_CORRUPT, "data_location is %d; ONNX has 0 and 1",
                       (int)p->data_location);
  } else if (is_stripped(p, type, size, &found.payload)) {
    ASSAY_TRY(read_stripped(r, p, type, size, out));
    stripped = true;
  } else {
    ASSAY_TRY(read_payload(r, p, type, size, &found.payload, out));
  }
  if (info) *info = (onnx_tensor_info_t){extra, location, stripped};
  return NULL;
}

// ---- sparse -----------------------------------------------------------------------------------

// Linear index of entry i, from indices [NNZ] or [NNZ, rank]; -1: out of range.
static int64_t linear_index(const assay_tensor_t* indices, int64_t i, int rank, const int64_t* dims,
                            int64_t size) {
  const int64_t* x = assay_i64(indices);
  if (indices->rank == 1) return x[i] >= 0 && x[i] < size ? x[i] : -1;
  int64_t at = 0;
  for (int d = 0; d < rank; d++) {
    int64_t k = x[i * rank + d];
    if (k < 0 || k >= dims[d]) return -1;
    at = at * dims[d] + k;
  }
  return at;
}

// Puts values to their places in a tensor of zeros (strings: empty ones).
static assay_status_t scatter(const assay_tensor_t* values, const assay_tensor_t* indices,
                              assay_tensor_t* dense) {
  size_t bytes = assay_store_elem_bytes(values->store);
  int64_t before = -1;
  for (int64_t i = 0; i < values->size; i++) {
    int64_t at = linear_index(indices, i, dense->rank, dense->dims, dense->size);
    if (at < 0)
      return ASSAY_ERROR(ASSAY_CORRUPT, "sparse index %lld lies outside of shape %s", (long long)i,
                         ASSAY_DIMS_TEXT(dense));
    if (at <= before)
      return ASSAY_ERROR(ASSAY_CORRUPT,
                         "sparse index %lld is not past the one before; expected ascending order",
                         (long long)i);
    before = at;
    if (values->store == ASSAY_STORE_STR) {
      const assay_string_t* s = &assay_strings(values)[i];
      ASSAY_TRY(assay_tensor_set_string(dense, at, s->text, s->len));
    } else {
      memcpy((char*)dense->data + (size_t)at * bytes, (const char*)values->data + (size_t)i * bytes,
             bytes);
    }
  }
  return NULL;
}

static assay_status_t densify(const Onnx__SparseTensorProto* p, const assay_tensor_t* values,
                              const assay_tensor_t* indices, assay_tensor_t** out) {
  int64_t size, nnz = values->size;
  ASSAY_TRY(onnx_check_dims(values->type, p->n_dims, p->dims, &size));
  if (values->rank != 1)
    return ASSAY_ERROR(ASSAY_CORRUPT, "sparse values have shape %s; expected one dimension",
                       ASSAY_DIMS_TEXT(values));
  bool linear = indices->rank == 1 && indices->dims[0] == nnz;
  bool table =
      indices->rank == 2 && indices->dims[0] == nnz && indices->dims[1] == (int64_t)p->n_dims;
  if (indices->type != ASSAY_TYPE_INT64 || !(linear || table))
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "sparse indices are %s%s; expected int64 [%lld] or [%lld, %zu]",
                       assay_type_name(indices->type), ASSAY_DIMS_TEXT(indices), (long long)nnz,
                       (long long)nnz, p->n_dims);
  assay_tensor_t* dense = NULL;
  ASSAY_TRY(assay_tensor_create_zero(values->type, (int)p->n_dims, p->dims, &dense));
  assay_status_t st = scatter(values, indices, dense);
  if (st) return assay_tensor_release(dense), st;
  *out = dense;
  return NULL;
}

assay_status_t onnx_read_sparse(onnx_reader_t* r, const Onnx__SparseTensorProto* p,
                                onnx_tensor_info_t* info, assay_tensor_t** out) {
  if (!p->values) return ASSAY_ERROR(ASSAY_CORRUPT, "a sparse tensor has no values");
  assay_tensor_t *values = NULL, *indices = NULL, *wide = NULL, *wide_indices = NULL;
  onnx_tensor_info_t of_values = {0}, of_indices = {0};
  assay_status_t st = onnx_read_tensor(r, p->values, &of_values, &values);
  // Without non-zero values there need not be indices.
  if (!st && p->indices) st = onnx_read_tensor(r, p->indices, &of_indices, &indices);
  if (!st && !p->indices) st = assay_tensor_create(ASSAY_TYPE_INT64, 1, (int64_t[]){0}, &indices);
  if (!st) st = assay_tensor_widen(values, &wide);
  if (!st) st = assay_tensor_widen(indices, &wide_indices);
  if (!st) st = densify(p, wide, wide_indices, out);
  assay_tensor_release(wide);
  assay_tensor_release(wide_indices);
  assay_tensor_release(values);
  assay_tensor_release(indices);
  if (!st && info) {
    info->extra = (assay_bytes_t){0};
    info->external_location =
        of_values.external_location ? of_values.external_location : of_indices.external_location;
  }
  return st;
}
