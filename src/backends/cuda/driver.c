// A GPU as a device: memory of the driver's pool, streams, events, and captures as graphs.
//
// The primary context is used, which other libraries of the process share; it is made current for
// the length of a call only, so that theirs stays as it was.
#include "backends/cuda/driver.h"

#include <string.h>

#include "backends/cuda/driver_internal.h"
#include "base/alloc.h"

typedef struct event {
  assay_event_t base;
  cuda_gpu_t* gpu;
  cuda_event_t event;
} event_t;

typedef struct capture {
  assay_capture_t base;
  cuda_gpu_t* gpu;
  cuda_exec_t exec;
  cuda_event_t launched;  // the last launch has ended
} capture_t;

enum {
  ALIGNMENT = 256
};  // of what a pool gives (CUDA C Programming Guide, device memory accesses)

// ---- calls
// ---------------------------------------------------------------------------------------

// Errors behind which the context is of no use: those of kernels (cuda.h says "the process must be
// terminated and relaunched"), and of the hardware.
bool cuda_is_fatal(cuda_result_t r) {
  return r == 214 || r == 220 || (r >= 700 && r <= 702) || (r >= 709 && r <= 710) ||
         (r >= 714 && r <= 719) || r == 721;
}

assay_status_t cuda_enter(cuda_gpu_t* g) {
  if (atomic_load(&g->lost))
    return ASSAY_ERROR(ASSAY_DEVICE,
                       "GPU %d was lost by an earlier failure; a new process can use it again",
                       g->number);
  return cuda_check(g->api, g->api->cuCtxPushCurrent(g->context), "cuCtxPushCurrent");
}

void cuda_leave(const cuda_gpu_t* g) {
  cuda_context_t ours;
  (void)g->api->cuCtxPopCurrent(&ours);
}

assay_status_t cuda_told(cuda_gpu_t* g, cuda_result_t r, const char* function) {
  if (cuda_is_fatal(r)) atomic_store(&g->lost, true);
  return cuda_check(g->api, r, function);
}

static cuda_gpu_t* gpu_of(assay_device_t* d) { return (cuda_gpu_t*)d; }

// ---- devices ------------------------------------------------------------------------------------

// Memory that was freed stays in the pool for the next one, as long as the device is open.
static assay_status_t keep_pool(cuda_gpu_t* g) {
  uint64_t threshold = UINT64_MAX;
  CUDA_TRY(g->api, cuDeviceGetDefaultMemPool, &g->pool, g->id);
  CUDA_TRY(g->api, cuMemPoolSetAttribute, g->pool, CUDA_POOL_RELEASE_THRESHOLD, &threshold);
  return NULL;
}

static void close_gpu(assay_device_t* d) {
  cuda_gpu_t* g = gpu_of(d);
  if (g->context) {
    if (g->pool) (void)g->api->cuMemPoolTrimTo(g->pool, 0);
    (void)g->api->cuDevicePrimaryCtxRelease(g->id);
  }
  assay_free(g);
}

static assay_status_t retain(cuda_gpu_t* g) {
  CUDA_TRY(g->api, cuDevicePrimaryCtxRetain, &g->context, g->id);
  return keep_pool(g);
}

static assay_status_t open_gpu(int number, assay_device_t** out) {
  cuda_gpu_t* g = NULL;
  *out = NULL;
  ASSAY_TRY(ASSAY_NEW(&g));
  g->base = (assay_device_t){&assay_device_driver_cuda, ALIGNMENT};
  assay_status_t st = cuda_gpu_find(number, g);
  if (!st) st = retain(g);
  if (st) return close_gpu(&g->base), st;
  *out = &g->base;
  return NULL;
}

static void describe(assay_device_t* d, assay_str_t* out) {
  const cuda_gpu_t* g = gpu_of(d);
  assay_str_printf(out, "%s, compute capability %d.%d, %d multiprocessors, CUDA %d.%d", g->name,
                   g->capability / 10, g->capability % 10, g->multiprocessors,
                   g->api->version / 1000, g->api->version % 1000 / 10);
}

