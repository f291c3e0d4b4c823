// An instance of a model: how requests are grouped, run and answered.
#include "instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A run that takes at least this long is looked after: it ends when its clients have gone. Shorter
// ones stay in the server's thread, which saves waking another.
enum { LONG_RUN_NS = 20000000, LOOK_MS = 5 };

// ---- life
// ---------------------------------------------------------------------------------------

// The number in "cuda:1"; -1: it is the host, or nobody knows ("auto").
static int device_of(const char* target) {
  int device = -1;
  return sscanf(target, "cuda:%d", &device) == 1 ? device : -1;
}

static void log_opened(const instance_t* instance, const char* target) {
  const char* name = "";
  char threads[32] = "all cores";
  const int n = instance->model->settings.threads;
  if (n > 0) snprintf(threads, sizeof threads, "%d threads", n);
  error_log(TRITONBACKEND_ModelInstanceName(instance->server, &name), "naming an instance");
  log_line(TRITONSERVER_LOG_INFO, "instance '%s' of %s: target %s, %s", name, instance->model->path,
           target, threads);
}

static TRITONSERVER_Error* open_context(instance_t* instance) {
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device = 0;
  char target[MAX_TARGET] = "";
  assay_engine_t* engine = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceKind(instance->server, &kind);
  if (!error) error = TRITONBACKEND_ModelInstanceDeviceId(instance->server, &device);
  if (!error) error = model_target(instance->model, kind, device, target);
  if (!error) error = model_get_engine(instance->model, target, &engine);
  if (error) return error;
  assay_context_options_t options = ASSAY_CONTEXT_OPTIONS_INIT;
  options.threads = instance->model->settings.threads;
  instance->device = device_of(target);
  error = error_of_status(assay_context_create(engine, &options, &instance->context),
                          "%s, target %s: ", instance->model->path, target);
  if (!error) log_opened(instance, target);
  return error;
}

TRITONSERVER_Error* instance_create(TRITONBACKEND_ModelInstance* server, model_t* model,
                                    instance_t** out) {
  instance_t* instance = calloc(1, sizeof *instance);
  if (!instance) return error_no_memory();
  instance->server = server;
  instance->model = model;
  instance->gathered = calloc(model->io.n_inputs + 1, sizeof *instance->gathered);
  instance->results = calloc(model->io.n_outputs + 1, sizeof *instance->results);
  TRITONSERVER_Error* error =
      instance->gathered && instance->results ? open_context(instance) : error_no_memory();
  if (error) return instance_destroy(instance), error;
  *out = instance;
  return NULL;
}

static void free_jobs(instance_t* instance) {
  free(instance->jobs);
  free(instance->group);
  free(instance->inputs);
  free(instance->wanted);
  instance->capacity = 0;
  instance->jobs = NULL;
  instance->group = NULL;
  instance->inputs = NULL;
  instance->wanted = NULL;
}

void instance_destroy(instance_t* instance) {
  if (!instance) return;
  assay_context_destroy(instance->context);
  for (size_t i = 0; instance->gathered && i < instance->model->io.n_inputs; i++)
    buffer_deinit(&instance->gathered[i]);
  for (size_t o = 0; instance->results && o < instance->model->io.n_outputs; o++)
    buffer_deinit(&instance->results[o].bytes);
  free(instance->gathered);
  free(instance->results);
  buffer_deinit(&instance->packed);
  free_jobs(instance);
  free(instance);
}

static TRITONSERVER_Error* reserve_jobs(instance_t* instance, size_t n) {
  const io_t* io = &instance->model->io;
  if (n <= instance->capacity) return NULL;
  free_jobs(instance);
  instance->jobs = calloc(n, sizeof *instance->jobs);
  instance->group = calloc(n, sizeof *instance->group);
  instance->inputs = calloc(n * io->n_inputs + 1, sizeof *instance->inputs);
  instance->wanted = calloc(n * io->n_outputs + 1, sizeof *instance->wanted);
  if (!instance->jobs || !instance->group || !instance->inputs || !instance->wanted)
    return free_jobs(instance), error_no_memory();
  instance->capacity = n;
  for (size_t k = 0; k < n; k++) {
    instance->jobs[k].inputs = instance->inputs + k * io->n_inputs;
    instance->jobs[k].wanted = instance->wanted + k * io->n_outputs;
  }
  return NULL;
}

// ---- runs
// ---------------------------------------------------------------------------------------

// Whether the run has nobody left who waits for it.
static bool is_abandoned(job_t* const* group, size_t n) {
  bool waits = false;
  for (size_t k = 0; k < n; k++) {
    if (!group[k]->error) job_look_for_cancel(group[k]);
    waits = waits || !group[k]->error;
  }
  return !waits;
}

