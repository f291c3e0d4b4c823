// Walks a protobuf message with an explicit stack; checks it and makes its slim copy.
// Source: protobuf.dev, 'Encoding'.
#include "onnx/wire.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "onnx/onnx-ml.pb-c.h"

enum {
  MAX_DEPTH = 3 * ASSAY_WIRE_MAX_GRAPHS + ASSAY_WIRE_MAX_MESSAGES,
  TOKEN_BYTES = 3 + 1 + 16,  // tag, length, two numbers
  LENGTH_BYTES = 5,          // of a length prefix that is patched later: a padded varint
};

bool assay_wire_varint(const uint8_t* data, size_t size, size_t* pos, uint64_t* out) {
  uint64_t v = 0;
  for (int shift = 0; shift < 70 && *pos < size; shift += 7) {
    uint8_t b = data[(*pos)++];
    if (shift < 64) v |= (uint64_t)(b & 0x7f) << shift;
    if (!(b & 0x80)) {
      *out = v;
      return true;
    }
  }
  return false;
}

bool assay_wire_next(const uint8_t* data, size_t size, size_t* pos, assay_wire_field_t* out) {
  uint64_t tag = 0;
  size_t p = *pos;
  *out = (assay_wire_field_t){.start = p};
  if (p >= size || !assay_wire_varint(data, size, &p, &tag) || tag > UINT32_MAX) return false;
  out->number = (uint32_t)tag >> 3;
  out->type = (int)(tag & 7);
  size_t bytes = 0;
  switch (out->type) {
    case ASSAY_WIRE_VARINT:
      if (!assay_wire_varint(data, size, &p, &out->value)) return false;
      break;
    case ASSAY_WIRE_I64:
    case ASSAY_WIRE_I32:
      bytes = out->type == ASSAY_WIRE_I64 ? 8 : 4;
      if (size - p < bytes) return false;
      memcpy(&out->value, data + p, bytes);
      p += bytes;
      break;
    case ASSAY_WIRE_LEN: {
      uint64_t len;
      if (!assay_wire_varint(data, size, &p, &len) || len > size - p) return false;
      out->data = data + p;
      out->len = (size_t)len;
      p += out->len;
      break;
    }
    default:
      return false;
  }
  *pos = out->end = p;
  return true;
}

bool assay_wire_token(const ProtobufCMessageUnknownField* field, uint32_t number,
                      assay_wire_span_t* out) {
  // The data of a length-delimited unknown field starts with its length.
  if (field->tag != number || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED ||
      field->len != 17)
    return false;
  memcpy(&out->offset, field->data + 1, 8);
  memcpy(&out->len, field->data + 9, 8);
  return true;
}

// ---- the walk ---------------------------------------------------------------------------------

// A message that is being walked.
typedef struct level {
  const ProtobufCMessageDescriptor* kind;
  size_t end;          // in the file
  size_t length_at;    // in the slim copy: where its length prefix stands
  bool checked_only;   // inside a field that is carried along
  size_t carried_end;  // in the file: end of the run that the last token covers; 0: none
  size_t token_at;     // in the slim copy: of that token
} level_t;

typedef struct walk {
  const uint8_t* data;
  size_t pos;
  uint8_t* slim;
  size_t len, capacity;
  level_t levels[MAX_DEPTH];
  int depth, graphs, others;
} walk_t;

// The fields that protobuf-c is not shown: what the IR carries along unread, and the elements of
// tensors, which the reader takes from the file.
static bool is_carried(const ProtobufCMessageDescriptor* kind, uint32_t number) {
  if (kind == &onnx__tensor_proto__descriptor)
    return (number >= 4 && number <= 7) || (number >= 9 && number <= 11) || number == 16;
  if (kind == &onnx__model_proto__descriptor) return number == 20 || number == 26;
  if (kind == &onnx__graph_proto__descriptor) return number == 14;
  if (kind == &onnx__node_proto__descriptor) return number == 10;
  return false;
}

static bool is_tensor(const ProtobufCMessageDescriptor* kind) {
  return kind == &onnx__tensor_proto__descriptor || kind == &onnx__sparse_tensor_proto__descriptor;
}

static assay_status_t reserve(walk_t* w, size_t more) {
  // protobuf-c takes no message of 2 GB; weights do not count, they are not in the copy.
  if (more > (size_t)INT_MAX - w->len)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "more than 2 GB beside the weights");
  return assay_grow(&w->slim, &w->capacity, w->len + more, 1);
}

