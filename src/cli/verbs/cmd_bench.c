// assay bench: how long a model's plan takes, as a whole and layer by layer.
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/shown.h"
#include "cli/verbs/bench/bench_pair.h"
#include "cli/verbs/bench/bench_parts.h"
#include "cli/verbs/bench/bench_source.h"
#include "cli/verbs/bench/bench_trace.h"

enum { MAX_CONTEXTS = 256, TRACE_EVENTS = 200000 };  // of all contexts

typedef struct args {
  cli_engine_args_t engine;
  const char *second, *json, *trace, *allocation;
  opt_list_t inputs, ops;
  bool allow_hard_links;
  int64_t threads, contexts, memory_limit;
  double seconds, warm_up;
  bool latencies, layers;
  cli_reading_args_t reading;
  double timeout;
} args_t;

// A context, and what it has measured.
typedef struct lane {
  const struct job* job;
  assay_executor_t* executor;
  double* milliseconds;  // of each run
  size_t n_runs, cap_runs;
  double* layer_seconds;  // summed over the runs
  bench_lane_t trace;
  assay_status_t status;
} lane_t;

typedef struct job {
  const args_t* args;
  bench_source_t source;
  lane_t* lanes;
  size_t n_lanes;
  double start, seconds;  // of measuring, and how long it took
  double* milliseconds;   // of all runs
  size_t n_runs;
  int threads;      // of each context
  bool reserve;     // contexts take their memory when they are opened,
  int profile;      // for the largest shapes of this profile; -1: of all
  size_t reserved;  // bytes of a context then
  bench_parts_t parts;
} job_t;

static void job_deinit(job_t* j) {
  for (size_t i = 0; i < j->n_lanes; i++) {
    lane_t* l = &j->lanes[i];
    assay_executor_destroy(l->executor);
    assay_free(l->milliseconds);
    assay_free(l->layer_seconds);
    assay_free(l->trace.events);
    assay_status_free(l->status);
  }
  assay_free(j->lanes);
  bench_source_deinit(&j->source);
  assay_free(j->milliseconds);
}

static assay_status_t open_lanes(job_t* j) {
  const size_t n = j->args->contexts ? (size_t)j->args->contexts : 1;
  ASSAY_TRY(assay_new_array(n, sizeof *j->lanes, &j->lanes));
  for (; j->n_lanes < n; j->n_lanes++) {
    lane_t* l = &j->lanes[j->n_lanes];
    l->job = j;
    ASSAY_TRY(assay_executor_run_engine(j->source.engine, NULL, &l->executor));
    if (j->reserve) {
      assay_status_t st = assay_engine_reserve(j->source.engine, l->executor, j->profile);
      if (st) return j->n_lanes++, st;
      j->reserved = assay_executor_planned_bytes(l->executor);
    }
    l->trace.executor = l->executor;
    assay_status_t st = assay_new_array(assay_executor_n_steps(l->executor),
                                        sizeof *l->layer_seconds, &l->layer_seconds);
    if (st) return j->n_lanes++, st;
  }
  return NULL;
}

// ---- measuring ----------------------------------------------------------------------------------

static bool has_capacity(const lane_t* l) {
  const size_t n = assay_executor_n_steps(l->executor);
  return l->job->args->trace && l->trace.n + n <= TRACE_EVENTS / l->job->n_lanes;
}

// Runs the layers, taking the time of each.
static assay_status_t run_timed(lane_t* l) {
  const size_t n = assay_executor_n_steps(l->executor);
  const bool traced = has_capacity(l);
  bench_lane_t* t = &l->trace;
  if (traced) ASSAY_TRY(assay_grow(&t->events, &t->cap, t->n + n, sizeof *t->events));
  double before = 0;
  for (size_t i = 0; i < n; i++) {
    const double start = assay_clock_seconds();
    assay_run_times_t times;
    bool known = false;
    ASSAY_TRY(assay_executor_step(l->executor, i));
    double seconds = assay_clock_seconds() - start;
    // Of a device its own clock tells; a layer that the host runs takes nothing of that.
    ASSAY_TRY(assay_executor_times(l->executor, &times, &known));
    if (known && times.compute > before) seconds = 1e-6 * (times.compute - before);
    before = times.compute;
    l->layer_seconds[i] += seconds;
    if (traced)
      t->events[t->n++] =
          (bench_event_t){(uint32_t)l->n_runs, (uint32_t)i,
                          (int64_t)(1e9 * (start - l->job->start)), (int64_t)(1e9 * seconds)};
  }
  return NULL;
}

