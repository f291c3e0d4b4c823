// Constants in a device's memory: made once, shared by all contexts and all sizes of a plan.
#include "exec/device/resident.h"

#include <pthread.h>

#include "base/alloc.h"

typedef struct entry {
  assay_device_ptr_t at;
  size_t bytes;
} entry_t;

struct assay_resident {
  assay_device_t* device;
  assay_queue_t* queue;
  pthread_mutex_t lock;
  assay_arena_t* arena;  // keys
  assay_map_t index;
  entry_t* entries;
  size_t n, cap;
};

assay_status_t assay_resident_create(assay_device_t* d, assay_resident_t** out) {
  assay_resident_t* r = NULL;
  ASSAY_TRY(ASSAY_NEW(&r));
  r->device = d;
  assay_status_t st = assay_arena_create(&r->arena);
  if (!st) st = d->driver->queue_create(d, &r->queue);
  if (!st && pthread_mutex_init(&r->lock, NULL) != 0) st = assay_status_no_memory();
  if (st) {
    if (r->queue) d->driver->queue_destroy(r->queue);
    assay_arena_destroy(r->arena);
    assay_free(r);
    return st;
  }
  *out = r;
  return NULL;
}

void assay_resident_destroy(assay_resident_t* r) {
  if (!r) return;
  for (size_t i = 0; i < r->n; i++) r->device->driver->free(r->queue, r->entries[i].at);
  r->device->driver->queue_destroy(r->queue);
  pthread_mutex_destroy(&r->lock);
  assay_free(r->entries);
  assay_map_deinit(&r->index);
  assay_arena_destroy(r->arena);
  assay_free(r);
}

static assay_status_t add(assay_resident_t* r, const char* key, entry_t e) {
  const char* kept = NULL;
  ASSAY_TRY(assay_grow(&r->entries, &r->cap, r->n + 1, sizeof *r->entries));
  ASSAY_TRY(assay_arena_strdup(r->arena, key, &kept));
  ASSAY_TRY(assay_map_put(&r->index, kept, r->n, NULL));
  r->entries[r->n++] = e;
  return NULL;
}

static assay_status_t make(assay_resident_t* r, const char* key, size_t bytes,
                           assay_resident_fill_t* fill, void* user, assay_device_ptr_t* out) {
  const assay_device_driver_t* driver = r->device->driver;
  entry_t e = {.bytes = bytes ? bytes : 1};
  assay_status_t st = driver->alloc(r->queue, e.bytes, &e.at);
  if (!st && bytes) st = fill(user, r->queue, e.at);
  // Also after a failure: what was put into the queue reads the caller's memory.
  st = assay_status_join(st, driver->queue_wait(r->queue, NULL));
  if (!st) st = add(r, key, e);
  if (st) {
    driver->free(r->queue, e.at);
    return assay_status_note(st, "constant '%s' for the device", key);
  }
  *out = e.at;
  return NULL;
}

assay_status_t assay_resident_get(assay_resident_t* r, const char* key, size_t bytes,
                                  assay_resident_fill_t* fill, void* user,
                                  assay_device_ptr_t* out) {
  assay_status_t st = NULL;
  uint64_t at;
  pthread_mutex_lock(&r->lock);
  if (assay_map_get(&r->index, key, &at))
    *out = r->entries[at].at;
  else
    st = make(r, key, bytes, fill, user, out);
  pthread_mutex_unlock(&r->lock);
  return st;
}
