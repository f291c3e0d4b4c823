// Streams: a thread each, which does what was put into it behind the caller's back. It begins late:
// what was put is held until the caller waits for something, or for a short time, or a random
// number says so.
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct cuda_stream {
  pthread_t thread;
  bool started, stops;
  work_t *first, **last;
  uint64_t queued, released, done;  // works so far
  uint64_t clock;                   // when what was done ends, as fake_times_t tells it
  cuda_graph_t capture;             // NULL: not captured
  cuda_stream_t next;
};

static cuda_stream_t all;  // under fake.lock

enum { HELD_NS = 2000000 };

// ---- what is done -------------------------------------------------------------------------------

void work_deinit(work_t* w) {
  if (w->owns_host) free(w->host);
  if (w->launch) release_launch(w->launch);
}

void host_takes(int nanoseconds) {
  pthread_mutex_lock(&fake.lock);
  fake.host += (uint64_t)nanoseconds;
  pthread_mutex_unlock(&fake.lock);
}

void host_waits(uint64_t until) {
  if (fake.host < until) fake.host = until;
}

// What waits for no host begins when what was before it ends.
static void pass(cuda_stream_t s, const work_t* w) {
  const fake_times_t* t = &fake.state.times;
  pthread_mutex_lock(&fake.lock);
  if (s->clock < w->ready) s->clock = w->ready;
  s->clock += (uint64_t)(w->kind == LAUNCH ? t->kernel : w->kind == CALL ? t->call : 0);
  pthread_mutex_unlock(&fake.lock);
}

static void reach(cuda_stream_t s, const work_t* w) {
  pthread_mutex_lock(&fake.lock);
  if (w->event->reached < w->moment) w->event->reached = w->moment;
  clock_gettime(CLOCK_MONOTONIC, &w->event->at);
  if (fake.state.times.kernel)
    w->event->at = (struct timespec){.tv_sec = (time_t)(s->clock / 1000000000),
                                     .tv_nsec = (long)(s->clock % 1000000000)};
  w->event->users--;
  pthread_cond_broadcast(&fake.changed);
  pthread_mutex_unlock(&fake.lock);
}

static void await(const work_t* w) {
  pthread_mutex_lock(&fake.lock);
  while (w->event->reached < w->moment && !fake.state.broken)
    pthread_cond_wait(&fake.changed, &fake.lock);
  w->event->users--;
  pthread_mutex_unlock(&fake.lock);
}

static void move(const work_t* w) {
  char* to = w->kind == DOWNLOAD ? w->host : device_memory(w->to, w->bytes);
  const char* from = w->kind == UPLOAD ? w->host : device_memory(w->from, w->bytes);
  if (to && from)
    memmove(to, from, w->bytes);
  else
    break_context(ILLEGAL_ADDRESS, "a copy of memory that was freed");
}

static void fill(const work_t* w) {
  char* to = device_memory(w->to, w->bytes);
  if (!to)
    break_context(ILLEGAL_ADDRESS, "memory is filled that was freed");
  else if (w->kind == FILL)
    memset(to, (int)w->value, w->bytes);
  else
    __atomic_store_n((uint32_t*)(void*)to, w->value, __ATOMIC_RELEASE);
}

static void launch(const work_t* w) {
  char message[sizeof fake.state.message] = "";
  const int r = fake.state.dry ? 0 : run_launch(w->launch, message, sizeof message);
  if (r) break_context(r, message);
  pthread_mutex_lock(&fake.lock);
  fake.state.launches++;
  pthread_mutex_unlock(&fake.lock);
}

// A context that is broken does nothing but free and end.
static void perform(cuda_stream_t s, const work_t* w) {
  pthread_mutex_lock(&fake.lock);
  const bool is_broken = fake.state.broken != 0;
  pthread_mutex_unlock(&fake.lock);
  pass(s, w);
  if (w->kind == FREE)
    (void)release_memory(w->to);
  else if (w->kind == RECORD)
    reach(s, w);
  else if (w->kind == AWAIT)
    await(w);
  else if (is_broken)
    return;
  else if (w->kind == FILL || w->kind == WRITE_VALUE)
    fill(w);
  else if (w->kind == CALL)
    w->function(w->host);
  else if (w->kind == LAUNCH)
    launch(w);
  else
    move(w);
}

// ---- the thread ---------------------------------------------------------------------------------

static bool may_begin(cuda_stream_t s) {
  return s->first && s->released > s->done && !fake.state.paused;
}

// Locked. Held work is let go after a time: a caller may look at memory instead of waiting.
static void sleep_until_changed(cuda_stream_t s) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += HELD_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  if (!s->first && !fake.state.paused)
    pthread_cond_wait(&fake.changed, &fake.lock);
  else if (pthread_cond_timedwait(&fake.changed, &fake.lock, &until) == ETIMEDOUT)
    s->released = s->queued;
}

static void* run(void* stream) {
  cuda_stream_t s = stream;
  pthread_mutex_lock(&fake.lock);
  for (;;) {
    while (!may_begin(s) && !(s->stops && !s->first)) sleep_until_changed(s);
    work_t* w = s->first;
    if (!w) break;
    pthread_mutex_unlock(&fake.lock);
    if (draw() % 4 == 0) sched_yield();
    perform(s, w);
    work_deinit(w);
    pthread_mutex_lock(&fake.lock);
    s->first = w->next;
    if (!s->first) s->last = &s->first;
    s->done++;
    free(w);
    pthread_cond_broadcast(&fake.changed);
  }
  pthread_mutex_unlock(&fake.lock);
  return NULL;
}

