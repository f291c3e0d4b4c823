// Integers that the host looks at.
#include "backends/cuda/watch.h"

#include "backends/cuda/call.h"
#include "base/alloc.h"

// For one piece of the host's memory: what a capture calls again.
struct cuda_watch_place {
  cuda_watch_place_t* next;
  const cuda_watch_t* watch;
  void* integers;
  cuda_call_t call;
};

static assay_status_t look(void* user, bool failed) {
  const cuda_watch_place_t* p = user;
  return failed ? NULL : p->watch->look(p->watch->user, p->integers);
}

assay_status_t cuda_watch_enqueue(cuda_watch_t* w, assay_queue_t* q, assay_device_ptr_t integers,
                                  size_t bytes) {
  void* staging;
  ASSAY_TRY(cuda_queue_staging(q, bytes, &staging));
  cuda_watch_place_t* p = w->places;
  while (p && p->integers != staging) p = p->next;
  if (!p) {
    ASSAY_TRY(ASSAY_NEW(&p));
    *p = (cuda_watch_place_t){.next = w->places, .watch = w, .integers = staging};
    p->call = (cuda_call_t){.function = look, .user = p};
    w->places = p;
  }
  ASSAY_TRY(cuda_queue_fetch(q, integers, staging, bytes));
  return cuda_queue_call(q, &p->call);
}

void cuda_watch_deinit(cuda_watch_t* w) {
  for (cuda_watch_place_t* p = w->places; p;) {
    cuda_watch_place_t* next = p->next;
    assay_free(p);
    p = next;
  }
  w->places = NULL;
}
