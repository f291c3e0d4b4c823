// A model's configuration as it is read, and held against the model.
#include "config.h"

#include <stdlib.h>
#include <string.h>

TRITONSERVER_Error* config_parse(TRITONSERVER_Message* message, json_t** out) {
  const char* text = NULL;
  size_t bytes = 0;
  json_error_t where;
  TRITONSERVER_Error* error = TRITONSERVER_MessageSerializeToJson(message, &text, &bytes);
  if (error) return error;
  *out = bytes ? json_loadb(text, bytes, 0, &where) : json_object();
  if (json_is_object(*out)) return NULL;
  json_decref(*out);
  *out = NULL;
  return error_new(TRITONSERVER_ERROR_INVALID_ARG, "the configuration is not a JSON object: %s",
                   bytes ? where.text : "out of memory");
}

int64_t config_integer(const json_t* value, int64_t otherwise) {
  char* end = NULL;
  if (json_is_integer(value)) return json_integer_value(value);
  if (!json_is_string(value)) return otherwise;
  const long long x = strtoll(json_string_value(value), &end, 10);
  return end != json_string_value(value) && !*end ? x : otherwise;
}

// Whether a member is there and says something: not false, not empty.
static bool says(const json_t* object, const char* name) {
  const json_t* member = json_object_get(object, name);
  return json_is_true(member) || json_array_size(member) > 0 || json_object_size(member) > 0;
}

// Within a oneof of protobuf, {} is a choice, too.
static bool chooses(const json_t* object, const char* name) {
  return json_is_object(json_object_get(object, name));
}

static TRITONSERVER_Error* refuse(const char* what, const char* instead) {
  return error_new(TRITONSERVER_ERROR_UNSUPPORTED, "%s is not supported; %s", what, instead);
}

TRITONSERVER_Error* config_check_features(const json_t* config) {
  const json_t* policy = json_object_get(config, "model_transaction_policy");
  const json_t* optimization = json_object_get(config, "optimization");
  const json_t* accelerators = json_object_get(optimization, "execution_accelerators");
  if (chooses(config, "sequence_batching"))
    return refuse("sequence_batching",
                  "each request is a run of its own: pass states as inputs and outputs");
  if (chooses(config, "ensemble_scheduling"))
    return refuse("ensemble_scheduling", "an ensemble is a model of platform 'ensemble'");
  if (says(policy, "decoupled")) return refuse("decoupled", "each request has one response");
  if (says(config, "batch_input")) return refuse("batch_input", "the model gets its inputs only");
  if (says(config, "batch_output"))
    return refuse("batch_output", "the model gives its outputs only");
  if (says(config, "cc_model_filenames"))
    return refuse("cc_model_filenames", "name the file by default_model_filename");
  if (says(accelerators, "gpu_execution_accelerator") ||
      says(accelerators, "cpu_execution_accelerator"))
    return refuse("execution_accelerators", "say the format by the parameter 'precision'");
  return NULL;
}

// ---- held against the model
// ------------------------------------------------------------------------

// One input or output of the configuration.
typedef struct entry {
  const char *what, *name;
  const json_t* dims;  // as the model gets them: of its reshape if it has one
} entry_t;

static TRITONSERVER_Error* read_entry(const json_t* json, const char* what, entry_t* out) {
  const json_t* reshape = json_object_get(json, "reshape");
  *out = (entry_t){what, json_string_value(json_object_get(json, "name")),
                   json_object_get(json_is_object(reshape) ? reshape : json,
                                   json_is_object(reshape) ? "shape" : "dims")};
  if (!out->name)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "an %s of the configuration has no name",
                     what);
  if (says(json, "is_shape_tensor"))
    return error_new(TRITONSERVER_ERROR_UNSUPPORTED,
                     "%s '%s': is_shape_tensor is not supported: shapes are ordinary tensors", what,
                     out->name);
  return NULL;
}

// The dimensions that the configuration gives to the model, with the batch in front; -1: too many.
static int full_shape(const entry_t* e, int64_t max_batch, int64_t* dims) {
  int rank = 0;
  if (max_batch > 0) dims[rank++] = -1;
  if (json_array_size(e->dims) + (size_t)rank > MAX_RANK) return -1;
  for (size_t d = 0; d < json_array_size(e->dims); d++)
    dims[rank++] = config_integer(json_array_get(e->dims, d), -1);
  return rank;
}

