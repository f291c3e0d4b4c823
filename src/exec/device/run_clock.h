// The parts of a run's time on a device, by events in its queue: for each piece that is put into
// the queue one before what is copied in, one behind it, one behind the layers, and one behind what
// is copied out.
#ifndef ASSAY_EXEC_DEVICE_RUN_CLOCK_H_
#define ASSAY_EXEC_DEVICE_RUN_CLOCK_H_

#include <assay/context.h>

#include "exec/device.h"

enum { ASSAY_RUN_EVENTS = 4 };

typedef struct assay_run_piece {
  assay_event_t* at[ASSAY_RUN_EVENTS];
} assay_run_piece_t;

typedef struct assay_run_clock {
  bool on;
  assay_run_piece_t* pieces;
  size_t n, made, capacity;  // of this run that have not been read; with events
  double began;              // seconds: when putting in the piece began
  assay_run_times_t sum;     // of this run, of pieces that were read
} assay_run_clock_t;

// Event number `which` of the piece, the first of which begins it. Nothing while it is off.
assay_status_t assay_run_clock_mark(assay_run_clock_t* c, assay_queue_t* q,
                                    int which) ASSAY_MUST_USE;
// The queue has been waited for: adds what came since the last call.
assay_status_t assay_run_clock_read(assay_run_clock_t* c) ASSAY_MUST_USE;
void assay_run_clock_reset(assay_run_clock_t* c);  // another run begins
void assay_run_clock_deinit(assay_run_clock_t* c);

#endif  // ASSAY_EXEC_DEVICE_RUN_CLOCK_H_