static assay_status_t memory(assay_device_t* d, size_t* out_free, size_t* out_total) {
  CUDA_CALL(gpu_of(d), cuMemGetInfo, out_free, out_total);
  return NULL;
}

// ---- queues -------------------------------------------------------------------------------------

static void host_free(assay_device_t* d, void* p) {
  if (p) CUDA_CALL_END(gpu_of(d), cuMemFreeHost, p);
}

static assay_status_t host_alloc(assay_device_t* d, size_t bytes, void** out) {
  *out = NULL;
  CUDA_CALL(gpu_of(d), cuMemHostAlloc, out, bytes ? bytes : 1,
            CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP);
  return NULL;
}

static void queue_destroy(assay_queue_t* base) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  if (q->stream) {
    CUDA_CALL_END(q->gpu, cuStreamSynchronize, q->stream);
    CUDA_CALL_END(q->gpu, cuStreamDestroy, q->stream);
  }
  if (q->watching) q->watching->end(base);
  host_free(&q->gpu->base, q->mark);
  for (size_t i = 0; i < q->n_staging; i++) host_free(&q->gpu->base, q->staging[i].memory);
  assay_free(q->staging);
  assay_status_free(atomic_load(&q->failed));
  assay_free(q);
}

static assay_status_t fill_queue(cuda_queue_t* q) {
  void* mark = NULL;
  CUDA_CALL(q->gpu, cuStreamCreate, &q->stream, CUDA_STREAM_NON_BLOCKING);
  ASSAY_TRY(host_alloc(&q->gpu->base, sizeof *q->mark, &mark));
  q->mark = mark;
  *q->mark = 0;
  CUDA_CALL(q->gpu, cuMemHostGetDevicePointer, &q->mark_at, q->mark, 0);
  return NULL;
}

static assay_status_t queue_create(assay_device_t* d, assay_queue_t** out) {
  cuda_queue_t* q = NULL;
  *out = NULL;
  ASSAY_TRY(ASSAY_NEW(&q));
  q->base.device = d;
  q->gpu = gpu_of(d);
  assay_status_t st = fill_queue(q);
  if (st) return queue_destroy(&q->base), st;
  *out = &q->base;
  return NULL;
}

static assay_status_t queue_wait(assay_queue_t* base, int64_t* out_mark) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  if (out_mark) *out_mark = -1;
  if (q->capturing)
    return ASSAY_ERROR(ASSAY_INTERNAL, "a queue is waited for while it is captured");
  ASSAY_TRY(cuda_enter(q->gpu));
  const cuda_result_t r = q->gpu->api->cuStreamSynchronize(q->stream);
  cuda_leave(q->gpu);
  assay_status_t st = cuda_told(q->gpu, r, "cuStreamSynchronize");
  // What the host's calls gave says itself where that was.
  assay_status_t failed = atomic_exchange(&q->failed, NULL);
  // What is not valid is the cause of what came of it.
  assay_status_t not_valid = st || !q->watching ? NULL : q->watching->look(base);
  if (not_valid) {
    assay_status_free(failed);
    failed = not_valid;
  }
  if (st && out_mark && q->marked) {
    const volatile uint32_t* at = q->mark;
    *out_mark = *at;
  }
  return assay_status_join(st, failed);
}

static uint64_t queue_handle(assay_queue_t* q) {
  return (uint64_t)(uintptr_t)((cuda_queue_t*)q)->stream;
}

static assay_status_t mark(assay_queue_t* base, int64_t at) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  if (q->capturing || at < 0 || at > UINT32_MAX) return NULL;
  CUDA_CALL(q->gpu, cuStreamWriteValue32, q->stream, q->mark_at, (uint32_t)at, 0);
  q->marked = true;
  return NULL;
}

// ---- memory -------------------------------------------------------------------------------------

static assay_status_t not_in_a_capture(const cuda_queue_t* q, const char* what) {
  if (!q->capturing) return NULL;
  return ASSAY_ERROR(ASSAY_INTERNAL, "%s in a capture", what);
}