// Where layers are timed, they run one by one from the first run on: what is prepared differs.
static assay_status_t run_once(lane_t* l, bool timed) {
  const job_t* j = l->job;
  assay_executor_stepwise(l->executor, j->args->layers || j->args->trace);
  assay_executor_timed(l->executor, j->args->layers || j->args->trace);
  assay_executor_reset(l->executor);
  ASSAY_TRY(bench_source_set(&j->source, l->executor));
  return timed ? run_timed(l) : assay_executor_run(l->executor);
}

static assay_status_t warm_up(lane_t* l) {
  const double end = assay_clock_seconds() + l->job->args->warm_up;
  do ASSAY_TRY(run_once(l, false));
  while (assay_clock_seconds() < end);
  return NULL;
}

static assay_status_t measure(lane_t* l) {
  const args_t* a = l->job->args;
  const double end = l->job->start + a->seconds;
  while (l->n_runs < 3 || assay_clock_seconds() < end) {
    ASSAY_TRY(assay_grow(&l->milliseconds, &l->cap_runs, l->n_runs + 1, sizeof *l->milliseconds));
    const double start = assay_clock_seconds();
    ASSAY_TRY(run_once(l, a->layers || a->trace));
    l->milliseconds[l->n_runs++] = 1e3 * (assay_clock_seconds() - start);
  }
  return NULL;
}

static void* warm_up_lane(void* p) {
  lane_t* l = p;
  omp_set_num_threads(l->job->threads);
  l->status = warm_up(l);
  return NULL;
}

static void* measure_lane(void* p) {
  lane_t* l = p;
  omp_set_num_threads(l->job->threads);
  l->status = measure(l);
  return NULL;
}

// All contexts side by side, the first one in this thread.
static assay_status_t in_all(job_t* j, void* (*work)(void*)) {
  pthread_t threads[MAX_CONTEXTS];
  assay_status_t st = NULL;
  size_t n = 1;
  for (; !st && n < j->n_lanes; n++)
    if (pthread_create(&threads[n], NULL, work, &j->lanes[n]) != 0)
      st = ASSAY_ERROR(ASSAY_DEVICE, "the system has no threads for %zu contexts", j->n_lanes);
  if (st) n--;
  if (!st) work(&j->lanes[0]);
  for (size_t i = 1; i < n; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < j->n_lanes; i++) {
    st = assay_status_join(st, j->lanes[i].status);
    j->lanes[i].status = NULL;
  }
  return st;
}

// The latencies of all contexts together.
static assay_status_t gather(job_t* j) {
  for (size_t i = 0; i < j->n_lanes; i++) j->n_runs += j->lanes[i].n_runs;
  ASSAY_TRY(assay_new_array(j->n_runs, sizeof *j->milliseconds, &j->milliseconds));
  double* to = j->milliseconds;
  for (size_t i = 0; i < j->n_lanes; i++) {
    memcpy(to, j->lanes[i].milliseconds, j->lanes[i].n_runs * sizeof *to);
    to += j->lanes[i].n_runs;
  }
  return NULL;
}

