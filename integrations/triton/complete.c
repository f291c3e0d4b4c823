// Completes a model's configuration: what the model tells of itself is filled in where it is not
// there yet. What is there stays, right or wrong: config_check() says which.
#include <string.h>

#include "config.h"

// The configuration's entry of this name in a list; NULL: it has none.
static json_t* find_entry(const json_t* entries, const char* name) {
  for (size_t i = 0; i < json_array_size(entries); i++) {
    const char* other = json_string_value(json_object_get(json_array_get(entries, i), "name"));
    if (other && strcmp(other, name) == 0) return json_array_get(entries, i);
  }
  return NULL;
}

static bool has_dims(const json_t* entry) {
  return json_array_size(json_object_get(entry, "dims")) > 0;
}

static bool has_type(const json_t* entry) {
  const char* type = json_string_value(json_object_get(entry, "data_type"));
  return type && strcmp(type, "TYPE_INVALID") != 0;
}

// Dimension d as a configuration has it, which knows no empty ones.
static json_int_t config_dim(const io_value_t* v, int d) {
  return v->dims[d] > 0 ? v->dims[d] : -1;
}

// The dimensions after the batch. There are no scalars: [1] takes their place, and where there is a
// batch a reshape takes that 1 away again.
static bool fill_dims(json_t* entry, const io_value_t* v, bool batches) {
  const int first = batches ? 1 : 0;
  json_t* dims = json_array();
  bool ok = dims != NULL;
  for (int d = first; ok && d < v->rank; d++)
    ok = json_array_append_new(dims, json_integer(config_dim(v, d))) == 0;
  if (ok && v->rank < 0) ok = json_array_append_new(dims, json_integer(-1)) == 0;
  if (ok && json_array_size(dims) == 0) {
    ok = json_array_append_new(dims, json_integer(1)) == 0;
    json_t* none = batches ? json_pack("{s:[]}", "shape") : NULL;
    if (batches) ok = ok && json_object_set_new(entry, "reshape", none) == 0;
  }
  return json_object_set_new(entry, "dims", dims) == 0 && ok;
}

// Fills one value in; false: no memory.
static bool fill_value(json_t* entries, const io_value_t* v, bool adds, bool batches,
                       bool* changed) {
  json_t* entry = find_entry(entries, v->name);
  bool ok = true;
  if (entry ? has_dims(entry) && has_type(entry) : !adds) return true;
  *changed = true;
  if (!entry) {
    entry = json_pack("{s:s}", "name", v->name);
    if (json_array_append_new(entries, entry)) return false;
    if (v->optional) ok = json_object_set_new(entry, "optional", json_true()) == 0;
  }
  if (!has_type(entry))
    ok = ok &&
         json_object_set_new(entry, "data_type", json_string(io_config_type(v->server_type))) == 0;
  return ok && (has_dims(entry) || fill_dims(entry, v, batches));
}

// All inputs are needed; of the outputs somebody may have chosen some.
static bool fill_values(json_t* config, const char* kind, const io_value_t* values, size_t n,
                        bool batches, bool* changed) {
  json_t* entries = json_object_get(config, kind);
  bool ok = true;
  if (!json_is_array(entries)) {
    entries = json_array();
    if (json_object_set_new(config, kind, entries)) return false;
  }
  const bool adds = *kind == 'i' || json_array_size(entries) == 0;
  for (size_t i = 0; ok && i < n; i++) ok = fill_value(entries, &values[i], adds, batches, changed);
  return ok;
}

// Whether dims that somebody has written have the batch among them, so that max_batch_size has to
// stay 0.
static bool writes_batch(const json_t* config, const char* kind, const io_value_t* values,
                         size_t n) {
  const json_t* entries = json_object_get(config, kind);
  for (size_t i = 0; i < n; i++) {
    const json_t* entry = find_entry(entries, values[i].name);
    const json_t* dims = json_object_get(entry, "dims");
    if (json_array_size(dims) > 0 && (int)json_array_size(dims) == values[i].rank) return true;
  }
  return false;
}

static bool fill_batch(json_t* config, const io_t* io, int64_t max_batch, bool* changed) {
  if (config_integer(json_object_get(config, "max_batch_size"), 0) != 0) return true;
  if (io->max_rows > 0) max_batch = io->max_rows;
  if (max_batch <= 0 || !io_takes_batches(io) ||
      writes_batch(config, "input", io->inputs, io->n_inputs) ||
      writes_batch(config, "output", io->outputs, io->n_outputs))
    return true;
  *changed = true;
  return json_object_set_new(config, "max_batch_size", json_integer(max_batch)) == 0;
}

static bool fill_scheduling(json_t* config, bool* changed) {
  static const char* const choices[] = {"dynamic_batching", "sequence_batching",
                                        "ensemble_scheduling"};
  if (config_integer(json_object_get(config, "max_batch_size"), 0) < 2) return true;
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    if (json_is_object(json_object_get(config, choices[i]))) return true;
  *changed = true;
  return json_object_set_new(config, choices[0], json_object()) == 0;
}

TRITONSERVER_Error* config_complete(json_t* config, const io_t* io, int64_t max_batch,
                                    bool* out_changed) {
  *out_changed = false;
  bool ok = fill_batch(config, io, max_batch, out_changed);
  const bool batches = config_integer(json_object_get(config, "max_batch_size"), 0) > 0;
  ok = ok && fill_values(config, "input", io->inputs, io->n_inputs, batches, out_changed);
  ok = ok && fill_values(config, "output", io->outputs, io->n_outputs, batches, out_changed);
  ok = ok && fill_scheduling(config, out_changed);
  return ok ? NULL : error_no_memory();
}