// What the device's memory is taken by, for the message of a failure.
static assay_status_t no_room(cuda_gpu_t* g, size_t bytes) {
  size_t left = 0, total = 0;
  assay_status_t st = memory(&g->base, &left, &total);
  if (st) return st;
  return ASSAY_ERROR(ASSAY_NO_MEMORY,
                     "GPU %d has no room for %zu bytes: %zu of its %zu bytes are free; smaller "
                     "batches or other processes that end make room",
                     g->number, bytes, left, total);
}

static assay_status_t alloc(assay_queue_t* base, size_t bytes, assay_device_ptr_t* out) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  cuda_gpu_t* g = q->gpu;
  *out = 0;
  ASSAY_TRY(not_in_a_capture(q, "memory is allocated"));
  ASSAY_TRY(cuda_enter(g));
  cuda_result_t r = g->api->cuMemAllocAsync(out, bytes ? bytes : 1, q->stream);
  cuda_leave(g);
  if (r == CUDA_OUT_OF_MEMORY) return *out = 0, no_room(g, bytes);
  if (r != CUDA_SUCCESS_RESULT) *out = 0;
  return cuda_told(g, r, "cuMemAllocAsync");
}

static void free_memory(assay_queue_t* base, assay_device_ptr_t p) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  if (p) CUDA_CALL_END(q->gpu, cuMemFreeAsync, p, q->stream);
}

static assay_status_t upload(assay_queue_t* base, const void* from, assay_device_ptr_t to,
                             size_t bytes) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  ASSAY_TRY(not_in_a_capture(q, "host memory is read"));
  if (bytes) CUDA_CALL(q->gpu, cuMemcpyHtoDAsync, to, from, bytes, q->stream);
  return NULL;
}

static assay_status_t download(assay_queue_t* base, assay_device_ptr_t from, void* to,
                               size_t bytes) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  ASSAY_TRY(not_in_a_capture(q, "host memory is written"));
  if (bytes) CUDA_CALL(q->gpu, cuMemcpyDtoHAsync, to, from, bytes, q->stream);
  return NULL;
}

static assay_status_t copy(assay_queue_t* base, assay_device_ptr_t from, assay_device_ptr_t to,
                           size_t bytes) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  if (bytes) CUDA_CALL(q->gpu, cuMemcpyAsync, to, from, bytes, q->stream);
  return NULL;
}

static assay_status_t fill(assay_queue_t* base, assay_device_ptr_t p, uint8_t byte, size_t bytes) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  if (bytes) CUDA_CALL(q->gpu, cuMemsetD8Async, p, byte, bytes, q->stream);
  return NULL;
}

// ---- events -------------------------------------------------------------------------------------

static void event_destroy(assay_event_t* base) {
  event_t* e = (event_t*)base;
  if (!e) return;
  if (e->event) CUDA_CALL_END(e->gpu, cuEventDestroy, e->event);
  assay_free(e);
}

static assay_status_t make_event(event_t* e) {
  CUDA_CALL(e->gpu, cuEventCreate, &e->event, 0);
  return NULL;
}

static assay_status_t event_create(assay_device_t* d, assay_event_t** out) {
  event_t* e = NULL;
  *out = NULL;
  ASSAY_TRY(ASSAY_NEW(&e));
  e->base.device = d;
  e->gpu = gpu_of(d);
  assay_status_t st = make_event(e);
  if (st) return event_destroy(&e->base), st;
  *out = &e->base;
  return NULL;
}

static assay_status_t event_record(assay_event_t* base, assay_queue_t* q) {
  event_t* e = (event_t*)base;
  CUDA_CALL(e->gpu, cuEventRecord, e->event, ((cuda_queue_t*)q)->stream);
  return NULL;
}

static assay_status_t event_order(assay_event_t* base, assay_queue_t* q) {
  event_t* e = (event_t*)base;
  CUDA_CALL(e->gpu, cuStreamWaitEvent, ((cuda_queue_t*)q)->stream, e->event, 0);
  return NULL;
}