static assay_status_t measure_all(job_t* j) {
  ASSAY_TRY(in_all(j, warm_up_lane));
  j->start = assay_clock_seconds();
  ASSAY_TRY(in_all(j, measure_lane));
  j->seconds = assay_clock_seconds() - j->start;
  if (!j->args->layers && !j->args->trace)
    ASSAY_TRY(bench_parts_measure(&j->source, j->lanes[0].executor, &j->parts));
  return gather(j);
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// ---- telling ------------------------------------------------------------------------------------

typedef struct row {
  const assay_layer_t* layer;
  const char* tactic;
  double milliseconds;
} row_t;

static int slowest_first(const void* a, const void* b) {
  return -ascending(&((const row_t*)a)->milliseconds, &((const row_t*)b)->milliseconds);
}

// The layers, the slowest first; *out is freed with assay_free.
static assay_status_t sort_layers(const job_t* j, row_t** out) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(j->source.engine));
  ASSAY_TRY(assay_new_array(layers->n_layers, sizeof **out, out));
  for (size_t i = 0; i < layers->n_layers; i++) {
    double seconds = 0;
    for (size_t k = 0; k < j->n_lanes; k++) seconds += j->lanes[k].layer_seconds[i];
    (*out)[i] = (row_t){&layers->layers[i], assay_executor_tactic(j->lanes[0].executor, i),
                        1e3 * seconds / (double)j->n_runs};
  }
  if (layers->n_layers) qsort(*out, layers->n_layers, sizeof **out, slowest_first);
  return NULL;
}

static void print_layers(const row_t* rows, size_t n) {
  double total = 0;
  for (size_t i = 0; i < n; i++) total += rows[i].milliseconds;
  printf("\n%10s  %5s  %-16s %-20s %s\n", "ms", "share", "tactic", "operator", "layer");
  for (size_t i = 0; i < n; i++)
    assay_print(stdout, "%10.4f  %4.1f%%  %-16s %-20s %s\n", rows[i].milliseconds,
                100 * rows[i].milliseconds / fmax(total, 1e-300), rows[i].tactic,
                rows[i].layer->nodes[0]->op_type, rows[i].layer->name);
}

static json_t* layers_json(const row_t* rows, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++)
    list = assay_json_push(
        list, json_pack("{s:o, s:o, s:s, s:f}", "layer", assay_json_text(rows[i].layer->name),
                        "operator", assay_json_text(rows[i].layer->nodes[0]->op_type), "tactic",
                        rows[i].tactic, "ms", rows[i].milliseconds));
  return list;
}

static double percentile(const job_t* j, double p) {
  const double at = p * (double)(j->n_runs - 1);
  return j->milliseconds[(size_t)(at + 0.5)];
}

static double runs_per_second(const job_t* j) { return (double)j->n_runs / j->seconds; }

static double mean_of(const job_t* j) {
  double sum = 0;
  for (size_t i = 0; i < j->n_runs; i++) sum += j->milliseconds[i];
  return sum / (double)j->n_runs;
}

static void print_text(const args_t* a, const job_t* j) {
  printf("latency    median %.3f ms, mean %.3f, 90%% %.3f, 99%% %.3f, fastest %.3f, slowest %.3f\n",
         percentile(j, 0.5), mean_of(j), percentile(j, 0.9), percentile(j, 0.99), percentile(j, 0),
         percentile(j, 1));
  assay_print(stdout, "throughput %.1f runs/s, %zu runs, %zu context%s of %d thread%s\n",
              runs_per_second(j), j->n_runs, j->n_lanes, j->n_lanes == 1 ? "" : "s", j->threads,
              j->threads == 1 ? "" : "s");
  bench_parts_print(&j->parts);
  if (a->allocation)
    assay_print(stdout, "memory     %s a context when it was opened, %s now (--allocation %s)\n",
                ASSAY_BYTES_TEXT(j->reserved),
                ASSAY_BYTES_TEXT(assay_executor_planned_bytes(j->lanes[0].executor)),
                a->allocation);
}

