// How a model is compiled and run: parameters, each a row.
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Takes a value; false: it is none of those that the row's `values` names. NULL text: no memory.
typedef bool take_fn_t(settings_t* s, const char* value);

typedef struct row {
  const char* name;
  take_fn_t* take;
  const char* values;  // for messages
  bool builds;         // says how a model is compiled: a plan file has it already
} row_t;

static bool take_text(char** to, const char* value) {
  free(*to);
  *to = strdup(value);
  return *to && *value;
}

static bool take_bool(bool* to, const char* value) {
  static const char* const words[] = {"false", "true", "off", "on", "0", "1", "no", "yes"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(value, words[i]) == 0) return *to = i % 2, true;
  return false;
}

static bool take_integer(int64_t* to, int64_t min, int64_t max, const char* value) {
  char* end = NULL;
  errno = 0;
  const long long x = strtoll(value, &end, 10);
  *to = x;
  return !errno && end != value && !*end && x >= min && x <= max;
}

static bool take_format(assay_format_t* to, const char* value) {
  *to = assay_format_parse(value);
  return *to != ASSAY_FORMAT_NONE;
}

static bool take_precision(settings_t* s, const char* value) {
  return take_format(&s->build.precision, value);
}

static bool take_accumulator(settings_t* s, const char* value) {
  return take_format(&s->build.accumulator, value);
}

static bool take_layer_precision(settings_t* s, const char* value) {
  return take_text(&s->layer_precision, value);
}

static bool take_fp32(settings_t* s, const char* value) {
  static const char* const names[] = {
      [ASSAY_FP32_TIGHT] = "tight", [ASSAY_FP32_PLAIN] = "plain", [ASSAY_FP32_BOUND] = "bound"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(value, names[i]) == 0) return s->build.fp32 = (assay_fp32_t)i, true;
  return false;
}

static bool take_target(settings_t* s, const char* value) { return take_text(&s->target, value); }

static bool take_timing_cache(settings_t* s, const char* value) {
  return take_text(&s->timing_cache, value);
}

static bool take_tactic_sources(settings_t* s, const char* value) {
  return take_text(&s->tactic_sources, value);
}

static bool take_threads(settings_t* s, const char* value) {
  int64_t threads = 0;
  const bool ok = take_integer(&threads, 0, 4096, value);
  s->threads = (int)threads;
  return ok;
}

static bool take_seed(settings_t* s, const char* value) {
  int64_t seed = 0;
  const bool ok = take_integer(&seed, 0, INT64_MAX, value);
  s->build.seed = (uint64_t)seed;
  return ok;
}

static bool take_measure(settings_t* s, const char* value) {
  return take_bool(&s->build.measure, value);
}

static bool take_strict(settings_t* s, const char* value) {
  return take_bool(&s->build.strict, value);
}

static bool take_batch_variant(settings_t* s, const char* value) {
  return take_bool(&s->build.batch_variant, value);
}

static bool take_fusion(settings_t* s, const char* value) {
  bool on = true;
  const bool ok = take_bool(&on, value);
  s->build.fusion = on ? ASSAY_FUSION_ON : ASSAY_FUSION_OFF;
  return ok;
}

static const row_t rows[] = {
    {"accumulator", take_accumulator, "a format, such as fp32", true},
    {"batch_variant", take_batch_variant, "true or false", true},
    {"fp32", take_fp32, "tight, plain or bound", true},
    {"fusion", take_fusion, "on or off", true},
    {"layer_precision", take_layer_precision, "PATTERN:FORMAT,...", true},
    {"measure", take_measure, "true or false", true},
    {"precision", take_precision, "a format, such as fp16", true},
    {"seed", take_seed, "an integer from 0 on", true},
    {"strict", take_strict, "true or false", true},
    {"tactic_sources", take_tactic_sources, "names, such as assay,onednn", true},
    {"target", take_target, "a target, such as cpu, cuda or emu", false},
    {"threads", take_threads, "an integer from 0 to 4096", false},
    {"timing_cache", take_timing_cache, "a path", true},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const row_t* find_row(const char* name) {
  for (size_t i = 0; i < N_ROWS; i++)
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  return NULL;
}

static bool is_of_others(const char* name) {
  for (const char* c = name; *c; c++)
    if (islower((unsigned char)*c)) return false;
  return *name != '\0';
}

static TRITONSERVER_Error* unknown(const char* name) {
  char known[512] = "";
  for (size_t i = 0; i < N_ROWS; i++) {
    strcat(known, i ? ", " : "");
    strcat(known, rows[i].name);
  }
  return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                   "unknown parameter '%s'; there are %s, and names in capitals are left alone",
                   name, known);
}

static TRITONSERVER_Error* take(settings_t* s, const row_t* row, const char* value) {
  if (!value || !row->take(s, value))
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "parameter '%s' is '%s', not %s", row->name,
                     value ? value : "no text", row->values);
  return NULL;
}

// Of all models: names that are not known here are the server's own.
static TRITONSERVER_Error* take_of_backend(settings_t* s, const json_t* backend) {
  json_t* settings = json_object_get(backend, "cmdline");
  const char* name = NULL;
  json_t* value = NULL;
  TRITONSERVER_Error* error = NULL;
  json_object_foreach(settings, name, value) {
    const row_t* row = find_row(name);
    if (!error && row) error = take(s, row, json_string_value(value));
    if (!error && strcmp(name, "default-max-batch-size") == 0 &&
        !take_integer(&s->max_batch, 0, INT32_MAX,
                      json_is_string(value) ? json_string_value(value) : ""))
      error = error_new(TRITONSERVER_ERROR_INVALID_ARG, "default-max-batch-size is not an integer");
  }
  return error;
}

static TRITONSERVER_Error* take_of_model(settings_t* s, const json_t* config) {
  json_t* parameters = json_object_get(config, "parameters");
  const char* name = NULL;
  json_t* value = NULL;
  TRITONSERVER_Error* error = NULL;
  json_object_foreach(parameters, name, value) {
    const row_t* row = find_row(name);
    if (error || (!row && is_of_others(name))) continue;
    error = row ? take(s, row, json_string_value(json_object_get(value, "string_value")))
                : unknown(name);
    if (row && row->builds) s->build_only = row->name;
  }
  return error;
}

// A path that does not begin at the root begins in the model's folder.
static TRITONSERVER_Error* resolve(char** path, const char* folder) {
  if (!*path || **path == '/') return NULL;
  const size_t n = strlen(folder), m = strlen(*path);
  char* whole = malloc(n + m + 2);
  if (!whole) return error_no_memory();
  memcpy(whole, folder, n);
  whole[n] = '/';
  memcpy(whole + n + 1, *path, m + 1);
  free(*path);
  *path = whole;
  return NULL;
}

TRITONSERVER_Error* settings_init(settings_t* s, const json_t* backend, const json_t* config,
                                  const char* folder) {
  *s = (settings_t){.build = ASSAY_ENGINE_OPTIONS_INIT, .threads = -1, .max_batch = 4};
  TRITONSERVER_Error* error = take_of_backend(s, backend);
  if (!error) error = take_of_model(s, config);
  if (!error) error = resolve(&s->timing_cache, folder);
  s->build.layer_precision = s->layer_precision;
  s->build.timing_cache = s->timing_cache;
  s->build.tactic_sources = s->tactic_sources;
  if (error) settings_deinit(s);
  return error;
}

void settings_deinit(settings_t* s) {
  free(s->target);
  free(s->layer_precision);
  free(s->timing_cache);
  free(s->tactic_sources);
  *s = (settings_t){0};
}
