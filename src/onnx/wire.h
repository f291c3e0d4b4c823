// The wire format of protobuf, before and beside protobuf-c.
//
// protobuf-c copies what it reads and recurses as deep as the file says. So a file is walked first,
// with an explicit stack: wire types, lengths and nesting are checked, and a slim copy is made in
// which the bytes that only the mapped file should hold (elements of tensors, fields that are
// carried along unread) are replaced by tokens that say where they lie.
#ifndef ASSAY_ONNX_WIRE_H_
#define ASSAY_ONNX_WIRE_H_

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// What a hostile file may nest. Graphs: as src/ir allows; others: types, sequences, optionals.
enum { ASSAY_WIRE_MAX_GRAPHS = 64, ASSAY_WIRE_MAX_MESSAGES = 64 };

// The wire types of protobuf.
enum { ASSAY_WIRE_VARINT = 0, ASSAY_WIRE_I64 = 1, ASSAY_WIRE_LEN = 2, ASSAY_WIRE_I32 = 5 };

// Field numbers that protobuf reserves for implementations; the token's 16 bytes are the offset and
// the length, in the file, of whole fields (tags included).
enum {
  ASSAY_WIRE_CARRIED = 19000,  // neighbouring fields that protobuf-c is not shown
  ASSAY_WIRE_SELF = 19001,     // the message that holds the token (tensors only), with its own tag
};

// A run of bytes of the file.
typedef struct assay_wire_span {
  uint64_t offset, len;
} assay_wire_span_t;

// Checks a message of this kind that fills data, and makes its slim copy (assay_free it).
// Errors: CORRUPT what is no such message; UNSUPPORTED nested too deeply. They name the byte.
assay_status_t assay_wire_slim(const ProtobufCMessageDescriptor* kind, const uint8_t* data,
                               size_t size, uint8_t** out_slim, size_t* out_size) ASSAY_MUST_USE;

// The span of a token among the unknown fields of a message; false: not the token of this number.
bool assay_wire_token(const ProtobufCMessageUnknownField* field, uint32_t number,
                      assay_wire_span_t* out);

// Reads one field at *pos of data[0..size); false at the end. Only for bytes that assay_wire_slim
// has checked (what is not right ends the walk).
typedef struct assay_wire_field {
  uint32_t number;
  int type;
  size_t start, end;    // of the whole field
  uint64_t value;       // of VARINT, I32, I64
  const uint8_t* data;  // of LEN
  size_t len;
} assay_wire_field_t;
bool assay_wire_next(const uint8_t* data, size_t size, size_t* pos, assay_wire_field_t* out);

// Reads a varint at *pos; false if it is cut off or too long.
bool assay_wire_varint(const uint8_t* data, size_t size, size_t* pos, uint64_t* out);

#endif  // ASSAY_ONNX_WIRE_H_
