// A CUDA driver without a GPU, for tests: the functions of src/backends/cuda/api.inc over the
// host's memory, done at once. It checks what the real one would refuse (no current context, memory
// that is not there, what a capture cannot hold) and fails where a test says so (fake.h).
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cuda/api.h"
#include "fake.h"

#define EXPORT __attribute__((visibility("default")))

enum {
  INVALID_VALUE = 1,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  NOT_PERMITTED = 800,
  CAPTURE_UNSUPPORTED = 900,
  MAX_WORK = 64,
  MAX_STACK = 8,
  TOTAL = 1 << 26
};

typedef struct block {
  char* at;
  size_t bytes;
  struct block* next;
} block_t;

// Noted in a capture.
typedef struct work {
  cuda_pointer_t to, from;
  unsigned char byte;
  size_t bytes;  // from 0: filled with `byte`
} work_t;

struct cuda_graph {
  work_t work[MAX_WORK];
  size_t n;
};
struct cuda_exec {
  struct cuda_graph graph;
};
struct cuda_stream {
  struct cuda_graph* capture;  // NULL: not captured
};
struct cuda_event {
  struct timespec at;
};

static struct {
  pthread_mutex_t lock;
  fake_state_t state;
  block_t* blocks;
  size_t used;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .state = {.version = 13000, .devices = 1, .capability = 90}};

static _Thread_local int stack;  // contexts that are current

EXPORT fake_state_t* fake_state(void);
EXPORT fake_state_t* fake_state(void) { return &fake.state; }

// What made() has given, for fake_end().
enum { MAX_MADE = 256 };
static void* all_made[MAX_MADE];

// ---- what goes wrong ----------------------------------------------------------------------------

// What a call gives before it does anything.
static cuda_result_t called(const char* name, bool in_context) {
  fake_state_t* s = &fake.state;
  cuda_result_t r = 0;
  pthread_mutex_lock(&fake.lock);
  s->calls++;
  if (s->fail_after > 0 && --s->fail_after == 0) {
    strncpy(s->failed, name, sizeof s->failed - 1);
    r = s->result;
  }
  pthread_mutex_unlock(&fake.lock);
  if (r) return r;
  if (s->broken) return s->broken;
  return in_context && !stack ? INVALID_CONTEXT : 0;
}

#define CALLED(in_context)                                    \
  do {                                                        \
    const cuda_result_t early = called(__func__, in_context); \
    if (early) return early;                                  \
  } while (0)

static void live(int n) {
  pthread_mutex_lock(&fake.lock);
  fake.state.live += n;
  pthread_mutex_unlock(&fake.lock);
}

static void* made(size_t bytes) {
  void* p = calloc(1, bytes);
  pthread_mutex_lock(&fake.lock);
  size_t i = 0;
  while (i < MAX_MADE && all_made[i]) i++;
  if (p && i < MAX_MADE) {
    all_made[i] = p;
    fake.state.live++;
  } else {
    free(p);
    p = NULL;
  }
  pthread_mutex_unlock(&fake.lock);
  return p;
}

static cuda_result_t gone(void* p) {
  pthread_mutex_lock(&fake.lock);
  for (size_t i = 0; p && i < MAX_MADE; i++)
    if (all_made[i] == p) {
      all_made[i] = NULL;
      fake.state.live--;
      free(p);
      break;
    }
  pthread_mutex_unlock(&fake.lock);
  return 0;
}

EXPORT void fake_end(void);
EXPORT void fake_end(void) {
  for (size_t i = 0; i < MAX_MADE; i++) gone(all_made[i]);
  pthread_mutex_lock(&fake.lock);
  while (fake.blocks) {
    block_t* b = fake.blocks;
    fake.blocks = b->next;
    free(b->at);
    free(b);
  }
  fake.used = 0;
  fake.state.live = 0;
  pthread_mutex_unlock(&fake.lock);
}

// Whether so many bytes lie within one allocation.
static bool is_there(cuda_pointer_t p, size_t bytes) {
  const char* at = (const char*)(uintptr_t)p;
  bool found = false;
  pthread_mutex_lock(&fake.lock);
  for (const block_t* b = fake.blocks; !found && b; b = b->next)
    found = at >= b->at && at <= b->at + b->bytes && bytes <= (size_t)(b->at + b->bytes - at);
  pthread_mutex_unlock(&fake.lock);
  return found;
}

// ---- the driver and its devices -----------------------------------------------------------------

