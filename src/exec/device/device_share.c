// What contexts of an engine share on a device.
#include "exec/device/device_share.h"

#include "base/alloc.h"
#include "exec/device/bench.h"

// ---- what contexts share ------------------------------------------------------------------------

void assay_device_unshare(void* shared) {
  assay_device_shared_t* s = shared;
  if (!s) return;
  if (s->own) s->kind->unshare(s->own);
  assay_resident_destroy(s->resident);
  assay_choice_destroy(s->choice);
  if (s->device) s->kind->driver->close(s->device);
  assay_free(s);
}

static assay_status_t make_choice(assay_device_shared_t* s,
                                  const assay_backend_options_t* options) {
  assay_str_t machine = {0};
  s->kind->driver->describe(s->device, &machine);
  const assay_choice_setting_t setting = {.tactics = s->kind->tactics,
                                          .n_tactics = s->kind->n_tactics,
                                          .machine = assay_str_get(&machine),
                                          .time = assay_bench_time,
                                          .same_bits = assay_bench_same_bits,
                                          .user = s};
  assay_status_t st = assay_str_status(&machine);
  if (!st) st = assay_choice_create(&setting, options, &s->choice);
  assay_str_deinit(&machine);
  return st;
}

assay_status_t assay_device_share(const assay_device_kind_t* kind, const assay_layers_t* layers,
                                  const assay_backend_options_t* options, void** out_shared) {
  assay_device_shared_t* s = NULL;
  ASSAY_TRY(ASSAY_NEW(&s));
  s->kind = kind;
  assay_status_t st = kind->driver->open(options ? options->device : 0, &s->device);
  if (!st) st = assay_resident_create(s->device, &s->resident);
  if (!st) st = make_choice(s, options);
  if (!st && kind->share) st = kind->share(s->device, layers, options, s->choice->store, &s->own);
  if (st) return assay_device_unshare(s), st;
  *out_shared = s;
  return NULL;
}

assay_status_t assay_device_saved(void* shared, size_t i, const char** out_key,
                                  const void** out_data, size_t* out_bytes) {
  return assay_choice_saved(((assay_device_shared_t*)shared)->choice, i, out_key, out_data,
                            out_bytes);
}

assay_status_t assay_device_restore(void* shared, const char* key, const void* data, size_t bytes) {
  return assay_choice_restore(((assay_device_shared_t*)shared)->choice, key, data, bytes);
}

void assay_device_freeze(void* shared) {
  assay_choice_freeze(((assay_device_shared_t*)shared)->choice);
}

assay_status_t assay_device_timings(void* shared, assay_str_t* out, bool* out_measured) {
  return assay_choice_timings(((assay_device_shared_t*)shared)->choice, out, out_measured);
}