static assay_status_t event_wait(assay_event_t* base) {
  event_t* e = (event_t*)base;
  CUDA_CALL(e->gpu, cuEventSynchronize, e->event);
  return NULL;
}

static assay_status_t event_elapsed(assay_event_t* from, assay_event_t* to,
                                    double* out_microseconds) {
  event_t *a = (event_t*)from, *b = (event_t*)to;
  float milliseconds = 0;
  CUDA_CALL(a->gpu, cuEventElapsedTime, &milliseconds, a->event, b->event);
  *out_microseconds = 1e3 * (double)milliseconds;
  return NULL;
}

// ---- captures -----------------------------------------------------------------------------------

static void capture_destroy(assay_capture_t* base) {
  capture_t* c = (capture_t*)base;
  if (!c) return;
  if (c->launched) {
    CUDA_CALL_END(c->gpu, cuEventSynchronize, c->launched);
    CUDA_CALL_END(c->gpu, cuEventDestroy, c->launched);
  }
  if (c->exec) CUDA_CALL_END(c->gpu, cuGraphExecDestroy, c->exec);
  assay_free(c);
}

static assay_status_t capture_begin(assay_queue_t* base) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  CUDA_CALL(q->gpu, cuStreamBeginCapture, q->stream, CUDA_CAPTURE_THREAD_LOCAL);
  q->capturing = true;
  return NULL;
}

// Brings a graph to the device now, so that its first launch is not slower than the others.
static assay_status_t instantiate(capture_t* c, cuda_graph_t graph, cuda_stream_t stream) {
  CUDA_CALL(c->gpu, cuGraphInstantiateWithFlags, &c->exec, graph, 0);
  CUDA_CALL(c->gpu, cuEventCreate, &c->launched, 0);
  CUDA_CALL(c->gpu, cuGraphUpload, c->exec, stream);
  CUDA_CALL(c->gpu, cuEventRecord, c->launched, stream);
  return NULL;
}

static assay_status_t capture_end(assay_queue_t* base, assay_capture_t** out) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  capture_t* c = NULL;
  cuda_graph_t graph = NULL;
  *out = NULL;
  q->capturing = false;
  ASSAY_TRY(cuda_enter(q->gpu));
  const cuda_result_t r = q->gpu->api->cuStreamEndCapture(q->stream, &graph);
  cuda_leave(q->gpu);
  ASSAY_TRY(cuda_told(q->gpu, r, "cuStreamEndCapture"));
  assay_status_t st = ASSAY_NEW(&c);
  if (!st) {
    c->base.device = q->base.device;
    c->gpu = q->gpu;
    st = instantiate(c, graph, q->stream);
  }
  CUDA_CALL_END(q->gpu, cuGraphDestroy, graph);
  if (st) return capture_destroy(c ? &c->base : NULL), st;
  *out = &c->base;
  return NULL;
}

static assay_status_t capture_launch(assay_capture_t* base, assay_queue_t* queue) {
  capture_t* c = (capture_t*)base;
  const cuda_queue_t* q = (cuda_queue_t*)queue;
  if (q->watching) ASSAY_TRY(q->watching->launch(queue));
  CUDA_CALL(c->gpu, cuGraphLaunch, c->exec, q->stream);
  CUDA_CALL(c->gpu, cuEventRecord, c->launched, q->stream);
  return NULL;
}

const assay_device_driver_t assay_device_driver_cuda = {
    .name = "cuda",
    .open = open_gpu,
    .close = close_gpu,
    .count = cuda_gpu_count,
    .want = cuda_gpu_want,
    .describe = describe,
    .describe_need = cuda_gpu_describe_need,
    .describe_libraries = cuda_describe_libraries,
    .memory = memory,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_wait = queue_wait,
    .queue_handle = queue_handle,
    .mark = mark,
    .alloc = alloc,
    .free = free_memory,
    .upload = upload,
    .download = download,
    .copy = copy,
    .fill = fill,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_order = event_order,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capture_launch = capture_launch,
    .capture_destroy = capture_destroy};
