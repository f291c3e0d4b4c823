// assay bench: how long a model's plan takes, as a whole and layer by layer.
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "cli/engine_source.h"

typedef struct args {
  cli_engine_args_t engine;
  const char* json;
  opt_list_t inputs;
  int64_t threads, memory_limit;
  double seconds, warm_up;
  bool latencies, layers;
} args_t;

typedef struct job {
  assay_samples_t samples;
  assay_engine_t* engine;
  const assay_model_t* model;
  assay_executor_t* executor;
  assay_tensor_t** inputs;  // packed, by input of the graph
  size_t n_inputs;
  double* milliseconds;  // of each run
  size_t n_runs, cap_runs;
  double* layer_seconds;  // summed over the runs
} job_t;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void job_deinit(job_t* j) {
  for (size_t i = 0; i < j->n_inputs; i++) assay_tensor_release(j->inputs[i]);
  assay_free(j->inputs);
  assay_executor_destroy(j->executor);
  assay_engine_release(j->engine);
  assay_samples_deinit(&j->samples);
  assay_free(j->milliseconds);
  assay_free(j->layer_seconds);
}

// Inputs as a caller hands them over: packed, in the model's types.
static assay_status_t pack_inputs(job_t* j) {
  assay_tensor_t* const* at = assay_samples_get(&j->samples, 0);
  const size_t n = j->model->graph->n_inputs;
  ASSAY_TRY(assay_new_array(n, sizeof *j->inputs, &j->inputs));
  j->n_inputs = n;
  for (size_t i = 0; i < n; i++) {
    if (!at[i]) continue;
    const bool plain = at[i]->kind != ASSAY_KIND_TENSOR || at[i]->store == ASSAY_STORE_STR ||
                       at[i]->store == ASSAY_STORE_PACKED;
    if (plain)
      j->inputs[i] = assay_tensor_retain(at[i]);
    else
      ASSAY_TRY(assay_tensor_pack(at[i], &j->inputs[i]));
  }
  return NULL;
}

// ---- measuring
// -----------------------------------------------------------------------------------

static assay_status_t run_once(job_t* j, bool by_layer) {
  const assay_graph_t* g = assay_executor_graph(j->executor);
  assay_executor_reset(j->executor);
  for (size_t i = 0; i < j->n_inputs; i++)
    if (j->inputs[i]) ASSAY_TRY(assay_executor_set(j->executor, g->inputs[i], j->inputs[i]));
  if (!by_layer) return assay_executor_run(j->executor);
  for (size_t i = 0; i < assay_executor_n_steps(j->executor); i++) {
    const double start = now();
    ASSAY_TRY(assay_executor_step(j->executor, i));
    j->layer_seconds[i] += now() - start;
  }
  return NULL;
}

static assay_status_t measure(const args_t* a, job_t* j) {
  const double warm = now() + a->warm_up;
  do ASSAY_TRY(run_once(j, false));
  while (now() < warm);
  const double end = now() + a->seconds;
  while (j->n_runs < 3 || now() < end) {
    ASSAY_TRY(assay_grow(&j->milliseconds, &j->cap_runs, j->n_runs + 1, sizeof *j->milliseconds));
    const double start = now();
    ASSAY_TRY(run_once(j, a->layers));
    j->milliseconds[j->n_runs++] = 1e3 * (now() - start);
  }
  return NULL;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// ---- telling
// -------------------------------------------------------------------------------------

typedef struct row {
  const assay_layer_t* layer;
  const char* tactic;
  double milliseconds;
} row_t;

static int slowest_first(const void* a, const void* b) {
  return -ascending(&((const row_t*)a)->milliseconds, &((const row_t*)b)->milliseconds);
}

static assay_status_t print_layers(const job_t* j) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(j->engine));
  row_t* rows = NULL;
  double total = 0;
  ASSAY_TRY(assay_new_array(layers->n_layers, sizeof *rows, &rows));
  for (size_t i = 0; i < layers->n_layers; i++) {
    rows[i] = (row_t){&layers->layers[i], assay_executor_tactic(j->executor, i),
                      1e3 * j->layer_seconds[i] / (double)j->n_runs};
    total += rows[i].milliseconds;
  }
  if (layers->n_layers) qsort(rows, layers->n_layers, sizeof *rows, slowest_first);
  printf("\n%10s  %5s  %-16s %-20s %s\n", "ms", "share", "tactic", "operator", "layer");
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_layer_t* l = rows[i].layer;
    printf("%10.4f  %4.1f%%  %-16s %-20s %s\n", rows[i].milliseconds,
           100 * rows[i].milliseconds / fmax(total, 1e-300), rows[i].tactic, l->nodes[0]->op_type,
           l->name);
  }
  assay_free(rows);
  return NULL;
}