static cuda_result_t cuInit(unsigned flags) {
  (void)flags;
  CALLED(false);
  return fake.state.devices ? 0 : CUDA_NO_DEVICE;
}

static cuda_result_t cuDriverGetVersion(int* out) {
  CALLED(false);
  *out = fake.state.version;
  return 0;
}

static cuda_result_t cuGetErrorName(cuda_result_t r, const char** out) {
  *out = r == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_FAKE";
  return 0;
}

static cuda_result_t cuGetErrorString(cuda_result_t r, const char** out) {
  (void)r;
  *out = "as the test wanted";
  return 0;
}

static cuda_result_t cuDeviceGetCount(int* out) {
  CALLED(false);
  *out = fake.state.devices;
  return 0;
}

static cuda_result_t cuDeviceGet(cuda_device_id_t* out, int ordinal) {
  CALLED(false);
  if (ordinal < 0 || ordinal >= fake.state.devices) return INVALID_DEVICE;
  *out = ordinal;
  return 0;
}

static cuda_result_t cuDeviceGetName(char* out, int bytes, cuda_device_id_t device) {
  (void)device;
  CALLED(false);
  strncpy(out, "A GPU for tests", (size_t)bytes);
  return 0;
}

static cuda_result_t cuDeviceGetAttribute(int* out, int attribute, cuda_device_id_t device) {
  (void)device;
  CALLED(false);
  *out = attribute == CUDA_ATTRIBUTE_MAJOR             ? fake.state.capability / 10
         : attribute == CUDA_ATTRIBUTE_MINOR           ? fake.state.capability % 10
         : attribute == CUDA_ATTRIBUTE_MULTIPROCESSORS ? 4
         : attribute == CUDA_ATTRIBUTE_POOLS           ? !fake.state.no_pools
                                                       : -1;
  return 0;
}

static cuda_result_t cuDevicePrimaryCtxRetain(cuda_context_t* out, cuda_device_id_t device) {
  CALLED(false);
  live(1);
  *out = (cuda_context_t)(uintptr_t)(device + 1);
  return 0;
}

static cuda_result_t cuDevicePrimaryCtxRelease(cuda_device_id_t device) {
  (void)device;
  live(-1);
  CALLED(false);
  return 0;
}

static cuda_result_t cuCtxPushCurrent(cuda_context_t context) {
  CALLED(false);
  if (!context || stack == MAX_STACK) return INVALID_CONTEXT;
  stack++;
  return 0;
}

static cuda_result_t cuCtxPopCurrent(cuda_context_t* out) {
  *out = (cuda_context_t)(uintptr_t)stack;
  if (!stack) return INVALID_CONTEXT;
  stack--;
  return 0;
}

// ---- memory -------------------------------------------------------------------------------------

static cuda_result_t cuMemGetInfo(size_t* out_free, size_t* out_total) {
  CALLED(true);
  *out_free = TOTAL - fake.used;
  *out_total = TOTAL;
  return 0;
}

static cuda_result_t cuDeviceGetDefaultMemPool(cuda_pool_t* out, cuda_device_id_t device) {
  CALLED(false);
  *out = (cuda_pool_t)(uintptr_t)(device + 1);
  return 0;
}

static cuda_result_t cuMemPoolSetAttribute(cuda_pool_t pool, int attribute, void* value) {
  (void)value;
  CALLED(false);
  return pool && attribute == CUDA_POOL_RELEASE_THRESHOLD ? 0 : INVALID_VALUE;
}

static cuda_result_t cuMemPoolTrimTo(cuda_pool_t pool, size_t keep) {
  (void)keep;
  CALLED(false);
  return pool ? 0 : INVALID_VALUE;
}

static cuda_result_t cuMemAllocAsync(cuda_pointer_t* out, size_t bytes, cuda_stream_t stream) {
  CALLED(true);
  if (stream->capture) return CAPTURE_UNSUPPORTED;
  block_t* b = malloc(sizeof *b);
  void* at = NULL;
  pthread_mutex_lock(&fake.lock);
  const bool fits =
      b && bytes && bytes <= TOTAL - fake.used && posix_memalign(&at, 256, bytes) == 0;
  if (fits) {
    *b = (block_t){at, bytes, fake.blocks};
    fake.blocks = b;
    fake.used += bytes;
    fake.state.live++;
    memset(at, 0xff, bytes);
  }
  pthread_mutex_unlock(&fake.lock);
  if (!fits) return free(b), CUDA_OUT_OF_MEMORY;
  *out = (cuda_pointer_t)(uintptr_t)at;
  return 0;
}