// A configuration cannot have scalars: [1] stands for them.
static bool is_scalar(const io_value_t* v, int rank, const int64_t* dims) {
  return v->rank == 0 && rank == 1 && dims[0] == 1;
}

static bool fits(const io_value_t* v, int rank, const int64_t* dims) {
  if (v->rank < 0 || is_scalar(v, rank, dims)) return true;
  if (v->rank != rank) return false;
  for (int d = 0; d < rank; d++)
    if (v->dims[d] >= 0 && dims[d] >= 0 && v->dims[d] != dims[d]) return false;
  return true;
}

static TRITONSERVER_Error* check_shape(const entry_t* e, const io_value_t* v, int64_t max_batch) {
  int64_t dims[MAX_RANK];
  char has[256], wants[256];
  const int rank = full_shape(e, max_batch, dims);
  if (rank >= 0 && max_batch > 1 && v->rank > 0 && v->dims[0] >= 0)
    return error_new(
        TRITONSERVER_ERROR_INVALID_ARG,
        "max_batch_size is %lld, but the model's %s '%s' is %s: its first dimension is "
        "not open; set max_batch_size to 0 and give dims in full",
        (long long)max_batch, e->what, e->name,
        io_shape_text(v->rank, v->dims, wants, sizeof wants));
  if (rank >= 0 && fits(v, rank, dims)) return NULL;
  return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                   "%s '%s' is %s in the configuration%s, and %s in the model", e->what, e->name,
                   rank < 0 ? "of too many dimensions" : io_shape_text(rank, dims, has, sizeof has),
                   max_batch > 0 ? " (with the batch that max_batch_size adds)" : "",
                   io_shape_text(v->rank, v->dims, wants, sizeof wants));
}

static TRITONSERVER_Error* check_entry(const json_t* json, const char* what, int64_t max_batch,
                                       const io_value_t* values, size_t n, bool* seen) {
  entry_t e;
  TRITONSERVER_Error* error = read_entry(json, what, &e);
  if (error) return error;
  const size_t i = io_find(values, n, e.name);
  if (i == n)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "the model has no %s '%s'", what, e.name);
  const char* type = json_string_value(json_object_get(json, "data_type"));
  if (!type || io_parse_config_type(type) != values[i].server_type)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "%s '%s' is %s in the configuration, and %s in the model", what, e.name,
                     type ? type : "of no type", io_config_type(values[i].server_type));
  if (json_is_true(json_object_get(json, "optional")) && !values[i].optional)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "input '%s' is optional in the configuration, but the model needs it", e.name);
  seen[i] = true;
  return check_shape(&e, &values[i], max_batch);
}

// All entries of a kind; those of the model that have to be there are.
static TRITONSERVER_Error* check_entries(const json_t* config, const char* what, int64_t max_batch,
                                         const io_value_t* values, size_t n) {
  const json_t* entries = json_object_get(config, what);
  bool* seen = calloc(n + 1, sizeof *seen);
  TRITONSERVER_Error* error = seen ? NULL : error_no_memory();
  for (size_t k = 0; !error && k < json_array_size(entries); k++)
    error = check_entry(json_array_get(entries, k), what, max_batch, values, n, seen);
  for (size_t i = 0; !error && *what == 'i' && i < n; i++)
    if (!seen[i] && !values[i].optional)
      error = error_new(TRITONSERVER_ERROR_INVALID_ARG,
                        "the model's input '%s' is not in the configuration", values[i].name);
  free(seen);
  return error;
}

TRITONSERVER_Error* config_check(const json_t* config, const io_t* io, int64_t* out_max_batch) {
  const int64_t max_batch = config_integer(json_object_get(config, "max_batch_size"), 0);
  if (max_batch < 0 || max_batch > INT32_MAX)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "max_batch_size is %lld",
                     (long long)max_batch);
  if (io->max_rows > 0 && max_batch > io->max_rows)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "max_batch_size is %lld, and the plan was built for batches of up to %lld",
                     (long long)max_batch, (long long)io->max_rows);
  TRITONSERVER_Error* error = check_entries(config, "input", max_batch, io->inputs, io->n_inputs);
  if (!error) error = check_entries(config, "output", max_batch, io->outputs, io->n_outputs);
  if (!error) *out_max_batch = max_batch;
  return error;
}
