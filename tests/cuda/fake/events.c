// Events, and graphs of what was captured.
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

cuda_result_t cuEventCreate(cuda_event_t* out, unsigned flags) {
  CALLED(true);
  if (flags) return INVALID_VALUE;  // one without times
  *out = made(sizeof **out);
  return *out ? 0 : CUDA_OUT_OF_MEMORY;
}

static uint64_t nanoseconds_of(const struct timespec* t) {
  return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

// Locked: until `moment` of the event.
static void wait_until(cuda_event_t e, uint64_t moment) {
  while (e->reached < moment) pthread_cond_wait(&fake.changed, &fake.lock);
}

// Streams that have yet to come to it end first.
cuda_result_t cuEventDestroy(cuda_event_t event) {
  release_streams();
  pthread_mutex_lock(&fake.lock);
  while (event->users) pthread_cond_wait(&fake.changed, &fake.lock);
  pthread_mutex_unlock(&fake.lock);
  gone(event);
  CALLED(true);
  return 0;
}

static cuda_result_t put_event(cuda_stream_t stream, cuda_event_t e, work_kind_t kind) {
  pthread_mutex_lock(&fake.lock);
  if (kind == RECORD) e->recorded++;
  const uint64_t moment = e->recorded;
  e->users++;
  pthread_mutex_unlock(&fake.lock);
  const cuda_result_t r = put(stream, &(work_t){.kind = kind, .event = e, .moment = moment});
  if (r) {
    pthread_mutex_lock(&fake.lock);
    if (kind == RECORD) e->reached = moment;
    e->users--;
    pthread_mutex_unlock(&fake.lock);
  }
  return r;
}

cuda_result_t cuEventRecord(cuda_event_t event, cuda_stream_t stream) {
  CALLED(true);
  if (is_capturing(stream)) return 0;  // of no use to what is captured here
  return put_event(stream, event, RECORD);
}

cuda_result_t cuStreamWaitEvent(cuda_stream_t stream, cuda_event_t event, unsigned flags) {
  (void)flags;
  CALLED(true);
  if (!event) return INVALID_VALUE;
  if (is_capturing(stream)) return CAPTURE_UNSUPPORTED;
  return put_event(stream, event, AWAIT);
}

cuda_result_t cuEventSynchronize(cuda_event_t event) {
  CALLED(true);
  release_streams();
  pthread_mutex_lock(&fake.lock);
  wait_until(event, event->recorded);
  if (fake.state.times.kernel) host_waits(nanoseconds_of(&event->at));
  const int r = fake.state.broken;
  pthread_mutex_unlock(&fake.lock);
  return r;
}

cuda_result_t cuEventElapsedTime(float* out_milliseconds, cuda_event_t from, cuda_event_t to) {
  CALLED(true);
  cuda_result_t r = 0;
  pthread_mutex_lock(&fake.lock);
  if (!from->recorded || !to->recorded)
    r = INVALID_VALUE;
  else if (from->reached < from->recorded || to->reached < to->recorded)
    r = NOT_READY;
  else
    *out_milliseconds = (float)(1e3 * (double)(to->at.tv_sec - from->at.tv_sec) +
                                1e-6 * (double)(to->at.tv_nsec - from->at.tv_nsec));
  pthread_mutex_unlock(&fake.lock);
  return r;
}

// ---- graphs -------------------------------------------------------------------------------------

static void use_graph(cuda_graph_t g) {
  pthread_mutex_lock(&fake.lock);
  g->users++;
  pthread_mutex_unlock(&fake.lock);
}

void release_graph(cuda_graph_t g) {
  if (!g) return;
  pthread_mutex_lock(&fake.lock);
  const bool is_last = --g->users == 0;
  pthread_mutex_unlock(&fake.lock);
  if (!is_last) return;
  for (work_t *w = g->first, *next; w; w = next) {
    next = w->next;
    work_deinit(w);
    free(w);
  }
  gone(g);
}

// For whoever asks what a run launches: ASSAY_FAKE_LAUNCHES names a file for the last graph's
// kernels.
static void keep_launches(const struct cuda_graph* g) {
  const char* path = getenv("ASSAY_FAKE_LAUNCHES");
  FILE* f = path ? fopen(path, "w") : NULL;
  if (!f) return;
  for (const work_t* w = g->first; w; w = w->next)
    if (w->launch)
      fprintf(f, "%s %lld blocks of %d threads, %d bytes, clusters of %d\n",
              w->launch->kernel->name, (long long)w->launch->blocks, w->launch->threads,
              w->launch->dynamic_bytes, w->launch->cluster);
  fclose(f);
}

cuda_result_t cuGraphInstantiateWithFlags(cuda_exec_t* out, cuda_graph_t graph,
                                          unsigned long long flags) {
  (void)flags;
  CALLED(true);
  *out = made(sizeof **out);
  if (!*out) return CUDA_OUT_OF_MEMORY;
  use_graph(graph);
  keep_launches(graph);
  (*out)->graph = graph;
  return 0;
}

cuda_result_t cuGraphUpload(cuda_exec_t exec, cuda_stream_t stream) {
  CALLED(true);
  return exec && !is_capturing(stream) ? 0 : INVALID_VALUE;
}

cuda_result_t cuGraphLaunch(cuda_exec_t exec, cuda_stream_t stream) {
  CALLED(true);
  if (is_capturing(stream)) return CAPTURE_UNSUPPORTED;
  cuda_result_t r = 0;
  host_takes(fake.state.times.launching);
  for (const work_t* w = exec->graph->first; w && !r; w = w->next) {
    work_t once = *w;
    once.in_graph = true;
    if (w->launch) use_launch(w->launch);
    r = put(stream, &once);
  }
  return r;
}

cuda_result_t cuGraphExecDestroy(cuda_exec_t exec) {
  release_graph(exec->graph);
  gone(exec);
  CALLED(true);
  return 0;
}

cuda_result_t cuGraphDestroy(cuda_graph_t graph) {
  release_graph(graph);
  CALLED(true);
  return 0;
}