static cuda_result_t cuMemFreeAsync(cuda_pointer_t at, cuda_stream_t stream) {
  block_t* found = NULL;
  pthread_mutex_lock(&fake.lock);
  for (block_t** b = &fake.blocks; *b && !found; b = &(*b)->next)
    if ((cuda_pointer_t)(uintptr_t)(*b)->at == at) {
      found = *b;
      *b = found->next;
      break;
    }
  if (found) {
    fake.used -= found->bytes;
    fake.state.live--;
    free(found->at);
  }
  pthread_mutex_unlock(&fake.lock);
  free(found);
  CALLED(true);
  return found && !stream->capture ? 0 : INVALID_VALUE;
}

static void done(const work_t* w) {
  void* to = (void*)(uintptr_t)w->to;
  if (w->from)
    memmove(to, (const void*)(uintptr_t)w->from, w->bytes);
  else
    memset(to, w->byte, w->bytes);
}

static cuda_result_t put(cuda_stream_t stream, work_t w) {
  if (!is_there(w.to, w.bytes) || (w.from && !is_there(w.from, w.bytes))) return INVALID_VALUE;
  if (!stream->capture) return done(&w), 0;
  if (stream->capture->n == MAX_WORK) return CAPTURE_UNSUPPORTED;
  stream->capture->work[stream->capture->n++] = w;
  return 0;
}

static cuda_result_t cuMemcpyHtoDAsync(cuda_pointer_t to, const void* from, size_t bytes,
                                       cuda_stream_t stream) {
  CALLED(true);
  if (stream->capture) return CAPTURE_UNSUPPORTED;
  if (!is_there(to, bytes)) return INVALID_VALUE;
  memcpy((void*)(uintptr_t)to, from, bytes);
  return 0;
}

static cuda_result_t cuMemcpyDtoHAsync(void* to, cuda_pointer_t from, size_t bytes,
                                       cuda_stream_t stream) {
  CALLED(true);
  if (stream->capture) return CAPTURE_UNSUPPORTED;
  if (!is_there(from, bytes)) return INVALID_VALUE;
  memcpy(to, (const void*)(uintptr_t)from, bytes);
  return 0;
}

static cuda_result_t cuMemcpyAsync(cuda_pointer_t to, cuda_pointer_t from, size_t bytes,
                                   cuda_stream_t stream) {
  CALLED(true);
  return put(stream, (work_t){.to = to, .from = from, .bytes = bytes});
}

static cuda_result_t cuMemsetD8Async(cuda_pointer_t at, unsigned char byte, size_t n,
                                     cuda_stream_t stream) {
  CALLED(true);
  return put(stream, (work_t){.to = at, .byte = byte, .bytes = n});
}

static cuda_result_t cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  CALLED(true);
  if (flags != (CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP)) return INVALID_VALUE;
  *out = made(bytes);
  return *out ? 0 : CUDA_OUT_OF_MEMORY;
}

static cuda_result_t cuMemFreeHost(void* p) {
  gone(p);
  CALLED(true);
  return 0;
}

static cuda_result_t cuMemHostGetDevicePointer(cuda_pointer_t* out, void* p, unsigned flags) {
  (void)flags;
  CALLED(true);
  *out = (cuda_pointer_t)(uintptr_t)p;
  return 0;
}

// ---- streams, events ----------------------------------------------------------------------------

static cuda_result_t cuStreamCreate(cuda_stream_t* out, unsigned flags) {
  CALLED(true);
  if (flags != CUDA_STREAM_NON_BLOCKING) return INVALID_VALUE;
  *out = made(sizeof **out);
  return *out ? 0 : CUDA_OUT_OF_MEMORY;
}

static cuda_result_t cuStreamDestroy(cuda_stream_t stream) {
  gone(stream->capture);
  gone(stream);
  CALLED(true);
  return 0;
}

static cuda_result_t cuStreamSynchronize(cuda_stream_t stream) {
  CALLED(true);
  if (fake.state.breaks) return fake.state.broken = fake.state.breaks;
  return stream->capture ? CAPTURE_UNSUPPORTED : 0;
}

static cuda_result_t cuStreamWaitEvent(cuda_stream_t stream, cuda_event_t event, unsigned flags) {
  (void)flags;
  CALLED(true);
  return stream && event ? 0 : INVALID_VALUE;
}

