// Integers that the host looks at.
#include "backends/cuda/watch.h"

#include <string.h>

#include "backends/cuda/call.h"
#include "backends/cuda/driver_internal.h"
#include "base/alloc.h"

// So many bytes of a watch in a queue: captures fetch them to the same memory again.
struct cuda_watch_place {
  cuda_watch_place_t* next;      // of the watch
  cuda_watch_place_t* in_queue;  // the next one of the queue
  const cuda_watch_t* watch;
  cuda_queue_t* queue;  // NULL: it is gone
  assay_device_t* device;
  void* integers;  // the host's, which a GPU writes fast
  size_t bytes;
  bool pending;  // fetched since the queue was waited for
};

// ---- looking ------------------------------------------------------------------------------------

// What is not valid is reported once. Places of other sizes than the last ones wait for theirs.
static assay_status_t look(cuda_queue_t* q) {
  assay_status_t st = NULL;
  for (cuda_watch_place_t* p = atomic_load(&q->watched); p; p = p->in_queue) {
    if (st || p->bytes != p->watch->bytes) continue;
    st = p->watch->look(p->watch->user, p->integers);
    if (st) memset(p->integers, 0, p->bytes);
  }
  return st;
}

static bool set_pending(cuda_queue_t* q, bool pending) {
  bool any = false;
  for (cuda_watch_place_t* p = atomic_load(&q->watched); p; p = p->in_queue) {
    any |= p->pending;
    p->pending = pending;
  }
  return any;
}

static assay_status_t look_after_wait(assay_queue_t* base) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  return set_pending(q, false) ? look(q) : NULL;
}

static assay_status_t look_in_queue(void* user, bool failed) { return failed ? NULL : look(user); }

// Has all looked at in the queue's order.
static assay_status_t call(cuda_queue_t* q) {
  q->look = (cuda_call_t){.function = look_in_queue, .user = q};
  set_pending(q, false);
  return cuda_queue_call(&q->base, &q->look);
}

static assay_status_t before_launch(assay_queue_t* base) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  if (set_pending(q, true)) ASSAY_TRY(call(q));
  set_pending(q, true);
  return NULL;
}

static void leave_places(assay_queue_t* base) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  for (cuda_watch_place_t* p = atomic_load(&q->watched); p; p = p->in_queue) p->queue = NULL;
}

static const cuda_watching_t watching = {look_after_wait, before_launch, leave_places};

// ---- places -------------------------------------------------------------------------------------

static assay_status_t make_place(cuda_watch_t* w, cuda_queue_t* q, size_t bytes,
                                 cuda_watch_place_t** out) {
  assay_device_t* d = q->base.device;
  void* integers = NULL;
  if (q->capturing)
    return ASSAY_ERROR(ASSAY_INTERNAL, "memory for integers is allocated in a capture");
  ASSAY_TRY(d->driver->host_alloc(d, bytes, &integers));
  cuda_watch_place_t* p = NULL;
  assay_status_t st = ASSAY_NEW(&p);
  if (st) return d->driver->host_free(d, integers), st;
  memset(integers, 0, bytes);
  *p = (cuda_watch_place_t){.next = w->places,
                            .in_queue = atomic_load(&q->watched),
                            .watch = w,
                            .queue = q,
                            .device = d,
                            .integers = integers,
                            .bytes = bytes};
  w->places = p;
  atomic_store(&q->watched, p);
  q->watching = &watching;
  *out = p;
  return NULL;
}

assay_status_t cuda_watch_enqueue(cuda_watch_t* w, assay_queue_t* base, assay_device_ptr_t integers,
                                  size_t bytes) {
  cuda_queue_t* q = (cuda_queue_t*)base;
  cuda_watch_place_t* p = w->places;
  while (p && (p->queue != q || p->bytes != bytes)) p = p->next;
  if (p && p->pending && !q->capturing) ASSAY_TRY(call(q));
  if (!p) ASSAY_TRY(make_place(w, q, bytes, &p));
  if (w->bytes != bytes) w->bytes = bytes;  // the driver's thread may read it
  p->pending = p->pending || !q->capturing;
  return cuda_queue_fetch(base, integers, p->integers, bytes);
}

static void leave_queue(cuda_watch_place_t* p) {
  cuda_watch_place_t* first = atomic_load(&p->queue->watched);
  if (first == p) {
    atomic_store(&p->queue->watched, p->in_queue);
    return;
  }
  while (first->in_queue != p) first = first->in_queue;
  first->in_queue = p->in_queue;
}

void cuda_watch_deinit(cuda_watch_t* w) {
  for (cuda_watch_place_t* p = w->places; p;) {
    cuda_watch_place_t* next = p->next;
    if (p->queue) leave_queue(p);
    p->device->driver->host_free(p->device, p->integers);
    assay_free(p);
    p = next;
  }
  w->places = NULL;
}
