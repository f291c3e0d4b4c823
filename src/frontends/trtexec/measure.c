// Runs, and when each began and ended.
#include "frontends/trtexec/measure.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "frontends/trtexec/log.h"

// A stream: a context, and what it has measured.
typedef struct lane {
  const struct session* session;
  assay_context_t* context;
  trt_run_t* runs;
  size_t n_runs, cap_runs, n_warm_up;
  double warm_up_ms;
  float* layer_ms;
  size_t cap_layer_ms;
  assay_status_t status;
} lane_t;

typedef struct session {
  double start, warm_up, duration, sleep, idle;
  size_t iterations, n_layers;
  bool profile;
  bool transfers;  // copies count to the runs' times
  int threads;
  double memory;  // MiB that report_memory has told
  lane_t* lanes;
  size_t n_lanes;
} session_t;

static volatile sig_atomic_t interrupted;
static void interrupt(int signal) {
  (void)signal;
  interrupted = 1;
}

void trt_trace_deinit(trt_trace_t* t) {
  assay_free(t->runs);
  assay_free(t->layer_ms);
  assay_context_destroy(t->context);
  *t = (trt_trace_t){0};
}

static void pause_ms(double ms) {
  const struct timespec t = {(time_t)(ms / 1e3), (long)(1e6 * fmod(ms, 1e3))};
  if (ms > 0) nanosleep(&t, NULL);
}

// ---- one stream ---------------------------------------------------------------------------------

static assay_status_t keep_layers(lane_t* l) {
  const size_t n = l->session->n_layers;
  ASSAY_TRY(assay_grow(&l->layer_ms, &l->cap_layer_ms, (l->n_runs + 1) * n, sizeof *l->layer_ms));
  for (size_t i = 0; i < n; i++) {
    assay_layer_run_t ran = ASSAY_LAYER_RUN_INIT;
    ASSAY_TRY(assay_context_layer(l->context, i, &ran));
    l->layer_ms[l->n_runs * n + i] = (float)(1e-6 * (double)ran.duration_ns);
  }
  return NULL;
}

// What a device's events say of the run. Its computing begins when what it reads is there.
static assay_status_t take_parts(const lane_t* l, trt_run_t* r, double end) {
  assay_run_times_t t = ASSAY_RUN_TIMES_INIT;
  ASSAY_TRY(assay_context_times(l->context, &t));
  r->enqueue_ms = 1e-3 * t.enqueue;
  r->h2d_ms = l->session->transfers ? 1e-3 * t.upload : 0;
  r->d2h_ms = l->session->transfers ? 1e-3 * t.download : 0;
  r->end_compute = end - 1e-3 * t.download;
  // On a CPU the whole run is.
  if (r->enqueue_ms > 0) r->start_compute = r->end_compute - 1e-3 * t.compute;
  r->compute_ms = r->end_compute - r->start_compute;
  return NULL;
}

static assay_status_t run_once(lane_t* l, bool measured) {
  const session_t* s = l->session;
  trt_run_t r = {.enqueue = trt_now_ms() - s->start};
  pause_ms(s->sleep);
  r.start_compute = trt_now_ms() - s->start;
  ASSAY_TRY(assay_context_run(l->context));
  const double end = trt_now_ms() - s->start;
  if (!measured) {
    l->n_warm_up++;
    l->warm_up_ms = end;
    return NULL;
  }
  ASSAY_TRY(take_parts(l, &r, end));
  ASSAY_TRY(assay_grow(&l->runs, &l->cap_runs, l->n_runs + 1, sizeof *l->runs));
  if (s->profile) ASSAY_TRY(keep_layers(l));
  l->runs[l->n_runs++] = r;
  return NULL;
}

// Whether enough has been measured: runs, and the time from the first one's start to the last one's
// end.
static bool is_enough(const lane_t* l) {
  const session_t* s = l->session;
  return l->n_runs >= s->iterations && s->duration >= 0 &&
         l->runs[l->n_runs - 1].end_compute - l->runs[0].start_compute >= s->duration;
}

static assay_status_t run_all(lane_t* l) {
  const session_t* s = l->session;
  while (!interrupted && !(l->n_runs && is_enough(l))) {
    if (l->n_runs || l->n_warm_up) pause_ms(s->idle);
    ASSAY_TRY(run_once(l, trt_now_ms() - s->start >= s->warm_up));
  }
  return NULL;
}

static void* lane_thread(void* p) {
  lane_t* l = p;
  omp_set_num_threads(l->session->threads);
  l->status = run_all(l);
  return NULL;
}

// What contexts have taken for values between layers and for scratch.
static void report_memory(const trt_job_t* j, session_t* s, const char* phase) {
  size_t bytes = 0;
  if (!trt_given(j->options, TRT_FLAG_allocationStrategy)) return;
  for (size_t i = 0; i < s->n_lanes; i++) bytes += assay_context_memory(s->lanes[i].context);
  const double now = (double)bytes * 0x1p-20;
  trt_info("[MemUsageChange] Allocation by %s: +%.4g MiB, now: %.4g MiB (--allocationStrategy=%s)",
           phase, now - s->memory, now, trt_text(j->options, TRT_FLAG_allocationStrategy));
  s->memory = now;
}

// ---- all streams --------------------------------------------------------------------------------