static cuda_result_t cuStreamWriteValue32(cuda_stream_t stream, cuda_pointer_t at, uint32_t value,
                                          unsigned flags) {
  CALLED(true);
  if (stream->capture || flags) return NOT_PERMITTED;
  memcpy((void*)(uintptr_t)at, &value, sizeof value);
  return 0;
}

static cuda_result_t cuEventCreate(cuda_event_t* out, unsigned flags) {
  CALLED(true);
  if (flags) return INVALID_VALUE;  // one without times
  *out = made(sizeof **out);
  return *out ? 0 : CUDA_OUT_OF_MEMORY;
}

static cuda_result_t cuEventDestroy(cuda_event_t event) {
  gone(event);
  CALLED(true);
  return 0;
}

static cuda_result_t cuEventRecord(cuda_event_t event, cuda_stream_t stream) {
  CALLED(true);
  if (!stream->capture) clock_gettime(CLOCK_MONOTONIC, &event->at);
  return 0;
}

static cuda_result_t cuEventSynchronize(cuda_event_t event) {
  CALLED(true);
  return event ? 0 : INVALID_VALUE;
}

static cuda_result_t cuEventElapsedTime(float* out_milliseconds, cuda_event_t from,
                                        cuda_event_t to) {
  CALLED(true);
  *out_milliseconds = (float)(1e3 * (double)(to->at.tv_sec - from->at.tv_sec) +
                              1e-6 * (double)(to->at.tv_nsec - from->at.tv_nsec));
  return 0;
}

// ---- graphs -------------------------------------------------------------------------------------

static cuda_result_t cuStreamBeginCapture(cuda_stream_t stream, int mode) {
  CALLED(true);
  if (stream->capture || mode != CUDA_CAPTURE_THREAD_LOCAL) return INVALID_VALUE;
  stream->capture = made(sizeof *stream->capture);
  return stream->capture ? 0 : CUDA_OUT_OF_MEMORY;
}

static cuda_result_t cuStreamEndCapture(cuda_stream_t stream, cuda_graph_t* out) {
  cuda_graph_t graph = stream->capture;
  stream->capture = NULL;
  const cuda_result_t r = called(__func__, true);
  if (r || !graph) return gone(graph), r ? r : INVALID_VALUE;
  *out = graph;
  return 0;
}

static cuda_result_t cuGraphInstantiateWithFlags(cuda_exec_t* out, cuda_graph_t graph,
                                                 unsigned long long flags) {
  (void)flags;
  CALLED(true);
  *out = made(sizeof **out);
  if (!*out) return CUDA_OUT_OF_MEMORY;
  (*out)->graph = *graph;
  return 0;
}

static cuda_result_t cuGraphUpload(cuda_exec_t exec, cuda_stream_t stream) {
  CALLED(true);
  return exec && !stream->capture ? 0 : INVALID_VALUE;
}

static cuda_result_t cuGraphLaunch(cuda_exec_t exec, cuda_stream_t stream) {
  CALLED(true);
  if (stream->capture) return CAPTURE_UNSUPPORTED;
  for (size_t i = 0; i < exec->graph.n; i++) {
    const cuda_result_t r = put(stream, exec->graph.work[i]);
    if (r) return r;
  }
  return 0;
}

static cuda_result_t cuGraphExecDestroy(cuda_exec_t exec) {
  gone(exec);
  CALLED(true);
  return 0;
}

static cuda_result_t cuGraphDestroy(cuda_graph_t graph) {
  gone(graph);
  CALLED(true);
  return 0;
}

// ---- the table ----------------------------------------------------------------------------------

EXPORT cuda_result_t cuGetProcAddress_v2(const char* symbol, void** out, int version,
                                         uint64_t flags, int* out_status);
EXPORT cuda_result_t cuGetProcAddress_v2(const char* symbol, void** out, int version,
                                         uint64_t flags, int* out_status) {
  (void)version, (void)flags;
  *out = NULL;
  *out_status = 0;
  if (strcmp(symbol, fake.state.without) == 0) return 0;
#define CUDA_FUNCTION(name, parameters)    \
  if (strcmp(symbol, #name) == 0) {        \
    union {                                \
      cuda_result_t(*function) parameters; \
      void* symbol;                        \
    } found = {.function = name};          \
    *out = found.symbol;                   \
  }
#include "backends/cuda/api.inc"
#undef CUDA_FUNCTION
  return *out ? 0 : INVALID_VALUE;
}