static assay_status_t write_json(const args_t* a, const job_t* j, const row_t* rows, size_t n) {
  json_t* o = json_pack("{s:s, s:o, s:i, s:f, s:f, s:f, s:f, s:f, s:i, s:i}", "schema",
                        "assay.bench/1", "model", assay_json_text(a->engine.model), "runs",
                        (int)j->n_runs, "median_ms", percentile(j, 0.5), "mean_ms", mean_of(j),
                        "p90_ms", percentile(j, 0.9), "p99_ms", percentile(j, 0.99), "runs_per_s",
                        runs_per_second(j), "contexts", (int)j->n_lanes, "threads", j->threads);
  if (rows) o = assay_json_put(o, "layers", layers_json(rows, n));
  o = bench_parts_put(o, &j->parts);
  if (!o) return assay_status_no_memory();
  assay_status_t st = assay_cli_write_json(a->json, o);
  json_decref(o);
  return st;
}

static assay_status_t report(const args_t* a, job_t* j) {
  const size_t n = assay_plan_layers(assay_engine_plan(j->source.engine))->n_layers;
  const bool json_to_stdout = assay_cli_json_to_stdout(a->json);
  row_t* rows = NULL;
  if (a->latencies) {
    for (size_t i = 0; i < j->n_runs; i++) printf("%.6f\n", j->milliseconds[i]);
    return NULL;
  }
  qsort(j->milliseconds, j->n_runs, sizeof *j->milliseconds, ascending);
  if (a->layers) ASSAY_TRY(sort_layers(j, &rows));
  // The standard output is the text's or JSON's, not both.
  if (!json_to_stdout) print_text(a, j);
  if (!json_to_stdout && rows) print_layers(rows, n);
  assay_status_t st = a->json ? write_json(a, j, rows, n) : NULL;
  assay_free(rows);
  return st;
}

static assay_status_t write_trace(const job_t* j) {
  bench_lane_t* lanes = NULL;
  size_t runs = 0;
  ASSAY_TRY(assay_new_array(j->n_lanes, sizeof *lanes, &lanes));
  for (size_t i = 0; i < j->n_lanes; i++) {
    lanes[i] = j->lanes[i].trace;
    runs += lanes[i].n ? lanes[i].events[lanes[i].n - 1].run + 1 : 0;
  }
  assay_status_t st = bench_trace_write(
      j->args->trace, assay_plan_layers(assay_engine_plan(j->source.engine)), lanes, j->n_lanes);
  assay_free(lanes);
  if (!st && runs && runs < j->n_runs)
    fprintf(stderr, "assay: the trace has the first %zu of %zu runs\n", runs, j->n_runs);
  return st;
}