// In a thread of the context, while this one looks for cancels.
static assay_status_t run_watched(const instance_t* instance, job_t* const* group, size_t n) {
  assay_status_t status = assay_context_start(instance->context);
  if (status) return status;
  while (!assay_context_wait_for(instance->context, LOOK_MS))
    if (is_abandoned(group, n)) assay_context_cancel(instance->context);
  return assay_context_wait(instance->context);
}

static TRITONSERVER_Error* run(instance_t* instance, job_t* const* group, size_t n) {
  const uint64_t start = job_now();
  assay_status_t status = instance->run_ns < LONG_RUN_NS ? assay_context_run(instance->context)
                                                         : run_watched(instance, group, n);
  instance->run_ns = job_now() - start;
  return error_of_status(status, "model '%s': ", instance->model->name);
}

static size_t drop_closed(instance_t* instance, job_t** group, size_t n) {
  size_t left = 0;
  for (size_t k = 0; k < n; k++)
    if (job_is_open(group[k]))
      group[left++] = group[k];
    else if (group[k]->request)
      job_close(group[k], instance->server);
  return left;
}

static void report_batch(const instance_t* instance, int64_t rows, const job_times_t* t) {
  error_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance->server, (uint64_t)rows,
                                                             t->exec_start, t->compute_start,
                                                             t->compute_end, job_now()),
            "reporting statistics of a batch");
}

static void answer(instance_t* instance, job_t* const* group, size_t n, int64_t rows,
                   const job_times_t* times) {
  int64_t first = 0;
  instance_take_results(instance);
  for (size_t k = 0; k < n; k++) {
    group[k]->times = *times;
    if (!group[k]->error)  // it may have been cancelled meanwhile
      job_fail(group[k], instance_scatter(instance, group[k], first, rows));
    first += group[k]->rows;
  }
  instance_drop_results(instance);
  report_batch(instance, rows, times);
}

// Runs a group as one batch and closes its jobs. If that fails, each of them is run on its own: one
// bad index fails its own request only.
static void run_group(instance_t* instance, job_t** group, size_t n) {
  job_times_t times = {.exec_start = job_now()};
  int64_t rows = 0;
  for (size_t k = 0; k < n; k++) job_look_for_cancel(group[k]);
  n = drop_closed(instance, group, n);
  for (size_t k = 0; k < n; k++) rows += group[k]->rows;
  if (n == 0) return;
  TRITONSERVER_Error* error = instance_gather(instance, group, n, rows);
  times.compute_start = job_now();
  if (!error) error = run(instance, group, n);
  times.compute_end = job_now();
  if (error && n > 1) {
    TRITONSERVER_ErrorDelete(error);
    for (size_t k = 0; k < n; k++) run_group(instance, &group[k], 1);
    return;
  }
  if (error)
    job_fail(group[0], error);
  else
    answer(instance, group, n, rows, &times);
  for (size_t k = 0; k < n; k++) job_close(group[k], instance->server);
}

// ---- groups
// -------------------------------------------------------------------------------------

// Whether two requests differ in their batch only.
static bool are_alike(const job_t* a, const job_t* b, size_t n_inputs) {
  for (size_t i = 0; i < n_inputs; i++) {
    const job_input_t *x = &a->inputs[i], *y = &b->inputs[i];
    if (!x->input != !y->input || x->rank != y->rank) return false;
    for (int d = 1; d < x->rank; d++)
      if (x->dims[d] != y->dims[d]) return false;
  }
  return true;
}

// An optional of a batch is an input of the whole run: such requests are not joined.
static bool can_join(const model_t* model) {
  for (size_t i = 0; i < model->io.n_inputs; i++)
    if (model->io.inputs[i].optional) return false;
  return model->max_batch > 0;
}

// The group that begins with job `first`: it, and those after it that fit into its batch.
static size_t find_group(const instance_t* instance, size_t first, size_t n) {
  const model_t* model = instance->model;
  job_t* jobs = instance->jobs;
  int64_t rows = jobs[first].rows;
  size_t found = 0;
  instance->group[found++] = &jobs[first];
  for (size_t k = first + 1; can_join(model) && k < n; k++) {
    if (!job_is_open(&jobs[k]) || rows + jobs[k].rows > model->max_batch ||
        !are_alike(&jobs[first], &jobs[k], model->io.n_inputs))
      continue;
    rows += jobs[k].rows;
    instance->group[found++] = &jobs[k];
  }
  return found;
}

TRITONSERVER_Error* instance_execute(instance_t* instance, TRITONBACKEND_Request** requests,
                                     uint32_t n) {
  TRITONSERVER_Error* error = reserve_jobs(instance, n);
  if (error) return error;
  for (uint32_t k = 0; k < n; k++)
    job_open(&instance->jobs[k], requests[k], &instance->model->io, instance->model->max_batch);
  for (uint32_t k = 0; k < n; k++) {
    job_t* job = &instance->jobs[k];
    if (job_is_open(job))
      run_group(instance, instance->group, find_group(instance, k, n));
    else if (job->request)
      job_close(job, instance->server);
  }
  return NULL;
}
