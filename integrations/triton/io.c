// The inputs and outputs of a model, as the server knows them.
#include "io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A type of both sides.
typedef struct type_row {
  assay_type_t type;
  TRITONSERVER_DataType server;
  size_t bytes;
  const char* config;
} type_row_t;

static const type_row_t types[] = {
    {ASSAY_TYPE_BOOL, TRITONSERVER_TYPE_BOOL, 1, "TYPE_BOOL"},
    {ASSAY_TYPE_UINT8, TRITONSERVER_TYPE_UINT8, 1, "TYPE_UINT8"},
    {ASSAY_TYPE_UINT16, TRITONSERVER_TYPE_UINT16, 2, "TYPE_UINT16"},
    {ASSAY_TYPE_UINT32, TRITONSERVER_TYPE_UINT32, 4, "TYPE_UINT32"},
    {ASSAY_TYPE_UINT64, TRITONSERVER_TYPE_UINT64, 8, "TYPE_UINT64"},
    {ASSAY_TYPE_INT8, TRITONSERVER_TYPE_INT8, 1, "TYPE_INT8"},
    {ASSAY_TYPE_INT16, TRITONSERVER_TYPE_INT16, 2, "TYPE_INT16"},
    {ASSAY_TYPE_INT32, TRITONSERVER_TYPE_INT32, 4, "TYPE_INT32"},
    {ASSAY_TYPE_INT64, TRITONSERVER_TYPE_INT64, 8, "TYPE_INT64"},
    {ASSAY_TYPE_FLOAT16, TRITONSERVER_TYPE_FP16, 2, "TYPE_FP16"},
    {ASSAY_TYPE_FLOAT, TRITONSERVER_TYPE_FP32, 4, "TYPE_FP32"},
    {ASSAY_TYPE_DOUBLE, TRITONSERVER_TYPE_FP64, 8, "TYPE_FP64"},
    {ASSAY_TYPE_STRING, TRITONSERVER_TYPE_BYTES, 0, "TYPE_STRING"},
    {ASSAY_TYPE_BFLOAT16, TRITONSERVER_TYPE_BF16, 2, "TYPE_BF16"},
};
enum { N_TYPES = sizeof types / sizeof *types };

static const type_row_t* find_row(assay_type_t type) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (types[i].type == type) return &types[i];
  return NULL;
}

const char* io_config_type(TRITONSERVER_DataType type) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (types[i].server == type) return types[i].config;
  return "TYPE_INVALID";
}

TRITONSERVER_DataType io_parse_config_type(const char* name) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (strcmp(types[i].config, name) == 0) return types[i].server;
  return TRITONSERVER_TYPE_INVALID;
}

const char* io_shape_text(int rank, const int64_t* dims, char* out, size_t capacity) {
  size_t n = (size_t)snprintf(out, capacity, "[");
  for (int d = 0; d < rank && n < capacity; d++)
    n += (size_t)snprintf(out + n, capacity - n, "%s%lld", d ? "," : "", (long long)dims[d]);
  if (n < capacity) snprintf(out + n, capacity - n, "]");
  return out;
}

bool io_bytes(int rank, const int64_t* dims, size_t bytes, uint64_t* out) {
  uint64_t size = bytes;
  bool empty = false;
  for (int d = 0; d < rank; d++) {
    if (dims[d] < 0) return false;
    empty = empty || dims[d] == 0;
    if (dims[d] && __builtin_mul_overflow(size, (uint64_t)dims[d], &size)) return false;
  }
  *out = empty ? 0 : size;
  return size <= INT64_MAX;
}

// What an optional holds, by its text: "optional(float[2, N])". False: no tensor.
static bool read_optional(const assay_io_t* value, io_value_t* out) {
  char text[512];
  assay_io_type(value, text, sizeof text);
  char* kind = text + strcspn(text, "(");
  char* end = *kind ? strchr(++kind, ']') : NULL;
  char* shape = kind + strcspn(kind, "[");
  if (!end || shape > end) return false;
  *shape++ = *end = '\0';
  for (int t = 1; t < ASSAY_TYPE_COUNT; t++)
    if (strcmp(assay_type_name((assay_type_t)t), kind) == 0) out->type = (assay_type_t)t;
  for (char* dim = strtok_r(shape, ", ", &end); dim; dim = strtok_r(NULL, ", ", &end)) {
    if (out->rank == MAX_RANK) return false;
    const int64_t size = strtoll(dim, &dim, 10);
    out->dims[out->rank++] = *dim ? -1 : size;  // a name: open
  }
  return true;
}

