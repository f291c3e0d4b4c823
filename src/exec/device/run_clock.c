// The parts of a run's time on a device.
#include "exec/device/run_clock.h"

#include "base/alloc.h"
#include "base/clock.h"

static assay_status_t make_piece(assay_run_clock_t* c, assay_device_t* d) {
  ASSAY_TRY(assay_grow(&c->pieces, &c->capacity, c->n + 1, sizeof *c->pieces));
  assay_run_piece_t* p = &c->pieces[c->made];
  *p = (assay_run_piece_t){0};
  c->made++;  // with as many events as it got
  for (int i = 0; i < ASSAY_RUN_EVENTS; i++) ASSAY_TRY(d->driver->event_create(d, &p->at[i]));
  return NULL;
}

assay_status_t assay_run_clock_mark(assay_run_clock_t* c, assay_queue_t* q, int which) {
  if (!c->on) return NULL;
  if (which == 0) {
    c->began = assay_clock_seconds();
    if (c->n == c->made) ASSAY_TRY(make_piece(c, q->device));
  }
  ASSAY_TRY(q->device->driver->event_record(c->pieces[c->n].at[which], q));
  if (which + 1 < ASSAY_RUN_EVENTS) return NULL;
  c->sum.enqueue += 1e6 * (assay_clock_seconds() - c->began);
  c->n++;
  return NULL;
}

assay_status_t assay_run_clock_read(assay_run_clock_t* c) {
  double* const parts[] = {&c->sum.upload, &c->sum.compute, &c->sum.download};
  for (; c->n; c->n--)
    for (int i = 0; i + 1 < ASSAY_RUN_EVENTS; i++) {
      assay_event_t* const* at = &c->pieces[c->n - 1].at[i];
      double microseconds = 0;
      ASSAY_TRY(at[0]->device->driver->event_elapsed(at[0], at[1], &microseconds));
      *parts[i] += microseconds;
    }
  return NULL;
}

void assay_run_clock_reset(assay_run_clock_t* c) {
  c->n = 0;
  c->sum = (assay_run_times_t)ASSAY_RUN_TIMES_INIT;
}

void assay_run_clock_deinit(assay_run_clock_t* c) {
  for (size_t i = 0; i < c->made; i++)
    for (int k = 0; k < ASSAY_RUN_EVENTS; k++)
      if (c->pieces[i].at[k]) c->pieces[i].at[k]->device->driver->event_destroy(c->pieces[i].at[k]);
  assay_free(c->pieces);
  *c = (assay_run_clock_t){0};
}
