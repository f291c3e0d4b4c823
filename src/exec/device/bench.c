// Kernels that run alone, on operands of their own.
#include "exec/device/bench.h"

#include <math.h>

// So many runs of a kernel alone, and so many at once, as often.
enum { MIN_RUNS = 3, MAX_RUNS = 20, ROUNDS = 3 };
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

// ---- timing: one run ----------------------------------------------------------------------------

static assay_status_t time_once(assay_kernel_t* k, assay_bench_t* b, double* out_microseconds) {
  const assay_device_driver_t* driver = b->driver;
  ASSAY_TRY(driver->event_record(b->begin, b->q));
  ASSAY_TRY(k->enqueue(k, b->q, b->in, b->out, b->scratch));
  ASSAY_TRY(driver->event_record(b->end, b->q));
  ASSAY_TRY(driver->queue_wait(b->q, NULL));
  return driver->event_elapsed(b->begin, b->end, out_microseconds);
}

// The first time was taken already.
static assay_status_t time_alone(assay_kernel_t* k, assay_bench_t* b, int runs, double first,
                                 double* out_microseconds) {
  double us = 0, sum = first, fastest = first;
  for (int i = 1; runs ? i < runs : i < MAX_RUNS && (i < MIN_RUNS || sum < MICROSECONDS); i++) {
    ASSAY_TRY(time_once(k, b, &us));
    fastest = fmin(fastest, us);
    sum += us;
  }
  *out_microseconds = runs ? sum / runs : fastest;
  return NULL;
}

// ---- timing: many runs at once ------------------------------------------------------------------

// The host takes longer to launch a short kernel than the device to run it, and longer for some
// kernels than for others: between two events around one launch, a library's product of 5 us lost
// to one of ours of 8. A plan is captured, and pays that once. So short kernels are timed as in a
// plan: several runs in one capture, each launched as it is there (a dependent launch begins while
// the one before it ends), behind a launch of the same, under which the host launches the next one.
//
// All runs read the same operands, which the device's cache still has. That is right for inputs,
// which the layer before has just written, and for constants of a plan that fits into the cache (50
// MB on an H200). Those of a larger plan come from memory: on an H200 that added -0.1 to 0.8 us to
// products of 2 to 56 us, and of 17 shapes the other kernel became the faster one in one only,
// where the two had been 1% apart. What would cool constants between two runs would cool the
// inputs, too, keep launches from being dependent, and take longer than many of the kernels.

// How many runs of a kernel that takes so long alone are captured, so that measuring takes no
// longer than runs alone would; fewer than 2: it is not short.
static int runs_at_once(double alone) {
  const double n = MICROSECONDS / (2 * ROUNDS) / fmax(alone, 1);
  return n < MAX_RUNS ? (int)n : MAX_RUNS;
}

static assay_status_t enqueue_runs(assay_kernel_t* k, const assay_bench_t* b, int n) {
  for (int i = 0; i < n; i++) ASSAY_TRY(k->enqueue(k, b->q, b->in, b->out, b->scratch));
  return NULL;
}

// *out stays NULL where it cannot be captured; if the device is no good any more, the next run
// tells.
static assay_status_t capture_runs(assay_kernel_t* k, const assay_bench_t* b, int n,
                                   assay_capture_t** out) {
  *out = NULL;
  if (n < 2 || !b->driver->capture_begin) return NULL;
  assay_status_t st = b->driver->capture_begin(b->q);
  if (!st) {
    st = enqueue_runs(k, b, n);
    st = assay_status_join(st, b->driver->capture_end(b->q, out));
  }
  if (!st) return NULL;
  b->driver->capture_destroy(*out);
  *out = NULL;
  if (assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  return assay_status_free(st), NULL;
}

// The time of so many launches behind one that is not timed.
static assay_status_t time_launches(assay_capture_t* c, const assay_bench_t* b, int launches,
                                    double* out_microseconds) {
  const assay_device_driver_t* driver = b->driver;
  ASSAY_TRY(driver->capture_launch(c, b->q));
  ASSAY_TRY(driver->event_record(b->begin, b->q));
  for (int i = 0; i < launches; i++) ASSAY_TRY(driver->capture_launch(c, b->q));
  ASSAY_TRY(driver->event_record(b->end, b->q));
  ASSAY_TRY(driver->queue_wait(b->q, NULL));
  return driver->event_elapsed(b->begin, b->end, out_microseconds);
}

// n: runs in the capture.
static assay_status_t time_capture(assay_capture_t* c, const assay_bench_t* b, int n, int runs,
                                   double* out_microseconds) {
  const int launches = runs ? (runs + n - 1) / n : 1;
  double us = 0, fastest = (double)INFINITY;
  for (int i = 0; i < (runs ? 1 : ROUNDS); i++) {
    ASSAY_TRY(time_launches(c, b, launches, &us));
    fastest = fmin(fastest, us / launches / n);
  }
  *out_microseconds = fastest;
  return NULL;
}

// ---- timing -------------------------------------------------------------------------------------

// After a run that warms up.
static assay_status_t time_kernel(assay_kernel_t* k, assay_bench_t* b, int runs,
                                  double* out_microseconds) {
  assay_capture_t* c = NULL;
  double alone = 0;
  ASSAY_TRY(time_once(k, b, &alone));
  ASSAY_TRY(time_once(k, b, &alone));
  const int n = runs_at_once(alone);
  ASSAY_TRY(capture_runs(k, b, n, &c));
  if (!c) return time_alone(k, b, runs, alone, out_microseconds);
  assay_status_t st = time_capture(c, b, n, runs, out_microseconds);
  b->driver->capture_destroy(c);
  return st;
}

assay_status_t assay_bench_time(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                                int runs, double* out_microseconds) {
  assay_bench_t b = {0};
  double us = 0;
  *out_microseconds = 0;
  if (!k->enqueue) return NULL;
  assay_status_t st = assay_bench_init(user, l, k, k->scratch, &b);
  if (!st) st = time_kernel(k, &b, runs, &us);
  assay_bench_deinit(&b);
  *out_microseconds = round(100 * us) / 100;  // what the text keeps of it
  return assay_status_note(st, "timing a kernel of layer '%s'", l->layer->name);
}