static assay_status_t copy(walk_t* w, size_t from, size_t to) {
  ASSAY_TRY(reserve(w, to - from));
  memcpy(w->slim + w->len, w->data + from, to - from);
  w->len += to - from;
  return NULL;
}

static void put_varint(walk_t* w, uint64_t v) {
  for (; v >= 0x80; v >>= 7) w->slim[w->len++] = (uint8_t)(v | 0x80);
  w->slim[w->len++] = (uint8_t)v;
}

static assay_status_t put_token(walk_t* w, uint32_t number, uint64_t offset, uint64_t len) {
  ASSAY_TRY(reserve(w, TOKEN_BYTES));
  put_varint(w, number << 3 | ASSAY_WIRE_LEN);
  put_varint(w, 16);
  memcpy(w->slim + w->len, &offset, 8);
  memcpy(w->slim + w->len + 8, &len, 8);
  w->len += 16;
  return NULL;
}

// Leaves the field [from, to) of the message out of the copy. A run of them is one token.
static assay_status_t carry(walk_t* w, level_t* at, size_t from, size_t to) {
  if (at->checked_only) return NULL;
  if (at->carried_end == from && at->carried_end) {
    uint64_t len;
    memcpy(&len, w->slim + at->token_at + TOKEN_BYTES - 8, 8);
    len += to - from;
    memcpy(w->slim + at->token_at + TOKEN_BYTES - 8, &len, 8);
  } else {
    at->token_at = w->len;
    ASSAY_TRY(put_token(w, ASSAY_WIRE_CARRIED, from, to - from));
  }
  at->carried_end = to;
  return NULL;
}

// Where a field is, for messages.
#define WIRE_ERROR(start, ...) \
  assay_status_note(ASSAY_ERROR(ASSAY_CORRUPT, __VA_ARGS__), "byte %zu", (size_t)(start))

static assay_status_t push(walk_t* w, const ProtobufCMessageDescriptor* kind, size_t start,
                           size_t end, bool checked_only) {
  bool graph = kind == &onnx__graph_proto__descriptor;
  bool part = kind == &onnx__node_proto__descriptor || kind == &onnx__attribute_proto__descriptor;
  if (graph && ++w->graphs > ASSAY_WIRE_MAX_GRAPHS)
    return assay_status_note(ASSAY_ERROR(ASSAY_UNSUPPORTED, "graphs are nested more than %d deep",
                                         (int)ASSAY_WIRE_MAX_GRAPHS),
                             "byte %zu", start);
  if (!graph && !part) w->others++;
  if (w->others > ASSAY_WIRE_MAX_MESSAGES || w->depth == MAX_DEPTH)
    return assay_status_note(ASSAY_ERROR(ASSAY_UNSUPPORTED, "%s is nested more than %d deep",
                                         kind->short_name, (int)ASSAY_WIRE_MAX_MESSAGES),
                             "byte %zu", start);
  level_t* l = &w->levels[w->depth++];
  *l = (level_t){.kind = kind, .end = end, .checked_only = checked_only};
  if (!checked_only && w->depth > 1) {
    ASSAY_TRY(reserve(w, LENGTH_BYTES));
    l->length_at = w->len;
    w->len += LENGTH_BYTES;
    if (is_tensor(kind)) ASSAY_TRY(put_token(w, ASSAY_WIRE_SELF, start, end - start));
  }
  return NULL;
}