static assay_status_t open_lanes(const trt_job_t* j, const trt_inputs_t* in, session_t* s,
                                 size_t n) {
  assay_context_options_t options = ASSAY_CONTEXT_OPTIONS_INIT;
  options.threads = s->threads;
  options.profile = s->profile;
  options.times = true;
  const char* when = trt_text(j->options, TRT_FLAG_allocationStrategy);
  options.allocation = strcmp(when, "static") == 0    ? ASSAY_ALLOCATE_STATIC
                       : strcmp(when, "profile") == 0 ? ASSAY_ALLOCATE_PROFILE
                                                      : ASSAY_ALLOCATE_RUNTIME;
  options.allocation_profile = (int)trt_number(j->options, TRT_FLAG_useProfile);
  ASSAY_TRY(assay_new_array(n, sizeof *s->lanes, &s->lanes));
  for (; s->n_lanes < n; s->n_lanes++) {
    lane_t* l = &s->lanes[s->n_lanes];
    l->session = s;
    ASSAY_TRY(assay_context_create(j->engine, &options, &l->context));
    for (size_t i = 0; i < in->n; i++) {
      assay_status_t st = assay_context_set_input(l->context, i, in->tensors[i]);
      if (st) return s->n_lanes++, st;
    }
  }
  s->n_layers = assay_context_layer_count(s->lanes[0].context);
  report_memory(j, s, "execution context creation");
  return NULL;
}

static assay_status_t run_lanes(session_t* s) {
  pthread_t* threads = NULL;
  assay_status_t st = NULL;
  size_t n = 1;
  ASSAY_TRY(assay_new_array(s->n_lanes, sizeof *threads, &threads));
  s->start = trt_now_ms();
  for (; !st && n < s->n_lanes; n++)
    if (pthread_create(&threads[n], NULL, lane_thread, &s->lanes[n]) != 0)
      st = ASSAY_ERROR(ASSAY_DEVICE, "the system has no threads for %zu streams", s->n_lanes);
  if (st) n--;
  if (!st) lane_thread(&s->lanes[0]);
  for (size_t i = 1; i < n; i++) pthread_join(threads[i], NULL);
  assay_free(threads);
  for (size_t i = 0; i < s->n_lanes; i++) {
    st = assay_status_join(st, s->lanes[i].status);
    s->lanes[i].status = NULL;
  }
  return st;
}

static int by_start(const void* a, const void* b) {
  const double x = ((const trt_run_t*)a)->start_compute, y = ((const trt_run_t*)b)->start_compute;
  return (x > y) - (x < y);
}

static assay_status_t gather(session_t* s, trt_trace_t* out) {
  size_t n = 0;
  for (size_t i = 0; i < s->n_lanes; i++) n += s->lanes[i].n_runs;
  out->n_layers = s->n_layers;
  ASSAY_TRY(assay_new_array(n, sizeof *out->runs, &out->runs));
  if (s->profile)
    ASSAY_TRY(assay_new_array(n * s->n_layers, sizeof *out->layer_ms, &out->layer_ms));
  for (size_t i = 0; i < s->n_lanes; i++) {
    const lane_t* l = &s->lanes[i];
    if (!l->n_runs) continue;
    memcpy(out->runs + out->n_runs, l->runs, l->n_runs * sizeof *l->runs);
    if (s->profile)
      memcpy(out->layer_ms + out->n_runs * s->n_layers, l->layer_ms,
             l->n_runs * s->n_layers * sizeof *l->layer_ms);
    out->n_runs += l->n_runs;
  }
  for (size_t i = 0; i < s->n_lanes; i++) {
    out->n_warm_up += s->lanes[i].n_warm_up;
    out->warm_up_ms = fmax(out->warm_up_ms, s->lanes[i].warm_up_ms);
  }
  out->n_profiled = s->profile ? out->n_runs : 0;
  if (out->n_runs) qsort(out->runs, out->n_runs, sizeof *out->runs, by_start);
  out->context = s->lanes[0].context;
  s->lanes[0].context = NULL;
  return NULL;
}

static void session_deinit(session_t* s) {
  for (size_t i = 0; i < s->n_lanes; i++) {
    assay_context_destroy(s->lanes[i].context);
    assay_free(s->lanes[i].runs);
    assay_free(s->lanes[i].layer_ms);
    assay_status_free(s->lanes[i].status);
  }
  assay_free(s->lanes);
}

assay_status_t trt_measure(const trt_job_t* j, const trt_inputs_t* in, bool profile,
                           trt_trace_t* out) {
  const trt_options_t* o = j->options;
  const size_t n = (size_t)trt_number(o, TRT_FLAG_infStreams);
  const int cores = omp_get_max_threads();
  session_t s = {.warm_up = trt_number(o, TRT_FLAG_warmUp),
                 .duration = 1e3 * trt_number(o, TRT_FLAG_duration),
                 .sleep = trt_number(o, TRT_FLAG_sleepTime),
                 .idle = trt_number(o, TRT_FLAG_idleTime),
                 .iterations = (size_t)trt_number(o, TRT_FLAG_iterations),
                 .profile = profile,
                 .transfers = !trt_given(o, TRT_FLAG_noDataTransfers),
                 .threads = cores / (int)n > 0 ? cores / (int)n : 1};
  const struct sigaction handler = {.sa_handler = interrupt};
  struct sigaction old;
  const bool endless = s.duration < 0;
  interrupted = 0;
  if (s.iterations < 1) s.iterations = 1;
  if (endless) sigaction(SIGINT, &handler, &old);
  assay_status_t st = open_lanes(j, in, &s, n);
  if (!st) st = run_lanes(&s);
  if (!st) report_memory(j, &s, "the runs");
  if (endless) sigaction(SIGINT, &old, NULL);
  if (!st) st = gather(&s, out);
  out->profile = (int)trt_number(o, TRT_FLAG_useProfile);
  session_deinit(&s);
  return st;
}
