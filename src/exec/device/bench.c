// Kernels that run alone, on operands of their own.
#include "exec/device/bench.h"

#include <math.h>

enum { MIN_RUNS = 3, MAX_RUNS = 20 };
static const double MICROSECONDS = 2e3;  // of measuring, once the runs are enough

static assay_status_t zeros(const assay_bench_t* b, size_t bytes, assay_device_ptr_t* out) {
  ASSAY_TRY(b->driver->alloc(b->q, bytes ? bytes : 1, out));
  return bytes ? b->driver->fill(b->q, *out, 0, bytes) : NULL;
}

assay_status_t assay_bench_init(const assay_device_shared_t* s, const assay_sized_layer_t* l,
                                const assay_kernel_t* k, size_t scratch, assay_bench_t* b) {
  const assay_device_driver_t* driver = s->kind->driver;
  *b = (assay_bench_t){.driver = driver};
  ASSAY_TRY(driver->queue_create(s->device, &b->q));
  ASSAY_TRY(driver->event_create(s->device, &b->begin));
  ASSAY_TRY(driver->event_create(s->device, &b->end));
  for (size_t i = 0; i < l->n_in; i++)
    if (k->in[i].type)
      ASSAY_TRY(zeros(b, assay_operand_bytes(&l->in[i], k->in[i].type), &b->in[i]));
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value)
      ASSAY_TRY(zeros(b, assay_operand_bytes(&l->out[i], k->out[i].type), &b->out[i]));
  return scratch ? zeros(b, scratch, &b->scratch) : NULL;
}

void assay_bench_deinit(assay_bench_t* b) {
  if (!b->q) return;
  for (size_t i = 0; i < ASSAY_KERNEL_OPERANDS; i++) {
    b->driver->free(b->q, b->in[i]);
    b->driver->free(b->q, b->out[i]);
  }
  b->driver->free(b->q, b->scratch);
  assay_status_free(b->driver->queue_wait(b->q, NULL));
  b->driver->event_destroy(b->begin);
  b->driver->event_destroy(b->end);
  b->driver->queue_destroy(b->q);
}

// ---- timing -------------------------------------------------------------------------------------

static assay_status_t time_once(assay_kernel_t* k, assay_bench_t* b, double* out_microseconds) {
  const assay_device_driver_t* driver = b->driver;
  ASSAY_TRY(driver->event_record(b->begin, b->q));
  ASSAY_TRY(k->enqueue(k, b->q, b->in, b->out, b->scratch));
  ASSAY_TRY(driver->event_record(b->end, b->q));
  ASSAY_TRY(driver->queue_wait(b->q, NULL));
  return driver->event_elapsed(b->begin, b->end, out_microseconds);
}

// The mean of so many runs, after one that warms up; 0: the fastest of some.
assay_status_t assay_bench_time(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                                int runs, double* out_microseconds) {
  assay_bench_t b = {0};
  double us = 0, sum = 0, fastest = (double)INFINITY;
  *out_microseconds = 0;
  if (!k->enqueue) return NULL;
  assay_status_t st = assay_bench_init(user, l, k, k->scratch, &b);
  if (!st) st = time_once(k, &b, &us);
  for (int i = 0; !st && (runs ? i < runs : i < MAX_RUNS && (i < MIN_RUNS || sum < MICROSECONDS));
       i++) {
    st = time_once(k, &b, &us);
    fastest = fmin(fastest, us);
    sum += us;
  }
  assay_bench_deinit(&b);
  *out_microseconds =
      round(100 * (runs ? sum / runs : fastest)) / 100;  // what the text keeps of it
  return assay_status_note(st, "timing a kernel of layer '%s'", l->layer->name);
}
