// How long each unit takes in each format, and each cast between them.
#include "tune/times.h"

#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "diagnose/search.h"
#include "runtime/executor.h"

enum { MIN_RUNS = 5, MAX_RUNS = 200 };

typedef struct job {
  const assay_tune_timing_t* t;
  assay_tensor_t** inputs;  // packed, as a caller hands them over
  size_t n_inputs;
  double* seconds;  // by step: the fastest
  double total;     // of a run that is not timed step by step: the fastest
} job_t;

static assay_status_t pack_inputs(job_t* j, const assay_graph_t* g) {
  j->n_inputs = g->n_inputs;
  ASSAY_TRY(assay_new_array(j->n_inputs, sizeof *j->inputs, &j->inputs));
  for (size_t i = 0; i < j->n_inputs; i++) {
    assay_tensor_t* t = j->t->inputs[i];
    if (!t) continue;
    const bool canonical = t->kind == ASSAY_KIND_TENSOR && t->store != ASSAY_STORE_STR &&
                           t->store != ASSAY_STORE_PACKED;
    if (canonical)
      ASSAY_TRY(assay_tensor_pack(t, &j->inputs[i]));
    else
      j->inputs[i] = assay_tensor_retain(t);
  }
  return NULL;
}

static assay_status_t run_once(const job_t* j, assay_executor_t* x, bool stepwise) {
  assay_executor_stepwise(x, stepwise);
  assay_executor_reset(x);
  ASSAY_TRY(assay_executor_set_inputs(x, j->inputs));
  if (!stepwise) return assay_executor_run(x);
  for (size_t s = 0; s < assay_executor_n_steps(x); s++) {
    const double start = assay_clock_seconds();
    ASSAY_TRY(assay_executor_step(x, s));
    j->seconds[s] = fmin(j->seconds[s], assay_clock_seconds() - start);
  }
  return NULL;
}

// Kernels are made, and timed, in a run.
static assay_status_t run_first(void* user, assay_engine_t* engine) {
  assay_executor_t* x = NULL;
  ASSAY_TRY(assay_executor_run_engine(engine, NULL, &x));
  assay_status_t st = run_once(user, x, false);
  assay_executor_destroy(x);
  return st;
}

static assay_status_t time_steps(job_t* j, assay_engine_t* engine) {
  assay_executor_t* x = NULL;
  ASSAY_TRY(assay_executor_run_engine(engine, NULL, &x));
  const size_t n = assay_executor_n_steps(x);
  assay_status_t st = assay_new_array(n, sizeof *j->seconds, &j->seconds);
  for (size_t s = 0; !st && s < n; s++) j->seconds[s] = (double)INFINITY;
  j->total = (double)INFINITY;
  const double end = assay_clock_seconds() + j->t->seconds;
  for (int k = 0; !st && k < MAX_RUNS && (k < MIN_RUNS || assay_clock_seconds() < end); k++) {
    const double start = assay_clock_seconds();
    st = run_once(j, x, false);
    if (k) j->total = fmin(j->total, assay_clock_seconds() - start);
    if (!st) st = run_once(j, x, true);
  }
  assay_executor_destroy(x);
  return st;
}

// ---- from steps to units ------------------------------------------------------------------------

// By node of the model as it was given: rules may cut layers apart.
static void spread(const assay_plan_t* plan, const double* seconds, double* of_node) {
  const assay_layers_t* l = assay_plan_layers(plan);
  for (size_t i = 0; i < l->n_layers; i++) {
    size_t n = 0;
    for (size_t k = 0; k < l->layers[i].n_nodes; k++)
      n += assay_plan_origins(plan, &l->layers[i].nodes[k]).n;
    for (size_t k = 0; k < l->layers[i].n_nodes; k++) {
      assay_origins_t o = assay_plan_origins(plan, &l->layers[i].nodes[k]);
      for (size_t m = 0; m < o.n; m++) of_node[o.nodes[m]->id] += seconds[i] / (double)n;
    }
  }
}

static double collect(const assay_plan_t* units, size_t unit, double* of_node) {
  const assay_layer_t* l = &assay_plan_layers(units)->layers[unit];
  double sum = 0;
  for (size_t k = 0; k < l->n_nodes; k++) {
    assay_origins_t o = assay_plan_origins(units, &l->nodes[k]);
    for (size_t m = 0; m < o.n; m++) {
      sum += of_node[o.nodes[m]->id];
      of_node[o.nodes[m]->id] = 0;
    }
  }
  return sum;
}

static assay_status_t fill(const job_t* j, const assay_plan_t* units, const assay_plan_t* plan,
                           size_t format, assay_tune_layout_t* layout) {
  const size_t n = layout->problem.n_formats;
  double* of_node = NULL;
  if (assay_plan_layers(plan)->n_layers == layout->n_units) {
    for (size_t u = 0; u < layout->n_units; u++)
      layout->problem.time[u * n + format] = j->seconds[u];
    return NULL;
  }
  ASSAY_TRY(
      assay_new_array((size_t)assay_plan_source(plan)->n_node_ids, sizeof *of_node, &of_node));
  spread(plan, j->seconds, of_node);
  for (size_t u = 0; u < layout->n_units; u++)
    layout->problem.time[u * n + format] = collect(units, u, of_node);
  assay_free(of_node);
  return NULL;
}

static assay_status_t measure(job_t* j, const assay_plan_t* units, assay_engine_t* engine,
                              const assay_backend_options_t* known, size_t format,
                              assay_tune_layout_t* layout) {
  const assay_plan_t* plan = assay_engine_plan(engine);
  ASSAY_TRY(pack_inputs(j, assay_plan_layers(plan)->model->graph));
  if (j->t->backend->share) {
    ASSAY_TRY(run_first(j, engine));
    ASSAY_TRY(assay_engine_settle(engine, known, j->t->cache, run_first, j));
  }
  ASSAY_TRY(time_steps(j, engine));
  return fill(j, units, plan, format, layout);
}

assay_status_t assay_tune_times_measure(const assay_tune_timing_t* t, const assay_plan_t* units,
                                        assay_plan_t* take_plan, size_t format,
                                        assay_tune_layout_t* layout, double* out_total) {
  assay_backend_options_t known = {.measure = true};
  assay_mapping_t* cache = NULL;
  assay_engine_t* engine = NULL;
  job_t j = {.t = t};
  assay_status_t st = t->cache ? assay_timing_cache_read(t->cache, &cache) : NULL;
  if (st) return assay_plan_destroy(take_plan), st;
  if (cache) {
    known.timings = (const char*)assay_mapping_data(cache);
    known.timings_bytes = assay_mapping_size(cache);
  }
  st = assay_engine_create(take_plan, t->backend, &known, &engine);
  if (!st) st = measure(&j, units, engine, &known, format, layout);
  for (size_t i = 0; j.inputs && i < j.n_inputs; i++) assay_tensor_release(j.inputs[i]);
  assay_free(j.inputs);
  assay_free(j.seconds);
  assay_engine_release(engine);
  assay_mapping_release(cache);
  if (!st) *out_total = j.total;
  return st;
}
