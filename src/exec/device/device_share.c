// What contexts of an engine share on a device.
#include "exec/device/device_share.h"

#include <math.h>

#include "base/alloc.h"

// ---- timing -------------------------------------------------------------------------------------

enum { MIN_RUNS = 3, MAX_RUNS = 20 };
static const double MICROSECONDS = 2e3;  // of measuring, once the runs are enough

// What a kernel is timed with.
typedef struct bench {
  assay_queue_t* q;
  assay_event_t *begin, *end;
  assay_device_ptr_t in[ASSAY_KERNEL_OPERANDS], out[ASSAY_KERNEL_OPERANDS], scratch;
} bench_t;

// Zeros: valid as indices, and as fast as other numbers but for subnormal ones.
static assay_status_t zeros(const assay_device_shared_t* s, assay_queue_t* q, size_t bytes,
                            assay_device_ptr_t* out) {
  ASSAY_TRY(s->kind->driver->alloc(q, bytes ? bytes : 1, out));
  return bytes ? s->kind->driver->fill(q, *out, 0, bytes) : NULL;
}

static assay_status_t prepare(const assay_device_shared_t* s, const assay_sized_layer_t* l,
                              const assay_kernel_t* k, bench_t* b) {
  const assay_device_driver_t* driver = s->kind->driver;
  ASSAY_TRY(driver->queue_create(s->device, &b->q));
  ASSAY_TRY(driver->event_create(s->device, &b->begin));
  ASSAY_TRY(driver->event_create(s->device, &b->end));
  for (size_t i = 0; i < l->n_in; i++)
    if (k->in[i].type)
      ASSAY_TRY(zeros(s, b->q, assay_operand_bytes(&l->in[i], k->in[i].type), &b->in[i]));
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value)
      ASSAY_TRY(zeros(s, b->q, assay_operand_bytes(&l->out[i], k->out[i].type), &b->out[i]));
  return k->scratch ? zeros(s, b->q, k->scratch, &b->scratch) : NULL;
}

static void bench_deinit(const assay_device_shared_t* s, bench_t* b) {
  const assay_device_driver_t* driver = s->kind->driver;
  if (!b->q) return;
  for (size_t i = 0; i < ASSAY_KERNEL_OPERANDS; i++) {
    driver->free(b->q, b->in[i]);
    driver->free(b->q, b->out[i]);
  }
  driver->free(b->q, b->scratch);
  assay_status_free(driver->queue_wait(b->q, NULL));
  driver->event_destroy(b->begin);
  driver->event_destroy(b->end);
  driver->queue_destroy(b->q);
}

static assay_status_t time_once(const assay_device_driver_t* driver, assay_kernel_t* k, bench_t* b,
                                double* out_microseconds) {
  ASSAY_TRY(driver->event_record(b->begin, b->q));
  ASSAY_TRY(k->enqueue(k, b->q, b->in, b->out, b->scratch));
  ASSAY_TRY(driver->event_record(b->end, b->q));
  ASSAY_TRY(driver->queue_wait(b->q, NULL));
  return driver->event_elapsed(b->begin, b->end, out_microseconds);
}

// The mean of so many runs, after one that warms up; 0: the fastest of some.
static assay_status_t time_kernel(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                                  int runs, double* out_microseconds) {
  const assay_device_shared_t* s = user;
  bench_t b = {0};
  double us = 0, sum = 0, fastest = (double)INFINITY;
  *out_microseconds = 0;
  if (!k->enqueue) return NULL;
  assay_status_t st = prepare(s, l, k, &b);
  if (!st) st = time_once(s->kind->driver, k, &b, &us);
  for (int i = 0; !st && (runs ? i < runs : i < MAX_RUNS && (i < MIN_RUNS || sum < MICROSECONDS));
       i++) {
    st = time_once(s->kind->driver, k, &b, &us);
    fastest = fmin(fastest, us);
    sum += us;
  }
  bench_deinit(s, &b);
  *out_microseconds =
      round(100 * (runs ? sum / runs : fastest)) / 100;  // what the text keeps of it
  return assay_status_note(st, "timing a kernel of layer '%s'", l->layer->name);
}

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
                                          .time = time_kernel,
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
