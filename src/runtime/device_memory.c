// The functions of include/assay/device_memory.h.
#include <assay/device_memory.h>

#include "base/alloc.h"
#include "exec/targets.h"

struct assay_device_memory {
  const assay_backend_t* target;
  assay_device_t* device;
  assay_queue_t* queue;
  assay_device_ptr_t at;
  size_t bytes;
  bool borrowed;
};

void assay_device_memory_destroy(assay_device_memory_t* m) {
  if (!m) return;
  if (m->queue) {
    if (!m->borrowed) m->device->driver->free(m->queue, m->at);
    m->device->driver->queue_destroy(m->queue);
  }
  assay_target_let_go(m->device);
  assay_free(m);
}

// Copies to it are in its own queue, but runs are in others: it has to be there when this returns.
static assay_status_t fill(assay_device_memory_t* m) {
  ASSAY_TRY(assay_target_hold(m->target, &m->device));
  const assay_device_driver_t* driver = m->device->driver;
  ASSAY_TRY(driver->queue_create(m->device, &m->queue));
  if (m->borrowed) return NULL;
  ASSAY_TRY(driver->alloc(m->queue, m->bytes, &m->at));
  return driver->queue_wait(m->queue, NULL);
}

// like: where it lies, if it is somebody else's, and its size.
static assay_status_t make(const char* target, const assay_device_memory_t* like,
                           assay_device_memory_t** out) {
  const assay_backend_t* b = NULL;
  assay_device_memory_t* m = NULL;
  *out = NULL;
  ASSAY_TRY(assay_target_find(target, ASSAY_TARGET_BUILD, &b));
  if (!b->driver)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "target '%s' has no device with memory of its own",
                       b->name);
  ASSAY_TRY(ASSAY_NEW(&m));
  *m = *like;
  m->target = b;
  assay_status_t st = fill(m);
  if (st) return assay_device_memory_destroy(m), st;
  *out = m;
  return NULL;
}

assay_status_t assay_device_memory_create(const char* target, size_t bytes,
                                          assay_device_memory_t** out) {
  return make(target, &(assay_device_memory_t){.bytes = bytes}, out);
}

assay_status_t assay_device_memory_wrap(const char* target, uint64_t address, size_t bytes,
                                        assay_device_memory_t** out) {
  *out = NULL;
  if (!address)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%zu bytes of a device at no address", bytes);
  return make(target, &(assay_device_memory_t){.at = address, .bytes = bytes, .borrowed = true},
              out);
}

uint64_t assay_device_memory_address(const assay_device_memory_t* m) { return m->at; }

size_t assay_device_memory_bytes(const assay_device_memory_t* m) { return m->bytes; }

int assay_device_memory_device(const assay_device_memory_t* m) { return m->target->device; }

assay_status_t assay_device_memory_stream(const assay_device_memory_t* m, uint64_t* out) {
  const assay_device_driver_t* driver = m->device->driver;
  *out = driver->queue_handle ? driver->queue_handle(m->queue) : 0;
  if (*out) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "target '%s' has no streams that other libraries know",
                     m->target->name);
}

static assay_status_t check_range(const assay_device_memory_t* m, size_t offset, size_t bytes) {
  if (offset <= m->bytes && bytes <= m->bytes - offset) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "%zu bytes from byte %zu on lie beyond the %zu bytes of the memory", bytes,
                     offset, m->bytes);
}

assay_status_t assay_device_memory_write(assay_device_memory_t* m, size_t offset, const void* data,
                                         size_t bytes) {
  ASSAY_TRY(check_range(m, offset, bytes));
  if (!bytes) return NULL;
  assay_status_t st = m->device->driver->upload(m->queue, data, m->at + offset, bytes);
  return assay_status_join(st, m->device->driver->queue_wait(m->queue, NULL));
}

assay_status_t assay_device_memory_read(assay_device_memory_t* m, size_t offset, void* out,
                                        size_t bytes) {
  ASSAY_TRY(check_range(m, offset, bytes));
  if (!bytes) return NULL;
  assay_status_t st = m->device->driver->download(m->queue, m->at + offset, out, bytes);
  return assay_status_join(st, m->device->driver->queue_wait(m->queue, NULL));
}
