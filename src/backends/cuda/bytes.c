// Bytes that a tactic has made of a layer's constants, in the device's memory.
#include "backends/cuda/bytes.h"

#include "base/hash.h"
#include "base/shown.h"
#include "exec/device/resident.h"

typedef struct bytes {
  const cuda_own_t* own;
  const void* from;
  size_t n;
} bytes_t;

static assay_status_t fill(void* user, assay_queue_t* q, assay_device_ptr_t to) {
  const bytes_t* b = user;
  return b->own->device->driver->upload(q, b->from, to, b->n);
}

// FNV-1a: layers of one name in two subgraphs have bytes of their own.
static uint64_t digest(const void* from, size_t bytes) {
  const uint8_t* at = from;
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * UINT64_C(0x100000001b3);
  return h;
}

assay_status_t cuda_bytes_bring(const assay_sized_layer_t* l, const char* what, const void* from,
                                size_t n, assay_device_ptr_t* out) {
  bytes_t b = {cuda_own_of(l), from, n};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s of %s, %016llx", what, l->out[0].value->name,
                       (unsigned long long)digest(from, n));
  assay_status_t st = assay_str_status(&key);
  if (!st) st = assay_resident_get(l->resident, assay_str_get(&key), n, fill, &b, out);
  assay_str_deinit(&key);
  return st;
}

assay_status_t cuda_bytes_share(const assay_sized_layer_t* l, const char* what, const void* from,
                                size_t n, assay_device_ptr_t* out) {
  bytes_t b = {cuda_own_of(l), from, n};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s %016llx%016llx %zu", what,
                       (unsigned long long)assay_hash(from, n, 1),
                       (unsigned long long)assay_hash(from, n, 2), n);
  assay_status_t st = assay_str_status(&key);
  if (!st) st = assay_resident_get(l->resident, assay_str_get(&key), n, fill, &b, out);
  assay_str_deinit(&key);
  return st;
}
