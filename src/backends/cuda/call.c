// Work of the host in a queue's order.
#include "backends/cuda/call.h"

#include "backends/cuda/driver_internal.h"
#include "base/alloc.h"

static void run(void* p) {
  cuda_call_t* c = p;
  cuda_queue_t* q = (cuda_queue_t*)c->queue;
  assay_status_t none = NULL;
  assay_status_t st = c->function(c->user, atomic_load(&q->failed) != NULL);
  if (st && !atomic_compare_exchange_strong(&q->failed, &none, st)) assay_status_free(st);
}

assay_status_t cuda_queue_call(assay_queue_t* base, cuda_call_t* call) {
  const cuda_queue_t* q = (const cuda_queue_t*)base;
  call->queue = base;
  CUDA_CALL(q->gpu, cuLaunchHostFunc, q->stream, run, call);
  return NULL;
}

assay_status_t cuda_queue_staging(assay_queue_t* base, size_t bytes, void** out) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  size_t size = q->n_staging ? q->staging[q->n_staging - 1].bytes : 0;
  void* memory = NULL;
  if (bytes > size || !q->n_staging) {
    if (q->capturing)
      return ASSAY_ERROR(ASSAY_INTERNAL, "staging memory is allocated in a capture");
    // Each is twice the one before, so that all of them take no more than twice the last one.
    size = bytes > SIZE_MAX / 4 || bytes > 2 * size ? bytes : 2 * size;
    if (!size) size = 1;
    ASSAY_TRY(assay_grow(&q->staging, &q->cap_staging, q->n_staging + 1, sizeof *q->staging));
    ASSAY_TRY(base->device->driver->host_alloc(base->device, size, &memory));
    q->staging[q->n_staging++] = (cuda_staging_t){memory, size};
  }
  *out = q->n_staging ? q->staging[q->n_staging - 1].memory : NULL;
  return NULL;
}

assay_status_t cuda_queue_fetch(assay_queue_t* base, assay_device_ptr_t from, void* to,
                                size_t bytes) {
  const cuda_queue_t* q = (const cuda_queue_t*)base;
  if (bytes) CUDA_CALL(q->gpu, cuMemcpyDtoHAsync, to, from, bytes, q->stream);
  return NULL;
}

assay_status_t cuda_queue_send(assay_queue_t* base, const void* from, assay_device_ptr_t to,
                               size_t bytes) {
  const cuda_queue_t* q = (const cuda_queue_t*)base;
  if (bytes) CUDA_CALL(q->gpu, cuMemcpyHtoDAsync, to, from, bytes, q->stream);
  return NULL;
}