static int run_job(const args_t* a, job_t* j) {
  int code;
  assay_status_t st = bench_source_open(&a->engine, &a->inputs, &a->reading, &j->source, &code);
  if (st) return assay_cli_fail(st, code);
  st = open_lanes(j);
  if (!st) st = measure_all(j);
  if (!st) {
    st = report(a, j);
    fflush(stdout);
    bench_source_warn(&j->source);
    if (a->trace) st = assay_status_join(st, write_trace(j));
  }
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

// "static", "runtime", or a profile's number.
static bool read_allocation(const char* text, job_t* j) {
  char* end;
  j->profile = -1;
  if (!text || strcmp(text, "runtime") == 0) return true;
  j->reserve = true;
  if (strcmp(text, "static") == 0) return true;
  const long n = strtol(text, &end, 10);
  j->profile = n >= 0 && n < ASSAY_MAX_PROFILES ? (int)n : -1;
  return *text && !*end && j->profile == n;
}

static int run_pair(const args_t* a, int threads) {
  const bench_pair_args_t pair = {.engine = &a->engine,
                                  .model_b = a->second,
                                  .inputs = &a->inputs,
                                  .reading = &a->reading,
                                  .seconds = a->seconds,
                                  .warm_up = a->warm_up,
                                  .threads = threads,
                                  .layers = a->layers,
                                  .json = a->json};
  return bench_pair_run(&pair);
}

// An option that two models do not go with; NULL: none is given.
static const char* for_one_model(const args_t* a) {
  return a->contexts     ? "--contexts"
         : a->allocation ? "--allocation"
         : a->latencies  ? "--latencies"
         : a->trace      ? "--trace"
                         : NULL;
}

static int run(void* p) {
  args_t* a = p;
  job_t j = {.args = a};
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  if (a->threads < 0 || a->seconds < 0 || a->warm_up < 0)
    return assay_cli_usage("bench", "--threads, --seconds and --warm-up are not negative");
  if (a->second && for_one_model(a))
    return assay_cli_usage("bench", "%s is for one model, not for two", for_one_model(a));
  if (a->contexts < 0 || a->contexts > MAX_CONTEXTS)
    return assay_cli_usage("bench", "--contexts is 1 to %d", MAX_CONTEXTS);
  if (!read_allocation(a->allocation, &j))
    return assay_cli_usage(
        "bench", "--allocation is static, runtime, or a profile's number; not '%s'", a->allocation);
  if (a->seconds == 0) a->seconds = 3;
  if (a->warm_up == 0) a->warm_up = 0.2;
  // The cores are for all contexts together.
  const int contexts = a->contexts ? (int)a->contexts : 1, cores = omp_get_max_threads();
  if (a->threads)
    j.threads = (int)(a->threads < 1024 ? a->threads : 1024);
  else
    j.threads = cores > contexts ? cores / contexts : 1;
  const int code = a->second ? run_pair(a, j.threads) : run_job(a, &j);
  job_deinit(&j);
  return code;
}

static const opt_t options[] = {
    CLI_ENGINE_OPTIONS,
    {"B", 0, OPT_STRING, offsetof(args_t, second), NULL,
     "a second model or plan: both are measured in turns, and compared", false},
    {"--inputs", 'i', OPT_LIST, offsetof(args_t, inputs), "FILE",
     CLI_INPUTS_HELP "\n(default: random). After the measurement with given ones, where "
                     "layers\nare in fp16 or fp8, "
                     "one run more tells values that fused layers hide\npast the range",
     false},
    CLI_READING_OPTIONS(reading),
    {"--seconds", 0, OPT_FLOAT, offsetof(args_t, seconds), "S",
     "how long to measure, two models together (default: 3)", false},
    {"--warm-up", 0, OPT_FLOAT, offsetof(args_t, warm_up), "S",
     "how long to run before (default: 0.2)", false},
    {"--contexts", 0, OPT_INT, offsetof(args_t, contexts), "N",
     "so many runs side by side, which share the weights (default: 1)", false},
    {"--threads", 0, OPT_INT, offsetof(args_t, threads), "T",
     "threads of each run (default: all cores, divided among contexts)", false},
    {"--allocation", 0, OPT_STRING, offsetof(args_t, allocation), "WHEN",
     "when a context takes its memory: runtime, as runs need it (default);\nstatic, when it is "
     "opened, for the largest shapes of all profiles;\na number: of that profile",
     false},
    {"--latencies", 0, OPT_FLAG, offsetof(args_t, latencies), NULL,
     "print nothing but each run's latency in ms, one a line", false},
    {"--layers", 0, OPT_FLAG, offsetof(args_t, layers), NULL,
     "time each layer, too, and print them, slowest first; of two models\nside by side", false},
    {"--trace", 0, OPT_OUT_FILE, offsetof(args_t, trace), "FILE",
     "each layer of each run as an event, for chrome://tracing or Perfetto", false},
    CLI_OPS_OPTION,
    CLI_HARD_LINKS_OPTION(allow_hard_links),
    CLI_MEMORY_OPTION,
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "the figures as JSON; - is stdout",
     false},
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_bench = {
    .name = "bench",
    .summary = "measure how fast a model runs, or which of two is faster",
    .usage = "MODEL|PLAN [B] [options]",
    .examples =
        "  assay bench model.onnx --precision bf16 --batch 8\n"
        "  assay bench model.onnx --layers | head -n 20\n"
        "  assay bench model.onnx faster.onnx --layers\n"
        "  assay bench model.plan --contexts 4 --trace model.json\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