static TRITONSERVER_Error* unsupported(const assay_io_t* value, const char* what) {
  char text[256];
  return error_new(TRITONSERVER_ERROR_UNSUPPORTED,
                   "%s '%s' is %s, for which the server has no type", what, assay_io_name(value),
                   assay_io_type(value, text, sizeof text));
}

static TRITONSERVER_Error* init_value(io_value_t* out, const assay_io_t* value, const char* what) {
  out->optional = assay_io_kind(value) == ASSAY_KIND_OPTIONAL && *what == 'i';
  out->type = ASSAY_TYPE_UNDEFINED;
  if (out->optional && !read_optional(value, out)) return unsupported(value, what);
  if (assay_io_kind(value) == ASSAY_KIND_TENSOR) {
    out->type = assay_io_elem(value);
    out->rank = assay_io_rank(value);
  }
  const type_row_t* row = find_row(out->type);
  if (!row || out->rank > MAX_RANK) return unsupported(value, what);
  out->server_type = row->server;
  out->element_bytes = row->bytes;
  for (int d = 0; !out->optional && d < out->rank; d++) out->dims[d] = assay_io_dim(value, d);
  const char* batch = out->rank > 0 && out->dims[0] < 0 ? assay_io_dim_name(value, 0) : NULL;
  out->name = strdup(assay_io_name(value));
  out->batch_name = batch ? strdup(batch) : NULL;
  return out->name && (!batch || out->batch_name) ? NULL : error_no_memory();
}

// The rows of a batch that a profile takes with all inputs; INT64_MAX: it says nothing of them.
static int64_t profile_rows(const io_t* io, const assay_engine_t* engine, size_t profile) {
  int64_t rows = INT64_MAX;
  for (size_t i = 0; i < io->n_inputs; i++) {
    assay_engine_range_t range = ASSAY_ENGINE_RANGE_INIT;
    assay_status_t status = assay_engine_profile_range(engine, profile, i, &range);
    const bool says = !status && !range.values && range.rank > 0 && io->inputs[i].rank > 0;
    if (says && io->inputs[i].dims[0] < 0 && range.max[0] < rows) rows = range.max[0];
    assay_status_free(status);
  }
  return rows;
}

static int64_t max_rows(const io_t* io, const assay_engine_t* engine) {
  int64_t max = 0;
  for (size_t p = 0; p < assay_engine_profile_count(engine); p++) {
    const int64_t rows = profile_rows(io, engine, p);
    if (rows == INT64_MAX) return 0;
    if (rows > max) max = rows;
  }
  return max;
}

TRITONSERVER_Error* io_init(io_t* io, const assay_engine_t* engine) {
  TRITONSERVER_Error* error = NULL;
  io->n_inputs = assay_engine_input_count(engine);
  io->n_outputs = assay_engine_output_count(engine);
  io->inputs = calloc(io->n_inputs + 1, sizeof *io->inputs);
  io->outputs = calloc(io->n_outputs + 1, sizeof *io->outputs);
  if (!io->inputs || !io->outputs) error = error_no_memory();
  for (size_t i = 0; !error && i < io->n_inputs; i++)
    error = init_value(&io->inputs[i], assay_engine_input(engine, i), "input");
  for (size_t i = 0; !error && i < io->n_outputs; i++)
    error = init_value(&io->outputs[i], assay_engine_output(engine, i), "output");
  if (error)
    io_deinit(io);
  else
    io->max_rows = max_rows(io, engine);
  return error;
}

static void free_values(io_value_t* values, size_t n) {
  for (size_t i = 0; values && i < n; i++) {
    free(values[i].name);
    free(values[i].batch_name);
  }
  free(values);
}

void io_deinit(io_t* io) {
  free_values(io->inputs, io->n_inputs);
  free_values(io->outputs, io->n_outputs);
  *io = (io_t){0};
}

size_t io_find(const io_value_t* values, size_t n, const char* name) {
  size_t i = 0;
  while (i < n && strcmp(values[i].name, name) != 0) i++;
  return i;
}

static bool shares_batch(const io_value_t* v, const io_value_t* first) {
  if (v->optional || v->rank < 1 || v->dims[0] >= 0) return false;
  if (!v->batch_name || !first->batch_name) return v->batch_name == first->batch_name;
  return strcmp(v->batch_name, first->batch_name) == 0;
}

bool io_takes_batches(const io_t* io) {
  if (io->n_inputs == 0 || io->n_outputs == 0) return false;
  for (size_t i = 0; i < io->n_inputs; i++)
    if (!shares_batch(&io->inputs[i], &io->inputs[0])) return false;
  for (size_t i = 0; i < io->n_outputs; i++)
    if (!shares_batch(&io->outputs[i], &io->inputs[0])) return false;
  return true;
}
