// --markDebug, --markUnfusedTensorsAsDebugTensors, --saveDebugTensors, --saveAllDebugTensors.
//
// A marked value becomes an output of what is built, after the model's own, so that no pass takes
// it away and no layer keeps it to itself; trtexec does not count it among the outputs. Values are
// saved in a run of its own, by a tap on the layers.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "frontends/trtexec/bindings.h"
#include "frontends/trtexec/edit.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"
#include "frontends/trtexec/text.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/text.h"

size_t trt_output_count(const trt_job_t* j) {
  return assay_engine_output_count(j->engine) - j->n_debug_outputs;
}

// ---- marking ------------------------------------------------------------------------------------

static bool is_listed(const char* const* names, size_t n, const char* name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

assay_status_t trt_mark_debug(trt_job_t* j) {
  const trt_options_t* o = j->options;
  const assay_graph_t* g = j->model->graph;
  const char **words = NULL, **to = NULL;
  size_t n = 0, n_to = 0;
  j->all_debug = trt_given(o, TRT_FLAG_markUnfusedTensorsAsDebugTensors);
  if (!trt_given(o, TRT_FLAG_markDebug)) return NULL;
  ASSAY_TRY(trt_words_parse(j->arena, "--markDebug", trt_text(o, TRT_FLAG_markDebug), &words, &n));
  ASSAY_TRY(assay_arena_new(j->arena, n + g->n_outputs, sizeof *to, &to));
  ASSAY_TRY(assay_arena_new(j->arena, n, sizeof *j->debug, &j->debug));
  for (size_t i = 0; i < g->n_outputs; i++) to[n_to++] = g->outputs[i]->name;
  for (size_t i = 0; i < n; i++) {
    if (is_listed(j->debug, j->n_debug, words[i])) continue;
    j->debug[j->n_debug++] = words[i];
    if (!is_listed(to, n_to, words[i])) to[n_to++] = words[i];
  }
  j->n_debug_outputs = n_to - g->n_outputs;
  for (size_t i = 0; i < n_to; i++)  // of the arena: the model that they are of may be replaced
    ASSAY_TRY(assay_arena_strdup(j->arena, to[i], &to[i]));
  j->ends = (assay_words_t){to, n_to};
  if (!j->n_debug_outputs) return NULL;
  const assay_edit_requests_t requests = {.to = j->ends};
  assay_status_t st = trt_edit_model(j, &assay_editor_extract, &requests);
  if (!st) trt_info("--markDebug: %zu values stay visible in the plan", j->n_debug);
  return assay_status_note(st, "--markDebug");
}

// ---- what is to be saved ------------------------------------------------------------------------

enum { SUMMARY = 1, NUMPY = 2, STRING = 4, RAW = 8 };

typedef struct saver {
  const trt_job_t* job;
  trt_item_t* items;  // --saveDebugTensors
  size_t n_items;
  bool* saved;       // of items
  int formats;       // --saveAllDebugTensors
  json_t* reported;  // of the summary
  size_t n_written;  // values of --saveAllDebugTensors
} saver_t;

static bool is_debug(const trt_job_t* j, const char* name) {
  return j->all_debug || is_listed(j->debug, j->n_debug, name);
}

static assay_status_t read_formats(const trt_job_t* j, int* out) {
  static const char* const names[] = {"summary", "numpy", "string", "raw"};
  const char** words = NULL;
  size_t n = 0;
  *out = 0;
  if (!trt_given(j->options, TRT_FLAG_saveAllDebugTensors)) return NULL;
  ASSAY_TRY(trt_words_parse(j->arena, "--saveAllDebugTensors",
                            trt_text(j->options, TRT_FLAG_saveAllDebugTensors), &words, &n));
  for (size_t i = 0; i < n; i++) {
    size_t k = 0;
    while (k < 4 && strcmp(names[k], words[i]) != 0) k++;
    if (k == 4)
      return ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT,
          "--saveAllDebugTensors: '%s' is not a format: summary, numpy, string or raw", words[i]);
    *out |= 1 << k;
  }
  return NULL;
}

