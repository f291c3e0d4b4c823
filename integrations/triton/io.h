// The inputs and outputs of a model, as the server knows them.
#ifndef ASSAY_TRITON_IO_H_
#define ASSAY_TRITON_IO_H_

#include "errors.h"

enum { MAX_RANK = 32 };  // of what is served; as ONNX's operators take

typedef struct io_value {
  char* name;
  char* batch_name;  // of an open first dimension; NULL: it has none
  assay_type_t type;
  TRITONSERVER_DataType server_type;
  size_t element_bytes;  // 0: strings
  bool optional;         // an ONNX optional: a request may leave it out
  int rank;
  int64_t dims[MAX_RANK];  // -1: open
} io_value_t;

typedef struct io {
  size_t n_inputs, n_outputs;
  io_value_t *inputs, *outputs;  // in the engine's order
  int64_t max_rows;              // of a batch, by the engine's profiles; 0: any
} io_t;

// Errors: UNSUPPORTED a value that the server has no type for
TRITONSERVER_Error* io_init(io_t* io, const assay_engine_t* engine);
void io_deinit(io_t* io);  // zeroes are allowed

// The place of a name; n: it is not among them.
size_t io_find(const io_value_t* values, size_t n, const char* name);
// Whether all values have an open first dimension, of one name where they have names: several
// requests can be one batch.
bool io_takes_batches(const io_t* io);

// "TYPE_FP32" and the like, as configurations have it.
const char* io_config_type(TRITONSERVER_DataType type);
TRITONSERVER_DataType io_parse_config_type(const char* name);  // INVALID: unknown
// "[2,3]"; cut off at capacity. Returns out.
const char* io_shape_text(int rank, const int64_t* dims, char* out, size_t capacity);
// The product of a shape's dimensions and `bytes`; false if one is negative, or it is too large.
bool io_bytes(int rank, const int64_t* dims, size_t bytes, uint64_t* out);

#endif  // ASSAY_TRITON_IO_H_
