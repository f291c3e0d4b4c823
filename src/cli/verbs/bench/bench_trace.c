// The format: Google, "Trace Event Format"; complete events ("X"), times in microseconds.
#include "cli/verbs/bench/bench_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/json.h"

// One event a line, so that a long trace is not a tree in memory.
static assay_status_t add(assay_str_t* out, json_t* take_event, bool* first) {
  if (!take_event) return assay_status_no_memory();
  assay_str_append(out, *first ? "\n" : ",\n");
  char* text = json_dumps(take_event, JSON_COMPACT | JSON_REAL_PRECISION(15));
  if (text) assay_str_append(out, text);
  json_decref(take_event);
  if (!text) return assay_status_no_memory();
  free(text);
  *first = false;
  return NULL;
}

static json_t* complete(const char* name, const char* kind, size_t lane, int64_t start_ns,
                        int64_t duration_ns, json_t* take_args) {
  return json_pack("{s:o, s:s, s:s, s:i, s:I, s:f, s:f, s:o}", "name", assay_json_text(name), "cat",
                   kind, "ph", "X", "pid", 1, "tid", (json_int_t)lane, "ts",
                   1e-3 * (double)start_ns, "dur", 1e-3 * (double)duration_ns, "args", take_args);
}

static assay_status_t add_run(assay_str_t* out, size_t lane, const bench_event_t* from,
                              const bench_event_t* last, bool* first) {
  char name[32];
  snprintf(name, sizeof name, "run %u", from->run);
  return add(out,
             complete(name, "run", lane, from->start_ns,
                      last->start_ns + last->duration_ns - from->start_ns, json_object()),
             first);
}

static assay_status_t add_layer(assay_str_t* out, const assay_layers_t* layers, size_t lane,
                                const assay_executor_t* executor, const bench_event_t* e,
                                bool* first) {
  const assay_layer_t* l = &layers->layers[e->layer];
  json_t* args = json_pack("{s:s, s:s, s:i}", "tactic", assay_executor_tactic(executor, e->layer),
                           "format", assay_format_name(l->format), "run", (int)e->run);
  if (!args) return assay_status_no_memory();
  return add(out, complete(l->name, l->nodes[0]->op_type, lane, e->start_ns, e->duration_ns, args),
             first);
}

static assay_status_t add_lane(assay_str_t* out, const assay_layers_t* layers,
                               const bench_lane_t* lane, size_t number, bool* first) {
  char name[32];
  snprintf(name, sizeof name, "context %zu", number);
  ASSAY_TRY(add(out,
                json_pack("{s:s, s:s, s:i, s:I, s:{s:s}}", "name", "thread_name", "ph", "M", "pid",
                          1, "tid", (json_int_t)number, "args", "name", name),
                first));
  for (size_t i = 0; i < lane->n; i++) {
    const bench_event_t* e = &lane->events[i];
    if (!i || lane->events[i - 1].run != e->run) {
      size_t last = i;
      while (last + 1 < lane->n && lane->events[last + 1].run == e->run) last++;
      ASSAY_TRY(add_run(out, number, e, &lane->events[last], first));
    }
    ASSAY_TRY(add_layer(out, layers, number, lane->executor, e, first));
  }
  return NULL;
}

assay_status_t bench_trace_write(const char* path, const assay_layers_t* layers,
                                 const bench_lane_t* lanes, size_t n_lanes) {
  assay_str_t text = {0};
  bool first = true;
  assay_status_t st = NULL;
  assay_str_append(&text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  for (size_t i = 0; !st && i < n_lanes; i++) st = add_lane(&text, layers, &lanes[i], i, &first);
  assay_str_append(&text, "\n]}\n");
  if (!st) st = assay_str_status(&text);
  if (!st) st = assay_file_write(path, assay_str_get(&text), strlen(assay_str_get(&text)));
  assay_str_deinit(&text);
  return assay_status_note(st, "writing the trace '%s'", path);
}