static double percentile(const job_t* j, double p) {
  const double at = p * (double)(j->n_runs - 1);
  return j->milliseconds[(size_t)(at + 0.5)];
}

static assay_status_t tell(const args_t* a, job_t* j) {
  if (a->latencies) {
    for (size_t i = 0; i < j->n_runs; i++) printf("%.6f\n", j->milliseconds[i]);
    return NULL;
  }
  double sum = 0;
  for (size_t i = 0; i < j->n_runs; i++) sum += j->milliseconds[i];
  qsort(j->milliseconds, j->n_runs, sizeof *j->milliseconds, ascending);
  const double mean = sum / (double)j->n_runs;
  printf("latency    median %.3f ms, mean %.3f, 90%% %.3f, 99%% %.3f, fastest %.3f, slowest %.3f\n",
         percentile(j, 0.5), mean, percentile(j, 0.9), percentile(j, 0.99), percentile(j, 0),
         percentile(j, 1));
  printf("throughput %.1f runs/s, %zu runs, %d threads\n", 1e3 / mean, j->n_runs,
         omp_get_max_threads());
  if (a->json) {
    json_t* o =
        json_pack("{s:s, s:s, s:i, s:f, s:f, s:f, s:f}", "schema", "assay.bench/1", "model",
                  a->engine.model, "runs", (int)j->n_runs, "median_ms", percentile(j, 0.5),
                  "mean_ms", mean, "p90_ms", percentile(j, 0.9), "p99_ms", percentile(j, 0.99));
    if (!o) return assay_status_no_memory();
    assay_status_t st = assay_cli_write_json(a->json, o);
    json_decref(o);
    if (st) return st;
  }
  return a->layers ? print_layers(j) : NULL;
}

static int run_job(const args_t* a, job_t* j) {
  int code;
  assay_status_t st = cli_engine_open(&a->engine, NULL, &j->engine, &code);
  if (st) return assay_cli_fail(st, code);
  j->model = assay_plan_layers(assay_engine_plan(j->engine))->model;
  st = assay_executor_run_engine(j->engine, NULL, &j->executor);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  // Random inputs do here: only time is measured.
  cli_shapes_t shapes = {0};
  st = cli_shapes_parse(&a->engine.shapes, &shapes);
  if (!st && a->inputs.n)
    st = cli_samples(&a->inputs, j->model, (uint64_t)a->engine.seed, &j->samples);
  else if (!st)
    st = cli_engine_samples(j->engine, &shapes, (uint64_t)a->engine.seed, &j->samples);
  cli_shapes_free(&shapes);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = pack_inputs(j);
  if (!st)
    st = assay_new_array(assay_executor_n_steps(j->executor), sizeof *j->layer_seconds,
                         &j->layer_seconds);
  if (!st) st = measure(a, j);
  if (!st) st = tell(a, j);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

static int run(void* p) {
  args_t* a = p;
  job_t j = {0};
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  if (a->engine.batch < 0 || a->threads < 0 || a->seconds < 0 || a->warm_up < 0)
    return assay_cli_usage("bench", "--batch, --threads, --seconds and --warm-up are not negative");
  if (a->seconds == 0) a->seconds = 3;
  if (a->warm_up == 0) a->warm_up = 0.2;
  if (a->threads) omp_set_num_threads((int)(a->threads < 1024 ? a->threads : 1024));
  const int code = run_job(a, &j);
  job_deinit(&j);
  return code;
}

static const opt_t options[] = {
    CLI_ENGINE_OPTIONS,
    {"--inputs", 'i', OPT_LIST, offsetof(args_t, inputs), "FILE",
     "arrays for the inputs: .npz, or NAME=FILE.npy or .pb (default: random)", false},
    {"--seconds", 0, OPT_FLOAT, offsetof(args_t, seconds), "S", "how long to measure (default: 3)",
     false},
    {"--warm-up", 0, OPT_FLOAT, offsetof(args_t, warm_up), "S",
     "how long to run before (default: 0.2)", false},
    {"--threads", 0, OPT_INT, offsetof(args_t, threads), "T", "threads (default: all cores)",
     false},
    {"--latencies", 0, OPT_FLAG, offsetof(args_t, latencies), NULL,
     "print nothing but each run's latency in ms, one a line", false},
    {"--layers", 0, OPT_FLAG, offsetof(args_t, layers), NULL,
     "time each layer, too, and print them, slowest first", false},
    CLI_MEMORY_OPTION,
    {"--json", 0, OPT_STRING, offsetof(args_t, json), "FILE", "the figures as JSON; - is stdout",
     false},
    {0}};

const verb_t assay_verb_bench = {
    .name = "bench",
    .summary = "measure how fast a model runs",
    .usage = "MODEL|PLAN [options]",
    .examples =
        "  assay bench model.onnx --precision bf16 --batch 8\n"
        "  assay bench model.onnx --layers | head -n 20\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