static void pop(walk_t* w) {
  const level_t* l = &w->levels[--w->depth];
  if (l->kind == &onnx__graph_proto__descriptor)
    w->graphs--;
  else if (l->kind != &onnx__node_proto__descriptor &&
           l->kind != &onnx__attribute_proto__descriptor)
    w->others--;
  if (l->checked_only || !w->depth) return;
  size_t len = w->len - l->length_at - LENGTH_BYTES;
  for (int i = 0; i < LENGTH_BYTES; i++)
    w->slim[l->length_at + (size_t)i] =
        (uint8_t)((len >> (7 * i) & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
}

// The wire type that a field's elements have.
static int elem_wire_type(const ProtobufCFieldDescriptor* f) {
  switch (f->type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
      return ASSAY_WIRE_I32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
      return ASSAY_WIRE_I64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
      return ASSAY_WIRE_LEN;
    default:
      return ASSAY_WIRE_VARINT;
  }
}

// Checks the elements of a packed field.
static assay_status_t check_packed(const walk_t* w, const level_t* at,
                                   const ProtobufCFieldDescriptor* f, size_t from, size_t to) {
  int elem = elem_wire_type(f);
  size_t bytes = elem == ASSAY_WIRE_I32 ? 4 : elem == ASSAY_WIRE_I64 ? 8 : 1;
  if ((to - from) % bytes)
    return WIRE_ERROR(from, "'%s' of %s has %zu bytes, no multiple of %zu", f->name,
                      at->kind->short_name, to - from, bytes);
  uint64_t v;
  for (size_t p = from; elem == ASSAY_WIRE_VARINT && p < to;)
    if (!assay_wire_varint(w->data, to, &p, &v))
      return WIRE_ERROR(p, "'%s' of %s ends within a number", f->name, at->kind->short_name);
  return NULL;
}

// The field at w->pos of the innermost message.
static assay_status_t walk_field(walk_t* w) {
  level_t* at = &w->levels[w->depth - 1];
  const char* kind = at->kind->short_name;
  size_t start = w->pos;
  uint64_t tag = 0, len = 0;
  if (!assay_wire_varint(w->data, at->end, &w->pos, &tag) || tag > UINT32_MAX)
    return WIRE_ERROR(start, "%s: no valid field starts here (file cut off or not ONNX?)", kind);
  uint32_t number = (uint32_t)tag >> 3;
  int type = (int)(tag & 7);
  if (!number) return WIRE_ERROR(start, "%s has a field with number 0", kind);
  const ProtobufCFieldDescriptor* f = protobuf_c_message_descriptor_get_field(at->kind, number);
  const char* name = f ? f->name : "an unknown field";
  size_t rest = at->end - w->pos;
  if (type == ASSAY_WIRE_VARINT) {
    uint64_t v;
    if (!assay_wire_varint(w->data, at->end, &w->pos, &v))
      return WIRE_ERROR(start, "'%s' of %s ends within a number", name, kind);
  } else if (type == ASSAY_WIRE_I32 || type == ASSAY_WIRE_I64) {
    size_t bytes = type == ASSAY_WIRE_I32 ? 4 : 8;
    if (rest < bytes) return WIRE_ERROR(start, "'%s' of %s is cut off", name, kind);
    w->pos += bytes;
  } else if (type == ASSAY_WIRE_LEN) {
    if (!assay_wire_varint(w->data, at->end, &w->pos, &len))
      return WIRE_ERROR(start, "'%s' of %s is cut off", name, kind);
    if (len > at->end - w->pos)
      return WIRE_ERROR(start, "'%s' of %s says that it has %llu bytes; %zu are left", name, kind,
                        (unsigned long long)len, at->end - w->pos);
  } else {
    return WIRE_ERROR(start, "'%s' of %s has wire type %d, which ONNX does not use", name, kind,
                      type);
  }
  size_t body = w->pos, end = body + (size_t)len;
  w->pos = end;
  if (!f) return carry(w, at, start, end);

  int want = elem_wire_type(f);
  bool packed =
      f->label == PROTOBUF_C_LABEL_REPEATED && type == ASSAY_WIRE_LEN && want != ASSAY_WIRE_LEN;
  if (type != want && !packed)
    return WIRE_ERROR(start, "'%s' of %s has wire type %d; expected %d", name, kind, type, want);
  bool carried = is_carried(at->kind, number);
  if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
    bool only = at->checked_only || carried;
    if (carried) ASSAY_TRY(carry(w, at, start, end));
    if (!only) {
      ASSAY_TRY(reserve(w, LENGTH_BYTES));
      put_varint(w, tag);
    }
    w->pos = body;
    return push(w, f->descriptor, start, end, only);
  }
  if (packed && !carried) ASSAY_TRY(check_packed(w, at, f, body, end));
  if (f->type == PROTOBUF_C_TYPE_STRING && len && memchr(w->data + body, 0, (size_t)len))
    return WIRE_ERROR(start, "'%s' of %s has a NUL in its text", name, kind);
  if (carried) return carry(w, at, start, end);
  return at->checked_only ? NULL : copy(w, start, end);
}

assay_status_t assay_wire_slim(const ProtobufCMessageDescriptor* kind, const uint8_t* data,
                               size_t size, uint8_t** out_slim, size_t* out_size) {
  walk_t* w = NULL;
  ASSAY_TRY(ASSAY_NEW(&w));
  w->data = data;
  assay_status_t st = reserve(w, 1);
  if (!st) st = push(w, kind, 0, size, false);
  while (!st && w->depth) {
    if (w->pos == w->levels[w->depth - 1].end)
      pop(w);
    else
      st = walk_field(w);
  }
  if (st) {
    assay_free(w->slim);
  } else {
    *out_slim = w->slim;
    *out_size = w->len;
  }
  assay_free(w);
  return st;
}