static assay_status_t read_requests(const trt_job_t* j, saver_t* s) {
  const trt_options_t* o = j->options;
  ASSAY_TRY(read_formats(j, &s->formats));
  if (trt_given(o, TRT_FLAG_saveDebugTensors))
    ASSAY_TRY(trt_items_parse(j->arena, "--saveDebugTensors",
                              trt_text(o, TRT_FLAG_saveDebugTensors), &s->items, &s->n_items));
  ASSAY_TRY(assay_arena_new(j->arena, s->n_items, sizeof *s->saved, &s->saved));
  for (size_t i = 0; i < s->n_items; i++)
    if (!is_debug(j, s->items[i].name))
      return ASSAY_ERROR(ASSAY_NOT_FOUND,
                         "--saveDebugTensors: '%s' is not marked: build the plan with "
                         "--markDebug=%s",
                         s->items[i].name, s->items[i].name);
  if (s->formats && !j->n_debug && !j->all_debug)
    return ASSAY_ERROR(ASSAY_NOT_FOUND,
                       "--saveAllDebugTensors: no value is marked: build the plan with --markDebug "
                       "or --markUnfusedTensorsAsDebugTensors");
  return NULL;
}

assay_status_t trt_check_debug(const trt_job_t* j) {
  saver_t s = {.job = j};
  return read_requests(j, &s);
}

// ---- files --------------------------------------------------------------------------------------

static assay_status_t write_bytes(const char* path, assay_tensor_t* t) {
  const size_t n = assay_tensor_bytes(t);
  void* bytes = NULL;
  ASSAY_TRY(assay_new_array(n, 1, &bytes));
  assay_status_t st = assay_tensor_read(t, bytes, n);
  if (!st) st = assay_file_write(path, bytes, n);
  assay_free(bytes);
  return st;
}

// The first elements, and what all of them are like.
static json_t* summarize(const char* name, const assay_tensor_t* t) {
  enum { SHOWN = 10 };
  double min = INFINITY, max = -INFINITY, sum = 0;
  json_t *shape = json_array(), *elements = json_array();
  for (int64_t i = 0; i < t->size && t->store != ASSAY_STORE_C128; i++) {
    const double x = t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : (double)assay_i64(t)[i];
    min = fmin(min, x);
    max = fmax(max, x);
    sum += x;
    if (i < SHOWN) elements = assay_json_push(elements, assay_json_number(x));
  }
  for (int d = 0; d < t->rank; d++) shape = assay_json_push(shape, json_integer(t->dims[d]));
  json_t* statistics = assay_json_put(json_object(), "min", assay_json_number(min));
  statistics = assay_json_put(statistics, "max", assay_json_number(max));
  statistics =
      assay_json_put(statistics, "avg", assay_json_number(t->size ? sum / (double)t->size : NAN));
  json_t* j = assay_json_put(json_object(), "name", assay_json_text(name));
  j = assay_json_put(j, "shape", shape);
  j = assay_json_put(j, "type", json_string(trt_type_word(t->type)));
  j = assay_json_put(j, "statistics", statistics);
  return assay_json_put(j, "elements", elements);
}

static assay_status_t write_as(const char* name, const char* ending, assay_tensor_t* t,
                               assay_status_t write(const char*, assay_tensor_t*)) {
  assay_str_t path = {0};
  trt_file_name(name, &path);
  assay_str_append(&path, ending);
  assay_status_t st = assay_str_status(&path);
  if (!st) st = write(assay_str_get(&path), t);
  if (!st) trt_info("Wrote %s", assay_str_get(&path));
  assay_str_deinit(&path);
  return st;
}

static assay_status_t save_everywhere(saver_t* s, const char* name, assay_tensor_t* t) {
  if (s->formats & SUMMARY) {
    s->reported = assay_json_push(s->reported, summarize(name, t));
    if (!s->reported) return assay_status_no_memory();
  }
  if (s->formats & NUMPY) ASSAY_TRY(write_as(name, ".npy", t, assay_npy_write));
  if (s->formats & STRING) ASSAY_TRY(write_as(name, ".txt", t, assay_text_write));
  if (s->formats & RAW) ASSAY_TRY(write_as(name, ".raw", t, write_bytes));
  s->n_written++;
  return NULL;
}