// Locked.
static void release_all(void) {
  for (cuda_stream_t s = all; s; s = s->next) s->released = s->queued;
  pthread_cond_broadcast(&fake.changed);
}

void release_streams(void) {
  pthread_mutex_lock(&fake.lock);
  release_all();
  pthread_mutex_unlock(&fake.lock);
}

// ---- work ---------------------------------------------------------------------------------------

bool is_capturing(cuda_stream_t s) { return s->capture != NULL; }

static work_t* copy_of(const work_t* w) {
  work_t* own = malloc(sizeof *own);
  if (own) *own = *w;
  if (own) own->next = NULL;
  return own;
}

static void append(cuda_stream_t s, work_t* w) {
  const fake_times_t* t = &fake.state.times;
  pthread_mutex_lock(&fake.lock);
  if (!w->in_graph)
    fake.host += (uint64_t)(w->kind == LAUNCH ? t->launching : w->kind == CALL ? t->calling : 0);
  w->ready = fake.host;
  if (!s->started) s->started = pthread_create(&s->thread, NULL, run, s) == 0;
  *s->last = w;
  s->last = &w->next;
  s->queued++;
  if (draw() % 4 == 0) {
    s->released = s->queued;
    pthread_cond_broadcast(&fake.changed);
  }
  pthread_mutex_unlock(&fake.lock);
}

cuda_result_t put(cuda_stream_t s, const work_t* w) {
  work_t* own = copy_of(w);
  if (!own) {
    work_t lost = *w;
    work_deinit(&lost);
    return CUDA_OUT_OF_MEMORY;
  }
  if (s->capture) {
    *s->capture->last = own;
    s->capture->last = &own->next;
  } else {
    append(s, own);
  }
  return 0;
}

void wait_for_stream(cuda_stream_t s) {
  pthread_mutex_lock(&fake.lock);
  const uint64_t until = s->queued;
  release_all();
  while (s->started && s->done < until) pthread_cond_wait(&fake.changed, &fake.lock);
  if (s->started) checks_waited_for(s->thread);
  host_waits(s->clock);
  pthread_mutex_unlock(&fake.lock);
}

// ---- streams ------------------------------------------------------------------------------------

cuda_result_t cuStreamCreate(cuda_stream_t* out, unsigned flags) {
  CALLED(true);
  if (flags != CUDA_STREAM_NON_BLOCKING) return INVALID_VALUE;
  cuda_stream_t s = made(sizeof *s);
  if (!s) return CUDA_OUT_OF_MEMORY;
  s->last = &s->first;
  pthread_mutex_lock(&fake.lock);
  s->next = all;
  all = s;
  pthread_mutex_unlock(&fake.lock);
  *out = s;
  return 0;
}

static void end(cuda_stream_t s) {
  pthread_mutex_lock(&fake.lock);
  for (cuda_stream_t* at = &all; *at; at = &(*at)->next)
    if (*at == s) {
      *at = s->next;
      break;
    }
  s->stops = true;
  s->released = s->queued;
  release_all();
  pthread_mutex_unlock(&fake.lock);
  if (s->started) pthread_join(s->thread, NULL);
  release_graph(s->capture);
  gone(s);
}

void streams_end(void) {
  while (all) end(all);
}

cuda_result_t cuStreamDestroy(cuda_stream_t stream) {
  end(stream);
  CALLED(true);
  return 0;
}

cuda_result_t cuStreamSynchronize(cuda_stream_t stream) {
  CALLED(true);
  if (stream->capture) return CAPTURE_UNSUPPORTED;
  wait_for_stream(stream);
  pthread_mutex_lock(&fake.lock);
  if (fake.state.breaks && !fake.state.broken) fake.state.broken = fake.state.breaks;
  const int r = fake.state.broken;
  pthread_mutex_unlock(&fake.lock);
  return r;
}

cuda_result_t cuLaunchHostFunc(cuda_stream_t stream, void (*function)(void* user), void* user) {
  CALLED(true);
  if (!function) return INVALID_VALUE;
  return put(stream, &(work_t){.kind = CALL, .function = function, .host = user});
}

cuda_result_t cuStreamWriteValue32(cuda_stream_t stream, cuda_pointer_t at, uint32_t value,
                                   unsigned flags) {
  CALLED(true);
  if (stream->capture || flags) return NOT_PERMITTED;
  if (at % 4 || !device_memory(at, 4)) return INVALID_VALUE;
  return put(stream, &(work_t){.kind = WRITE_VALUE, .to = at, .value = value, .bytes = 4});
}

// ---- captures -----------------------------------------------------------------------------------

cuda_result_t cuStreamBeginCapture(cuda_stream_t stream, int mode) {
  CALLED(true);
  if (stream->capture || mode != CUDA_CAPTURE_THREAD_LOCAL) return INVALID_VALUE;
  cuda_graph_t g = made(sizeof *g);
  if (!g) return CUDA_OUT_OF_MEMORY;
  g->last = &g->first;
  g->users = 1;
  stream->capture = g;
  return 0;
}

cuda_result_t cuStreamEndCapture(cuda_stream_t stream, cuda_graph_t* out) {
  cuda_graph_t graph = stream->capture;
  stream->capture = NULL;
  const cuda_result_t r = called(__func__, true);
  if (r || !graph) return release_graph(graph), r ? r : INVALID_VALUE;
  *out = graph;
  return 0;
}