static assay_status_t save_value(saver_t* s, const char* name, assay_tensor_t* t) {
  assay_tensor_t* wide = NULL;
  if (!is_debug(s->job, name) || t->kind != ASSAY_KIND_TENSOR || t->type == ASSAY_TYPE_STRING)
    return NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < s->n_items; i++) {
    if (strcmp(s->items[i].name, name) != 0) continue;
    st = write_bytes(s->items[i].value, wide);
    s->saved[i] = true;
    if (!st) trt_info("Wrote %s", s->items[i].value);
  }
  if (!st && s->formats) st = save_everywhere(s, name, wide);
  assay_tensor_release(wide);
  return assay_status_note(st, "saving '%s'", name);
}

static assay_status_t on_layer(void* user, const assay_layer_values_t* v) {
  for (size_t i = 0; i < v->n_outputs; i++)
    ASSAY_TRY(save_value(user, v->output_names[i], v->outputs[i]));
  return NULL;
}

static assay_status_t write_summary(const saver_t* s) {
  const trt_options_t* o = s->job->options;
  const char* plan = trt_text(o, TRT_FLAG_loadEngine);
  if (!plan) plan = trt_text(o, TRT_FLAG_saveEngine);
  if (!plan) plan = trt_text(o, TRT_FLAG_onnx);
  const time_t seconds = time(NULL);
  struct tm parts;
  char stamp[32] = "";
  if (localtime_r(&seconds, &parts)) strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &parts);
  json_t* m = json_pack("{s:s, s:s}", "title", "Debug tensors", "time_generated", stamp);
  m = assay_json_put(m, "engine_name", assay_json_text(plan ? plan : ""));
  m = assay_json_put(m, "command_line", assay_json_text(s->job->command_line));
  json_t* all = assay_json_put(json_object(), "metadata", m);
  all = assay_json_put(all, "tensors", json_incref(s->reported));
  if (!all) return assay_status_no_memory();
  assay_status_t st = assay_json_write("tensor_summary.json", all, 2);
  json_decref(all);
  if (!st) trt_info("Wrote tensor_summary.json");
  return st;
}

static assay_status_t run_tapped(saver_t* s, const trt_inputs_t* in) {
  assay_context_options_t options = ASSAY_CONTEXT_OPTIONS_INIT;
  assay_context_t* c = NULL;
  options.tap = on_layer;
  options.tap_user = s;
  ASSAY_TRY(assay_context_create(s->job->engine, &options, &c));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < in->n; i++) st = assay_context_set_input(c, i, in->tensors[i]);
  if (!st) st = assay_context_run(c);
  // What no layer makes (an input that is an output, a constant) is there after the run.
  for (size_t i = 0; !st && i < s->n_items; i++) {
    size_t at;
    if (s->saved[i]) continue;
    st = assay_engine_find_output(s->job->engine, s->items[i].name, &at);
    assay_tensor_t* t = st ? NULL : assay_context_output(c, at);
    if (t) st = save_value(s, s->items[i].name, t);
    assay_tensor_release(t);
  }
  assay_context_destroy(c);
  return st;
}

assay_status_t trt_save_debug(const trt_job_t* j, const trt_inputs_t* in) {
  saver_t s = {.job = j};
  ASSAY_TRY(read_requests(j, &s));
  if (!s.n_items && !s.formats) return NULL;
  s.reported = json_array();
  assay_status_t st = s.reported ? run_tapped(&s, in) : assay_status_no_memory();
  if (!st && s.formats & SUMMARY) st = write_summary(&s);
  if (!st && s.formats) trt_info("--saveAllDebugTensors: %zu values were saved", s.n_written);
  for (size_t i = 0; !st && i < s.n_items; i++)
    if (!s.saved[i])
      st = ASSAY_ERROR(ASSAY_NOT_FOUND,
                       "--saveDebugTensors: the plan has no value '%s': it became part of a layer, "
                       "or it is not a tensor of numbers",
                       s.items[i].name);
  json_decref(s.reported);
  return st;
}
